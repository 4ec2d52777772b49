"""The runner of the campaigns tells every end that a case can have."""

from __future__ import annotations

import time

import pytest
import runner
from inputs import refusal
from runner import Case, Outcome, defects, table, tried


def busy():
    started = time.process_time()
    while time.process_time() - started < 0.02:
        pass
    return Outcome.REFUSED, "one line"


def raising():
    raise KeyError("name")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("", Outcome.OUTSIDE),
        ("error: one must be two", Outcome.REFUSED),
        ("one\ntwo", Outcome.UNNAMED),
        ("Traceback (most recent call last)", Outcome.UNNAMED),
        ("started: a job", Outcome.STARTED),
    ],
)
def test_what_a_command_says_of_wrong_input(said, outcome):
    assert tried(Case("command", "words", lambda: refusal(lambda: said))).outcome is outcome


def test_what_raises_or_takes_too_long_is_a_defect(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 1)
    found = [
        tried(Case("one", "raises", raising)),
        tried(Case("one", "hangs", lambda: time.sleep(5))),
        tried(Case("two", "slow", busy, 0.01)),
        tried(Case("two", "in time", busy, 10.0)),
    ]
    ends = [Outcome.TRACEBACK, Outcome.TRACEBACK, Outcome.SLOW, Outcome.REFUSED]
    assert [each.outcome for each in found] == ends
    assert "no answer within 1 seconds" in found[1].text
    assert len(defects(found)) == 3
    assert f"| {Outcome.TRACEBACK.value} | 2 | 0 |" in table(found)
