"""Records of bounded rows: a record is a row, or all rows of one person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import InitVar, dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import (
    ROWS_PER_CHUNK,
    ArraySamples,
    Chunk,
    Samples,
    WeightedChunk,
    WeightedSamples,
    as_samples,
    row_norms,
)
from privreg.immutable import Immutable, Rebuilt, frozen
from privreg.privacy.persons import require_names
from privreg.validation import (
    require_count,
    require_flag,
    require_number,
)

FloatArray = NDArray[np.float64]
Rows = NDArray[Any]
Starts = NDArray[np.int64] | None
# Numbers of a block whose whitened rows are at hand: few calls, and each block fits in a cache.
NUMBERS_PER_BLOCK = 1 << 16
# Whitened rows beyond so many bytes are computed again in every pass.
KEPT_BYTES = 1 << 27
EVERY = slice(None)


@runtime_checkable
class PartedSamples(Protocol):
    """The library's samples that can be read in parts, by several threads or machines.

    Samples of others are read in one thread, since their rows are checked as they come.
    """

    def each_part(self, task: Callable[[Iterator[Chunk]], Any], *, threads: int) -> Iterator[Any]:
        """What a task finds in each of consecutive parts of the rows, in their order."""


@dataclass(frozen=True)
class Records(Rebuilt):
    """A data set as records of bounded rows.

    Longer rows than `feature_norm` are shortened together with their labels, then labels are
    clipped to `label_bound`; each row is changed by itself. `groups` (n,) says whose row it is, for
    data sets in memory; every row is a record of its own by default. With `common_width` all rows
    clip at the same residual, and long ones count less instead; with `clips_weighted` that residual
    is the one of the weighted row, √w r, and not that of the record.
    """

    samples: Samples
    feature_norm: float
    label_bound: float
    groups: ArrayLike | Persons | None = None
    threads: int = 1
    common_width: bool = False
    clips_weighted: bool = False
    count: int = field(init=False)
    _rows: Chunk | WeightedChunk | None = field(init=False, repr=False)
    _starts: Starts = field(init=False, repr=False, default=None)
    _white: tuple[FloatArray, WhiteRows] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", as_samples(self.samples))
        for name in ("feature_norm", "label_bound"):
            value = require_number(name, getattr(self, name), least=1e-50, most=1e50)
            object.__setattr__(self, name, value)
        require_count("threads", self.threads)
        require_flag("common_width", self.common_width)
        require_flag("clips_weighted", self.clips_weighted)
        rows: Chunk | WeightedChunk | None = None
        held, count = self.samples, self.samples.sample_size
        if isinstance(held, WeightedSamples):
            rows = WeightedChunk(held.features, held.labels, held.norms, held.roots)
        elif isinstance(held, ArraySamples):
            rows = Chunk(held.features, held.labels, held.norms)
        if self.groups is not None:
            rows, count = self._sort_by_group(rows)
        if rows is not None:
            rows = self._bounded(rows)
            for array in rows:
                array.flags.writeable = False
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "_rows", rows)

    @property
    def held(self) -> bool:
        """Whether the rows are in memory, rather than read at every pass."""
        return self._rows is not None

    @property
    def weighted(self) -> bool:
        """Whether rows have been multiplied by the roots of their weights."""
        return bool(getattr(self.samples, "weighted", False))

    def chunks(self) -> Iterator[tuple[Chunk | WeightedChunk, Starts]]:
        held = self._rows
        if held is None:
            for chunk in self.samples.chunks():
                yield self._bounded(chunk), None
        else:
            for block, inside in self._blocks(ROWS_PER_CHUNK):
                yield _picked(held, block), inside

    def total(
        self,
        part: Callable[..., FloatArray],
        shape: tuple[int, ...],
        whitening: FloatArray | None = None,
    ) -> FloatArray:
        """Sum over chunks of what `part(features, labels, starts)` gives, of this shape.

        Starts say where in the chunk each record starts, None where a row is a record. With a map W
        the part is given the white rows first; of data sets in memory those of the last W are kept,
        up to 128 MB. Samples that come in parts are read and summed by several threads, or by the
        executor that they name, and the parts' sums are added in order: the result does not depend
        on who sums.
        """
        held = self._rows
        # Rows in memory come in no parts, and asking a protocol takes longer than a small sum.
        if held is None and isinstance(self.samples, PartedSamples):
            sums = self.samples.each_part(
                partial(self._sum_bounded, part, shape, whitening), threads=self.threads
            )
            return np.asarray(sum(sums, start=np.zeros(shape)))
        if held is None or whitening is None:
            return self._sum(part, shape, whitening, self.chunks())
        kept = self._kept(held.features, whitening)
        most = max(ROWS_PER_CHUNK, NUMBERS_PER_BLOCK // len(whitening)) if kept else ROWS_PER_CHUNK
        result, again = np.zeros(shape), None
        for block, starts in self._blocks(most):
            features, labels = held.features[block], held.labels[block]
            if kept is not None:
                white = kept.block(block)
            else:
                white = white_rows(features, whitening, again)
                again = white.rows
            result += part(self._with_roots(white, held, block), features, labels, starts)
        return result

    def _sum_bounded(
        self,
        part: Callable[..., FloatArray],
        shape: tuple[int, ...],
        whitening: FloatArray | None,
        chunks: Iterable[Chunk],
    ) -> FloatArray:
        return self._sum(part, shape, whitening, ((self._bounded(each), None) for each in chunks))

    def _sum(
        self,
        part: Callable[..., FloatArray],
        shape: tuple[int, ...],
        whitening: FloatArray | None,
        chunks: Iterable[tuple[Chunk | WeightedChunk, Starts]],
    ) -> FloatArray:
        result, white = np.zeros(shape), None
        for chunk, starts in chunks:
            told: tuple[WhiteRows, ...] = ()
            if whitening is not None:
                white = white_rows(chunk.features, whitening, None if white is None else white.rows)
                told = (self._with_roots(white, chunk),)
            result += part(*told, chunk.features, chunk.labels, starts)
        return result

    def _with_roots(
        self, white: WhiteRows, chunk: Chunk | WeightedChunk, which: slice = EVERY
    ) -> WhiteRows:
        """With the roots of the weights where the clip looks at the record's own residual."""
        if self.clips_weighted or not isinstance(chunk, WeightedChunk):
            return white
        return white._replace(roots=chunk.roots[which])

    def _blocks(self, most: int) -> Iterator[tuple[slice, Starts]]:
        """Consecutive rows of a data set in memory, and where in them each record starts."""
        starts, held = self._starts, self._rows
        assert held is not None
        for first in range(0, self.count, 1024 if starts is not None else most):
            if starts is None:
                yield slice(first, first + most), None
                continue
            # About a thousand records at a time, so that what is held of each fits in memory.
            bounds = starts[first : first + 1025]
            low, high = bounds[0], bounds[-1] if len(bounds) == 1025 else len(held.labels)
            yield slice(low, high), bounds[bounds < high] - low

    def _kept(self, features: FloatArray, whitening: FloatArray) -> WhiteRows | None:
        """All rows Wᵀx, unless they are too many to be kept."""
        kept = self._white
        if kept is not None and np.array_equal(kept[0], whitening):
            return kept[1]
        if features.nbytes > KEPT_BYTES:
            return None
        # Two sets are never held together.
        kept = None
        object.__setattr__(self, "_white", None)
        white = white_rows(features, whitening)
        for array in (white.rows, white.squares, white.norms):
            array.flags.writeable = False
        object.__setattr__(self, "_white", (whitening.copy(), white))
        return white

    def _bounded(self, chunk: Chunk | WeightedChunk) -> Chunk | WeightedChunk:
        long = chunk.norms > self.feature_norm
        features, labels = chunk.features, chunk.labels
        if np.any(long):
            with np.errstate(over="ignore", under="ignore"):
                # In two steps, since the norm of a finite row can be infinite.
                largest = np.max(np.abs(features[long]), axis=1)
                relative = features[long] / largest[:, None]
                length = row_norms(relative)
                shortened = relative * (self.feature_norm / length)[:, None]
                lowered = labels[long] / largest * (self.feature_norm / length)
            features, labels = features.copy(), labels.copy()
            features[long], labels[long] = shortened, lowered
        elif np.max(np.abs(labels), initial=0.0) <= self.label_bound:
            return chunk
        norms = np.minimum(chunk.norms, self.feature_norm)
        clipped = np.clip(labels, -self.label_bound, self.label_bound)
        return chunk._replace(features=features, labels=clipped, norms=norms)

    def _sort_by_group(
        self, rows: Chunk | WeightedChunk | None
    ) -> tuple[Chunk | WeightedChunk, int]:
        """The rows with those of a person together, and the number of persons."""
        if rows is None:
            raise ValueError("groups must be None for data sets that are not held in memory")
        assert self.groups is not None
        persons = require_groups(self.groups, len(rows.labels))
        # The caller's array may change.
        object.__setattr__(self, "groups", persons)
        order = np.argsort(persons.codes, kind="stable")
        starts = np.flatnonzero(np.diff(persons.codes[order], prepend=-1))
        object.__setattr__(self, "_starts", frozen(starts))
        return _picked(rows, order), int(starts.size)


