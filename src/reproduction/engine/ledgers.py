"""Ledgers with the entries that recipes declare beside their formulas."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from reproduction.engine.ledger import Ledger, load_ledger
from reproduction.engine.parameters import ConfigError
from reproduction.engine.recipe import entries
from reproduction.engine.registry import Recipe


def read_ledger(folder: str | Path, paper: str) -> Ledger:
    """A paper's ledger, with the entries that its identities declare; see `load_ledger`."""
    return load_ledger(folder, paper, partial(declared_entries, paper))


def declared_entries(paper: str, experiment: str) -> dict[str, list[Any]]:
    """Entries that the theory of an experiment declares beside its functions, as in a ledger."""
    theory = getattr(Recipe(paper, experiment).module, "theory", None)
    found = entries(getattr(theory, "blocks", ()), f"theory/{experiment}")
    if not any(found.values()):
        raise ConfigError(f"{paper}.experiments.{experiment} must declare identities, got none")
    return found
