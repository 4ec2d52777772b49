"""The download path against a server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from privreg import data
from privreg.data import fetch

from .server import (
    CONTENT,
    HTML_PAGE,
    IN_SOCKETS,
    Answer,
    Mirror,
    Silent,
    cached,
    plain_file,
    serve,
)


def test_a_good_file_is_fetched_once_and_then_read_from_the_cache(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.serve("numbers.bin", Answer(CONTENT))
    for _ in range(2):
        content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
        assert content == CONTENT
    assert mirror.requests == ["/files/numbers.bin"]
    assert cached(tmp_path) == ["numbers.bin"]


def test_a_cached_file_that_has_changed_is_fetched_again(mirror: Mirror, tmp_path: Path) -> None:
    (tmp_path / "numbers.bin").write_bytes(CONTENT[:-1])
    mirror.serve("numbers.bin", Answer(CONTENT))
    content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
    assert content == CONTENT
    assert (tmp_path / "numbers.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            Answer(CONTENT[:700], promised=len(CONTENT)), fetch.UNREACHED, id="broken-connection"
        ),
        pytest.param(Answer(CONTENT[:700]), fetch.WRONG_CONTENT, id="truncated"),
        pytest.param(Answer(b""), fetch.WRONG_CONTENT, id="empty"),
        pytest.param(Answer(CONTENT[::-1]), fetch.WRONG_CONTENT, id="wrong-checksum"),
        pytest.param(Answer(HTML_PAGE), fetch.HTML, id="html-with-status-200"),
        pytest.param(Answer(b"\xef\xbb\xbf \n" + HTML_PAGE), fetch.HTML, id="html-after-a-mark"),
        pytest.param(Answer(HTML_PAGE, status=503), fetch.REFUSED, id="html-with-status-503"),
    ],
)
def test_a_wrong_answer_is_refused_and_leaves_nothing_behind(
    mirror: Mirror, tmp_path: Path, answer: Answer, reason: str
) -> None:
    mirror.serve("numbers.bin", answer)
    with pytest.raises(fetch.DownloadError) as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, back_off=0.001)
    assert caught.value.reason == reason
    message = str(caught.value)
    assert message.startswith(f"numbers.bin: {reason}")
    assert mirror.address in message
    assert "\n" not in message
    assert len(mirror.requests) == fetch.ATTEMPTS
    assert cached(tmp_path) == []


@pytest.mark.parametrize("bad", [Answer(b"busy", status=503), Answer(HTML_PAGE), Answer(b"half")])
def test_two_failures_then_success(mirror: Mirror, tmp_path: Path, bad: Answer) -> None:
    mirror.serve("numbers.bin", bad, bad, Answer(CONTENT))
    content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, back_off=0.001)
    assert content == CONTENT
    assert len(mirror.requests) == 3


def test_the_next_mirror_is_asked_before_any_wait(
    mirror: Mirror, second_mirror: Mirror, nothing_listens: str, tmp_path: Path
) -> None:
    mirror.serve("numbers.bin", Answer(HTML_PAGE))
    second_mirror.serve("numbers.bin", Answer(CONTENT))
    addresses = [nothing_listens, mirror.address, second_mirror.address]
    # A single round has no wait in it.
    content = fetch.download(plain_file(), mirrors=addresses, cache=tmp_path, attempts=1)
    assert content == CONTENT
    assert len(mirror.requests) == len(second_mirror.requests) == 1


@pytest.mark.parametrize("promised", ["", str(10**17)])
@pytest.mark.parametrize("page", [False, True])
def test_more_than_the_declared_size_is_neither_read_nor_kept(
    mirror: Mirror, tmp_path: Path, promised: str, page: bool
) -> None:
    start = HTML_PAGE if page else CONTENT
    mirror.serve("numbers.bin", Answer(start, promised=promised, endless=True))
    with pytest.raises(fetch.DownloadError) as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path, attempts=1)
    assert caught.value.reason == (fetch.HTML if page else fetch.WRONG_CONTENT)
    assert page or f"expected at most {len(CONTENT)}" in str(caught.value)
    assert cached(tmp_path) == []
    assert mirror.sent < IN_SOCKETS


def test_a_full_disk_is_named_and_keeps_what_the_cache_held(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_to_full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "other.bin").write_bytes(CONTENT)
    mirror.serve("numbers.bin", Answer(CONTENT))
    monkeypatch.setattr(fetch, "receive", write_to_full_disk)
    with pytest.raises(data.DataError, match="No space left on device"):
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
    assert cached(tmp_path) == ["other.bin"]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Mirror, threading.Event]]:
    """A mirror that promises a file and sends nothing, or once the event is set a trickle."""
    monkeypatch.setattr(fetch, "TIMEOUT", (1.0, 0.2))
    monkeypatch.setattr(fetch, "SECONDS_BEFORE_SPEED", 0.3)
    mirror, trickles, over = Mirror(), threading.Event(), threading.Event()

    class Handler(Silent):
        def do_GET(self) -> None:
            mirror.requests.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while not over.wait(0.02):
                if trickles.is_set():
                    self.wfile.write(b"x")

    server = serve(mirror, Handler)
    yield mirror, trickles
    over.set()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("trickle", [False, True])
def test_a_mirror_that_hangs_is_asked_once_and_the_next_one_answers(
    hanging: tuple[Mirror, threading.Event],
    mirror: Mirror,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    trickle: bool,
) -> None:
    slow, trickles = hanging
    file = replace(plain_file(), largest=1_000_000)
    if trickle:
        trickles.set()
    mirror.serve("numbers.bin", Answer(b"", 503), Answer(CONTENT))
    with caplog.at_level("INFO", "privreg.data"):
        content = fetch.download(
            file, mirrors=[slow.address, mirror.address], cache=tmp_path, back_off=0.001
        )
    assert content == CONTENT
    assert len(slow.requests) == 1
    assert len(mirror.requests) == 2
    assert f"{slow.address}numbers.bin: no answer, " in caplog.text
    assert f"Downloading {mirror.address}numbers.bin" in caplog.text
