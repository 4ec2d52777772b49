"""Every artifact of the configuration at a scale that is built in seconds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import xarray as xr

from privreg.data import stand_ins
from reproduction.engine import artifacts as store
from reproduction.engine import stages
from reproduction.engine.config import merge
from reproduction.engine.plan import Plan
from reproduction.engine.yaml_files import read_mapping

CONFIG = Path(__file__).parents[3] / "config"


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


class Named(dict[str, Any]):
    """Files by name, as a job has them."""

    __getattr__ = dict.__getitem__


class Built:
    """Artifacts by `stage/experiment`, each built when it is first asked for."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self._reasons: dict[Path, BaseException] = {}

    def dataset(self, paper: str, artifact: str) -> xr.Dataset:
        return store.read(self.path(paper, artifact))

    def path(self, paper: str, artifact: str) -> Path:
        kind, _, name = artifact.partition("/")
        path = self.folder / self.plan.artifact(paper, artifact)
        if kind == "data" and not path.is_file():
            bundled = stand_ins.BUNDLED[name]("a test needs no download")
            store.write(store.to_dataset(bundled), path)
        elif kind == "simulation":
            self._make(paper, name, ("simulate", "summarise"), path, "simulation")
        elif kind != "data":
            self._make(paper, name, (kind,), path, kind)
        return path

    def shard(self, paper: str, name: str, index: int, count: int) -> Path:
        """One job's trials of an experiment, of all when there is one job."""
        path = self._shard_file(paper, name, index, count)
        if count == 1:
            self.path(paper, f"simulation/{name}")
        else:
            self._make(paper, name, ("simulate",), path, "simulate", index, count)
        return path

    def _shard_file(self, paper: str, name: str, index: int = 0, count: int = 1) -> Path:
        return self.folder / f"shards/{paper}/{name}/{index}-of-{count}.nc"

    def _make(
        self,
        paper: str,
        name: str,
        reads: tuple[str, ...],
        path: Path,
        stage: str,
        index: int = 0,
        count: int = 1,
    ) -> None:
        """Run a stage as a job does, unless its file is there; what failed once fails again."""
        if path.is_file():
            return
        if path in self._reasons:
            raise self._reasons[path]
        plan = self.plan
        output = Named(summary=path, shard=self._shard_file(paper, name))
        job = SimpleNamespace(
            wildcards=SimpleNamespace(paper=paper, experiment=name, shard=index),
            params=SimpleNamespace(
                recipe=plan.recipe(paper, name).name,
                parameters=plan.parameters[paper, name],
                settings=plan.settings(paper, name),
                code=plan.code(paper, name),
                draws=plan.draws(paper, name),
                shards=count,
            ),
            input={
                kind: self.path(paper, f"{kind}/{Path(file).stem}")
                for kind, file in plan.reads(paper, name, *reads).items()
            },
            output=output if stage == "simulation" else [path],
        )
        try:
            with pytest.MonkeyPatch.context() as patch:
                _cheap_searches(patch)
                getattr(stages, stage)(job)
        except Exception as error:
            self._reasons[path] = error
            raise


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
