"""The download path against a server on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from privreg.data import fetch

from .server import (
    CONTENT,
    HTML_PAGE,
    Answer,
    Mirror,
    cached,
    plain_file,
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
        pytest.param(Answer(HTML_PAGE), fetch.WRONG_CONTENT, id="html-with-status-200"),
        pytest.param(Answer(HTML_PAGE, status=503), fetch.REFUSED, id="html-with-status-503"),
    ],
)
def test_a_wrong_answer_is_refused_and_leaves_nothing_behind(
    mirror: Mirror, tmp_path: Path, answer: Answer, reason: str
) -> None:
    mirror.serve("numbers.bin", answer)
    with pytest.raises(fetch.DownloadError) as caught:
        fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
    assert caught.value.reason == reason
    message = str(caught.value)
    assert message.startswith(f"numbers.bin: {reason}")
    assert mirror.address in message
    assert "\n" not in message
    assert len(mirror.requests) == fetch.ATTEMPTS
    assert cached(tmp_path) == []


@pytest.mark.parametrize("bad", [Answer(b"busy", status=503), Answer(HTML_PAGE), Answer(b"half")])
def test_a_failure_then_success(mirror: Mirror, tmp_path: Path, bad: Answer) -> None:
    mirror.serve("numbers.bin", bad, Answer(CONTENT))
    content = fetch.download(plain_file(), mirrors=[mirror.address], cache=tmp_path)
    assert content == CONTENT
    assert len(mirror.requests) == 2


def test_the_next_mirror_is_asked(
    mirror: Mirror, second_mirror: Mirror, nothing_listens: str, tmp_path: Path
) -> None:
    mirror.serve("numbers.bin", Answer(HTML_PAGE))
    second_mirror.serve("numbers.bin", Answer(CONTENT))
    addresses = [nothing_listens, mirror.address, second_mirror.address]
    content = fetch.download(plain_file(), mirrors=addresses, cache=tmp_path)
    assert content == CONTENT
    assert len(second_mirror.requests) == 1
