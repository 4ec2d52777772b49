"""Servers that tests of downloads ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .server import Mirror, start_mirror


@pytest.fixture(autouse=True)
def _loopback_without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    mirror, server = start_mirror()
    yield mirror
    server.shutdown()
    server.server_close()


@pytest.fixture
def second_mirror() -> Iterator[Mirror]:
    mirror, server = start_mirror()
    yield mirror
    server.shutdown()
    server.server_close()


@pytest.fixture
def nothing_listens() -> str:
    """An address whose port was free a moment ago."""
    mirror, server = start_mirror()
    server.shutdown()
    server.server_close()
    return mirror.address
