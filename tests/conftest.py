"""Shared fixtures."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent

# Before NumPy's BLAS starts its threads in a worker.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What a kernel is compiled to may depend on what its process compiled before; the workflow must not
# load code that a test process left behind.
os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".pytest_cache" / "numba")
_beside = ROOT.parent / "shared" / "data"
if "PRIVREG_DATA" not in os.environ and _beside.is_dir():
    os.environ["PRIVREG_DATA"] = str(_beside)


# Collecting makes millions of objects that stay, which the collector would walk again and again.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator."""
    return np.random.Generator(np.random.SFC64(20250516))
