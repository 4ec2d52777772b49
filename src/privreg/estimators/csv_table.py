"""CSV files, of which every line is one record whatever stands in the others.

A line of the wrong number of cells, of open quotes, of more than a megabyte or of bytes that are no
UTF-8 is an incomplete record: it is taken out before Arrow parses the rest, and keeps its number.
Files in gzip, and in UTF-16 with its mark, are decoded as they are read, before lines are found.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Bytes that are read at once, and those of the longest line.
BLOCK = 4 * 2**20
LONGEST = 2**20
MARK, GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SEPARATORS = (",", ";", "\t", "|")
# Where in a cell a byte stands.
START, PLAIN, QUOTED, CLOSED = range(4)
NEWLINE, RETURN, QUOTE = 10, 13, 34


@dataclass(frozen=True)
class CSVTable:
    r"""A CSV file in UTF-8 with a header line; it is one part.

    Every line after the header is a record, a blank one too, and ends in `\n` or `\r\n`, so that no
    cell holds a line break. A cell that begins with `"` is quoted up to the next single `"`, and
    nothing may follow that; elsewhere `"` is a character like others.
    """

    path: Path
    separator: str = ","
    schema: Any = field(init=False, repr=False)
    row_count: int = field(init=False)

    def __post_init__(self) -> None:
        import pyarrow as pa

        blocks = _blocks(self.path)
        first = next(blocks, b"")
        header = first[: first.find(b"\n") + 1]
        names = _header(header, self.separator, self.path.name)
        object.__setattr__(self, "schema", pa.schema([(name, pa.string()) for name in names]))
        count = first.count(b"\n") - 1 + sum(each.count(b"\n") for each in blocks)
        object.__setattr__(self, "row_count", count)

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """One reader, of record batches of the named columns."""
        return [partial(self._read, tuple(names))]

    def _read(self, names: tuple[str, ...]) -> Iterator[Any]:
        width = len(self.schema.names)
        # Columns by their numbers: names can hold anything.
        head = self.separator.join(map(str, range(width))).encode() + b"\n"
        start = len(head)
        for number, lines in enumerate(_blocks(self.path)):
            if not number:
                lines = lines[lines.find(b"\n") + 1 :]
            kept = np.empty(start + len(lines), dtype=np.uint8)
            kept[:start] = np.frombuffer(head, dtype=np.uint8)
            data, whole = np.frombuffer(lines, np.uint8), np.empty(lines.count(b"\n"), np.bool_)
            size = _keep_whole(data, ord(self.separator), width, LONGEST, kept[start:], whole)
            yield self._parse(kept[: start + size], whole, names)

    def _parse(self, lines: NDArray[np.uint8], whole: NDArray[np.bool_], names: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow

        places = [str(self.schema.names.index(name)) for name in names]
        found = arrow.read_csv(
            pa.py_buffer(lines),
            arrow.ReadOptions(use_threads=False, block_size=len(lines) + 1),
            # A blank line is a record where there is one column.
            arrow.ParseOptions(
                delimiter=self.separator, newlines_in_values=False, ignore_empty_lines=False
            ),
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


def _header(line: bytes, separator: str, name: str) -> list[str]:
    """Names of the columns, or an error that names what is there instead and quotes none of it."""
    line = line.removeprefix(MARK)
    try:
        text = line.decode("utf-8").rstrip("\r\n")
        names = next(csv.reader([text], delimiter=separator, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        text, names = "", []
    other = next((each for each in SEPARATORS if each in text and len(names) == 1), "")
    causes = {
        "an empty file": not line,
        "a blank first line": not line.strip(),
        "a longer first line than a megabyte": len(line) > LONGEST,
        "NUL characters: save it as UTF-8": b"\0" in line,
        r"lines that end in \r alone": b"\r" in line.rstrip(b"\r\n"),
        f"one with {other!r} and no {separator!r}: name it as the separator": bool(other),
        "another first line": not names,
    }
    for cause in (each for each, found in causes.items() if found):
        raise ValueError(f"table must have a header line in UTF-8, got {cause} in {name!r}")
    return [each.strip() for each in names]


def _decoded(path: Path) -> Iterator[bytes]:
    """A file in UTF-8 block by block; what is no UTF-16 comes as bytes that are no UTF-8."""
    with path.open("rb") as plain:
        zipped = plain.peek(2).startswith(GZIP)
        file: Any = gzip.GzipFile(fileobj=plain) if zipped else plain
        try:
            wide = file.peek(2).startswith(WIDE_MARKS)
            decoder = codecs.getincrementaldecoder("utf-16")("surrogatepass")
            while block := file.read(BLOCK):
                if wide:
                    block = decoder.decode(block).encode("utf-8", "surrogatepass")
                yield block
            if decoder.getstate()[0]:
                yield b"\xff"
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise ValueError(f"table must be sound gzip, got {path.name!r}") from None


def _blocks(path: Path) -> Iterator[bytes]:
    """A file in blocks of whole lines, of each line a byte more than may be."""
    rest = b""
    for block in _decoded(path):
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
    separator: int,
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
        elif byte == separator:
            found += 1
            place = START
        elif place == CLOSED:
            sound &= byte == QUOTE
            place = QUOTED
        elif place == START:
            place = QUOTED if byte == QUOTE else PLAIN
    return size
