"""Parquet files, read by row groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from privreg.estimators.columns import is_text, require_columns, require_file

BATCH = 16_384
# Bytes that are read ahead, rather than a whole row group.
BUFFER = 2**16
# Bytes of a row group's used columns, uncompressed, that may be more than so many times the file's.
MOST_BYTES, MOST_TIMES = 2**28, 20


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file; its row groups are the parts, read in parallel.

    Memory is bounded by what a row group's used columns take in the file, uncompressed: texts are
    read as dictionaries, so that a cell which is there many times is held once. A row group of more
    than 256 MiB that is twenty times what it takes in the file is refused.
    """

    path: Path
    schema: Any = field(init=False, repr=False)
    row_count: int = field(init=False)
    groups: int = field(init=False, repr=False)
    _metadata: Any = field(init=False, repr=False, compare=False)
    _sound: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

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
        if self._metadata is not None and chosen != self._sound:
            self._require_readable(chosen)
            object.__setattr__(self, "_sound", chosen)
        return [partial(self._read, group, chosen) for group in range(self.groups)]

    def _require_readable(self, names: tuple[str, ...]) -> None:
        """An error where a few bytes would take a lot of memory, from the metadata alone."""
        for group in map(self._metadata.row_group, range(self.groups)):
            every = map(group.column, range(group.num_columns))
            used = [each for each in every if each.path_in_schema in names]
            for each in used:
                # It leaves out how texts begin, and Arrow makes no dictionary of it.
                if each.physical_type == "BYTE_ARRAY" and "DELTA_BYTE_ARRAY" in each.encodings:
                    name = each.path_in_schema
                    raise ValueError(f"column {name!r} must not be encoded as DELTA_BYTE_ARRAY")
            size = sum(each.total_uncompressed_size for each in used)
            if size > max(MOST_BYTES, MOST_TIMES * sum(e.total_compressed_size for e in used)):
                raise ValueError(
                    f"table must have row groups of at most {MOST_BYTES >> 20} MiB in the used "
                    f"columns, or {MOST_TIMES} times what they take in the file, got "
                    f"{size >> 20} MiB in {self.path.name!r}"
                )

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
