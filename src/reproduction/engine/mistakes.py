"""Deliberate mistakes: what a paper's ledger must refuse, and the artifacts as they make them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reproduction.engine.code import reached
from reproduction.engine.falsify import WrongStatement, WrongVersion, applied
from reproduction.engine.parameters import validate
from reproduction.engine.registry import Recipe, package
from reproduction.engine.simulation import simulated, summarised

if TYPE_CHECKING:
    import xarray as xr

# Modules of a paper that list what its ledger must refuse.
MODULES = ("wrong", "wrong_versions", "wrong_statements")
Evidence = Mapping[str, "xr.Dataset"]


def wrong_versions(paper: str) -> dict[str, WrongVersion | WrongStatement]:
    """What a paper's ledger must refuse, by name: mistakes in the code and wrong statements."""
    found: dict[str, WrongVersion | WrongStatement] = {}
    for name in (f"{package(paper)}.{module}" for module in MODULES):
        if importlib.util.find_spec(name) is not None:
            there = vars(importlib.import_module(name))
            for listed in ("WRONG_VERSIONS", "WRONG_STATEMENTS"):
                found |= {version.name: version for version in there.get(listed, ())}
    return found


def touched(version: WrongVersion | WrongStatement) -> tuple[str, ...]:
    """Experiments whose artifacts a wrong version changes."""
    if isinstance(version, WrongVersion):
        return tuple(version.runs)
    return tuple(dict.fromkeys(artifact.split("/")[1] for artifact in version.observes))


def retold(
    version: WrongVersion | WrongStatement,
    paper: str,
    experiments: Mapping[str, Mapping[str, Any]],
    held: Evidence,
) -> dict[str, xr.Dataset]:
    """The artifacts that a wrong version changes, as it makes them.

    Parameters
    ----------
    experiments : mapping
        Of each experiment that it touches: `recipe`, `parameters`, `seed` and `trials`.
    held : mapping
        The right artifacts, those that the experiments read included.
    """
    if isinstance(version, WrongStatement):
        return {name: version.evidence(name, held[name]) for name in version.observes}
    rebuilt: dict[str, xr.Dataset] = {}
    for name, about in experiments.items():
        rebuilt |= _run_wrong(version, Recipe(paper, about["recipe"]), name, about, held)
    return rebuilt


def _run_wrong(
    version: WrongVersion, recipe: Recipe, name: str, about: Mapping[str, Any], held: Evidence
) -> dict[str, xr.Dataset]:
    # A module that is first imported while a mistake is made would take it along.
    for module in reached((recipe.module_name,)):
        importlib.import_module(module)
    mistaken = version.runs[name]
    wrong = {**about["parameters"], **version.parameters.get(name, {})}
    draws = (f"{recipe.paper}/{name}", about["seed"], about["trials"])
    rebuilt: dict[str, xr.Dataset] = {}

    def inputs(*stages: str) -> dict[str, xr.Dataset]:
        found = {kind: f"{kind}/{name}" for kind in recipe.reads(*stages)}
        if "data" in found:
            found["data"] = f"data/{about['parameters']['dataset']}"
        return {kind: rebuilt.get(each, held[each]) for kind, each in found.items()}

    def parameters(stage: str) -> Any:
        values = wrong if stage in mistaken else about["parameters"]
        return validate(recipe.module.Parameters, values, f"{version.name}.{name}")

    def anew(*stages: str) -> bool:
        changed = {kind for kind in recipe.reads(*stages) if f"{kind}/{name}" in rebuilt}
        return bool(changed or {*mistaken} & {*stages})

    for stage in ("theory", "simulation", "intervals"):
        stages = ("simulate", "summarise") if stage == "simulation" else (stage,)
        if not (recipe.has(stages[0]) and anew(*stages)):
            continue
        if stage == "simulation":
            with applied(version.patches if "simulate" in mistaken else ()):
                shard = simulated(recipe, parameters("simulate"), inputs("simulate"), draws)
            with applied(version.patches if "summarise" in mistaken else ()):
                found = summarised(recipe, parameters("summarise"), inputs("summarise"), [shard])
        else:
            with applied(version.patches if stage in mistaken else ()):
                found = getattr(recipe.module, stage)(parameters(stage), **inputs(stage))
        rebuilt[f"{stage}/{name}"] = found
    return rebuilt
