"""The examples in the library's docstrings run and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

from reproduction.engine.code import SOURCE

FILES = sorted((SOURCE / "privreg").rglob("*.py"))
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in FILES
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed


def test_every_part_that_users_call_has_examples():
    parts = {name.split(".")[1] for name in MODULES}
    assert {"algorithms", "theory", "inference", "privacy", "noise", "schedules"} <= parts
