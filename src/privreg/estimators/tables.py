"""Tables in files, read in parts as often as needed: Parquet by row groups, CSV by lines.

A part is read from the file at each pass, mapped into the declared bounds, and forgotten: memory
does not grow with the number of rows.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.samples import ArraySamples, Chunk
from privreg.estimators.bounds import LARGEST, Frame, MissingValue, declared
from privreg.validation import require_choice, require_instance, require_number

FloatArray = NDArray[np.float64]
Columns = list[NDArray[Any]]
BATCH = 16_384
LINES = 50_000


@runtime_checkable
class Table(Protocol):
    """A file of named columns with a known number of rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""

    @property
    def row_count(self) -> int:
        """Number of rows."""

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Columns]]]:
        """Readers of consecutive parts; each yields batches of the named columns."""


def open_table(table: str | Path) -> Table:
    """A Parquet (`.parquet`, needs pyarrow) or CSV (`.csv`) file as a table.

    Parameters
    ----------
    table : str or Path
    """
    if not isinstance(table, (str, Path)):
        raise ValueError(f"table must be a path or a Table, got {table!r}")
    file = Path(table)
    if not file.is_file():
        raise ValueError(f"table must be a file, got {str(file)!r}")
    kind = require_choice("table's ending", file.suffix.lower(), (".csv", ".parquet"))
    return ParquetTable(file) if kind == ".parquet" else CSVTable(file)


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file; its row groups are the parts, read in parallel."""

    path: Path
    columns: tuple[str, ...] = field(init=False)
    row_count: int = field(init=False)
    groups: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _require_file(self.path)
        with _parquet(self.path) as file:
            object.__setattr__(self, "columns", tuple(file.schema_arrow.names))
            object.__setattr__(self, "row_count", int(file.metadata.num_rows))
            object.__setattr__(self, "groups", int(file.metadata.num_row_groups))

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Columns]]]:
        _require_columns(names, self.columns)
        return [partial(self._read, group, tuple(names)) for group in range(self.groups)]

    def _read(self, group: int, names: tuple[str, ...]) -> Iterator[Columns]:
        with _parquet(self.path) as file:
            for batch in file.iter_batches(
                batch_size=BATCH, row_groups=[group], columns=list(names), use_threads=False
            ):
                # By name, since a file gives columns in its own order.
                yield [batch.column(name).to_numpy(zero_copy_only=False) for name in names]


@dataclass(frozen=True)
class CSVTable:
    """A CSV file with a header line and decimal points; it is one part."""

    path: Path
    columns: tuple[str, ...] = field(init=False)
    row_count: int = field(init=False)

    def __post_init__(self) -> None:
        _require_file(self.path)
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = next(reader, None)
            if not header:
                raise ValueError(f"table must have a header line, got none in {self.path.name!r}")
            object.__setattr__(self, "columns", tuple(name.strip() for name in header))
            object.__setattr__(self, "row_count", sum(1 for row in reader if row))

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Columns]]]:
        _require_columns(names, self.columns)
        return [partial(self._read, tuple(names))]

    def _read(self, names: tuple[str, ...]) -> Iterator[Columns]:
        places = [self.columns.index(name) for name in names]
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            next(reader)
            rows: list[list[str]] = []
            for row in reader:
                if row:
                    rows.append(row)
                if len(rows) == LINES:
                    yield _cells(rows, places)
                    rows = []
            if rows:
                yield _cells(rows, places)


@dataclass(frozen=True)
class Numbers:
    """A column of numbers with its bounds.

    Parameters
    ----------
    name : str
        Of the column.
    low, high : float
        At least -1e15 and at most 1e15.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        require_instance("name", self.name, str)
        low = require_number("low", self.low, least=-LARGEST, most=LARGEST)
        high = require_number("high", self.high, least=-LARGEST, most=LARGEST)
        if not low < high:
            raise ValueError(f"high must be more than low, got {low:g} and {high:g}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features that it makes."""
        return (self.name,)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of the features that it makes."""
        return [(self.low, self.high)]

    def encode(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The features, each an array of numbers."""
        return [_numbers(self.name, values)]


@dataclass(frozen=True)
class Categories:
    """A column of declared categories: one feature of zeros and ones for each but the first.

    A value that is not declared counts as the first.

    Parameters
    ----------
    name : str
        Of the column.
    categories : tuple of str
        Two or more different ones.
    """

    name: str
    categories: tuple[str, ...]

    def __post_init__(self) -> None:
        require_instance("name", self.name, str)
        require_instance("categories", self.categories, tuple)
        texts = all(isinstance(each, str) for each in self.categories)
        if not texts or len(set(self.categories)) < max(2, len(self.categories)):
            raise ValueError(
                f"categories of {self.name!r} must be two or more different texts, "
                f"got {self.categories!r}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features that it makes."""
        return tuple(f"{self.name}={each}" for each in self.categories[1:])

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of the features that it makes."""
        return [(0.0, 1.0)] * (len(self.categories) - 1)

    def encode(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The features, each an array of zeros and ones."""
        texts = values.astype(str)
        return [(texts == each).astype(np.float32) for each in self.categories[1:]]


@dataclass(frozen=True)
class TableSamples:
    """Rows of a table in a frame, as `Samples` that are never held.

    Parameters
    ----------
    table : Table
    features : tuple of Numbers or Categories
    label : str
        Name of the label's column.
    frame : Frame
        Bounds of the encoded features and the label.
    """

    _norms_are_own: ClassVar[bool] = True
    table: Table
    features: tuple[Numbers | Categories, ...]
    label: str
    frame: Frame

    def __post_init__(self) -> None:
        if not isinstance(self.table, Table):
            raise ValueError(f"table must be a Table, got {type(self.table).__name__}")
        require_instance("features", self.features, tuple)
        if not all(isinstance(each, (Numbers, Categories)) for each in self.features):
            raise ValueError(f"features must be Numbers and Categories, got {self.features!r}")
        require_choice("label", self.label, self.table.columns)
        require_instance("frame", self.frame, Frame)
        count = sum(len(each.names) for each in self.features)
        if count != len(self.frame.features):
            raise ValueError(
                f"frame must have bounds for {count} features, got {len(self.frame.features)}"
            )

    @property
    def sample_size(self) -> int:
        return self.table.row_count

    @property
    def dimension(self) -> int:
        return self.frame.dimension

    def chunks(self) -> Iterator[Chunk]:
        for part in self.parts():
            yield from part()

    def parts(self) -> list[Callable[[], Iterator[Chunk]]]:
        """Readers of consecutive parts of the rows, for several threads."""
        names = [*(each.name for each in self.features), self.label]
        return [partial(self._mapped, part) for part in self.table.parts(names)]

    def _mapped(self, part: Callable[[], Iterator[Columns]]) -> Iterator[Chunk]:
        for columns in part():
            encoded = [
                feature
                for column, values in zip(self.features, columns, strict=False)
                for feature in column.encode(values)
            ]
            label = _numbers(self.label, columns[-1])
            kind = np.result_type(*(each.dtype for each in encoded), np.float32)
            block = np.empty((len(label), len(encoded)), dtype=kind, order="F")
            for place, values in enumerate(encoded):
                block[:, place] = values
            try:
                rows = self.frame.rows(block)
                labels = self.frame.labels(label).astype(kind, copy=False)
            except MissingValue:
                raise ValueError(
                    "table must have no missing values in the columns that are used"
                ) from None
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
            yield Chunk(rows, labels, norms)


def table_columns(
    feature_bounds: Any, label: str, available: Sequence[str]
) -> tuple[Numbers | Categories, ...]:
    """Columns that a mapping of bounds declares, checked against a table's.

    Parameters
    ----------
    feature_bounds : mapping
        {column: (low, high)} or {column: [category, ...]}.
    label : str
        Column of the label, none of the features.
    available : tuple of str
        The table's columns.
    """
    require_instance("available", available, tuple)
    if not isinstance(feature_bounds, Mapping) or not feature_bounds:
        raise ValueError(
            "feature_bounds must be a mapping from columns to (low, high) or to categories, "
            f"got {feature_bounds!r}"
        )
    require_choice("label", label, available)
    for column in feature_bounds:
        require_choice("feature_bounds: a column", column, available)
    if label in feature_bounds:
        raise ValueError(f"label must be none of the features, got {label!r}")
    return tuple(_column(name, declaration) for name, declaration in feature_bounds.items())


def held(samples: TableSamples) -> ArraySamples:
    """The rows of a table in memory."""
    require_instance("samples", samples, TableSamples)
    chunks = list(samples.chunks())
    if not chunks:
        raise ValueError("table must have rows, got none")
    return ArraySamples(
        np.concatenate([chunk.features for chunk in chunks]),
        np.concatenate([chunk.labels for chunk in chunks]),
    )


def _column(name: str, declaration: Any) -> Numbers | Categories:
    if isinstance(declaration, Mapping) and set(declaration) == {"categories"}:
        declaration = declaration["categories"]
    texts = isinstance(declaration, (list, tuple)) and [*map(str, declaration)]
    if texts and any(isinstance(each, str) for each in declaration):
        return Categories(name, tuple(texts))
    low, high = declared(f"feature_bounds[{name!r}]", declaration, columns=1)[0]
    return Numbers(name, float(low), float(high))


def _numbers(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind == "f":
        return values
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"column {name!r} must hold numbers, got other values") from None


def _require_file(path: Any) -> None:
    if not isinstance(path, Path) or not path.is_file():
        raise ValueError(f"path must be that of a file, got {path!r}")


def _require_columns(names: Sequence[str], available: Sequence[str]) -> None:
    if not isinstance(names, (list, tuple)) or not names:
        raise ValueError(f"names must be a list of columns, got {names!r}")
    for name in names:
        require_choice("names: a column", name, available)


def _cells(rows: list[list[str]], places: list[int]) -> Columns:
    try:
        return [np.array([row[place] for row in rows]) for place in places]
    except IndexError:
        raise ValueError("table must have as many cells in a line as in its header") from None


def _parquet(path: Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install privreg[tables]") from None
    from pyarrow import ArrowException

    try:
        return ParquetFile(path, pre_buffer=False)
    except ArrowException:
        raise ValueError(f"table must be a Parquet file, got {path.name!r}") from None
