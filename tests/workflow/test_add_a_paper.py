"""docs/add-a-paper.md, followed literally in a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .checkout import ROOT, small_checkout

PAGE = (ROOT / "docs/add-a-paper.md").read_text()
FILE = re.compile(r"^`([^`\n]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_LINES = 150
# What all papers share, beside the new files: the list of keys, and the digests that follow.
SHARED = {"config/config.yaml", "workflow/scale.lock"}
CLAIM = "results/claims/example2026/error-falls-as-the-square.json"
pytestmark = pytest.mark.workflow


def test_the_page_has_files_and_commands():
    files = dict(FILE.findall(PAGE))
    assert len(files) == 6
    assert all(
        path.startswith(("src/reproduction/papers/example2026", "config/")) for path in files
    )
    assert len(COMMANDS.findall(PAGE)) == 2


def test_a_paper_takes_few_lines():
    assert sum(len(text.splitlines()) for _, text in FILE.findall(PAGE)) <= MOST_LINES


def test_a_reader_who_follows_the_page_gets_a_figure_and_a_verdict(tmp_path):
    folder = small_checkout(tmp_path)
    before = sources(folder)
    for path, text in FILE.findall(PAGE):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for commands in COMMANDS.findall(PAGE):
        follow(folder, commands)
    assert (folder / "results/figures/example2026/fig1.png").stat().st_size > 5000
    assert json.loads((folder / CLAIM).read_text())["outcome"] == "passed"
    after = sources(folder)
    added = after.keys() - before.keys()
    assert added == {path for path, _ in FILE.findall(PAGE)}
    assert {path for path in before if after.get(path) != before[path]} <= SHARED
    digests = [json.loads(found["workflow/scale.lock"]) for found in (before, after)]
    for paper in digests[1].keys() - {"example2026"}:
        kept = digests[1][paper]["experiments"]
        assert kept.items() <= digests[0][paper]["experiments"].items()


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
    variables = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(folder / "src"),
    }
    variables.pop("PRIVREG_DATA", None)
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
