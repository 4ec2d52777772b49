"""All hostile values for all parameters of all targets, and a table of what happened.

`python tests/fuzz/campaign.py` prints the defects and the table of `docs/reliability.md`; with
names of modules, theirs alone.
"""

from __future__ import annotations

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


class Call(NamedTuple):
    """One hostile value in place of one valid argument, and what the library did."""

    target: str
    parameter: str
    value: Any
    outcome: Outcome
    text: str

    def __str__(self) -> str:
        shown = " ".join(repr(self.value).split())[:60]
        return f"{self.outcome.name} {self.target}({self.parameter}={shown}): {self.text[:90]}"


def campaign(target: Target) -> Iterator[Call]:
    """Every fixed hostile value for every parameter of a target."""
    for parameter, valid in target.arguments.items():
        for value in fixed(valid):
            with limit(SECONDS):
                what, text = outcome(target, {parameter: value})
            yield Call(target.name, parameter, value, what, text)


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
    """Counts of each outcome by room of the library, in Markdown."""
    rooms = sorted({call.target for call in calls})
    total = Counter(call.outcome for call in calls)
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
    calls = [call for target in found for call in campaign(target)]
    for name in missing:
        print(f"MISSING {name}")
    for call in calls:
        if call.outcome not in GOOD:
            print(call)
    print(table(calls))
    return int(any(call.outcome not in GOOD for call in calls))


if __name__ == "__main__":
    sys.exit(main())