@dataclass(frozen=True, eq=False)
class Persons(Immutable):
    """Whose row each is, looked at once; a row without a name is an error.

    `groups` (rows,) holds names or numbers of one kind that can be ordered, as `require_names`
    tells them apart; `codes` (rows,) are the same persons as numbers from 0 on.
    """

    groups: InitVar[ArrayLike]
    rows: InitVar[int]
    codes: NDArray[np.intp] = field(init=False)

    def __post_init__(self, groups: ArrayLike, rows: int) -> None:
        names = require_names(groups, require_count("rows", rows, least=0))
        codes = np.asarray(np.unique(names, return_inverse=True)[1])
        object.__setattr__(self, "codes", frozen(codes))

    def __reduce__(self) -> tuple[Any, ...]:
        # The codes of codes are the same ones.
        return Persons, (self.codes, len(self.codes))

    @property
    def count(self) -> int:
        """Number of persons."""
        return int(np.max(self.codes, initial=-1)) + 1


def require_groups(groups: ArrayLike | Persons, rows: int) -> Persons:
    """Persons of so many rows; those that were looked at before are not looked at again."""
    if not isinstance(groups, Persons):
        return Persons(groups, rows)
    if len(groups.codes) != rows:
        raise ValueError(f"groups must have shape ({rows},), got ({len(groups.codes)},)")
    return groups


