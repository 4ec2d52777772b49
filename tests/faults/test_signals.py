"""Signals, and two runs at once: the same command goes on, a live run is respected."""

from __future__ import annotations

import signal
import time

import chain
import kills
import pytest

pytestmark = pytest.mark.long
# Of each of twenty seeds.
KILLS = 10


@pytest.mark.parametrize("seed", range(1, 21))
def test_kills_leave_no_wrong_byte_and_nothing_to_do_by_hand(undisturbed, tmp_path, seed):
    outcome = kills.campaign(undisturbed, tmp_path, kills=KILLS, seed=seed, workers=1)
    print(outcome)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.killed == KILLS


def take_away(folder, levels):
    for level in kills.LEVELS[:levels]:
        for path in level:
            (folder / "results" / path).unlink()


@pytest.mark.parametrize("group", [True, False], ids=["group", "alone"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_command_goes_on_after_a_signal(built, expected, number, group):
    take_away(built, 4)
    started = chain.start(built, built / "log")
    assert started.wait_for_launches()
    time.sleep(0.7)
    started.hit(number, group=group)
    interrupted = started.end()
    ran = chain.run(built)
    assert ran.status == 0, interrupted.output + ran.output
    assert chain.artifacts(built) == expected


def test_of_two_runs_the_second_stops_in_one_line(built, expected):
    take_away(built, 6)
    started = chain.start(built, built / "log")
    assert started.wait_for_launches()
    second = chain.run(built)
    assert second.status == 1
    assert f"in use by process {started.process.pid} on" in second.lines[-1]
    assert second.lines[-1].startswith("error: ")
    assert started.end().status == 0
    assert chain.artifacts(built) == expected


def test_of_runs_that_start_together_one_goes_on(built, expected):
    take_away(built, 2)
    runs = [chain.start(built, built / f"log{place}") for place in range(3)]
    ended = [started.end() for started in runs]
    assert 0 in [ran.status for ran in ended]
    for ran in ended:
        # One that starts when another has ended finds nothing to do.
        assert ran.status == 0 or "in use by" in ran.lines[-1], ran.output
    assert chain.artifacts(built) == expected
