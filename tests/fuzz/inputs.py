"""Wrong configurations, ledgers and commands: each is refused in one line, and nothing is run."""

from __future__ import annotations

import contextlib
import heapq
import io
import logging
import os
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from commands import commands, workspace
from configurations import changed, configurations
from ledgers import texts, topics
from runner import Case, Outcome, Tried, tried

from reproduction.claims import ledger as ledgers_read
from reproduction.experiment import yaml_files
from reproduction.experiment.parameters import ConfigError
from reproduction.pipeline import cli, plan
from reproduction.pipeline.config import read_configuration

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "config/claims"
SEED = 20250516
SECONDS = 3.0


def campaign(sample: int | None = None) -> Iterator[Tried]:
    """All cases, or a seeded sample of each kind."""
    rng = random.Random(SEED)
    # Local tables are read by each plan, and are not what is tried.
    nowhere = mock.patch.dict(os.environ, {"PRIVREG_DATA": ""})
    with tempfile.TemporaryDirectory() as folder, nowhere, quiet():
        for kind, cases in (
            ("configuration", wrong_configurations()),
            ("ledger", wrong_ledgers(Path(folder))),
            ("command", wrong_commands(Path(folder))),
        ):
            # The least of random keys: a sample without holding what is not in it.
            chosen = (
                cases
                if sample is None
                else heapq.nsmallest(sample, cases, key=lambda _: rng.random())
            )
            for words, attempt in chosen:
                yield tried(Case(kind, words, partial(refusal, attempt), SECONDS))


def refusal(attempt: Callable[[], str]) -> tuple[Outcome, str]:
    """What became of wrong input; an attempt gives what it was refused with, or nothing."""
    said = attempt()
    if not said:
        return Outcome.OUTSIDE, said
    if "Traceback" in said or len(said.splitlines()) != 1:
        return Outcome.UNNAMED, said
    return (Outcome.STARTED if said.startswith("started") else Outcome.REFUSED), said


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


def wrong_commands(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    files = workspace(folder / "calls")
    for words, arguments in commands(files, configuration()):
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
