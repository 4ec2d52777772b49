"""Ledgers that many plans share, read once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from reproduction.engine.ledger import Ledger, topic_files
from reproduction.pipeline import ledgers

read_ledger = ledgers.read_ledger


@cache
def _of_text(folder: Path, paper: str, text: tuple[tuple[str, bytes], ...]) -> Ledger:
    return read_ledger(folder, paper)


@pytest.fixture(autouse=True)
def _ledgers_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger is frozen, and takes half the time of a plan; another text is read anew."""

    def read(folder: str | Path, paper: str) -> Ledger:
        text = tuple((path.name, path.read_bytes()) for path in topic_files(folder))
        return _of_text(Path(folder), paper, text)

    monkeypatch.setattr(ledgers, "read_ledger", read)
