"""The Python on the pages for users runs and gives what they say."""

from __future__ import annotations

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest

from privreg.command_line.main import main

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    "name", ["names.md", "prediction.md", "your-own-table.md", "private-intervals.md"]
)
def test_the_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / name), module_relative=False, encoding="utf-8")
    assert found.attempted
    assert not found.failed


def test_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "your-own-table.md"
    text = page.read_text()
    doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    (declared,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    Path("bounds.yaml").write_text(declared)
    commands = re.findall(r"^    privreg (.*)$", text, re.MULTILINE)
    names = [command.split()[0] for command in commands]
    assert names == ["plan", "bounds", "fit", "score", "odometer"]
    for command in commands:
        assert not main(shlex.split(command))
    assert "huber" in capsys.readouterr().out
    found = json.loads(Path("fit.json").read_text())["coefficients"]
    by_name = {each["name"]: each for each in found}
    for name, truth in (("size", 9.0), ("year", 2.0), ("place=coast", 150.0), ("place=hill", 0.0)):
        # The noise is the operating system's: six standard errors, not those of an interval.
        assert abs(by_name[name]["estimate"] - truth) < 6 * by_name[name]["standard_error"]
    assert Path("fit.html").read_text().startswith("<!DOCTYPE html>")
