"""Every compiled kernel rounds alike: compiled or loaded, in any order, for any processor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Three processes, two of which compile every kernel.
pytestmark = pytest.mark.long
SCRIPT = Path(__file__).with_name("kernel_calls.py")
# What a kernel is compiled for when nothing is known of the processor: no wide vectors, no fused
# multiplication and addition.
PLAIN = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def start(order: str, cache: Path, **environment: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    command = [sys.executable, str(SCRIPT), order]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=280)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Digests of three processes: one that compiles, one that loads, one in the other order."""
    first, second = tmp_path_factory.mktemp("first"), tmp_path_factory.mktemp("second")
    compiling, backwards = start("forwards", first), start("backwards", second, **PLAIN)
    found = {"compiled": answer(compiling), "backwards": answer(backwards)}
    found["loaded"] = answer(start("forwards", first))
    return found


def test_every_kernel_is_reached(runs: dict[str, dict[str, Any]]) -> None:
    for name in ("compiled", "backwards"):
        assert runs[name]["missed"] == []
        assert runs[name]["loaded"] == 0
    assert runs["loaded"]["loaded"] > 15


@pytest.mark.parametrize("run", ["loaded", "backwards"])
def test_bytes_are_those_of_the_process_that_compiled(
    runs: dict[str, dict[str, Any]], run: str
) -> None:
    assert runs[run]["digests"] == runs["compiled"]["digests"]
