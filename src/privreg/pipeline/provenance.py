"""What an artifact was made of: written into it, and compared with what its reader expects.

An identity is a digest of the experiment, the stage, its parameters, its code, its draws and the
identities of what it read. The plan knows it before any job runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from privreg.experiment import checksums, datasets
from privreg.pipeline.closure import digest

if TYPE_CHECKING:
    import xarray as xr

    from privreg.pipeline.plan import Plan

# A short identity by argument name; what is not named is not compared.
Expectations = Mapping[str, str]
NOTHING: Expectations = MappingProxyType({})
STAGES = "privreg.pipeline.stages"
# Characters of an identity on a command line.
SHORT = 16
# Between the identity of an artifact and the table that it was made with.
MADE_WITH = "@"


class ForeignError(ValueError):
    """An artifact is whole, but not the one that its reader expects."""


def identity(
    experiment: str,
    stage: str,
    *,
    config_digest: str,
    code_digest: str,
    reads: Mapping[str, str],
    draws: Mapping[str, int] | None = None,
) -> str:
    """Digest of all that decides an artifact's content, except the rows of a table.

    Parameters
    ----------
    experiment : str
        `paper/experiment`, or `data/<table>`.
    stage : str
        The stage that makes it.
    config_digest, code_digest : str
        Of the parameters and of the source files that the stage runs.
    reads : mapping
        Identity of each artifact that is read, by argument name.
    draws : mapping, optional
        Seed and number of trials of a simulation.
    """
    about = [experiment, stage, config_digest, code_digest, dict(reads), dict(draws or {})]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def config_digest(parameters: str) -> str:
    """SHA-256 of an experiment's parameters as JSON with sorted keys."""
    return hashlib.sha256(parameters.encode()).hexdigest()


def code_digest(stage: str, module: str) -> str:
    """SHA-256 of the source files that a stage of a recipe runs."""
    return digest(f"{STAGES}:{stage}", f"{module}:{stage}")


def data_code_digest() -> str:
    """SHA-256 of the source files that prepare a table."""
    return digest(f"{STAGES}:data", "privreg.data")


def table_identity(name: str) -> str:
    """Identity of a prepared table, whichever rows it holds."""
    return identity(
        f"data/{name}", "data", config_digest="", code_digest=data_code_digest(), reads={}
    )


def read_all(paths: Mapping[str, Path], expected: Expectations) -> dict[str, xr.Dataset]:
    """Artifacts by argument name, each verified and compared with what is expected of it."""
    return {name: read(path, expected.get(name)) for name, path in paths.items()}


def read(path: Path, expected: str | None) -> xr.Dataset:
    """An artifact, verified, and refused if it is not the one that is expected.

    Parameters
    ----------
    path : Path
    expected : str or None
        From `Expected`; None expects nothing.

    Raises
    ------
    DamagedError, ForeignError
        One line.
    """
    dataset = datasets.read(path)
    if expected is None:
        return dataset
    wanted, _, table = expected.partition(MADE_WITH)
    made_of = dataset.attrs
    if not str(made_of.get("identity", "")).startswith(wanted):
        raise ForeignError(
            f"{path}: holds {made_of.get('experiment', 'nothing known')} as made by "
            f"{made_of.get('stage', 'no stage')} of other parameters, code or draws than this "
            "run's; remove it and type the same command again"
        )
    if table and made_of.get("data_digest") != checksums.recorded(table):
        raise ForeignError(
            f"{path}: made with other rows than those of {table}; "
            "remove it and type the same command again"
        )
    return dataset


class Expected:
    """What the readers of artifacts expect of them, as the plan has it.

    Each method gives a JSON object, from argument names to short identities, for the option
    `--expected` of a stage.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._identity = cache(self._uncached_identity)

    def stage(self, stage: str, paper: str, name: str) -> str:
        """Of what a stage of an experiment reads."""
        expected = {}
        for kind, path in self._plan.reads(stage, paper, name).items():
            named = Path(path).stem if kind == "data" else name
            expected[kind] = self._artifact(paper, named, kind)
        if stage == "summarise":
            expected["shards"] = self._made_by("simulate", paper, name)
        return json.dumps(expected)

    def drawing(self, kind: str, paper: str, name: str) -> str:
        """Of what a figure or table reads; `kind` is figure or table."""
        block = self._plan.config.papers[paper]
        drawing = block.figures[name] if kind == "figure" else block.tables[name]
        return self._named(paper, drawing.artifacts)

    def group(self, paper: str, group: str) -> str:
        """Of what judges a group of entries."""
        return self._named(paper, {name: name for name in self._plan.ledgers.reads(paper, group)})

    def _named(self, paper: str, artifacts: Mapping[str, str]) -> str:
        found = {}
        for argument, artifact in artifacts.items():
            kind, _, name = artifact.partition("/")
            found[argument] = self._artifact(paper, name, kind)
        return json.dumps(found)

    def _artifact(self, paper: str, name: str, kind: str) -> str:
        """Of an artifact of an experiment; for the kind `data`, `name` is a table's."""
        if kind == "data":
            return self._identity("data", "data", name)[:SHORT]
        return self._made_by("summarise" if kind == "simulation" else kind, paper, name)

    def _made_by(self, stage: str, paper: str, name: str) -> str:
        short = self._identity(stage, paper, name)[:SHORT]
        steps = ("simulate", "summarise") if stage == "summarise" else (stage,)
        tables = [self._plan.reads(step, paper, name).get("data") for step in steps]
        table = next(filter(None, tables), None)
        return f"{short}{MADE_WITH}{table}" if table else short

    def _uncached_identity(self, stage: str, paper: str, name: str) -> str:
        if stage == "data":
            return table_identity(name)
        plan, recipe = self._plan, self._plan.recipe(paper, name)
        reads: dict[str, str] = {}
        for kind, path in plan.reads(stage, paper, name).items():
            if kind == "data":
                reads[kind] = self._identity("data", "data", Path(path).stem)
            else:
                maker = "summarise" if kind == "simulation" else kind
                reads[kind] = self._identity(maker, paper, name)
        draws: dict[str, Any] = {}
        if stage == "simulate":
            draws = {"seed": plan.config.seed, "trials": plan.experiment(paper, name).trials}
        elif recipe.has("simulate") and stage == "summarise":
            reads["shards"] = self._identity("simulate", paper, name)
        return identity(
            f"{paper}/{name}",
            stage,
            config_digest=config_digest(plan.parameters(paper, name)),
            code_digest=code_digest(stage, recipe.module_name),
            reads=reads,
            draws=draws,
        )
