"""Tables in files, folders and frames, read in parts, and private scores on these tables.

A pass reads one part after another; it maps a part's records into the bounds and discards them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import pickle
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import inf, nan, sqrt
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable
from weakref import finalize

import numpy as np
from joblib import wrap_non_picklable_objects
from numba import njit
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import (
    ArraySamples,
    Chunk,
    WeightedChunk,
    WeightedSamples,
    weight_roots,
)
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.checks import MOST, require_array, require_choice, require_instance, rounded, sort
from privreg.estimators.columns import (
    Categories,
    Cells,
    Frame,
    Numbers,
    is_text,
    require_column,
    value_type,
)
from privreg.estimators.formulas import Design
from privreg.estimators.odometer import PrivacyStatement
from privreg.noise.exact import UNITS, exact_factor, whole_numbers
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import TIMES, TRUSTED, Release

# Bytes that are read at once, and bytes of the longest line.
BLOCK = 4 * 2**20
LONGEST = 2**20
MARK, GZIP = b"\xef\xbb\xbf", b"\x1f\x8b"
WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SEPARATORS = (",", ";", "\t", "|")
# Position of a byte in its cell.
START, PLAIN, QUOTED, CLOSED = range(4)
NEWLINE, RETURN, QUOTE = 10, 13, 34


@runtime_checkable
class Table(Protocol):
    """Named columns of declared types with a known number of rows."""

    @property
    def schema(self) -> Any:
        """The `pyarrow.Schema` of all columns, which is public."""

    @property
    def row_count(self) -> int:
        """Number of rows."""

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Readers of consecutive parts; each yields Arrow record batches with the named columns."""


class _File:
    """A file that must not change between its opening and the last pass over it."""

    def __init__(self, path: Path) -> None:
        self.path, self._stamp = path, _stamp(path)
        self.inodes = {self._stamp[:2]}

    def require_unchanged(self) -> None:
        if _stamp(self.path) != self._stamp:
            raise ValueError(f"table must not change while it is read, got {self.path.name!r}")


def _stamp(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class CSVTable(_File):
    r"""A CSV file in UTF-8 with a header line, read as one part.

    Every line after the header is a record and ends in `\n` or `\r\n`. A cell that begins with `"`
    is quoted up to the next `"` that is not doubled. Elsewhere `"` is an ordinary character.
    """

    def __init__(self, path: Path, separator: str = ",") -> None:
        import pyarrow as pa

        super().__init__(path)
        self.separator = separator
        blocks = _blocks(path)
        first = next(blocks, b"")
        names = _header(first[: first.find(b"\n") + 1], separator, path.name)
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self.row_count = first.count(b"\n") - 1 + sum(each.count(b"\n") for each in blocks)

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        self.require_unchanged()
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
            # In a table of one column, a blank line is a record.
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
            raise RuntimeError("table must have one row per line, got another number of rows")
        if not np.all(whole):
            found = found.take(pa.array(np.cumsum(whole) - 1, mask=~whole))
        return pa.record_batch(
            [column.combine_chunks() for column in found.columns], names=list(names)
        )


def _header(line: bytes, separator: str, name: str) -> list[str]:
    """Names of the columns, or an error that names the fault and quotes nothing of the line."""
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
        "a first line longer than 1 MiB": len(line) > LONGEST,
        "NUL characters: save it as UTF-8": b"\0" in line,
        r"lines that end in \r alone": b"\r" in line.rstrip(b"\r\n"),
        "a line `sep=`: delete it": text.startswith("sep="),
        f"one with {other!r} and no {separator!r}: set the separator to {other!r}": bool(other),
        "blanks before quotes: delete them": any(re.match(' +"', each) for each in names),
        "an unreadable first line": not names,
    }
    for cause in (each for each, found in causes.items() if found):
        raise ValueError(f"table {name!r} must have a header line in UTF-8, got {cause}")
    return [each.strip() for each in names]


def _decoded(path: Path) -> Iterator[bytes]:
    """Blocks of a file, converted to UTF-8; invalid UTF-16 becomes bytes that are invalid UTF-8."""
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
            raise ValueError(f"table must be an undamaged gzip file, got {path.name!r}") from None


