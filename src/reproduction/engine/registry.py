"""Papers and their recipes: which stages an experiment has, and which artifacts each stage reads.

A recipe is a module in a paper's `experiments` folder. It holds a `Parameters` model, a `PLACE` in
the paper, and the stages that it has as functions `theory`, `simulate`, `summarise` and
`intervals`. A stage reads the artifacts that its arguments name: `theory`, `simulation`,
`intervals` and `data`, the last one being the table that the parameter `dataset` names.

Studies test the library's own guarantees: they have recipes, figures and a ledger as a paper has,
under the key `studies` in place of a citation key.
"""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

from reproduction.engine.citations import Citation
from reproduction.engine.parameters import choose

STUDIES = "studies"
ARTIFACTS = ("theory", "simulation", "intervals", "data")
# The stage that makes an artifact of each kind.
STAGE_OF = {"theory": "theory", "simulation": "simulate", "intervals": "intervals"}


@cache
def known_papers() -> tuple[str, ...]:
    """Citation keys of the papers that this package implements."""
    folder = importlib.import_module("reproduction.papers").__path__
    return tuple(sorted(entry.name for entry in pkgutil.iter_modules(folder) if entry.ispkg))


def package(key: str) -> str:
    """Package that holds the recipes and figures of a paper or of the studies."""
    return f"reproduction.{STUDIES}" if key == STUDIES else f"reproduction.papers.{key}"


def citation(paper: str) -> Citation:
    """Bibliographic data of a paper, or of the studies."""
    found: Citation = importlib.import_module(package(paper)).CITATION
    return found


def bibliography(papers: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Titles, authors, years, addresses, subjects and recipes by citation key."""
    found = {}
    for paper in papers:
        about, folder = citation(paper), f"src.{package(paper)}.experiments".replace(".", "/")
        found[paper] = {**vars(about), "url": about.url, "code": folder, "recipes": recipes(paper)}
    return found


def seed_key(path: str) -> str:
    """Key that seeds the draws of an experiment, by its path `paper/experiment`.

    The key is the path, unless `SEEDED_AS` of the package gives the key of the first draws: an
    experiment that moves keeps its numbers.
    """
    paper, _, experiment = path.partition("/")
    first = getattr(importlib.import_module(package(paper)), "SEEDED_AS", paper)
    return f"{first}/{experiment}"


@cache
def recipes(paper: str) -> tuple[str, ...]:
    """Names of a paper's recipes: the modules of its `experiments` folder."""
    folder = importlib.import_module(f"{package(paper)}.experiments").__path__
    return tuple(sorted(entry.name for entry in pkgutil.iter_modules(folder)))


def drawings(paper: str, kind: str) -> dict[str, Callable[..., Any]]:
    """Functions that draw a paper's `figures` or write its `tables`, by name."""
    name = f"{package(paper)}.{kind}"
    if importlib.util.find_spec(name) is None:
        return {}
    listed = vars(importlib.import_module(name)).items()
    own = package(paper)
    return {
        name: each
        for name, each in listed
        if name[0] != "_" and inspect.isfunction(each) and each.__module__.startswith(own)
    }


@dataclass(frozen=True)
class Recipe:
    """A recipe, of a paper or of the studies; a `ConfigError` if it does not exist."""

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
        """True if the recipe has this stage."""
        return hasattr(self.module, stage)

    def maker(self, kind: str) -> Callable[..., Any]:
        """Stage that gives an artifact its variables; for a simulation, its summary if any."""
        stage = STAGE_OF[kind]
        last = "summarise" if stage == "simulate" and self.has("summarise") else stage
        found: Callable[..., Any] = getattr(self.module, last)
        return found

    def reads(self, *stages: str) -> tuple[str, ...]:
        """Kinds of artifact that stages read, beside the shards that a summary joins."""
        read: set[str] = set()
        for stage in filter(self.has, stages):
            names = {*inspect.signature(getattr(self.module, stage)).parameters}
            read |= names - ({"simulation"} if stage == "summarise" else set())
        return tuple(kind for kind in ARTIFACTS if kind in read)
