"""CSV files, of which every line is one record whatever stands in the others.

A line of the wrong number of cells, of open quotes, of more than a megabyte or of bytes that are no
UTF-8 is an incomplete record: it is taken out before Arrow parses the rest, and keeps its number.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privreg.estimators.columns import require_columns, require_file

# Bytes that are read at once, and those of the longest line.
BLOCK = 4 * 2**20
LONGEST = 2**20
MARK = b"\xef\xbb\xbf"
# Where in a cell a byte stands.
START, PLAIN, QUOTED, CLOSED = range(4)
NEWLINE, RETURN, QUOTE, COMMA = 10, 13, 34, 44


@dataclass(frozen=True)
class CSVTable:
    r"""A CSV file in UTF-8 with a header line; it is one part.

    Every line after the header is a record, a blank one too, and ends in `\n` or `\r\n`, so that no
    cell holds a line break. A cell that begins with `"` is quoted up to the next single `"`, and
    nothing may follow that; elsewhere `"` is a character like others.

    Attributes
    ----------
    schema : pyarrow.Schema
        Every column as text; a cell of an incomplete line is null, an empty cell an empty text.
    row_count : int
        Number of lines after the header.
    """

    path: Path
    schema: Any = field(init=False, repr=False)
    row_count: int = field(init=False)
    _start: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        import pyarrow as pa

        require_file(self.path)
        with self.path.open("rb") as file:
            names = _header(file.readline(LONGEST + 1), self.path.name)
            object.__setattr__(self, "schema", pa.schema([(name, pa.string()) for name in names]))
            object.__setattr__(self, "_start", file.tell())
            object.__setattr__(self, "row_count", _count_lines(file))

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """One reader, of record batches of the named columns."""
        require_columns(names, self.schema.names)
        return [partial(self._read, tuple(names))]

    def _read(self, names: tuple[str, ...]) -> Iterator[Any]:
        width = len(self.schema.names)
        # Columns by their numbers: names can hold anything.
        head = np.frombuffer(",".join(map(str, range(width))).encode() + b"\n", dtype=np.uint8)
        with self.path.open("rb") as file:
            file.seek(self._start)
            for lines in _blocks(file):
                data = np.frombuffer(lines, dtype=np.uint8)
                kept = np.empty(len(head) + len(data), dtype=np.uint8)
                kept[: len(head)] = head
                whole = np.empty(lines.count(b"\n"), dtype=np.bool_)
                size = _keep_whole(data, width, LONGEST, kept[len(head) :], whole)
                yield self._parse(kept[: len(head) + size], whole, names)

    def _parse(self, lines: NDArray[np.uint8], whole: NDArray[np.bool_], names: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow

        places = [str(self.schema.names.index(name)) for name in names]
        found = arrow.read_csv(
            pa.py_buffer(lines),
            arrow.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            # A blank line is a record where there is one column.
            arrow.ParseOptions(newlines_in_values=False, ignore_empty_lines=False),
            arrow.ConvertOptions(
                include_columns=places,
                column_types=dict.fromkeys(places, pa.string()),
                strings_can_be_null=False,
            ),
        )
        if found.num_rows != np.count_nonzero(whole):
            raise RuntimeError("lines of the table were not parsed one by one")
        if not np.all(whole):
            found = found.take(pa.array(np.cumsum(whole) - 1, mask=~whole))
        return pa.record_batch(
            [column.combine_chunks() for column in found.columns], names=list(names)
        )


def _header(line: bytes, name: str) -> list[str]:
    try:
        names = next(csv.reader([line.removeprefix(MARK).decode("utf-8")], strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        names = []
    if not names or len(line) > LONGEST:
        raise ValueError(f"table must have a header line in UTF-8, got none in {name!r}")
    return [each.strip() for each in names]


def _count_lines(file: Any) -> int:
    count, last = 0, b"\n"
    while block := file.read(BLOCK):
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")


def _blocks(file: Any) -> Iterator[bytes]:
    """The rest of a file in blocks of whole lines, of each line a byte more than may be."""
    rest = b""
    while block := file.read(BLOCK):
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end : end + LONGEST + 1]
        if end:
            yield block[:end]
    if rest:
        yield rest + b"\n"


@njit(nogil=True, cache=True)
def _keep_whole(
    data: NDArray[np.uint8],
    cells: int,
    longest: int,
    kept: NDArray[np.uint8],
    whole: NDArray[np.bool_],
) -> int:
    """Copy whole lines of `data` to `kept`, say which they are, and return their bytes."""
    size = line = begin = 0
    found, place, sound = 1, START, True
    # Continuation bytes that are due, and the range of the next.
    due, low, high = 0, 0x80, 0xBF
    for at in range(len(data)):
        byte = data[at]
        if byte == NEWLINE:
            sound &= place != QUOTED and due == 0 and found == cells and at - begin <= longest
            whole[line] = sound
            if sound:
                for each in range(begin, at + 1):
                    kept[size] = data[each]
                    size += 1
            line += 1
            begin = at + 1
            found, place, sound = 1, START, True
            due, low, high = 0, 0x80, 0xBF
            continue
        if byte >= 0x80 or due:
            if due:
                sound &= low <= byte <= high
                due -= 1
                low, high = 0x80, 0xBF
            elif 0xC2 <= byte <= 0xDF:
                due = 1
            elif 0xE0 <= byte <= 0xEF:
                due = 2
                # No longer form of a shorter one, and no surrogate.
                low, high = (0xA0 if byte == 0xE0 else 0x80), (0x9F if byte == 0xED else 0xBF)
            elif 0xF0 <= byte <= 0xF4:
                due = 3
                low, high = (0x90 if byte == 0xF0 else 0x80), (0x8F if byte == 0xF4 else 0xBF)
            else:
                sound = False
        if byte == RETURN:
            sound &= data[at + 1] == NEWLINE
        elif place == QUOTED:
            if byte == QUOTE:
                place = CLOSED
        elif byte == COMMA:
            found += 1
            place = START
        elif place == CLOSED:
            sound &= byte == QUOTE
            place = QUOTED
        elif place == START:
            place = QUOTED if byte == QUOTE else PLAIN
    return size
