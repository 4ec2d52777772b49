"""The fork server: files and statuses of a process of one's own; it ends with its run."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduction.pipeline import forks, lock, usage
from reproduction.pipeline.handover import VARIABLE

ROOT = Path(__file__).parents[3]
FACTORS = json.dumps({"largest_ratio": 4.0, "points": 10})
COVERAGE = {
    "dimension": 2,
    "sample_size": 200,
    "budget": {"zcdp": 0.5},
    "gradients": [60],
    "step_size": 0.25,
    "clip_constant": 5.0,
    "replicates": 2,
    "runs": 2,
}
LIMIT = 60.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="jobs are forks on Linux alone")


def until(happens):
    """Whether something happens in time."""
    ends = time.monotonic() + LIMIT
    while not happens() and time.monotonic() < ends:
        time.sleep(0.02)
    return happens()


def answers(address):
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(address))
        except OSError:
            return False
    return True


def threads(count="1"):
    names = [*(f"{name}_NUM_THREADS" for name in forks.THREADS), *forks.MORE_THREADS]
    return dict.fromkeys(names, count)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder with the sources, whose jobs are forks."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    (folder / ".snakemake").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("PYTHONPATH", "src")
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
        patch.setenv(lock.JOBS_VARIABLE, str(folder / "jobs.lock"))
        # Another in each test.
        patch.delenv("PYTEST_CURRENT_TEST", raising=False)
        with forks.fork_server("set -euo pipefail; "):
            assert until(lambda: answers(forks.ADDRESS))
            yield folder
        assert not forks.ADDRESS.exists()
        assert VARIABLE not in os.environ


def start(folder, *arguments, **changed):
    environment = os.environ | threads() | changed
    environment.pop("PYTEST_CURRENT_TEST", None)
    return subprocess.Popen(
        [sys.executable, "-m", "reproduction", *map(str, arguments)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def theory(folder, name, **changed):
    """Bytes of an artifact, and whether a fork made it."""
    files = ("--output", f"{name}.nc", "--log", f"{name}.log")
    job = start(folder, "theory", "bombari2025/clipping_factors", "--parameters", FACTORS, *files,
                **changed)  # fmt: skip
    assert job.communicate()[1] == ""
    assert job.returncode == 0
    return (folder / f"{name}.nc").read_bytes(), usage.read(folder / f"{name}.log").forked


def test_a_fork_makes_the_bytes_of_a_process_of_its_own(served):
    assert theory(served, "forked") == (theory(served, "alone", **{VARIABLE: ""})[0], True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_job_ends_with_the_process_that_asked_for_it(served, number):
    jobs = served / "jobs.lock"
    jobs.touch()
    job = start(
        served, "simulate", "brown2024/coverage", "--parameters", json.dumps(COVERAGE), "--seed", 1,
        "--trials", 1_000_000, "--output", "long.nc",
    )  # fmt: skip
    assert until(lambda: held(jobs))
    job.send_signal(number)
    job.communicate(timeout=LIMIT)
    assert job.returncode == -number
    assert until(lambda: not held(jobs))
    assert not (served / "long.nc").exists()


def held(path):
    """Whether a job holds its lock."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
