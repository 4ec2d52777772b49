"""The examples in the library's docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

from reproduction.pipeline.closure import SOURCE, module_of


def modules():
    for path in sorted((SOURCE / "privreg").rglob("*.py")):
        if ">>> " in path.read_text():
            yield module_of(path)


@pytest.mark.parametrize("name", modules())
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed


def test_every_part_that_users_call_has_examples():
    parts = {name.split(".")[1] for name in modules()}
    assert {"algorithms", "theory", "inference", "privacy", "noise", "schedules"} <= parts


def test_the_page_on_predictions_says_what_is_so():
    page = SOURCE.parent / "docs" / "prediction.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted
    assert not found.failed
