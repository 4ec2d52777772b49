"""Statements read parts of their evidence, and each part has words that name it."""

import pytest

from reproduction.pipeline.ledger_stages import subsets
from reproduction.pipeline.registry import known_papers


@pytest.mark.parametrize("paper", known_papers())
def test_the_ledgers_name_every_part_that_they_read(paper, capsys):
    assert subsets([paper]) == []
    assert f"{paper}." in capsys.readouterr().out
