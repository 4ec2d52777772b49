"""The lines that a run shows of its jobs."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from reproduction.pipeline import terminal


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(terminal.time, "monotonic", clock.monotonic)
    return clock


def record(event: str | None, message: str | None = None, **about: Any) -> logging.LogRecord:
    found = logging.LogRecord("snakemake", logging.INFO, "", 0, message, (), None)
    found.__dict__.update(about, event=event)
    return found


def said(progress: terminal.Progress, *records: logging.LogRecord) -> list[str]:
    return [progress.format(each) for each in records if progress.is_shown(each)]


def test_a_job_is_one_line_with_its_time_and_what_is_left(clock):
    rule = SimpleNamespace(name="theory")
    jobs = [SimpleNamespace(jobid=k, rule=rule, wildcards=k) for k in range(4)]
    progress = terminal.Progress(
        None, lambda: jobs, lambda _, wildcards: (30.0, 10.0)[wildcards > 0]
    )
    started = [record("job_info", jobid=k, rule_msg=f"Theory: {k}") for k in range(3)]
    assert said(progress, record(None, terminal.SELECTING), *started) == []
    clock.now = 60.0
    ended = [record("job_finished", job_id=0), record("progress", done=1, total=4)]
    # Half of the 60 predicted seconds are done.
    assert said(progress, *ended) == ["[1/4] Theory: 0 (1 min), 1 min left"]
    both = [record("job_finished", job_id=k) for k in (1, 2)]
    (lines,) = said(progress, *both, record("progress", done=3, total=4))
    assert lines == "[2/4] Theory: 1 (1 min)\n[3/4] Theory: 2 (1 min), 12 s left"


def test_targets_without_a_message_and_other_messages(clock):
    jobs = [SimpleNamespace(jobid=0, rule=SimpleNamespace(name="all"), wildcards=None)]
    progress = terminal.Progress(None, lambda: jobs, lambda *_: 1.0)
    ended = [
        record("job_info", jobid=0, rule_msg=None),
        record("job_finished", job_id=0),
        record("progress", done=1, total=1),
    ]
    assert said(progress, *ended) == [""]
    assert said(progress, record(None, "Building DAG of jobs...")) == ["Building DAG of jobs..."]
