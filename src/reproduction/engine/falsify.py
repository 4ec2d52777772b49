"""Falsifiers: deliberately wrong versions of code or statement, and the entries that must notice.

A check that passes with every wrong code protects nothing. Evidence that fits every wrong version
of a statement does not support it. Each wrong version names all entries that it must turn.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reproduction.engine.code import reached
from reproduction.engine.parameters import validate
from reproduction.engine.registry import Recipe, package
from reproduction.engine.simulation import simulated, summarised
from reproduction.engine.verdicts import REFUTED, SOUND, Record

if TYPE_CHECKING:
    import xarray as xr

Evidence = Mapping[str, "xr.Dataset"]


@dataclass(frozen=True)
class Patch:
    """Another value for a module's attribute.

    Attributes
    ----------
    target : str
        `package.module:attribute`, in the module that looks the attribute up.
    wrong : callable
        Function from the right value of the attribute to the wrong one.
    """

    target: str
    wrong: Callable[[Any], Any]


@dataclass(frozen=True)
class WrongVersion:
    """One deliberate mistake.

    Attributes
    ----------
    name : str
    says : str
        What is wrong, in a sentence.
    runs : mapping
        Experiments of the paper to rerun, each with the stages in which the mistake is made; later
        stages that read the results rerun without the mistake.
    turns : tuple of str
        All entries that must turn from holding to refuted, and no others.
    patches : tuple of Patch
        The mistake in the code.
    parameters : mapping
        The mistake in the parameters: for each experiment, the values that differ.
    """

    name: str
    says: str
    runs: Mapping[str, tuple[str, ...]]
    turns: tuple[str, ...]
    patches: tuple[Patch, ...] = ()
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.patches or self.parameters):
            raise ValueError(f"{self.name} must have patches or parameters, got none")
        if not (self.runs and self.turns):
            raise ValueError(f"{self.name} must name experiments and entries that turn, got none")


@dataclass(frozen=True)
class WrongStatement:
    """Wrong version of a statement, which the same evidence must refuse.

    Attributes
    ----------
    name : str
    says : str
        What is stated in place of the paper's words, in a sentence.
    observes : mapping
        For each artifact and variable, a function from the observed values to the values under the
        wrong statement. For example, a ratio to a bound doubles if the bound is halved.
    turns : tuple of str
        All entries that must turn from holding to refuted, and no others.
    """

    name: str
    says: str
    observes: Mapping[str, Mapping[str, Callable[[xr.DataArray], xr.DataArray]]]
    turns: tuple[str, ...]

    def __post_init__(self) -> None:
        if not (self.observes and self.turns):
            raise ValueError(f"{self.name} must name changed evidence and refuted entries")

    def evidence(self, artifact: str, dataset: xr.Dataset) -> xr.Dataset:
        """Artifact as it would be if the paper made the wrong statement."""
        changes = self.observes.get(artifact, {})
        return dataset.assign(
            {name: dataset[name].copy(data=wrong(dataset[name])) for name, wrong in changes.items()}
        )


def listed(names: str) -> tuple[str, ...]:
    """Names of entries that a text separates by blanks."""
    return tuple(names.split())


def scaled(factor: float) -> Callable[[Any], Any]:
    """Function for a `Patch` that multiplies the right results by a factor."""
    return lambda right: lambda *arguments, **options: factor * right(*arguments, **options)


def times(factor: float) -> Callable[[xr.DataArray], xr.DataArray]:
    """Function for `observes`: a ratio to a bound, if the bound is divided by the factor."""
    return lambda observed: observed * factor


def plus(distance: float) -> Callable[[xr.DataArray], xr.DataArray]:
    """Function for `observes`: a distance from a value, if the value is less by `distance`."""
    return lambda observed: observed + distance


def power(coordinate: str, exponent: float) -> Callable[[xr.DataArray], xr.DataArray]:
    """Function for `observes`: a ratio to a rate, if a coordinate's exponent there is less."""
    return lambda observed: observed * (observed[coordinate] ** exponent)


@contextmanager
def applied(patches: Iterable[Patch]) -> Iterator[None]:
    """Context in which the patches are applied; they are undone at its end.

    Raises
    ------
    ValueError
        A target does not exist: a falsifier that patches nothing would prove nothing.
    """
    undo: list[tuple[Any, str, Any]] = []
    try:
        for patch in patches:
            name, _, attribute = patch.target.partition(":")
            module = importlib.import_module(name)
            if not hasattr(module, attribute):
                raise ValueError(f"target must be an attribute of {name}, got {attribute!r}")
            original = getattr(module, attribute)
            undo.append((module, attribute, original))
            setattr(module, attribute, patch.wrong(original))
        yield
    finally:
        for module, attribute, original in reversed(undo):
            setattr(module, attribute, original)


def uncaught(
    version: WrongVersion | WrongStatement, right: Sequence[Record], wrong: Sequence[Record]
) -> list[str]:
    """One line for each entry that should have turned and did not, or turned without being named.

    An entry that can no longer be judged counts as not turned.
    """
    before = {record.id: record for record in right}
    after = {record.id: record for record in wrong}
    lines = []
    for name in version.turns:
        if name not in before or name not in after:
            lines.append(f"{version.name}: what {version.name} rebuilds does not judge {name}")
        elif before[name].verdict not in SOUND:
            lines.append(f"{version.name}: {name} is {before[name].verdict} with the right code")
        elif after[name].verdict not in REFUTED:
            reason = f" ({after[name].reason})" if after[name].reason else ""
            lines.append(f"{version.name}: {name} must fail, got {after[name].verdict}{reason}")
    for name in turned(right, wrong):
        if name not in version.turns:
            lines.append(f"{version.name}: {name} fails and is not named ({after[name].reason})")
    return lines


def turned(right: Iterable[Record], wrong: Iterable[Record]) -> list[str]:
    """Entries that hold with the right code and are refuted with the wrong one."""
    after = {record.id: record.verdict for record in wrong}
    return [
        record.id for record in right if record.verdict in SOUND and after.get(record.id) in REFUTED
    ]


def wrong_versions(paper: str) -> dict[str, WrongVersion | WrongStatement]:
    """Wrong code and wrong statements that a paper's ledger must refuse, by name."""
    name = f"{package(paper)}.wrong"
    there = vars(importlib.import_module(name)) if importlib.util.find_spec(name) else {}
    listed = (*there.get("WRONG_VERSIONS", ()), *there.get("WRONG_STATEMENTS", ()))
    return {version.name: version for version in listed}


def touched(version: WrongVersion | WrongStatement) -> tuple[str, ...]:
    """Experiments whose artifacts a wrong version changes."""
    if isinstance(version, WrongVersion):
        return tuple(version.runs)
    return tuple(dict.fromkeys(artifact.split("/")[1] for artifact in version.observes))


def rebuild(
    version: WrongVersion | WrongStatement,
    paper: str,
    experiments: Mapping[str, Mapping[str, Any]],
    held: Evidence,
) -> dict[str, xr.Dataset]:
    """Remake the artifacts that a wrong version changes."""
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