def _blocks(path: Path) -> Iterator[bytes]:
    """Blocks of a file's whole lines; an overlong line is cut one byte past the allowed length."""
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
    """Copy valid lines of `data` to `kept`, flag them in `whole`, and return their number of bytes.

    A line with an open quote is left out, since Arrow would merge it with the next records.
    """
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
                # Refuses overlong encodings and surrogates.
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


Counts = NDArray[np.int64]
BATCH = 16_384
# Bytes that are read ahead, rather than a whole row group.
BUFFER = 2**16
# Most uncompressed bytes of a row group's used columns, and most times their size in the file.
MOST_BYTES, MOST_TIMES = 2**28, 20


class ParquetTable(_File):
    """A Parquet file; its row groups are the parts, read in parallel.

    Texts are read as dictionaries, so a row group needs its uncompressed size in memory. A row
    group is refused if it needs more than 256 MiB and more than 20 times its compressed size.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with _parquet(path) as file:
            self.schema, self._metadata = file.schema_arrow, file.metadata
        self.row_count = int(self._metadata.num_rows)
        self.groups = int(self._metadata.num_row_groups)
        self._sound: tuple[str, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        # The metadata of many row groups are long; a worker that gets one part reads them once.
        return {**vars(self), "_metadata": None}

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        self.require_unchanged()
        chosen = tuple(names)
        if self._metadata is not None and chosen != self._sound:
            self._require_readable(chosen)
            self._sound = chosen
        return [partial(self._read, group, chosen) for group in range(self.groups)]

    def _require_readable(self, names: tuple[str, ...]) -> None:
        """Refuse small files that need much memory or repeat row groups; only metadata are read."""
        begins: list[int] = []
        for group in map(self._metadata.row_group, range(self.groups)):
            every = map(group.column, range(group.num_columns))
            used = [each for each in every if each.path_in_schema in names]
            begins += [each.data_page_offset for each in used if each.num_values]
            for each in used:
                # It omits the common beginnings of texts, and Arrow makes no dictionary of it.
                if each.physical_type == "BYTE_ARRAY" and "DELTA_BYTE_ARRAY" in each.encodings:
                    name = f"column {each.path_in_schema!r}"
                    raise ValueError(f"{name} must not be encoded as DELTA_BYTE_ARRAY: use PLAIN")
            size = sum(each.total_uncompressed_size for each in used)
            if size > max(MOST_BYTES, MOST_TIMES * sum(e.total_compressed_size for e in used)):
                most = f"{MOST_BYTES >> 20} MiB, or of {MOST_TIMES} times the size in the file"
                found = f"{size >> 20} MiB in {self.path.name!r}"
                raise ValueError(f"row groups must unpack to at most {most}, got {found}")
        if len(set(begins)) < len(begins):
            raise ValueError(f"table must have each row group once, got {self.path.name!r}")

    def _read(self, group: int, names: tuple[str, ...]) -> Iterator[Any]:
        texts = [name for name in names if is_text(self.schema.field(name).type)]
        options = {"read_dictionary": texts, "metadata": self._metadata}
        with _parquet(self.path, **options) as file:
            for batch in file.iter_batches(
                batch_size=BATCH, row_groups=[group], columns=list(names), use_threads=False
            ):
                # By name, since a file gives columns in its own order.
                yield batch.select(names)


@contextmanager
def _parquet(path: Path, **options: Any) -> Iterator[Any]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        options |= {"pre_buffer": False, "buffer_size": BUFFER, "page_checksum_verification": True}
        with ParquetFile(path, **options) as file:
            yield file
    except (ArrowException, OSError):
        # What Arrow says may quote a cell.
        raise ValueError(f"table must be a sound Parquet file, got {path.name!r}") from None


class FolderTable:
    """Several tables as one; a used column has the same type in all, and no file occurs twice."""

    def __init__(self, names: Sequence[str], tables: Sequence[Table]) -> None:
        self.names, self.tables, self.schema = names, tables, tables[0].schema
        self.row_count = sum(each.row_count for each in tables)
        self.inodes: set[Any] = set()
        for name, table in zip(names, tables, strict=True):
            own = getattr(table, "inodes", {id(table)})
            if own & self.inodes:
                raise ValueError(f"table must have each file once, got {name!r} twice or linked")
            self.inodes |= own

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        for place, table in zip(self.names, self.tables, strict=True):
            for column in names:
                if table.schema.names.count(column) != 1:
                    raise ValueError(f"column {column!r} must be in {place!r} exactly once")
            first = f"as in {self.names[0]!r}"
            _require_types(names, self.schema, table.schema, first, f" in {place!r}")
        return [part for table in self.tables for part in table.parts(names)]


def _require_types(
    names: Iterable[str], declared: Any, found: Any, where: str, place: str = ""
) -> None:
    for name in names:
        wanted, own = (value_type(each.field(name).type) for each in (declared, found))
        if own != wanted:
            raise ValueError(f"column {name!r} must be of type {wanted} {where}, got {own}{place}")


class Unread(NamedTuple):
    """A table's schema and number of rows, without its rows."""

    schema: Any
    row_count: int

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        return []