def _picked(rows: Chunk | WeightedChunk, which: Any) -> Chunk | WeightedChunk:
    if isinstance(rows, WeightedChunk):
        return WeightedChunk(*(each[which] for each in rows))
    return Chunk(*(each[which] for each in rows))


class WhiteRows(NamedTuple):
    """Rows z = Wᵀx (rows, p), ‖z‖² and ‖z‖ (rows,), computed from these very numbers.

    `roots` are those of the rows' weights where a clip must know a record's own residual.
    """

    rows: Rows
    squares: Rows
    norms: Rows
    roots: Rows | None = None

    def block(self, which: slice) -> WhiteRows:
        return WhiteRows(self.rows[which], self.squares[which], self.norms[which])


def white_rows(features: Rows, whitening: FloatArray, out: Rows | None = None) -> WhiteRows:
    """Rows Wᵀx in the precision of the features, in `out` where its shape and precision are theirs.

    A pass over a file whose every block asked for memory of its own would wait for the system.
    At an identity, with which every whitening starts, they are the features themselves.
    """
    if whitening[0, 0] == 1 and np.array_equal(whitening, np.eye(len(whitening))):
        squares = np.einsum("ij,ij->i", features, features)
        return WhiteRows(features, squares, np.sqrt(squares))
    if out is not None and (out.shape, out.dtype) != (features.shape, features.dtype):
        out = None
    rows = np.matmul(features, whitening.astype(features.dtype, copy=False), out=out)
    squares = np.einsum("ij,ij->i", rows, rows)
    return WhiteRows(rows, squares, np.sqrt(squares))
