"""One run at a time: what is respected, what is taken over, and what cannot be known."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from reproduction.pipeline import lock

HOLD = """
import sys, time
from pathlib import Path
from reproduction.pipeline import lock
with lock.only_run(Path(sys.argv[1])) as before:
    print("held", before, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / ".snakemake"


def hold(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline()


def left_by(folder, owner):
    """A record and Snakemake's lock as a run leaves them that did not end as it should."""
    (folder / "locks").mkdir(parents=True)
    (folder / "locks/0.output.lock").write_text("results/x.nc\n")
    (folder / "run.json").write_text(json.dumps(asdict(owner)))


def test_a_run_that_ends_leaves_nothing(folder):
    for _ in range(2):
        with lock.only_run(folder) as before:
            assert before is None
    assert (folder / "run.json").read_text() == ""


def test_a_live_run_is_respected_and_named(folder):
    process, said = hold(folder)
    try:
        assert said == "held None\n"
        with pytest.raises(lock.LockedError, match=f"in use by process {process.pid} on"):
            lock.only_run(folder).__enter__()
    finally:
        process.kill()
        process.wait()


def test_a_killed_run_is_followed_and_named(folder):
    process, _ = hold(folder)
    (folder / "locks").mkdir()
    (folder / "locks/0.input.lock").write_text("x\n")
    process.send_signal(signal.SIGKILL)
    process.wait()
    with lock.only_run(folder) as before:
        assert before is not None
        assert before.pid == process.pid
    assert not list((folder / "locks").iterdir())


def test_of_many_at_once_one_gets_it(folder):
    left_by(folder, replace(lock.this_process(), pid=1 << 22))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", HOLD, str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    ends = time.monotonic() + 60
    while sum(process.poll() is not None for process in processes) < 4:
        assert time.monotonic() < ends
        time.sleep(0.02)
    (winner,) = [process for process in processes if process.poll() is None]
    assert "process 4194304" in winner.stdout.readline()
    winner.kill()
    for process in processes:
        _, errors = process.communicate()
        assert process is winner or "in use by" in errors


@pytest.mark.parametrize(
    ("changes", "kernel_knows", "dead"),
    [
        pytest.param({}, True, True, id="the kernel would hold it"),
        pytest.param({"host": "a-container"}, True, True, id="another container, one kernel"),
        pytest.param({"boot": "another"}, True, True, id="the machine was restarted"),
        pytest.param({"boot": "another", "host": "elsewhere"}, True, False, id="another machine"),
        pytest.param({}, False, False, id="no locks, and it lives"),
        pytest.param({"pid": 1 << 22}, False, True, id="no locks, no such process"),
        pytest.param({"started": 1}, False, True, id="no locks, its number is used again"),
        pytest.param({"host": "a-container"}, False, False, id="no locks, another container"),
    ],
)
def test_who_counts_as_dead(changes, kernel_knows, dead):
    owner = replace(lock.this_process(), **changes)
    assert lock._is_dead(owner, kernel_knows) == dead


def test_a_run_on_another_machine_is_left_to_the_user(folder):
    elsewhere = replace(lock.this_process(), host="elsewhere", boot="another")
    left_by(folder, elsewhere)
    with pytest.raises(lock.LockedError, match=r"on elsewhere.*type: snakemake --unlock"):
        lock.only_run(folder).__enter__()
    # That is what unlocking does.
    (folder / "locks/0.output.lock").unlink()
    with lock.only_run(folder) as before:
        assert before == elsewhere


def test_a_lock_that_names_nobody_is_left_to_snakemake(folder):
    left_by(folder, lock.this_process())
    (folder / "run.json").unlink()
    with lock.only_run(folder) as before:
        assert before is None
    assert (folder / "locks/0.output.lock").exists()


def test_a_half_written_record_names_nobody(folder):
    folder.mkdir()
    (folder / "run.json").write_text('{"pid": 1')
    with lock.only_run(folder) as before:
        assert before is None


def test_a_job_that_outlives_its_run_is_waited_for(folder, monkeypatch):
    with lock.only_run(folder):
        pass
    jobs = folder / lock.JOBS.name
    monkeypatch.setenv(lock.JOBS_VARIABLE, str(jobs))
    assert list(lock.wait_for_jobs(jobs)) == []
    command = "from reproduction.pipeline import lock; import time\n"
    command += "with lock.running_job(): print(flush=True); time.sleep(0.5)"
    process = subprocess.Popen(
        [sys.executable, "-c", command], stdout=subprocess.PIPE, env=os.environ
    )
    process.stdout.readline()
    assert len(list(lock.wait_for_jobs(jobs))) == 1
    assert process.wait(10) == 0