class HeldTable:
    """An Arrow table in memory, read as one part."""

    def __init__(self, table: Any) -> None:
        self.table, self.schema, self.row_count = table, table.schema, int(table.num_rows)

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        return [self.table.select(list(names)).to_batches]

    def beside(self, name: str, values: NDArray[Any]) -> HeldTable:
        """The table with one more column."""
        return HeldTable(self.table.append_column(name, [values]))

    def values(self, columns: Sequence[Numbers | Categories]) -> list[NDArray[Any]]:
        """Encoded columns; an error if a cell is missing."""
        for column in columns:
            column.require_type(self.schema.field(column.name).type)
        cells = [each.encode(self.table.column(each.name).combine_chunks()) for each in columns]
        pairs = zip(columns, cells, strict=True)
        if named := ", ".join(repr(each.name) for each, own in pairs if np.any(own.missing)):
            raise ValueError(f"X must hold no missing or undeclared values, got some in {named}")
        return [values for each in cells for values in each.features]


def frame_columns(data: Any) -> list[str]:
    """Column names of a lazy or in-memory frame, if all are texts; no names for other data."""
    lazy = hasattr(data, "collect_schema")
    names = data.collect_schema().names() if lazy else getattr(data, "column_names", None)
    listed = list(getattr(data, "columns", ()) if names is None else names)
    return listed if all(isinstance(each, str) for each in listed) else []


def open_frame(frame: Any, names: Sequence[str]) -> HeldTable:
    """Read named columns of a data frame, lazy or in memory, that narwhals supports."""
    from pyarrow import ArrowException

    try:
        import narwhals.stable.v2 as nw
    except ImportError:
        raise ImportError("frames need narwhals: pip install 'privreg[frames]'") from None
    read: Any = nw.from_native(frame, pass_through=True)
    if not isinstance(read, (nw.DataFrame, nw.LazyFrame)):
        wanted = f"a data frame with the columns {', '.join(names)}"
        raise TypeError(f"X must be {wanted}, got {sort(frame)}")
    for name in names:
        require_column("columns: a name", name, read.collect_schema().names())
    try:
        read = read.select(*names)
        found = read.collect(backend="pyarrow") if isinstance(read, nw.LazyFrame) else read
        return HeldTable(found.to_arrow())
    except (ArrowException, TypeError, ValueError, OverflowError):
        # What Arrow says may quote a cell.
        raise ValueError("X must have columns of one type each, got mixed types") from None


def open_rows(table: Any, names: Sequence[str]) -> Table:
    """Table from a path or from a data frame with these columns; a table is returned unchanged."""
    if not isinstance(table, Table):
        table = open_frame(table, names) if frame_columns(table) else open_table(table)
    return table


