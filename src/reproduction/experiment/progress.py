"""Progress of a long loop as plain lines, readable in a terminal and in a log alike."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
INTERVAL_SECONDS = 5.0
logger = logging.getLogger(__name__)


def track(items: Iterable[Item], *, total: int, label: str) -> Iterator[Item]:
    """Yield the items, saying every few seconds how many are done and how long the rest takes."""
    started = said = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if done and now - said >= INTERVAL_SECONDS:
            said = now
            left = (now - started) / done * (total - done)
            logger.info("%s: %d of %d, %s left", label, done, total, tqdm.format_interval(left))
        yield item
