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

from reproduction.pipeline import forks, lock, opening, usage
from reproduction.pipeline.handover import VARIABLE, packed, unpacked

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


@pytest.mark.parametrize("changed", [threads("2"), {"NUMBA_DISABLE_JIT": "1"}])
def test_what_imports_may_have_read_otherwise_leaves_a_job_to_itself(served, changed):
    assert theory(served, "other", **changed)[1] is False


def test_what_is_set_for_each_job_anew_does_not(served, tmp_path):
    assert theory(served, "temporary", TMPDIR=str(tmp_path))[1] is True


@pytest.mark.parametrize(
    "arguments", [["theory", "bombari2025/x"], ["gate", "none.json"], ["--help"]]
)
def test_a_fork_says_and_returns_what_a_process_of_its_own_does(served, arguments):
    told = [*arguments, "--output", "x.nc"]
    ended = []
    for changed in ({}, {VARIABLE: ""}):
        job = start(served, *told, **changed)
        ended.append((*job.communicate(), job.returncode))
    assert ended[0] == ended[1]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
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


def test_the_server_ends_with_a_run_that_is_killed(tmp_path):
    (tmp_path / ".snakemake").mkdir()
    run = subprocess.Popen(
        [sys.executable, "-c", "import time\nfrom reproduction.pipeline.forks import fork_server\n"
         "with fork_server(''): time.sleep(600)"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert until((tmp_path / forks.ADDRESS).is_socket)
    finally:
        run.kill()
    # The server has this end too, until it ends.
    assert run.communicate(timeout=LIMIT)[1] == b""


def test_an_edit_leaves_a_job_to_itself(served):
    with (served / "src/reproduction/experiment/datasets.py").open("a") as file:
        file.write("# An edit.\n")
    assert theory(served, "edited")[1] is False


def test_a_message_holds_what_was_packed(monkeypatch):
    monkeypatch.setenv("LINES", "one\ntwo = 2")
    directory, environment, arguments = unpacked(packed(["judge", "", '{"é": 1}']))
    assert (directory, arguments) == (os.getcwd(), ["judge", "", '{"é": 1}'])  # noqa: PTH109
    assert environment == dict(os.environb)


@pytest.mark.parametrize(
    ("executor", "deployed", "expected"),
    [("local", False, True), ("local", True, False), ("dryrun", False, False),
     ("touch", False, False), ("slurm", False, False)],
)  # fmt: skip
def test_jobs_are_forks_here_alone_and_in_the_environment_of_the_run(executor, deployed, expected):
    from snakemake.executors import dryrun, local, touch
    from snakemake_interface_executor_plugins.settings import CommonSettings

    queue = CommonSettings(non_local_exec=True, implies_no_shared_fs=False,
                           job_deploy_sources=False)  # fmt: skip
    modules = {"local": local, "dryrun": dryrun, "touch": touch}
    settings = modules[executor].common_settings if executor in modules else queue
    assert opening.forks_serve(settings, deployed=deployed) is expected
