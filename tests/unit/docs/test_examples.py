"""The examples in the library's docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

from privreg.pipeline.closure import PACKAGE
from privreg.pipeline.reference import LIBRARY


def modules():
    for room in LIBRARY:
        for path in sorted([*PACKAGE.glob(f"{room}.py"), *PACKAGE.glob(f"{room}/**/*.py")]):
            if ">>> " in path.read_text():
                parts = path.relative_to(PACKAGE).with_suffix("").parts
                yield ".".join(("privreg", *(part for part in parts if part != "__init__")))


@pytest.mark.parametrize("name", modules())
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed


def test_every_room_that_users_call_has_examples():
    rooms = {name.split(".")[1] for name in modules()}
    assert {"algorithms", "theory", "inference", "privacy", "noise", "schedules"} <= rooms


def test_the_page_on_predictions_says_what_is_so():
    page = PACKAGE.parent.parent / "docs" / "prediction.md"
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted
    assert not found.failed
