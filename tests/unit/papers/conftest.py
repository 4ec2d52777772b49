"""Every artifact of the configuration at a scale that is built in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import xarray as xr

from privreg.data.sources import SOURCES
from reproduction.engine import artifacts as store
from reproduction.engine import stages
from reproduction.engine.config import merge
from reproduction.engine.plan import Plan
from reproduction.engine.yaml_files import read_mapping

CONFIG = Path(__file__).parents[3] / "config"


@contextmanager
def cheap_searches() -> Iterator[None]:
    """Coarse best rates, few runs, two quick methods: whole ones have tests of their own."""
    from privreg import planning
    from privreg.theory.one_pass_dpgd import rate_search
    from reproduction.papers.choquettechoo2024.experiments import finite_time_steps
    from reproduction.studies import regret

    def few_runs(*given: Any, **settings: Any) -> Any:
        return largest(*given, **settings | {"runs": 4})

    def small_grid(*given: Any) -> Any:
        return grid(*given)[::9]

    largest, grid = finite_time_steps._largest_gradient, regret.grid
    methods = partial(planning.plan_run, methods=["full_batch", "adassp"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finite_time_steps, "_largest_gradient", few_runs)
        patch.setattr(regret, "grid", small_grid)
        for name, value in {
            "FIRST_POINTS": 11,
            "AMPLITUDE_STEP": 9,
            "OFFSET_STEP": 9,
            "LAST_RTOL": 1e-2,
        }.items():
            patch.setattr(rate_search, name, value)
        patch.setattr(planning, "plan_run", methods)
        patch.setattr(regret, "ROUNDS", ((12, 1), (2, 1)))
        yield


class Built:
    """Artifacts by `stage/experiment`, each built when it is first asked for."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self._reasons: dict[Path, BaseException] = {}

    def dataset(self, paper: str, artifact: str) -> xr.Dataset:
        """An artifact; what failed to be built once fails again."""
        path = self.folder / self.plan.artifact(paper, artifact)
        if path in self._reasons:
            raise self._reasons[path]
        if not path.is_file():
            try:
                self._build(paper, *artifact.split("/"), path)
            except Exception as error:
                self._reasons[path] = error
                raise
        return store.read(path)

    def inputs(self, paper: str, name: str, *stages: str) -> dict[str, xr.Dataset]:
        """What stages of an experiment read."""
        reads = self.plan.reads(paper, name, *stages).items()
        return {kind: self.dataset(paper, f"{kind}/{Path(file).stem}") for kind, file in reads}

    def simulated(self, paper: str, name: str, index: int, count: int) -> xr.Dataset:
        """One of so many shards of an experiment's trials."""
        plan = self.plan
        draws = (f"{paper}/{name}", plan.config.seed, plan.experiments[paper, name].trials or 0)
        inputs = self.inputs(paper, name, "simulate")
        run = (plan.recipe(paper, name), plan.parameters[paper, name], inputs, draws)
        with cheap_searches():
            return stages.simulated(*run, (index, count))

    def _build(self, paper: str, kind: str, name: str, path: Path) -> None:
        """Run a job's stage on files."""
        if kind == "data":
            bundled = SOURCES[name].stand_in("a test needs no download")
            store.write(store.to_dataset(bundled), path)
            return
        plan = self.plan
        of_kind = ("simulate", "summarise") if kind == "simulation" else (kind,)
        self.inputs(paper, name, *of_kind)
        reads = plan.reads(paper, name, *of_kind).items()
        shard = path.parent / name / "0.nc"
        job = SimpleNamespace(
            wildcards=SimpleNamespace(paper=paper, experiment=name),
            params=SimpleNamespace(
                recipe=plan.recipe(paper, name).name,
                parameters=plan.parameters[paper, name],
                settings=plan.settings(paper, name),
                code=plan.code(paper, name),
                draws=plan.draws(paper, name),
            ),
            input={read: self.folder / file for read, file in reads},
            output=SimpleNamespace(summary=path, shard=shard) if len(of_kind) > 1 else [path],
        )
        with cheap_searches():
            getattr(stages, kind)(job)


def tiny_plan() -> Plan:
    """The plan of a run at the quick scale, of which what is slow is made smaller again."""
    tiny = read_mapping(Path(__file__).parent / "tiny.yaml")
    overlay = {
        paper: {"experiments": {name: {"quick": each} for name, each in experiments.items()}}
        for paper, experiments in tiny.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PRIVREG_DATA", raising=False)
        return Plan(CONFIG, merge(overlay, {"scale": "quick"}))


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
            for kind in ("figures", "tables")
            for name in block.drawings(kind)
        ],
    }
    for argument, values in listed.items():
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, values, ids=["/".join(value) for value in values])


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(PLAN, tmp_path_factory.mktemp("tiny"))
