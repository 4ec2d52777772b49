"""One run at a time: a live run is respected and named, a killed one is followed."""

from __future__ import annotations

import signal
import subprocess
import sys

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


def test_a_live_run_is_respected_and_a_killed_one_is_followed(tmp_path):
    folder = tmp_path / ".snakemake"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "held None\n"
        with pytest.raises(lock.LockedError, match=f"in use by process {process.pid} on"):
            lock.only_run(folder).__enter__()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (folder / "locks").mkdir()
    (folder / "locks/0.input.lock").write_text("x\n")
    with lock.only_run(folder) as before:
        assert before.pid == process.pid
    assert not list((folder / "locks").iterdir())
