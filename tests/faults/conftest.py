"""The chain, built once without a disturbance."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import chain


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """A built checkout, which no test changes."""
    return chain.built_checkout(tmp_path_factory.mktemp("undisturbed") / "checkout")


@pytest.fixture(scope="session")
def expected(undisturbed):
    """What its artifacts are."""
    return chain.artifacts(undisturbed)


@pytest.fixture
def built(undisturbed, tmp_path):
    """A copy of it."""
    folder = tmp_path / "copy"
    shutil.copytree(undisturbed, folder)
    return folder
