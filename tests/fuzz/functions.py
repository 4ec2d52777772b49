"""Calls of every target with hostile values: one alone, then those that were answered together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from hostile import fixed
from outcomes import outcome
from runner import Case, Outcome, Tried, tried
from targets import Target

ONE, SEVERAL = "one value", "several values"
TOGETHER = 10


class Call(NamedTuple):
    """A target with hostile values in place of valid arguments."""

    target: str
    changes: dict[str, Any]

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name}={' '.join(repr(value).split())[:60]}" for name, value in self.changes.items()
        )
        return f"{self.target}({shown})"


def call(target: Target, changes: dict[str, Any]) -> Tried:
    """The target with these arguments."""
    kind = ONE if len(changes) == 1 else SEVERAL
    return tried(Case(kind, Call(target.name, changes), lambda: outcome(target, changes)))


def alone(target: Target) -> Iterator[Tried]:
    """Every fixed hostile value for every parameter of a target."""
    for parameter, valid in target.arguments.items():
        for value in fixed(valid):
            yield call(target, {parameter: value})


def together(target: Target, found: list[Tried]) -> Iterator[Tried]:
    """Values that were answered alone, in twos and threes: extremes that may not go together."""
    answered = [
        each.case.what.changes
        for each in found
        if each.outcome is Outcome.ANSWERED and not _is_usual(each.case.what.changes)
    ]
    draws = random.Random(target.name)
    for count in (2, 3) * TOGETHER:
        changes = {}
        for each in draws.sample(answered, min(count, len(answered))):
            changes.update(each)
        if len(changes) > 1:
            yield call(target, changes)


def campaign(target: Target) -> list[Tried]:
    """All calls of a target."""
    found = list(alone(target))
    return found + list(together(target, found))


def _is_usual(changes: dict[str, Any]) -> bool:
    return all(isinstance(value, (str, bool)) or value is None for value in changes.values())
