"""The Python on the pages for users runs and gives what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ["your-own-table.md", "private-intervals.md"])
def test_the_page_runs(name):
    found = doctest.testfile(str(DOCS / name), module_relative=False, encoding="utf-8")
    assert found.attempted
    assert not found.failed
