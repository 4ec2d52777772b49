"""Parquet files, read by row groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from privreg.estimators.columns import require_columns, require_file

BATCH = 16_384
# Bytes that are read ahead, rather than a whole row group.
BUFFER = 2**16


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file; its row groups are the parts, read in parallel.

    Memory is bounded by what a row group's used columns take in the file, uncompressed: texts are
    read as dictionaries, so that a cell which is there many times is held once.

    Attributes
    ----------
    schema : pyarrow.Schema
    row_count : int
        Number of rows.
    """

    path: Path
    schema: Any = field(init=False, repr=False)
    row_count: int = field(init=False)
    groups: int = field(init=False, repr=False)
    _metadata: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        with _parquet(require_file(self.path)) as file:
            object.__setattr__(self, "schema", file.schema_arrow)
            object.__setattr__(self, "row_count", int(file.metadata.num_rows))
            object.__setattr__(self, "groups", int(file.metadata.num_row_groups))
            object.__setattr__(self, "_metadata", file.metadata)

    def __getstate__(self) -> dict[str, Any]:
        # Of many row groups it is long, and a worker that is sent one part reads it once.
        return {**vars(self), "_metadata": None}

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Readers of the row groups, each of record batches of the named columns."""
        chosen = require_columns(names, self.schema.names)
        return [partial(self._read, group, chosen) for group in range(self.groups)]

    def _read(self, group: int, names: tuple[str, ...]) -> Iterator[Any]:
        from pyarrow import types

        kinds = {name: self.schema.field(name).type for name in names}
        texts = [
            name
            for name, kind in kinds.items()
            if types.is_string(kind) or types.is_large_string(kind)
        ]
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
        with ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, **options) as file:
            yield file
    except (ArrowException, OSError):
        # What Arrow says may quote a cell.
        raise ValueError(f"table must be a sound Parquet file, got {path.name!r}") from None
