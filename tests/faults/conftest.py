"""The chain, built once without a disturbance."""

from __future__ import annotations

import fcntl
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import chain


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory, worker_id):
    """A built checkout, which no test changes; the first worker that asks builds it for all."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "undisturbed"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "results/gate.txt").exists():
            chain.built_checkout(folder)
    return folder


@pytest.fixture(scope="session")
def expected(undisturbed):
    """What its artifacts are."""
    return chain.artifacts(undisturbed)


@pytest.fixture
def built(undisturbed, tmp_path):
    """A copy of it."""
    folder = tmp_path / "copy"
    shutil.copytree(undisturbed, folder)
    return folder
