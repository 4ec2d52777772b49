"""docs/add-a-paper.md, followed literally in a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .checkout import ROOT, environment, small_checkout

PAGE = (ROOT / "docs/add-a-paper.md").read_text()
FILES = dict(re.findall(r"^`([^`\n]+)`\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
pytestmark = pytest.mark.workflow


def test_a_reader_who_follows_the_page_gets_a_figure_and_a_verdict(tmp_path):
    assert len(FILES) == 6
    assert all(re.match(r"(src/reproduction/papers|config)/.*example2026", each) for each in FILES)
    assert sum(len(text.splitlines()) for text in FILES.values()) <= 150
    folder = small_checkout(tmp_path)
    before = sources(folder)
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for commands in COMMANDS:
        follow(folder, commands)
    assert (folder / "results/figures/example2026/fig1.png").stat().st_size > 5000
    verdict = folder / "results/claims/example2026/error-falls-as-the-square.json"
    assert json.loads(verdict.read_text())["verdict"] == "reproduced"
    after = sources(folder)
    assert after.keys() - before.keys() == FILES.keys()
    # All papers share the list of keys alone.
    assert {path for path in before if after[path] != before[path]} == {"config/config.yaml"}


def sources(folder):
    """Every file of a checkout that no run makes."""
    made = {".snakemake", "results", "__pycache__", ".cache", "build"}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not made & set(path.relative_to(folder).parts)
    }


def follow(folder, commands):
    """What a reader types, in the environment that `make` sets up."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=environment(folder, PATH=path),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
