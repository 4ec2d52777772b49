"""Find a paper's recipes: which stages an experiment has and which artifacts each stage reads.

A recipe is a module of a paper's package. It holds a `Parameters` model, a `PLACE` in the paper,
and the stages that it has as functions `theory`, `simulate`, `summarise` and `intervals`. A stage
reads the artifacts that its arguments name: `theory`, `simulation`, `intervals` and `data`, the
last one being the table that the parameter `dataset` names.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from privreg import papers
from privreg.config import ConfigError, Strict, choose, validate
from privreg.papers.citation import Citation

ARTIFACTS = ("theory", "simulation", "intervals", "data")


def known_papers() -> list[str]:
    """Citation keys of the papers that this package implements."""
    return sorted(entry.name for entry in pkgutil.iter_modules(papers.__path__) if entry.ispkg)


def citation(paper: str) -> Citation:
    """Bibliographic data of a paper."""
    return importlib.import_module(f"privreg.papers.{paper}").CITATION


def recipes(paper: str) -> list[str]:
    """Names of a paper's recipes: the modules that define `Parameters`."""
    folder = Path(next(iter(importlib.import_module(f"privreg.papers.{paper}").__path__)))
    return sorted(
        path.stem
        for path in folder.glob("*.py")
        if "\nclass Parameters(" in path.read_text(encoding="utf-8")
    )


def paper_files(config: Mapping[str, Any]) -> list[str]:
    """Configuration files of the papers that a configuration lists."""
    listed = config.get("papers")
    if not isinstance(listed, list):
        raise ConfigError(f"config.papers = {listed!r}: expected a list of citation keys")
    return [
        f"config/papers/{choose(paper, known_papers(), 'config.papers')}.yaml" for paper in listed
    ]


@dataclass(frozen=True)
class Recipe:
    """A recipe of a paper; raises a `ConfigError` when asked for one that is not there."""

    paper: str
    name: str

    @cached_property
    def module(self) -> ModuleType:
        choose(self.name, recipes(self.paper), f"{self.paper}.experiments")
        return importlib.import_module(f"privreg.papers.{self.paper}.{self.name}")

    @property
    def module_name(self) -> str:
        return f"privreg.papers.{self.paper}.{self.name}"

    def has(self, stage: str) -> bool:
        """Whether the recipe has this stage."""
        return hasattr(self.module, stage)

    def reads(self, stage: str) -> tuple[str, ...]:
        """Kinds of artifact that a stage reads."""
        if not self.has(stage):
            return ()
        names = inspect.signature(getattr(self.module, stage)).parameters
        return tuple(kind for kind in ARTIFACTS if kind in names)

    def parameters(self, values: dict[str, Any], where: str) -> Strict:
        """The recipe's typed parameters."""
        return validate(self.module.Parameters, values, where)

    @property
    def references(self) -> str:
        return f"{citation(self.paper).reference} {self.module.PLACE}."
