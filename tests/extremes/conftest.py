"""The tiny experiments of the recipes' own tests."""

from tests.unit.papers.conftest import built as built
from tests.unit.papers.conftest import pytest_generate_tests as pytest_generate_tests
