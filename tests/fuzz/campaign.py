"""All hostile values for all parameters of all targets, and a table of what happened.

`python tests/fuzz/campaign.py` prints the defects and the table of `docs/reliability.md`; with
names of modules, theirs alone. A second round takes values that are answered alone, two or three of
them at a time.
"""

from __future__ import annotations

import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from outcomes import GOOD, Outcome, outcome
from targets import Target, targets

from hostile import fixed

SECONDS = 20
TOGETHER = 10


class Call(NamedTuple):
    """Hostile values in place of valid arguments, and what the library did."""

    target: str
    changes: dict[str, Any]
    outcome: Outcome
    text: str

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name}={' '.join(repr(value).split())[:60]}" for name, value in self.changes.items()
        )
        return f"{self.outcome.name} {self.target}({shown}): {self.text[:90]}"


def call(target: Target, changes: dict[str, Any]) -> Call:
    """The target with these arguments, within a time limit."""
    with limit(SECONDS):
        return Call(target.name, changes, *outcome(target, changes))


def campaign(target: Target) -> Iterator[Call]:
    """Every fixed hostile value for every parameter of a target."""
    for parameter, valid in target.arguments.items():
        for value in fixed(valid):
            yield call(target, {parameter: value})


def together(target: Target, alone: list[Call]) -> Iterator[Call]:
    """Values that were answered alone, in twos and threes: extremes that may not go together."""
    answered = [
        each.changes for each in alone if each.outcome is Outcome.ANSWERED and not _is_usual(each)
    ]
    draws = random.Random(target.name)
    for count in (2, 3) * TOGETHER:
        changes = {}
        for each in draws.sample(answered, min(count, len(answered))):
            changes.update(each)
        if len(changes) > 1:
            yield call(target, changes)


def _is_usual(each: Call) -> bool:
    return all(isinstance(value, (str, bool)) or value is None for value in each.changes.values())


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """End a call that hangs, which is a defect too."""

    def stop(*_: object) -> None:
        raise RuntimeError(f"no answer within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def table(calls: list[Call]) -> str:
    """Counts of each outcome by part of the library, in Markdown."""
    rooms = sorted({each.target for each in calls})
    total = Counter(each.outcome for each in calls)
    lines = [
        f"{len(calls):,} calls of {len(rooms)} public functions, constructors and methods.",
        "",
        "| what happened | calls |",
        "| --- | ---: |",
        *(f"| {each.value} | {total[each]:,} |" for each in Outcome),
    ]
    return "\n".join(lines)


def main() -> int:
    found, missing = targets()
    wanted = sys.argv[1:]
    found = [target for target in found if not wanted or target.name.split(".")[0] in wanted]
    alone = {target.name: list(campaign(target)) for target in found}
    pairs = [each for target in found for each in together(target, alone[target.name])]
    calls = [each for part in alone.values() for each in part]
    for name in missing:
        print(f"MISSING {name}")
    for each in calls + pairs:
        if each.outcome not in GOOD:
            print(each)
    print(table(calls), "", "Values together:", "", table(pairs), sep="\n")
    return int(any(each.outcome not in GOOD for each in calls + pairs))


if __name__ == "__main__":
    sys.exit(main())
