"""Find recipes: which stages an experiment has and which artifacts each stage reads.

A recipe is a module in a paper's `experiments` folder. It holds a `Parameters` model, a `PLACE` in
the paper, and the stages that it has as functions `theory`, `simulate`, `summarise` and
`intervals`. A stage reads the artifacts that its arguments name: `theory`, `simulation`,
`intervals` and `data`, the last one being the table that the parameter `dataset` names.

The project's own promises are studies: they have recipes, figures and a ledger as a paper has,
under the key `studies` in place of a citation key.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from reproduction import papers
from reproduction.engine.citations import Citation
from reproduction.engine.parameters import ConfigError, Strict, choose, validate
from reproduction.engine.yaml_files import read_mapping
from reproduction.pipeline.config import STUDIES

ARTIFACTS = ("theory", "simulation", "intervals", "data")
# The stage whose presence decides whether there is an artifact of a kind.
STAGE_OF = {"theory": "theory", "simulation": "simulate", "intervals": "intervals"}


@cache
def known_papers() -> tuple[str, ...]:
    """Citation keys of the papers that this package implements."""
    found = (entry.name for entry in pkgutil.iter_modules(papers.__path__) if entry.ispkg)
    return tuple(sorted(found))


def known_keys() -> tuple[str, ...]:
    """Citation keys, and the key of the studies."""
    return (*known_papers(), STUDIES)


def package(key: str) -> str:
    """Package that holds the recipes and figures of a paper or of the studies."""
    return f"reproduction.{STUDIES}" if key == STUDIES else f"reproduction.papers.{key}"


def citation(paper: str) -> Citation:
    """Bibliographic data of a paper, or of the studies."""
    choose(paper, known_keys(), "a paper")
    return importlib.import_module(package(paper)).CITATION


def seed_key(path: str) -> str:
    """Key that seeds the draws of an experiment, by its path `paper/experiment`.

    It is the path, unless the package states under which key it was first drawn (`SEEDED_AS`), so
    that an experiment that moved keeps its numbers.
    """
    paper, _, experiment = path.partition("/")
    first = getattr(importlib.import_module(package(paper)), "SEEDED_AS", paper)
    return f"{first}/{experiment}"


@cache
def recipes(paper: str) -> tuple[str, ...]:
    """Names of a paper's recipes: the modules of its `experiments` folder."""
    folder = importlib.import_module(f"{package(paper)}.experiments").__path__
    return tuple(sorted(entry.name for entry in pkgutil.iter_modules(folder)))


def paper_files(config: Mapping[str, Any]) -> list[str]:
    """Configuration files of the papers that a configuration lists, and of studies if any."""
    listed = config.get("papers")
    if not isinstance(listed, list):
        raise ConfigError(f"config.papers must be a list of citation keys, got {listed!r}")
    keys = [choose(paper, known_papers(), "config.papers") for paper in listed]
    studies = Path(f"config/{STUDIES}.yaml")
    files = [f"config/papers/{key}.yaml" for key in keys]
    files += [studies.as_posix()] if studies.is_file() else []
    for file in files:
        # What is no YAML is said better here than by who reads it next.
        read_mapping(file)
    return files


@dataclass(frozen=True)
class Recipe:
    """A recipe, of a paper or of the studies; a `ConfigError` if it is not there."""

    paper: str
    name: str

    @cached_property
    def module(self) -> ModuleType:
        choose(self.name, recipes(self.paper), f"{self.paper}.experiments")
        return importlib.import_module(self.module_name)

    @property
    def module_name(self) -> str:
        return f"{package(self.paper)}.experiments.{self.name}"

    def has(self, stage: str) -> bool:
        """Whether the recipe has this stage."""
        return hasattr(self.module, stage)

    @property
    def least_trials(self) -> int:
        """Trials that a summary needs."""
        return int(getattr(self.module, "LEAST_TRIALS", 1))

    def maker(self, kind: str) -> Callable[..., Any]:
        """The stage that gives an artifact its variables; of a simulation the summary, if any."""
        stage = STAGE_OF[kind]
        last = "summarise" if stage == "simulate" and self.has("summarise") else stage
        found: Callable[..., Any] = getattr(self.module, last)
        return found

    def reads(self, stage: str) -> tuple[str, ...]:
        """Kinds of artifact that a stage reads, beside the shards that a summary joins.

        The stage `simulation` is `simulate` and `summarise` in one process.
        """
        if stage == "simulation":
            read = {*self.reads("simulate"), *self.reads("summarise")}
            return tuple(kind for kind in ARTIFACTS if kind in read)
        if not self.has(stage):
            return ()
        names = inspect.signature(getattr(self.module, stage)).parameters
        joined = {"simulation"} if stage == "summarise" else set()
        return tuple(kind for kind in ARTIFACTS if kind in names and kind not in joined)

    def parameters(self, values: Mapping[str, Any], experiment: str) -> Strict:
        """The recipe's typed parameters, those of an experiment."""
        where = f"{self.paper}.experiments.{experiment}.parameters"
        return validate(self.module.Parameters, values, where)

    @property
    def references(self) -> str:
        return f"{citation(self.paper).reference} {self.module.PLACE}."
