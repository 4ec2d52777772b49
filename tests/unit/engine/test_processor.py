"""Jobs run on the loops that every processor of the last ten years has."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from reproduction.engine import processor

LOOPS = """
import numpy, scipy.linalg
from numpy._core._multiarray_umath import __cpu_features__ as has
from threadpoolctl import threadpool_info
print({found["architecture"] for found in threadpool_info() if found["user_api"] == "blas"})
print(sorted(name for name in ("X86_V4", "AVX512_SKX", "AVX512F") if has.get(name)))
"""


@pytest.mark.skipif(not processor.pinned(), reason="no x86-64 processor with AVX2")
def test_the_pins_hold_without_a_warning():
    said = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", LOOPS],
        env={**os.environ, **processor.pinned()},
        capture_output=True,
        text=True,
        check=True,
    )
    blas, wide = said.stdout.splitlines()
    assert blas == "{'Haswell'}"
    assert "X86_V4" not in wide
    assert "SKX" not in wide
    assert said.stderr == ""


def test_other_processors_are_left_alone(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert processor.pinned() == {}
