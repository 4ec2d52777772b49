"""How a case is run, timed, classified and reported: calls of functions, and wrong input alike."""

from __future__ import annotations

import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple

SECONDS = 20


class Outcome(Enum):
    """Good ends first; every other one is a defect."""

    REFUSED = "refused by an error that names the argument, or in one line"
    ANSWERED = "finite or documented answer"
    UNNAMED = "refused without naming the argument, or in several lines"
    SILENT = "NaN taken or given in silence"
    OUTSIDE = "accepted outside the documented domain"
    INFINITE = "an infinity that the docstring does not know"
    TRACEBACK = "another error"
    STARTED = "a job started"
    SLOW = "right, but after the time limit"


GOOD = (Outcome.REFUSED, Outcome.ANSWERED)


class Case(NamedTuple):
    """What is tried: its kind, what tells it from others, and how it is tried."""

    kind: str
    what: Any
    attempt: Callable[[], tuple[Outcome, str]]
    # Of the processor.
    seconds: float = SECONDS


class Tried(NamedTuple):
    """A case, and what became of it."""

    case: Case
    outcome: Outcome
    text: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.outcome.name} {self.case.kind}: {self.case.what}: {self.text[:200]}"


def tried(case: Case) -> Tried:
    """Run a case within its time limit; an attempt that raises is a defect, and so is a hang."""
    started = processor_seconds()
    try:
        with limit(SECONDS):
            outcome, text = case.attempt()
    except Exception as error:
        outcome, text = Outcome.TRACEBACK, f"{type(error).__name__}: {error}"
    seconds = processor_seconds() - started
    if outcome in GOOD and seconds > case.seconds:
        outcome = Outcome.SLOW
    return Tried(case, outcome, text, seconds)


def processor_seconds() -> float:
    """Time of this process and of those that it waited for, whatever else the machine does."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """End what hangs."""

    def stop(*_: object) -> None:
        raise RuntimeError(f"no answer within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def defects(found: Iterable[Tried]) -> list[str]:
    """What was found wrong, a line each."""
    return [str(each) for each in found if each.outcome not in GOOD]


def table(found: Iterable[Tried]) -> str:
    """Counts of each outcome by kind of case, in Markdown."""
    listed = list(found)
    kinds = list(dict.fromkeys(each.case.kind for each in listed))
    total = Counter((each.case.kind, each.outcome) for each in listed)
    rows = [
        f"| {outcome.value} | {' | '.join(f'{total[kind, outcome]:,}' for kind in kinds)} |"
        for outcome in Outcome
    ]
    slowest = max((each.seconds for each in listed), default=0.0)
    return "\n".join(
        [
            f"| what happened | {' | '.join(kinds)} |",
            f"| --- |{' ---: |' * len(kinds)}",
            *rows,
            "",
            f"{len(listed):,} in all; the slowest took {slowest:.1f} s of the processor.",
        ]
    )
