"""How far a command is that reads a long table, for one who watches a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Self

# Seconds before the first line, and between two.
PATIENCE, PAUSE = 3.0, 0.5


class Watched:
    """A table that says on a terminal which pass over its rows is under way, and how far it is.

    It shows when several seconds have passed, on standard error, and only where that is a terminal;
    as a context it clears the line at its end. Of the rows nothing enters but their number.
    """

    def __init__(self, table: Any, what: str) -> None:
        self.table, self.what = table, what
        self._lock, self._read, self._length = Lock(), 0, 0
        self._start = self._shown = monotonic()

    @property
    def schema(self) -> Any:
        """That of the table."""
        return self.table.schema

    @property
    def row_count(self) -> int:
        """That of the table."""
        return int(self.table.row_count)

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Those of the table, whose rows are counted as they are read."""
        if not sys.stderr.isatty():
            return list(self.table.parts(names))
        return [partial(self._counted, part) for part in self.table.parts(names)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._length:
            print("\r" + " " * self._length + "\r", end="", file=sys.stderr, flush=True)

    def _counted(self, part: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        for batch in part():
            yield batch
            with self._lock:
                self._read += batch.num_rows
                self._show()

    def _show(self) -> None:
        now = monotonic()
        if now - self._start < PATIENCE or now - self._shown < PAUSE:
            return
        self._shown = now
        passes, rest = divmod(self._read, max(1, self.row_count))
        line = (
            f"{self.what}: pass {passes + 1} over the table, "
            f"{100 * rest // max(1, self.row_count)} %, {now - self._start:.0f} s"
        )
        # Nothing of a longer line before stays.
        print("\r" + line.ljust(self._length), end="", file=sys.stderr, flush=True)
        self._length = max(self._length, len(line))
