"""The session of docs/first-use.md, typed again in a new clone, prints what the page says."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .checkout import ROOT

PAGE = ROOT / "docs/first-use.md"
# What the tests' own environment and clone stand for.
ALREADY_DONE = ("git clone", "make setup", "source")
END_OF_COMMAND = "--- what the next command prints ---"

pytestmark = [pytest.mark.workflow, pytest.mark.long]


def session(text: str) -> list[tuple[str, str]]:
    """Commands of a page, each with what it prints."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = step.splitlines()
            while lines and lines[0].startswith("> "):
                command += "\n" + lines.pop(0).removeprefix("> ")
            found.append((command, "\n".join(lines) + "\n" if lines else ""))
    return found


def test_the_session_prints_what_the_page_says(tmp_path):
    folder = tmp_path / "privreg"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    steps = [each for each in session(PAGE.read_text()) if not each[0].startswith(ALREADY_DONE)]
    assert len(steps) == 3
    script = "".join(f"{command}\necho '{END_OF_COMMAND}'\n" for command, _ in steps)
    ran = subprocess.run(
        ["bash", "-e"],
        input=script,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(folder / "src"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    printed = ran.stdout.split(f"{END_OF_COMMAND}\n")
    compare = doctest.OutputChecker().check_output
    for (command, wanted), got in zip(steps, printed, strict=False):
        assert compare(wanted, got, doctest.ELLIPSIS), f"{command}\n{got}\nis not\n{wanted}"
    assert (folder / "results/figures/bombari2025/fig1.png").stat().st_size > 10_000
