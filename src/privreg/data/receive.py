"""An address into a file, for as long as it flows."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

# Seconds to connect and between two pieces of an answer.
TIMEOUT = (5.0, 10.0)
# A mirror that sends less than this, on average after the first seconds, counts as one that hangs.
LEAST_BYTES_PER_SECOND = 20_000
SECONDS_BEFORE_SPEED = 10.0
SECONDS_BETWEEN_LINES = 5.0
PIECE = 1 << 16


class HangingError(Exception):
    """A mirror answered, and then sent nothing or next to nothing."""


def receive(url: str, output: Path) -> None:
    """Stream an address into a file, with a line now and then, and only while it flows."""
    import requests
    import urllib3

    # A mirror that compresses on the way would change the digest of a .gz file.
    headers = {"Accept-Encoding": "identity"}
    try:
        with (
            requests.get(url, stream=True, timeout=TIMEOUT, headers=headers) as response,
            output.open("wb") as stream,
        ):
            response.raise_for_status()
            promised = int(response.headers.get("Content-Length", 0))
            size = f" ({promised / 1e6:.1f} MB)" if promised else ""
            logger.info("Downloading %s%s", url, size)
            received = 0
            started = said = time.monotonic()
            for piece in _pieces(response):
                stream.write(piece)
                received += len(piece)
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


def _pieces(response: Any) -> Iterator[bytes]:
    """What comes, as it comes: waiting for a whole piece would hide how slowly it does."""
    raw = response.raw
    read = getattr(raw, "read1", None) or (lambda amount: raw.read(amount // 64))
    while piece := read(PIECE):
        yield piece
