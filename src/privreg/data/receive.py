"""An address into a file, as long as it keeps sending and holds no more than was declared."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

logger = logging.getLogger(__name__)

# Seconds to connect and between two pieces of an answer.
TIMEOUT = (5.0, 10.0)
# A mirror that sends less than this, on average after the first seconds, counts as one that hangs.
LEAST_BYTES_PER_SECOND = 20_000
SECONDS_BEFORE_SPEED = 10.0
SECONDS_BETWEEN_LINES = 5.0
PIECE = 1 << 16
MOST_REDIRECTS = 5


class HangingError(Exception):
    """A mirror answered, and then sent nothing or next to nothing."""


class AnswerError(Exception):
    """A mirror's answer cannot be followed or read; the text says why."""


class TooLargeError(Exception):
    """A mirror sends, or announces, more than the file's declared largest size."""


def receive(url: str, output: Path, *, largest: int) -> None:
    """Stream an address into a file of at most `largest` bytes, and report progress in the log."""
    import requests
    import urllib3

    try:
        with (
            requests.Session() as session,
            _answer(session, url) as response,
            output.open("wb") as stream,
        ):
            response.raise_for_status()
            promised = _content_length(response)
            size = f" ({promised / 1e6:.1f} MB)" if promised else ""
            logger.info("Downloading %s%s", url, size)
            received = 0
            started = said = time.monotonic()
            for piece in _pieces(response):
                stream.write(piece)
                received += len(piece)
                if max(promised, received) > largest:
                    raise TooLargeError(
                        f"{max(promised, received)} bytes or more, expected at most {largest}"
                    )
                now = time.monotonic()
                seconds = now - started
                if seconds > max(SECONDS_BEFORE_SPEED, received / LEAST_BYTES_PER_SECOND):
                    raise HangingError(f"{received} bytes in {seconds:.0f} s")
                if now - said > SECONDS_BETWEEN_LINES:
                    said = now
                    logger.info("%.1f MB of %s%s", received / 1e6, url, size)
    except urllib3.exceptions.TimeoutError as error:
        raise HangingError(f"nothing for {TIMEOUT[1]:g} s") from error
    except urllib3.exceptions.HTTPError as error:
        raise requests.ConnectionError(error) from error
    if received < promised:
        raise requests.ConnectionError(f"{received} of {promised} bytes")


def _answer(session: Any, url: str) -> Any:
    """The answer at the end of the redirects, whose bodies are not read."""
    # Left to itself, a session reads the whole body of each redirect into memory.
    session.get_redirect_target = lambda response: None
    # A mirror that compresses on the way would change the digest of a .gz file.
    headers = {"Accept-Encoding": "identity"}
    for _ in range(MOST_REDIRECTS + 1):
        response = session.get(url, stream=True, timeout=TIMEOUT, headers=headers)
        if not response.is_redirect:
            return response
        response.close()
        try:
            url = urljoin(url, response.headers["Location"])
        except ValueError as error:
            raise AnswerError("a redirect to no web address") from error
        if not url.startswith(("https://", "http://")):
            raise AnswerError("a redirect to no web address")
    raise AnswerError(f"more than {MOST_REDIRECTS} redirects")


def _content_length(response: Any) -> int:
    """What the answer says that it holds, in bytes; 0 if it does not say."""
    text = response.headers.get("Content-Length", "0")
    # `int` reads signs, spaces and underscores, too.
    if not re.fullmatch("[0-9]{1,18}", text):
        raise AnswerError(f"Content-Length must be a number of bytes, got {text[:40]!r}")
    return int(text)


def _pieces(response: Any) -> Iterator[bytes]:
    """What comes, as it comes: waiting for a whole piece would hide how slowly it does."""
    raw = response.raw
    read = getattr(raw, "read1", None) or (lambda amount: raw.read(amount // 64))
    while piece := read(PIECE):
        yield piece
