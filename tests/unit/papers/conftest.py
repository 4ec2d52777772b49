"""Every artifact of the configuration at a scale that is built in seconds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
import yaml

from privreg.data import stand_ins
from reproduction.engine import artifacts as store
from reproduction.engine import stages
from reproduction.engine.artifacts import to_dataset
from reproduction.engine.config import merge
from reproduction.engine.plan import Plan
from reproduction.engine.registry import paper_files

ROOT = Path(__file__).parents[3]
STAGE_THAT_WRITES = {"theory": "theory", "simulation": "summarise", "intervals": "intervals"}
# What is still slow at the quick scale, made smaller again: overlays of `quick`.
TINY: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "tiny.yaml").read_text()
)


def _cheap_searches(patch: pytest.MonkeyPatch) -> None:
    """Coarse best rates, few runs, two quick methods: whole ones have tests of their own."""
    from privreg.planning import plan
    from privreg.theory.one_pass_dpgd import rate_search
    from reproduction.papers.choquettechoo2024.experiments import finite_time_steps
    from reproduction.studies import regret

    def few_runs(*given: Any, **settings: Any) -> Any:
        return largest(*given, **settings | {"runs": 4})

    def small_grid(*given: Any) -> Any:
        return grid(*given)[::9]

    largest, grid = finite_time_steps._largest_gradient, regret.grid
    patch.setattr(finite_time_steps, "_largest_gradient", few_runs)
    patch.setattr(regret, "grid", small_grid)

    for name, value in {"FIRST_POINTS": 11, "ZOOMS": 0, "LAST_RTOL": 1e-2}.items():
        patch.setattr(rate_search, name, value)
    patch.setattr(plan, "plan_run", partial(plan.plan_run, methods=["full_batch", "adassp"]))
    patch.setattr(regret, "ROUNDS", ((12, 1), (2, 1)))


class Built:
    """Artifacts by `stage/experiment`, each built when it is first asked for."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self._reasons: dict[tuple[str, str], BaseException] = {}

    def dataset(self, paper: str, artifact: str) -> xr.Dataset:
        return store.read(self.path(paper, artifact))

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
            store.write(to_dataset(bundled), path)
            return
        options: dict[str, Any] = {
            "recipe": self.plan.recipe(paper, name).name,
            "parameters": self.plan.experiment(paper, name).parameters,
        }
        if kind == "simulation":
            options["shards"] = [self.shard(paper, name, 0, 1)]
        stage = STAGE_THAT_WRITES[kind]
        reads = self._reads(stage, paper, name)
        with pytest.MonkeyPatch.context() as patch:
            _cheap_searches(patch)
            getattr(stages, stage)(f"{paper}/{name}", **options, artifacts=reads, output=path)

    def shard(self, paper: str, name: str, index: int, count: int) -> Path:
        """One job's trials of an experiment, of all when there are `count` jobs."""
        experiment = self.plan.experiment(paper, name)
        path = self.folder / f"shards/{paper}/{name}/{index}-of-{count}.nc"
        if not path.is_file():
            stages.simulate(
                f"{paper}/{name}",
                recipe=self.plan.recipe(paper, name).name,
                parameters=experiment.parameters,
                seed=self.plan.config.seed,
                trials=experiment.trials or 0,
                shard=(index, count),
                artifacts=self._reads("simulate", paper, name),
                output=path,
            )
        return path

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
    """One test for the first experiment of each recipe, and for each figure and table."""
    papers = PLAN.config.blocks.items()
    recipes = {
        (paper, PLAN.recipe(paper, name).name): name
        for paper, block in papers
        for name in reversed(block.experiments)
    }
    listed = {
        "experiment": sorted((paper, name) for (paper, _), name in recipes.items()),
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
