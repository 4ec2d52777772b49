"""Falsifiers: deliberately wrong versions of the code, and the statements that must notice.

A check that no wrong code can fail guards nothing. Each wrong version names the entries that must
turn, and no others may.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from reproduction.claims.entries import Statement
from reproduction.claims.ledger import Ledger
from reproduction.claims.verdicts import Judgement


@dataclass(frozen=True)
class Patch:
    """Another value for a module's attribute.

    Attributes
    ----------
    target : str
        `package.module:attribute`, in the module that looks the attribute up.
    wrong : callable
        From what is there to what stands there instead.
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
        Experiments of the paper that are run anew, with the stages in which the mistake is made;
        later stages that read these run anew without it.
    turns : tuple of str
        Entries that must turn from what holds to what does not, and no others.
    patches : tuple of Patch
        The mistake in the code.
    parameters : mapping
        The mistake in an experiment's parameters: experiment to the values that differ.
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


@contextmanager
def applied(patches: Iterable[Patch]) -> Iterator[None]:
    """The mistakes in place, and taken back.

    Raises
    ------
    ValueError
        A target is not there: a falsifier that patches nothing would prove nothing.
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
    version: WrongVersion, right: Iterable[Judgement], wrong: Iterable[Judgement]
) -> list[str]:
    """One line for each entry that should have turned and did not, or turned without being named.

    An entry turns if it passes with the right code and fails with the wrong one. What can no longer
    be judged has not noticed anything.
    """
    before = {judgement.id: judgement for judgement in right}
    after = {judgement.id: judgement for judgement in wrong}
    lines = []
    for name in version.turns:
        if name not in before or name not in after:
            lines.append(f"{version.name}: {name} is not judged by what {version.name} rebuilds")
        elif before[name].outcome != "passed":
            lines.append(f"{version.name}: {name} is {before[name].outcome} with the right code")
        elif after[name].outcome != "failed":
            reason = f" ({after[name].reason})" if after[name].reason else ""
            lines.append(f"{version.name}: {name} must fail, got {after[name].outcome}{reason}")
    for name in turned(before.values(), after.values()):
        if name not in version.turns:
            lines.append(f"{version.name}: {name} fails and is not named ({after[name].reason})")
    return lines


def turned(right: Iterable[Judgement], wrong: Iterable[Judgement]) -> list[str]:
    """Entries that pass with the right code and fail with the wrong one."""
    after = {judgement.id: judgement.outcome for judgement in wrong}
    return [
        judgement.id
        for judgement in right
        if judgement.outcome == "passed" and after.get(judgement.id) == "failed"
    ]


def unturned(ledger: Ledger, versions: Iterable[WrongVersion]) -> list[str]:
    """Statements that hold and that no wrong version turns: neither of theirs, nor of the code."""
    named = {name for version in versions for name in version.turns}
    return [
        entry.id
        for entry in ledger.entries.values()
        if isinstance(entry, Statement)
        and entry.expect == "reproduced"
        and entry.id not in named
        and not any(probe.wrong for run in entry.runs for probe in run.checks)
    ]
