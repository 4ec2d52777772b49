"""Thousands of wrong configurations, ledgers and calls: each refused in one line, nothing run.

`python -m tests.hostile.campaign` prints what was not refused and the table of
`docs/reliability.md`; a number takes a seeded sample of that many of each kind.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import logging
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from reproduction.claims import ledger as ledgers_read
from reproduction.experiment import yaml_files
from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline import cli, plan
from reproduction.pipeline.config import read_configuration

from .calls import calls, workspace
from .configurations import changed, configurations
from .ledgers import texts, topics

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "config/claims"
SEED = 20250516
SECONDS = 3.0
LONGEST = 400
GOOD = "refused in one line"


class Tried(NamedTuple):
    """One wrong input, and what became of it."""

    kind: str
    words: str
    outcome: str
    said: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.outcome}: {self.kind}: {self.words}: {self.said[:200]}"


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else None
    found = list(campaign(wanted))
    for tried in found:
        if tried.outcome != GOOD:
            print(tried)
    print(table(found))
    return int(any(tried.outcome != GOOD for tried in found))


def campaign(sample: int | None = None) -> Iterator[Tried]:
    """All cases, or a seeded sample of each kind."""
    rng = random.Random(SEED)
    # Local tables are read by each plan, and are not what is tried.
    nowhere = mock.patch.dict(os.environ, {"PRIVREG_DATA": ""})
    with tempfile.TemporaryDirectory() as folder, nowhere, quiet():
        for kind, cases in (
            ("configuration", wrong_configurations()),
            ("ledger", wrong_ledgers(Path(folder))),
            ("call", wrong_calls(Path(folder))),
        ):
            # The least of random keys: a sample without holding what is not in it.
            chosen = (
                cases
                if sample is None
                else heapq.nsmallest(sample, cases, key=lambda _: rng.random())
            )
            for words, attempt in chosen:
                yield tried(kind, words, attempt)


def tried(kind: str, words: str, attempt: Callable[[], str]) -> Tried:
    """What an attempt comes to; it gives the line that it was refused with, or nothing."""
    started = processor_seconds()
    try:
        said = attempt()
    except Exception as error:
        return Tried(kind, words, "traceback", f"{type(error).__name__}: {error}", 0.0)
    seconds = processor_seconds() - started
    if not said:
        outcome = "accepted"
    elif "Traceback" in said or len(said.splitlines()) != 1:
        outcome = "more than one line"
    elif seconds > SECONDS:
        outcome = f"refused after more than {SECONDS:g} s"
    elif said.startswith("started"):
        outcome = "a job started"
    else:
        outcome = GOOD
    return Tried(kind, words, outcome, said, seconds)


def processor_seconds() -> float:
    """Time of this process and of those that it waited for, whatever else the machine does."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def planned(raw: dict[str, Any]) -> str:
    """The line on which a plan is refused, or nothing."""
    try:
        plan.Plan(raw, CLAIMS, ROOT / "workflow")
    except ConfigError as error:
        return str(error)
    return ""


def wrong_configurations() -> Iterator[tuple[str, Callable[[], str]]]:
    raw = configuration()
    for words, path, value in configurations(raw):
        # The paper that is changed is enough; what is shared is planned with the one with tables.
        paper = path[0] if path[0] in raw["papers"] else "bombari2025"
        start = raw if path == ("papers",) else raw | {"papers": [paper]}
        if path[0] == "data":
            start = raw | {"papers": ["bombari2025", "choquettechoo2024"]}
        yield (
            words,
            lambda start=start, path=path, value=value: planned(changed(start, path, value)),
        )


