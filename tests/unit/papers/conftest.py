"""Every artifact of the configuration at a scale that is built in seconds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import yaml

from privreg.data import stand_ins
from reproduction.experiment import datasets
from reproduction.experiment.tables import to_dataset
from reproduction.pipeline import stages
from reproduction.pipeline.config import merge
from reproduction.pipeline.plan import Plan
from reproduction.pipeline.registry import paper_files

ROOT = Path(__file__).parents[3]
STAGE_THAT_WRITES = {"theory": "theory", "simulation": "summarise", "intervals": "intervals"}
# What is still slow at the quick scale, made smaller again: overlays of `quick`.
TINY: dict[str, dict[str, Any]] = {
    "bombari2025": {
        "scaling_laws_mild": {
            "parameters": {
                "spectrum_powers": [0.0],
                "schedule_powers": [0.0, 1.0],
                "aspect_ratios": {"count": 3},
            }
        },
        "scaling_laws_steep": {
            "parameters": {
                "spectrum_powers": [0.7],
                "schedule_powers": [1.0, 5.0, 10.0],
                "aspect_ratios": {"count": 3},
            }
        },
        "scaling_laws_mild_late": {"parameters": {"schedule_powers": [0.0, 1.0]}},
        "scaling_laws_steep_late": {"parameters": {"schedule_powers": [1.0, 5.0, 10.0]}},
        "trajectories": {"trials": 2, "parameters": {"dimensions": [10, 20]}},
        "sample_sizes": {"parameters": {"exponents": [0.0, 0.5], "sample_sizes": [1000, 3000]}},
        "isotropic_heat_maps": {
            "parameters": {"clip_constants": {"count": 4}, "initial_rates": {"count": 5}}
        },
        "mnist_heat_maps": {
            "parameters": {"clip_constants": {"count": 5}, "initial_rates": {"count": 5}}
        },
        "housing_heat_maps": {
            "parameters": {"clip_constants": {"count": 5}, "initial_rates": {"count": 5}}
        },
        "harmonic_limits": {"parameters": {"aspect_ratios": [1.0e-3, 1.0e-4, 1.0e-5]}},
        "optimal_rates": {
            "parameters": {
                "log_power_aspect_ratios": [1.0e-8, 1.0e-9],
                "penalty_clip_constants": [0.01, 0.1, 1.0, 10.0],
            }
        },
        "privacy_budget": {"parameters": {"exponents": [0.0, 0.5], "orders": [2.0]}},
        "forgetting_kernels": {"parameters": {"schedule_powers": [0.0, 0.5], "intervals": 50}},
    },
    "lin2025": {
        "pair_losses": {"trials": 2, "parameters": {"pairs": 5, "candidates": 4}},
        "pair_losses_literal": {"trials": 2, "parameters": {"pairs": 5, "candidates": 4}},
        "privacy_paths": {"parameters": {"steps": [2, 20, 150]}},
        "privacy_paths_literal": {"parameters": {"steps": [2, 20, 150]}},
        "release_strategies": {"parameters": {"steps": [75, 150], "candidates": 3}},
        "fixed_order": {"parameters": {"positions": [5, 100], "lags": [1, 50]}},
    },
    "choquettechoo2024": {
        "convex_programs": {"parameters": {"condition_numbers": {"count": 2}, "lags": 5}},
    },
    "studies": {
        "population_coverage": {
            "trials": 2,
            "parameters": {
                "cases": [
                    {"sample_size": 2000, "dimension": 3, "rho": 0.5},
                    {"sample_size": 1000, "dimension": 2, "rho": 0.5},
                ]
            },
        },
        "interval_lengths": {"trials": 2},
    },
    "brown2024": {
        "fixed_ratio": {"trials": 2, "parameters": {"dimensions": [5, 10, 20]}},
        "fixed_ratio_anisotropic": {"trials": 2, "parameters": {"dimensions": [5, 10, 20]}},
        "large_budget": {"trials": 2},
        "ten_features": {"trials": 2, "parameters": {"sample_sizes": [1000, 10000]}},
        "hundred_features": {"parameters": {"sample_sizes": [2000, 4000]}},
        "concentration": {"parameters": {"draws": 20, "wide_dimension": 40}},
    },
}


def _cheap_plans(patch: pytest.MonkeyPatch) -> None:
    """Plans among two quick methods, a sixth of the runs: whole ones have tests of their own."""
    from privreg.planning import plan
    from reproduction.studies import regret

    patch.setattr(plan, "plan_run", partial(plan.plan_run, methods=["full_batch", "adassp"]))
    patch.setattr(regret, "ROUNDS", ((106, 1), (2, 1)))


class Built:
    """Artifacts by `stage/experiment`, each built when it is first asked for."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self._reasons: dict[tuple[str, str], BaseException] = {}

    def dataset(self, paper: str, artifact: str) -> xr.Dataset:
        return datasets.read(self.path(paper, artifact))

    def path(self, paper: str, artifact: str) -> Path:
        path = self.folder / self.plan.layout.artifact(paper, artifact)
        if not path.is_file():
            if (paper, artifact) in self._reasons:
                raise self._reasons[paper, artifact]
            try:
                self._build(paper, artifact, path)
            except Exception as error:
                self._reasons[paper, artifact] = error
                raise
        return path

    def _build(self, paper: str, artifact: str, path: Path) -> None:
        kind, _, name = artifact.partition("/")
        if kind == "data":
            bundled = stand_ins.BUNDLED[name]("a test needs no download")
            datasets.write(to_dataset(bundled), path)
            return
        options: dict[str, Any] = {
            "recipe": self.plan.recipe(paper, name).name,
            "parameters": self.plan.experiment(paper, name).parameters,
        }
        if kind == "simulation":
            options["shards"] = self._shards(paper, name, options)
        stage = STAGE_THAT_WRITES[kind]
        reads = self._reads(stage, paper, name)
        with pytest.MonkeyPatch.context() as patch:
            if paper == "studies":
                _cheap_plans(patch)
            getattr(stages, stage)(f"{paper}/{name}", **options, artifacts=reads, output=path)

    def _shards(self, paper: str, name: str, options: dict[str, Any]) -> list[Path]:
        experiment = self.plan.experiment(paper, name)
        shards = [self.folder / shard for shard in self.plan.shards(paper, name)]
        for index, shard in enumerate(shards):
            stages.simulate(
                f"{paper}/{name}",
                **options,
                seed=self.plan.config.seed,
                trials=experiment.trials or 0,
                shard=(index, len(shards)),
                artifacts=self._reads("simulate", paper, name),
                output=shard,
            )
        return shards

    def _reads(self, stage: str, paper: str, name: str) -> dict[str, Path]:
        """Paths of what a stage reads, built."""
        found = {}
        for kind, path in self.plan.reads(stage, paper, name).items():
            what = Path(path).stem if kind == "data" else name
            found[kind] = self.path(paper, f"{kind}/{what}")
        return found


def tiny_plan() -> Plan:
    """The plan of a run at the quick scale with the overlays above."""
    raw = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    for file in paper_files(raw):
        raw |= yaml.safe_load((ROOT / file).read_text())
    for paper, experiments in TINY.items():
        for name, overlay in experiments.items():
            block = raw[paper]["experiments"][name]
            block["quick"] = merge(block.get("quick", {}), overlay)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PRIVREG_DATA", raising=False)
        return Plan(raw | {"scale": "quick"}, ROOT / "config/claims")


PLAN = tiny_plan()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each experiment, and for each figure and table, of the configuration."""
    papers = PLAN.config.blocks.items()
    listed = {
        "experiment": [(paper, name) for paper, block in papers for name in block.experiments],
        "drawing": [
            (paper, kind, name)
            for paper, block in papers
            for kind, names in (("figure", block.figures), ("table", block.tables))
            for name in names
        ],
    }
    for argument, values in listed.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, values, ids=["/".join(value) for value in values])


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(PLAN, tmp_path_factory.mktemp("tiny"))