def open_table(table: str | Path, *, separator: str = ",") -> Table:
    """Table from a `.parquet`, `.csv` or `.csv.gz` file, or from a folder of files of one kind.

    `separator` stands between the cells of a CSV file: a comma, semicolon, tab or bar. A folder may
    also hold hidden files and markers such as `_SUCCESS`, but no other files.
    """
    if "\n" in str(table) or not isinstance(table, (str, Path)):
        raise ValueError(f"table must be a Table, data frame or one-line path, got {sort(table)}")
    require_choice("separator", separator, SEPARATORS)
    # Workers, and a caller between two passes, may be in another folder.
    path = Path(table).absolute()
    if path.is_dir():
        found = [e for e in sorted(path.iterdir()) if e.is_dir() or not MARKER.fullmatch(e.name)]
        kinds = {_ending(each) == ".parquet" for each in found}
        odd = (e for e in found if e.is_dir() or e.name[0] in "._" or _ending(e) not in ENDINGS)
        bad = [each.name for each in odd]
        if not found or bad or len(kinds) > 1:
            got = f"{str(path)!r}{f': move or rename {bad[0]!r}' if bad else ''}"
            wanted = "a folder of only .parquet files or only .csv files"
            raise ValueError(f"table must be {wanted}, got {got}")
        stems = [each.name.lower().removesuffix(_ending(each)) for each in found]
        for stem in (each for each, count in Counter(stems).items() if count > 1):
            raise ValueError(f"table must have each file once, got two files named {stem!r}")
        names = [each.name for each in found]
        return FolderTable(names, [open_table(each, separator=separator) for each in found])
    if not path.is_file():
        raise ValueError(f"table must be a file or folder that exists, got {str(path)!r}")
    ending = require_choice("table's ending", _ending(path), ENDINGS)
    return ParquetTable(path) if ending == ".parquet" else CSVTable(path, separator)


ENDINGS = (".csv", ".csv.gz", ".parquet")
# Files without records: leftovers of writers, systems and people, and hidden files.
MARKER = re.compile(
    r"_SUCCESS|_(common_)?metadata|README(\.md)?|\._.*|\.(?!.*\.(csv|gz|parquet)$).*"
)


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    return f"{Path(path.stem).suffix.lower()}.gz" if ending == ".gz" else ending