def wrong_ledgers(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    raw = configuration()
    for paper in raw["papers"]:
        whole = plan.Plan(raw | {"papers": [paper]}, CLAIMS, ROOT / "workflow")
        about = lambda artifact, whole=whole, paper=paper: whole.known(paper, artifact)  # noqa: E731
        for path in ledgers_read.topic_files(CLAIMS / paper):
            start = raw | {"papers": [paper]}
            for words, content in texts(path.read_text(encoding="utf-8")):
                label = f"{paper}/{path.name} as {words}"
                yield (
                    label,
                    lambda start=start, path=path, content=content: with_topic(
                        start, path, folder, content
                    ),
                )
            for words, topic in topics(yaml_files.read_mapping(path), about):
                label = f"{paper}/{path.name}: {words}"
                yield (
                    label,
                    lambda start=start, path=path, topic=topic: with_topic(
                        start, path, folder, topic
                    ),
                )


def with_topic(raw: dict[str, Any], path: Path, folder: Path, content: Any) -> str:
    """The line on which a plan with one other topic is refused, or nothing."""
    if isinstance(content, bytes):
        damaged = folder / path.name
        damaged.write_bytes(content)
        try:
            yaml_files.read_mapping(damaged)
        except ConfigError as error:
            return str(error)
        content = yaml_files.read_mapping(damaged)
    before = ledgers_read.read_mapping
    ledgers_read.read_mapping = lambda asked: content if asked == path else before(asked)
    try:
        return planned(raw)
    finally:
        ledgers_read.read_mapping = before


def wrong_calls(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    files = workspace(folder / "calls")
    for words, arguments in calls(files, configuration()):
        yield words, lambda arguments=arguments: called(arguments, Path(files["out"]).parent)


def called(arguments: Sequence[str], written: Path) -> str:
    """What a command says as it fails, or nothing if it does not; nothing may be written."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            status = cli.main(list(arguments))
        except SystemExit as stopped:
            status = int(stopped.code or 0)
    if written.exists():
        shutil.rmtree(written)
        return f"started: {said.getvalue()}"
    return said.getvalue().strip() if status else ""


def configuration() -> dict[str, Any]:
    """The configuration as it is committed, with each ledger read once."""
    return read_configuration(ROOT / "config")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Files that stay as they are read once; warnings and messages go nowhere."""
    once: dict[Path, Any] = {}
    topic_of, parse = ledgers_read.read_mapping, ledgers_read.parse_topic
    parsed: dict[tuple[int, str], Any] = {}

    def read(path: Path) -> Any:
        if path not in once:
            once[path] = topic_of(path)
        return once[path]

    def parse_once(topic: Any, name: str, where: str, declared: Any = None) -> Any:
        # By identity: a topic that was changed is another object.
        key = (id(topic), where)
        if not any(topic is each for each in once.values()):
            return parse(topic, name, where, declared)
        if key not in parsed:
            parsed[key] = parse(topic, name, where, declared)
        return parsed[key]

    loggers = [logging.getLogger(name) for name in ("privreg", "reproduction")]
    handlers, show = [each.handlers[:] for each in loggers], warnings.showwarning
    ledgers_read.read_mapping, ledgers_read.parse_topic = read, parse_once
    try:
        yield
    finally:
        ledgers_read.read_mapping, ledgers_read.parse_topic = topic_of, parse
        for each, before in zip(loggers, handlers, strict=True):
            each.handlers[:] = before
        warnings.showwarning = show


def table(found: Iterable[Tried]) -> str:
    """Counts of each outcome by kind of input, in Markdown."""
    listed = list(found)
    kinds = list(dict.fromkeys(each.kind for each in listed))
    outcomes = (GOOD, "accepted", "traceback", "more than one line", "a job started")
    total = Counter((each.kind, each.outcome) for each in listed)
    slowest = max((each.seconds for each in listed), default=0.0)
    lines = [
        f"| what happened | {' | '.join(f'{kind}s' for kind in kinds)} |",
        f"| --- |{' ---: |' * len(kinds)}",
    ]
    for outcome in outcomes:
        counts = " | ".join(f"{total[kind, outcome]:,}" for kind in kinds)
        lines.append(f"| {outcome} | {counts} |")
    return "\n".join([*lines, "", f"{len(listed):,} in all; the slowest took {slowest:.1f} s."])


if __name__ == "__main__":
    started = time.monotonic()
    status = main()
    print(f"{time.monotonic() - started:.0f} s in all")
    sys.exit(status)
