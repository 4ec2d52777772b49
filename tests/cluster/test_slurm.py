"""A paper's quick DAG through a real SLURM, one job killed, equals a local build byte for byte."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cluster.one_node import missing, one_node
from tests.workflow import checkout, twice

# Where `make test-long` puts the executor.
EXECUTOR = checkout.ROOT / "build/cluster"
STEP = "snakemake_executor_plugin_slurm_jobstep"
# Each start of Snakemake imports what it finds, and the part that submits imports pandas.
# The executor waits ten seconds longer after each question to which nothing had ended, which is for
# queues of hours: here it asks every second.
START = """
import sys
sys.path.append(sys.argv.pop(1))
from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, _: None)
main()
"""
# The paper with the most jobs of every kind that SLURM gets: 31, in seven groups.
PAPER = {"papers": ["brown2024"]}
CONFIGS = ["config/quick.yaml", "paper.json"]
TARGETS = ["all"]
FIGURE = "results/quick/figures/brown2024/fig5.pdf"
GROUPS = ["theory=4", "trials=7", "intervals=2"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(missing()), reason=f"SLURM {missing()}"),
    pytest.mark.skipif(
        not EXECUTOR.is_dir(), reason="needs the executor that make build/cluster installs"
    ),
]


def test_slurm_with_a_killed_job_gives_the_bytes_of_a_local_build(tmp_path):
    there, here = checkout.whole_checkout(tmp_path / "there"), tmp_path / "here"
    (there / "paper.json").write_text(json.dumps(PAPER))
    with one_node(tmp_path / "slurm") as cluster:
        figure = submit(there, cluster, FIGURE, "--configfile", *CONFIGS)
        said, _ = figure.communicate(timeout=1000)
        assert figure.returncode == 0, said[-4000:]
        run = submit(there, cluster, *TARGETS, "--configfile", *CONFIGS)
        cancelled = cancel_one(cluster, run)
        output, _ = run.communicate(timeout=3000)
        ended = cluster.ended()
    assert run.returncode == 0, output[-4000:]
    assert ended[cancelled] == "CANCELLED"
    # Times of files are kept, so that what is compiled already counts.
    shutil.copytree(there, here, ignore=shutil.ignore_patterns("results", ".snakemake"))
    twice.run(here, TARGETS, cores=2, configs=CONFIGS)
    assert twice.artifacts(here / "results") == twice.artifacts(there / "results")


def submit(folder, cluster, *arguments):
    """A run of the workflow that hands its jobs to SLURM."""
    steps = cluster.folder / "steps"
    if not steps.exists():
        steps.mkdir()
        (steps / STEP).symlink_to(EXECUTOR / STEP)
    environment = {**cluster.environment, "PYTHONPATH": f"{folder / 'src'}:{steps}"}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [
        *(sys.executable, "-c", START, str(EXECUTOR), *arguments),
        *("--profile", "profiles/slurm", "--cores", "1", "--group-components", *GROUPS),
        *("--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "1"),
        *("--default-resources", "slurm_partition=short", "slurm_account=none"),
    ]
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def cancel_one(cluster, run):
    """Kill the first job that runs."""
    while run.poll() is None:
        running = [job for job, state in cluster.ended().items() if state == "RUNNING"]
        if running:
            cluster.run("scancel", "--signal=KILL", "--full", running[0])
            cluster.run("scancel", running[0])
            return running[0]
        time.sleep(0.5)
    raise AssertionError(run.communicate()[0])