class _ParsedTable:
    """Table of numbers in an unnamed temporary file, in batches; its columns are named 0, 1, ..."""

    def __init__(self, width: int, batches: Iterable[list[NDArray[Any]]]) -> None:
        import pyarrow as pa

        self.schema = pa.schema([(str(k), pa.float64()) for k in range(width)])
        self.row_count, self._file = 0, TemporaryFile()  # noqa: SIM115
        finalize(self, self._file.close)
        self._blocks: list[tuple[int, tuple[int, int]]] = []
        for columns in batches:
            block = np.stack(columns)
            self._blocks.append((self._file.tell(), block.shape))
            self._file.write(block.tobytes())
            self.row_count += block.shape[1]
        self._file.flush()

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Functions that each read one part of the table, of about a million rows."""
        return [partial(self._read, names, first) for first in range(0, len(self._blocks), 64)]

    def _read(self, names: Sequence[str], first: int) -> Iterator[Any]:
        import pyarrow as pa

        for offset, shape in self._blocks[first : first + 64]:
            block = np.memmap(self._file, np.float64, "r", offset, shape)
            yield pa.record_batch([pa.array(block[int(each)]) for each in names], names=list(names))


class TableSamples:
    """Samples that are read from a table at each pass, with rows in the units of a `Frame`.

    An incomplete record becomes a row of zeros (including the intercept's entry) with label 0, and
    so counts as absent. `weight` is a column of weights from 0 to their bound. Rows and labels are
    multiplied by √(weight/bound). With a `design`, features are the terms of its formula. An
    executor's workers replace threads.

    Guarantee
    ---------
    Each mapped row is a function of its own record, the schema and the declarations given here.
    """

    _norms_are_own: ClassVar[bool] = True

    def __init__(
        self,
        table: Table,
        features: Sequence[Numbers | Categories],
        label: str | Numbers,
        frame: Frame,
        executor: Executor | None = None,
        weight: Numbers | None = None,
        design: Design | None = None,
    ) -> None:
        if executor is not None:
            require_instance("executor", executor, Executor)
        self.table, self.features, self.label, self.frame = table, features, label, frame
        self.executor, self.weight, self.weighted = executor, weight, weight is not None
        self.design = design
        self.sample_size, self.dimension = table.row_count, frame.dimension
        # The columns that are used.
        if isinstance(label, str):
            label = Numbers(label, *map(float, frame.label))
        self.columns = [*features, label]
        self.columns += [] if weight is None else [weight]
        for column in self.columns:
            require_column("columns: a name", column.name, table.schema.names)
        # The table checks the columns before any is read.
        self._encoders()
        for column in self.columns:
            column.require_type(table.schema.field(column.name).type)

    def __reduce__(self) -> tuple[Any, ...]:
        own = (self.features, self.label, self.frame, None, self.weight, self.design)
        unread = Unread(self.table.schema, self.table.row_count)
        return TableSamples, (self.table if self.executor is None else unread, *own)

    def chunks(self) -> Iterator[Chunk]:
        for part in self._encoders():
            # A part of a weighted table also has the roots of its weights.
            yield from (Chunk(*chunk[:3]) for chunk in self._chunks(part))

    def each_part(
        self, task: Callable[[Iterator[Chunk]], Any], *, threads: int = 1
    ) -> Iterator[Any]:
        """Results of a task for each part, in the order of the parts."""
        readers = [partial(self._chunks, part) for part in self._encoders()]
        return self._each(task, readers, threads)

    def counts(self, *, threads: int = 1) -> Counts:
        """Counts of missing and clipped cells, (columns, 2), in one pass; exact, not private."""

        def total(part: Iterator[list[Cells]]) -> Counts:
            return sum((self._count(each) for each in part), start=self._no_counts())

        return self._whole(sum(self._each(total, self._encoders(), threads), self._no_counts()))

    def hold(self, *, most: float) -> tuple[ArraySamples | TableSamples, Counts | None]:
        """Parsed rows kept for later passes, and their `counts`; both are exact, not private.

        A table of texts with more than `most` numbers is parsed into a temporary file. Any other
        table of this size is returned unchanged and uncounted.
        """
        size, counts, begin = self.sample_size, self._no_counts(), 0
        if size * self.dimension > most:
            kinds = {value_type(self.table.schema.field(each.name).type) for each in self.columns}
            return self._parsed(counts) if set(map(str, kinds)) == {"string"} else (self, None)
        held = [np.empty((size, self.dimension)), np.empty(size), np.empty(size)]
        for cells in self._counted(counts):
            features, labels, _, *roots = self._mapped(cells)
            end = begin + len(labels)
            for whole, some in zip(held, (features, labels, *roots), strict=False):
                whole[begin:end] = some
            begin = end
        # No other code has a reference to the mapped rows, so they need no copy.
        samples = WeightedSamples(*held) if self.weighted else ArraySamples._of_own(*held[:2])
        return samples, counts[:-1]

    def _parsed(self, counts: Counts) -> tuple[TableSamples, Counts]:
        pairs = [pair for column in self.columns for pair in column.bounds]
        columns = [Numbers(str(k), low, high) for k, (low, high) in enumerate(pairs)]
        parsed = (
            [np.where(each.missing, np.nan, values) for each in cells for values in each.features]
            for cells in self._counted(counts)
        )
        table, p = _ParsedTable(len(columns), parsed), len(columns) - 1 - self.weighted
        weight, own = columns[-1] if self.weighted else None, (columns[:p], columns[p])
        return TableSamples(table, *own, self.frame, None, weight, self.design), counts[:-1]

    def _counted(self, counts: Counts) -> Iterator[list[Cells]]:
        """Cells of all rows; an error if the number of rows differs from the table's row count."""
        for cells in chain.from_iterable(part() for part in self._encoders()):
            counts += self._count(cells)
            if counts[-1, 0] <= self.sample_size:
                yield cells
        self._whole(counts)

    def _whole(self, counts: Counts) -> Counts:
        """Counts of the columns; if they do not cover all rows, an error that hides the number."""
        if counts[-1, 0] != self.sample_size:
            raise ValueError("table must have row_count rows in total, got another number")
        return counts[:-1]

    def _each(
        self, task: Callable[[Any], Any], readers: Sequence[Callable[[], Any]], threads: int
    ) -> Iterator[Any]:
        if self.executor is not None:
            # As bytes: tasks are closures, which executors differ in, and are alike for all parts.
            sent = [_sent(read) for read in readers]
            yield from self.executor.map(partial(_run_sent, _sent(task)), sent)
        elif threads == 1:
            yield from (task(read()) for read in readers)
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield from pool.map(lambda read: task(read()), readers)

    def _count(self, encoded: list[Cells]) -> Counts:
        """Counts (missing, clipped) for each column, then a last line with the number of rows."""
        pairs = zip(self.columns, encoded, strict=True)
        found = [(np.count_nonzero(own.missing), each.clipped(own)) for each, own in pairs]
        return np.array([*found, (len(encoded[0].missing), 0)])

    def _no_counts(self) -> Counts:
        return np.zeros((len(self.columns) + 1, 2), dtype=np.int64)

    def _encoders(self) -> list[Callable[[], Iterator[list[Cells]]]]:
        names = [column.name for column in self.columns]
        return [partial(self._encoded, part) for part in self.table.parts(names)]

    def _encoded(self, part: Callable[[], Iterator[Any]]) -> Iterator[list[Cells]]:
        """Cells of each column, for some rows at a time."""
        columns, checked = self.columns, None
        names = [each.name for each in columns]
        for batch in part():
            if checked is None or not batch.schema.equals(checked):
                _require_types(names, self.table.schema, batch.schema, "in all batches")
                checked = batch.schema
            for begin in range(0, batch.num_rows, BATCH):
                rows = batch.slice(begin, BATCH)
                yield [each.encode(rows.column(each.name)) for each in columns]

    def _chunks(self, part: Callable[[], Iterator[list[Cells]]]) -> Iterator[Any]:
        return map(self._mapped, part())

    def _mapped(self, columns: list[Cells]) -> Chunk | WeightedChunk:
        """Encoded rows, mapped into the bounds."""
        encoded = [values for each in columns for values in each.features]
        weights = None if self.weight is None else encoded.pop()
        *features, label = encoded
        absent = np.zeros(len(label), dtype=np.bool_)
        for each in columns:
            absent |= each.missing
        if self.design is not None:
            features = self.design.features(features)
            label = self.design.labels(np.clip(label, *self.columns[-1 - self.weighted].bounds[0]))
            # Rounding may make a function undefined at the ends of its bounds.
            absent |= np.isnan(np.sum(features, axis=0) + label)
        if some := bool(np.any(absent)):
            label = np.where(absent, 0.0, label)
        rows, labels = self.frame.rows_of(features, absent), self.frame.labels(label)
        if some:
            labels[absent] = 0
        if self.weight is not None and weights is not None:
            roots = weight_roots(np.where(absent, 0, weights), self.weight.high)
            rows *= roots[:, None]
            labels = labels * roots
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        if weights is None:
            return Chunk(rows, labels, norms)
        return WeightedChunk(rows, labels, norms, roots)


def _sent(value: Any) -> bytes:
    return pickle.dumps(wrap_non_picklable_objects(value))


def _run_sent(task: bytes, read: bytes) -> Any:
    """Run a task on a part of a table; the file is opened in the process that runs the task."""
    return pickle.loads(task)(pickle.loads(read)())


FloatArray = NDArray[np.float64]
# What each sum is for, and its share of the budget.
SHARES = {"records": 0.1, "labels": 0.2, "squared labels": 0.2, "squared errors": 0.5}
CLIPPED = "features, labels and predictions are clipped to the declared bounds, row by row"
# Standard deviations of noise by which a divisor must exceed 0.
VISIBLE = 4.0
ABSENT = "a record with a missing, unreadable or undeclared value in a used column is ignored"
WEIGHTS = "a record's weight depends on that record alone, and is clipped to [0, weight_bound]"
# Shares beyond which to warn, by convention, and the margin in deviations of noise.
WORTH_A_WARNING, MANY, SURE = 0.05, 0.5, 4.0


@dataclass(frozen=True)
class TableQuality:
    """Noisy shares of incomplete and clipped records, by column.

    Attributes
    ----------
    incomplete, clipped : dict from str to float
        Share of records that each column makes incomplete, and share of records (or persons) that
        each column's bounds clip. Both are empty without a budget, `incomplete` also for arrays.
    noise_std : float
        Standard deviation of the noise in each share.
    harmful : float
        Least share of lost or clipped records that may move a slope to its interval's end, or inf.
    """

    incomplete: dict[str, float]
    clipped: dict[str, float]
    noise_std: float
    harmful: float = inf

    @property
    def warnings(self) -> list[str]:
        """Warnings about shares that clearly exceed their noise and are large or harmful."""
        worth = min(WORTH_A_WARNING, max(self.harmful - SURE * self.noise_std, 0.0))
        lost = self._beyond(self.incomplete, MANY)
        absent = "" if lost else self._beyond(self.incomplete, worth)
        clipped = self._beyond(self.clipped, worth)
        said = {
            f"most records are incomplete because of {lost}, and the estimates are noise: check "
            "the separator, quotes, decimal and thousands marks, blanks and categories": lost,
            f"records are left out as incomplete because of {absent}: the estimates are biased if "
            "missingness depends on the value, as with thousands separators (1,000)": absent,
            f"bounds clip values of {clipped}: the bounds are too narrow or in another unit, or "
            "there are codes for missing values; the estimates are for clipped values": clipped,
        }
        return [text for text, columns in said.items() if columns]

    def _beyond(self, shares: dict[str, float], least: float) -> str:
        """Columns with a share that certainly exceeds `least`, and the shares; may be empty."""
        least += SURE * self.noise_std
        sure = {name: min(own, 1.0) for name, own in shares.items() if own > least}
        return ", ".join(f"{n!r} ({rounded(100 * own)} %)" for n, own in sure.items())


def private_quality(
    counts: NDArray[Any],
    columns: dict[str, bool],
    *,
    sample_size: float,
    budget: Budget,
    rng: np.random.Generator | None,
) -> Release[TableQuality]:
    r"""Private shares of incomplete and clipped records, for each column.

    .. math:: \hat s = (c + \Delta\,\zeta/\sqrt{2\rho})/n, \qquad \zeta \sim N(0, I)

    Guarantee
    ---------
    The shares are ρ-zCDP under the budget's relation. The counts c are the numbers of missing and
    clipped cells of each column; for arrays, of clipped cells alone. A record adds 1 to at most one
    of a column's two counts. `columns` says which columns have bounds. `sample_size` is public or
    was released before. For m columns with bounds and k without, the counts of a record have norm
    at most √(m + k), which is Δ under add-remove. Two records differ most if one is incomplete in
    every column, like the blank record of zero-out, and the other is clipped in every column with
    bounds. So Δ = √(2m + k) under the other relations. Without missing cells, a record's counts are
    m zeros and ones, and Δ = √m.
    """
    twice = budget.neighbours is not Neighbours.ADD_REMOVE and counts.shape[1] == 2
    square = int(np.sum(1 + np.array(list(columns.values())) * twice))
    noisy = SplitBudget(budget, rng).histogram("shares", 1.0, counts, square)
    shares, std = noisy.value / sample_size, noisy.noise_std
    *incomplete, clipped = (dict(zip(columns, each, strict=True)) for each in shares.T.tolist())
    kept = {name: share for name, share in clipped.items() if columns[name]}
    found = TableQuality(incomplete[0] if incomplete else {}, kept, std / sample_size)
    return Release(found, budget, (ABSENT,) if incomplete else ())


@dataclass(frozen=True)
class TableScore:
    """Noisy mean squared error and R² on a table; each is NaN if noise hides its divisor.

    `records` is the noisy number of complete records; a weighted one counts as weight / bound.
    Fields that end in `_noise` are standard deviations of the privacy noise.
    """

    mean_squared_error: float
    mean_squared_error_noise: float
    r2: float
    r2_noise: float
    records: float
    records_noise: float


def private_score(
    samples: TableSamples,
    coefficients: ArrayLike,
    *,
    budget: Budget,
    rng: np.random.Generator | None,
    threads: int = 2,
    reserve: Callable[[], object] = lambda: None,
) -> Release[TableScore]:
    r"""Mean squared error and R² of a linear prediction, by four Gaussian mechanisms.

    .. math::
        \mathrm{MSE} = w^2\frac{E}{N},\quad R^2 = 1 - \frac{E}{S_2 - S_1^2/N},\qquad
        (N, S_1, S_2, E) = \sum_i (1,\ v_i,\ v_i^2,\ (v_i - \hat v_i)^2) + \text{noise}

    The sums are over complete records. v is the label and v̂ the clipped prediction, both scaled
    from the label's bounds to [0, 1]; w is the distance between the bounds. In a weighted table,
    each record's part is multiplied by its weight divided by the bound of the weights.

    Guarantee
    ---------
    The score is √(2ρ)-Gaussian DP, so ρ-zCDP, under any relation. A record's part of each sum lies
    in [0, 1] and is 0 for an incomplete record, so a record changes a sum by at most 1. The fixed
    shares add up to ρ (Dong, Roth and Su 2022, Corollary 3.3). The coefficients and, last, the
    intercept must be public or released before. `reserve` is called before noise is drawn.
    """
    frame = samples.frame
    matrix, offset = frame.functionals()
    within: Any = {"shape": (frame.dimension,), "least": -MOST, "most": MOST}
    found: Any = np.linalg.solve(matrix, np.subtract(coefficients, offset))
    parameters = require_array("coefficients in units of the bounds", found, **within)
    shares = SplitBudget(budget, rng)
    found = samples.each_part(partial(record_sums, exact_factor(parameters)), threads=threads)
    total = sum(found, start=np.zeros(len(SHARES), dtype=np.int64))
    reserve()
    noisy = [
        shares.number(what, share, part, 1.0, 1.0)
        for (what, share), part in zip(SHARES.items(), total, strict=True)
    ]
    width = float(np.ptp(frame.label))
    sums = [float(each.value) for each in noisy]
    score = score_of(sums, [each.noise_std for each in noisy], width=width)
    weights = (WEIGHTS,) if samples.weighted else ()
    return Release(score, budget, (CLIPPED, *weights, ABSENT, *shares.assumptions))


def score_statement(budget: Budget, *assumptions: str, delta: float) -> PrivacyStatement:
    """Privacy statement of a score."""
    spent = tuple((what, budget.share(share)) for what, share in SHARES.items())
    return PrivacyStatement(budget, "row", spent, assumptions or (TIMES, TRUSTED), delta=delta)


def score_of(sums: Sequence[float], noise: Sequence[float], *, width: float) -> TableScore:
    """Score from the four noisy sums alone; NaN where noise hides a divisor."""
    records, first, second, errors = sums
    mse, mse_noise, r2, r2_noise = nan, nan, nan, nan
    if records > VISIBLE * noise[0] and records >= 1:
        mean = first / records
        mse = errors / records
        mse_noise = sqrt(noise[3] ** 2 + (mse * noise[0]) ** 2) / records
        spread = second - mean * first
        spread_noise = sqrt(noise[2] ** 2 + (2 * mean * noise[1]) ** 2 + (mean**2 * noise[0]) ** 2)
        if spread > VISIBLE * spread_noise and spread > 0:
            r2 = 1 - errors / spread
            r2_noise = sqrt(noise[3] ** 2 + ((1 - r2) * spread_noise) ** 2) / spread
    return TableScore(mse * width**2, mse_noise * width**2, r2, r2_noise, records, noise[0])


def record_sums(parameters: NDArray[Any], chunks: Iterable[Chunk]) -> Counts:
    """Exact sums (4,) over complete records of chunks: N, S_1, S_2 and E of `private_score`.

    The first feature is √(weight/bound); it is 0 for an incomplete record.
    """
    total = np.zeros(len(SHARES), dtype=np.int64)
    for rows, labels, *_ in chunks:
        present = rows[:, 0] > 0
        root = rows[present, 0]
        # Clipped again: rounding may leave bounds that are narrow relative to their size.
        place = (np.clip(labels[present] / root, -1, 1) + 1) / 2
        fitted = np.rint(rows[present] / root[:, None] * UNITS) / UNITS @ parameters
        predicted = (np.clip(fitted, -1, 1) + 1) / 2
        parts = (np.ones_like(place), place, place**2, (place - predicted) ** 2)
        total += [int(np.sum(whole_numbers(root**2 * part, 1.0))) for part in parts]
    return total
