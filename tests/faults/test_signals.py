"""Kills, signals and two runs at once: the same command goes on, a live run is respected."""

from __future__ import annotations

import random
import signal
import time

import chain
import pytest

pytestmark = pytest.mark.long
KILLS, IN_A_ROW = 12, 4
# About how long a start of Snakemake and a job take, in seconds.
START, JOB = 1.5, 1.0


@pytest.mark.parametrize("seed", [1, 2])
def test_kills_leave_no_wrong_byte_and_nothing_to_do_by_hand(built, expected, seed):
    """SIGKILL at seeded moments, several in a row; no command but the plain one is typed."""
    rng, killed = random.Random(seed), 0
    while killed < KILLS:
        chain.take_away(built, rng.randint(1, len(chain.LEVELS)))
        for _ in range(min(IN_A_ROW, KILLS - killed)):
            started = chain.start(built, built / "log", "--cores", "1")
            if rng.random() < 0.4:
                time.sleep(rng.uniform(0, START))
            else:
                started.wait_for_launches(rng.choice([1, 1, 2, 3]))
                time.sleep(rng.uniform(0, JOB))
            alive = started.process.poll() is None
            started.hit(signal.SIGKILL)
            ended = started.end()
            killed += alive
            if not alive:
                assert ended.status == 0, ended.output
                break
        ended = chain.run(built)
        assert ended.status == 0, ended.output
        assert chain.artifacts(built) == expected


@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_the_same_command_goes_on_after_a_signal(built, expected, number, group):
    chain.take_away(built, 4)
    started = chain.start(built, built / "log")
    assert started.wait_for_launches()
    time.sleep(0.7)
    started.hit(number, group=group)
    interrupted = started.end()
    ran = chain.run(built)
    assert ran.status == 0, interrupted.output + ran.output
    assert chain.artifacts(built) == expected


def test_of_two_runs_the_second_stops_in_one_line(built, expected):
    chain.take_away(built, 6)
    started = chain.start(built, built / "log")
    assert started.wait_for_launches()
    second = chain.run(built)
    assert second.status == 1
    assert f"in use by process {started.process.pid} on" in second.lines[-1]
    assert second.lines[-1].startswith("error: ")
    assert started.end().status == 0
    assert chain.artifacts(built) == expected
