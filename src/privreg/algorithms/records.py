"""Records, each a row or all rows of one person, and bounded sums over records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numba as nb
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
)
from privreg.checks import (
    Immutable,
    Rebuilt,
    frozen,
    require_fields,
    require_scale,
    require_unmasked,
)
from privreg.noise.exact import (
    UNITS,
    exact_factor,
    power_of_two,
    squared_lengths,
    truncated,
    truncated_sum,
    whole_numbers,
)

# Scalars that are names like Python's own; a date's own value would be a number.
PLAIN = (np.number, np.character)


def require_names(groups: ArrayLike, rows: int) -> NDArray[Any]:
    """Check names of persons; whether two names are equal does not depend on other names.

    Lists are not converted to an array of one type. In such an array 1 and "1" could become one
    name; so could 2^53 and 2^53 + 1 if another name is a fraction. All names must have one sortable
    type, and none may be missing; `inf` is allowed. Error messages quote no names.
    """
    require_unmasked("groups", groups)
    names: NDArray[Any] = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    if names.shape != (rows,):
        raise ValueError(f"groups must have shape ({rows},), got {names.shape}")
    if names.dtype == object:
        names = _of_one_kind(names)
    # NaN is unequal to itself: a missing name. Two such rows could be one person's.
    elif np.any(names != names):
        raise ValueError("groups must name a person in every row, got a missing name")
    return names


def _of_one_kind(names: NDArray[Any]) -> NDArray[Any]:
    values = [name.item() if isinstance(name, PLAIN) else name for name in names.tolist()]
    kinds = {type(value) for value in values}
    try:
        # A name is at most itself; None and pandas' NA are not, and raise.
        named = len(kinds) <= 1 and all(value <= value for value in values)
    except TypeError:
        named = False
    if not named or any(kind.__hash__ is None for kind in kinds):
        listed = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"groups must be names of one type, none missing, got {listed}")
    if kinds not in ({int}, {float}):
        return names
    packed = np.asarray(values)
    # Whole numbers that no type of 64 bits holds together would lose their last digits.
    return packed if packed.dtype.kind in "iu" or kinds == {float} else names


FloatArray = NDArray[np.float64]
Rows = NDArray[Any]
Starts = NDArray[np.int64] | None
Sums = FloatArray | Callable[[slice], FloatArray]
# Numbers of a block in memory: few calls, and each block fits in a cache.
NUMBERS_PER_BLOCK = 1 << 16
# Chunks of rows whose weights are computed together, in a cache: fewer and longer vectors.
CHUNKS_AT_ONCE = 8
# Rows whose products, a record's part at most 2⁴⁰, sum below 2⁵³ in doubles, 2⁶² in integers.
EXACT_ROWS, WHOLE_ROWS = 1 << 13, 1 << 22
# Whitened rows beyond so many bytes are computed again in every pass.
KEPT_BYTES = 1 << 28


@dataclass(frozen=True)
class Records(Rebuilt):
    """A data set as records of bounded rows.

    Rows longer than `feature_norm` are shortened together with their labels. Labels are then
    clipped to `label_bound`. The change of a row depends on that row alone. `groups` (n,) names
    each row's person, for data sets in memory; by default every row is a record. With
    `common_width`, a `Point` with `cap` None clips residuals at one width and gives long rows less
    weight. With `clips_weighted`, the weighted residual √w r is clipped instead of r.
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
    _left: tuple[FloatArray, FloatArray] = field(init=False, repr=False)
    _starts: Starts = field(init=False, repr=False, default=None)
    _white: tuple[FloatArray, WhiteRows] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", as_samples(self.samples))
        require_fields(self, feature_norm=require_scale, label_bound=require_scale)
        rows: Chunk | WeightedChunk | None = None
        held, count = self.samples, self.samples.sample_size
        if isinstance(held, WeightedSamples):
            rows = WeightedChunk(held.features, held.labels, held.norms, held.roots)
        elif isinstance(held, ArraySamples):
            rows = Chunk(held.features, held.labels, held.norms)
        if self.groups is not None:
            if rows is None:
                raise ValueError("groups must be None for data sets that are not held in memory")
            persons = require_groups(self.groups, len(rows.labels))
            # The caller's array may change.
            object.__setattr__(self, "groups", persons)
            order = np.argsort(persons.codes, kind="stable")
            starts = np.flatnonzero(np.diff(persons.codes[order], prepend=-1))
            object.__setattr__(self, "_starts", frozen(starts))
            rows, count = _picked(rows, order), int(starts.size)
        if rows is not None:
            rows = self._bounded(rows)
            for array in rows:
                array.flags.writeable = False
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "_rows", rows)
        labels = np.zeros(0) if rows is None else rows.labels
        object.__setattr__(self, "_left", (np.zeros(self.samples.dimension), labels))

    @property
    def held(self) -> bool:
        """True if the rows are in memory; false if each pass reads them again."""
        return self._rows is not None

    @property
    def weighted(self) -> bool:
        """True if rows have been multiplied by the square roots of their weights."""
        return bool(getattr(self.samples, "weighted", False))

    def chunks(
        self, most: int = ROWS_PER_CHUNK, given: Iterable[Chunk] | None = None
    ) -> Iterator[tuple[Chunk | WeightedChunk, Starts]]:
        """Bounded rows, and the index of each record's first row (None if each row is a record).

        If rows are not in memory, `given` may be a part of them; only that part is then used.
        """
        held, starts = self._rows, self._starts
        if held is None:
            for chunk in self.samples.chunks() if given is None else given:
                yield self._bounded(chunk), None
        elif starts is None:
            for first in range(0, self.count, most):
                yield _picked(held, slice(first, first + most)), None
        else:
            # About a thousand records at a time, so that what is held of each fits in memory.
            for first in range(0, self.count, 1024):
                bounds = starts[first : first + 1025]
                low, high = bounds[0], bounds[-1] if len(bounds) == 1025 else len(held.labels)
                yield _picked(held, slice(low, high)), bounds[bounds < high] - low

    def total(
        self,
        part: Callable[..., Sums],
        shape: tuple[int, ...],
        whitening: FloatArray | None = None,
        parameters: FloatArray | None = None,
    ) -> FloatArray:
        """Sum of `part(features, labels, starts)` over chunks, an array of the given shape.

        `part` returns an array, or a function that returns the array for a slice of the rows. With
        `whitening` W, the first argument of `part` is the `WhiteRows`. With `parameters` θ, `part`
        takes residuals in place of labels. For data sets in memory, the residuals at the last θ and
        up to 256 MB of rows Wᵀx for the last W are kept. Several threads, or the samples' executor,
        sum samples in parts. A record adds whole numbers up to ±2⁴⁰, so sums are exact.
        """
        if whitening is not None:
            whitening = exact_factor(whitening)
        if parameters is not None:
            parameters = exact_factor(parameters)
        task = partial(self._sum, part, shape, whitening, parameters)
        # Samples of others are read in one thread: their rows are checked as they come.
        each_part = getattr(self.samples, "each_part", None)
        if self.held or each_part is None:
            return task()
        return sum(each_part(task, threads=self.threads), start=np.zeros(shape, dtype=object))

    def _sum(
        self,
        part: Callable[..., Sums],
        shape: tuple[int, ...],
        whitening: FloatArray | None,
        parameters: FloatArray | None,
        given: Iterable[Chunk] | None = None,
    ) -> FloatArray:
        held, most, kept = self._rows, ROWS_PER_CHUNK, None
        if held is not None:
            most = max(most, min(EXACT_ROWS, NUMBERS_PER_BLOCK // held.features.shape[1]))
            kept = None if whitening is None else self._kept(held.features, whitening)
        if held is not None and parameters is not None:
            self._keep_residuals(parameters, most)
        result, some, first, white = np.zeros(shape, object), np.zeros(shape, np.int64), 0, None
        for chunk, starts in self.chunks(CHUNKS_AT_ONCE * most, given):
            features, labels = chunk.features, chunk.labels
            extra: tuple[WhiteRows, ...] = ()
            block = slice(first, first + len(labels))
            if whitening is not None:
                out = white if kept is None else WhiteRows(*(own[block] for own in kept[:3]))
                there = kept is not None and self._white is not None
                white = out if out and there else white_rows(features, whitening, out)
                for own in white[:3] if kept is not None else ():
                    own.flags.writeable = False
                # Where the clip looks at the record's own residual.
                known = None if self.clips_weighted else getattr(chunk, "roots", None)
                extra = (white._replace(roots=known),)
            if parameters is not None and held is not None:
                labels = self._left[1][block]
            elif parameters is not None:
                labels = labels - features @ parameters.astype(features.dtype, copy=False)
            if first // WHOLE_ROWS < block.stop // WHOLE_ROWS:
                result, some = result + some, np.zeros_like(some)
            first, found = block.stop, part(*extra, features, labels, starts)
            step = most if held is not None else EXACT_ROWS
            step = step if starts is None else len(labels) or 1
            each = [slice(begin, begin + step) for begin in range(0, len(labels), step)]
            for own in map(found, each) if callable(found) else [found]:
                some += own.astype(np.int64)
        if whitening is not None and kept is not None:
            object.__setattr__(self, "_white", (whitening.copy(), kept))
        return np.asarray(result + some)

    def _kept(self, features: FloatArray, whitening: FloatArray) -> WhiteRows | None:
        """All rows Wᵀx, or None if they are too many; not yet computed if `_white` is None."""
        last = self._white
        if last is not None and np.array_equal(last[0], whitening):
            return last[1]
        # Two sets are never held together: the next takes the memory of the last.
        object.__setattr__(self, "_white", None)
        if features.nbytes > KEPT_BYTES or _is_identity(whitening):
            return None
        rows = np.empty(features.shape) if last is None else last[1].rows
        return WhiteRows(rows, *np.empty((2, len(rows))))

    def _keep_residuals(self, parameters: FloatArray, most: int) -> None:
        """Keep the residuals of all rows for this pass and the next; chunks have `most` rows."""
        if not np.array_equal(self._left[0], parameters):
            chunks = (each for each, _ in self.chunks(most))
            found = [each.labels - each.features @ parameters for each in chunks]
            left = np.concatenate([np.zeros(0), *found])
            object.__setattr__(self, "_left", (parameters.copy(), left))

    def _bounded(self, chunk: Chunk | WeightedChunk) -> Chunk | WeightedChunk:
        """Rows and labels within their bounds, rounded to whole multiples of powers of two."""
        given, label, norm, bound = *chunk[:2], self.feature_norm, self.label_bound
        unit, label_unit = power_of_two(norm) / UNITS, power_of_two(bound) / UNITS
        squares = squared_lengths(given)
        lost = np.isinf(squares)
        if lost.any():
            largest = np.where(lost, np.max(np.abs(given), axis=1), 1.0)
            given, label = given / largest[:, None], label / largest
            squares = squared_lengths(given)
        with np.errstate(divide="ignore"):
            factors = norm / np.sqrt(squares)
        factors = np.where(lost, factors, np.minimum(factors, 1.0))
        labels = np.rint(np.clip(label * factors, -bound, bound) / label_unit) * label_unit
        features, step = np.empty(given.shape), max(1, (NUMBERS_PER_BLOCK >> 2) // given.shape[1])
        for begin in range(0, len(labels), step):
            block = slice(begin, begin + step)
            rows = np.multiply(given[block], factors[block, None] / unit, out=features[block])
            np.rint(rows, out=rows)
            rows *= unit
        return chunk._replace(features=features, labels=labels)


@dataclass(frozen=True, eq=False)
class Persons(Immutable):
    """Each row's person, as a number from 0 in `codes` (rows,); computed once and reused."""

    codes: NDArray[np.intp]

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", frozen(self.codes))

    @property
    def count(self) -> int:
        """Number of persons."""
        return int(np.max(self.codes, initial=-1)) + 1


def require_groups(groups: ArrayLike | Persons, rows: int) -> Persons:
    """Persons of the rows: `groups` itself if it is `Persons`, otherwise numbers for its names."""
    if not isinstance(groups, Persons):
        return Persons(np.unique(require_names(groups, rows), return_inverse=True)[1])
    if len(groups.codes) != rows:
        raise ValueError(f"groups must have shape ({rows},), got ({len(groups.codes)},)")
    return groups


def _picked(rows: Chunk | WeightedChunk, which: Any) -> Chunk | WeightedChunk:
    return type(rows)(*[each[which] for each in rows])


class WhiteRows(NamedTuple):
    """Rows z = Wᵀx (rows, p), and ‖z‖² and ‖z‖ (rows,) computed from them.

    `roots` are the square roots of the rows' weights, needed to clip unweighted residuals.
    """

    rows: Rows
    squares: Rows
    norms: Rows
    roots: Rows | None = None


def white_rows(features: Rows, whitening: FloatArray, out: WhiteRows | None = None) -> WhiteRows:
    """Rows Wᵀx, written to `out` if it has their shape.

    Reuse of `out` saves time, since no memory is allocated for a block. If W is the identity, as at
    the start of every whitening, the rows are the features.
    """
    if out is None or out.rows.shape != features.shape:
        out = WhiteRows(np.empty(features.shape), *np.empty((2, len(features))))
    if _is_identity(whitening):
        out = out._replace(rows=features)
    else:
        np.matmul(features, whitening, out=out.rows)
    squared_lengths(out.rows, out.squares)
    np.sqrt(out.squares, out=out.norms)
    return out


def _is_identity(whitening: FloatArray) -> bool:
    return whitening[0, 0] == 1 and np.array_equal(whitening, np.eye(len(whitening)))


def row_sum(records: Records, *, longest: float, label_unit: float = 0.0) -> FloatArray:
    """Sum, (p,) or (p + 1,), of the mean row of each record, shortened to at most `longest`.

    A weighted row √w(1, x) adds w(1, x). With `label_unit`, rows end with labels in this unit.
    """

    def part(features: Rows, labels: Rows, starts: Starts) -> Sums:
        if label_unit:
            features = np.column_stack([features, labels / label_unit])
        if records.weighted:
            features = features * np.clip(features[:, :1], 0, 1)
        if starts is not None:
            sizes = np.diff(starts, append=len(labels))
            features = np.add.reduceat(features, starts, axis=0) / sizes[:, None]
        factors = longest / np.maximum(np.sqrt(squared_lengths(features)), longest)
        return truncated_sum(features, factors, longest)

    return records.total(part, (records.samples.dimension + bool(label_unit),))


def length_histogram(records: Records, whitening: FloatArray, edges: FloatArray) -> FloatArray:
    """Counts (len(edges) + 1,) of records by length, the root of the summed squares of rows Wᵀx.

    A record adds 1 to one count; a record of zeros adds nothing.
    """

    def part(white: WhiteRows, features: Rows, labels: Rows, starts: Starts) -> FloatArray:
        lengths = _lengths(white, starts)
        return bin_counts(_present(lengths, lengths), edges)

    return records.total(part, (len(edges) + 1,), whitening)


def gram_sum(records: Records, whitening: FloatArray, *, cap: float) -> FloatArray:
    """Sum (p, p) of zzᵀ for z = Wᵀx, where each record's term is shrunk to a trace of at most cap².

    A record adds a positive semi-definite matrix of Frobenius norm at most cap².
    """

    def part(white: WhiteRows, features: Rows, labels: Rows, starts: Starts) -> Sums:
        return partial(_gram, white.rows, np.sqrt(_trace_weights(white, starts, cap)), cap, starts)

    return records.total(part, whitening.shape, whitening)


class Point(NamedTuple):
    """Records at an iterate θ, with gradients in the coordinates of z = Wᵀx.

    With a cap R, each record's gradient is multiplied by min(1, R²/Σ‖z‖²), where Σ is over its
    rows, and then clipped. Without a cap, the bound depends on the records' `common_width`.
    """

    records: Records
    parameters: FloatArray
    whitening: FloatArray
    cap: float | None = None

    def gradient_length_histogram(
        self, edges: FloatArray, clip_norm: float | None = None
    ) -> FloatArray:
        """Counts (len(edges) + 1,) of records by gradient length divided by √p.

        A nonzero record adds 1 to one count. With γ = `clip_norm`, Σ min(‖g‖², γ²) is appended.
        """

        def part(found: RecordGradients) -> Sums:
            counts = found.histogram(edges)
            if clip_norm is None:
                return counts
            squares = _sums(np.minimum(found.lengths, clip_norm) ** 2, clip_norm**2)
            return np.append(counts, squares(slice(None)))

        return self._total(part, (len(edges) + 1 + (clip_norm is not None),))

    def gradient_sum(self, *, clip_norm: float) -> FloatArray:
        """Sum (p,) of step directions z r, here called gradients, clipped to γ = `clip_norm`."""
        return self._total(lambda found: found.sum_clipped(clip_norm), self.parameters.shape)

    def curvature_sum(self, *, clip_norm: float, cap: float) -> FloatArray:
        r"""Sum over records of the derivative of the clipped gradient, shrunk as in `gram_sum`.

        .. math::
            \sum_i \mathbf z_i\mathbf z_i^\top 1\{\|\mathbf z_i r_i\| \le \gamma\}

        With a common width, zzᵀ is multiplied by min(1, √p/‖z‖), and the condition is |r| ≤ γ/√p. A
        record of several rows with gradient g adds M = Σ zzᵀ if g is not clipped, and otherwise
        (γ/‖g‖)(I - ggᵀ/‖g‖²) M. Each record's term has Frobenius norm at most cap².
        """

        def part(found: RecordGradients) -> Sums:
            white, starts = found.white, found.starts
            weights = _trace_weights(white, starts, cap)
            if starts is None:
                weights = np.minimum(weights, found.leverage) * (found.lengths <= clip_norm)
                return partial(_gram, white.rows, np.sqrt(weights), cap, starts)
            # No matrix of a row or a person is formed: only products with the directions are.
            factors = _by_row(_clip_factor(found.lengths, clip_norm), white, starts)
            rows = truncated(white.rows, np.sqrt(weights * factors), cap, starts)
            clipped = found.lengths > clip_norm
            directions = truncated(found.vectors, clipped / found.lengths.clip(clip_norm), 1.0)
            # Whole numbers d and M d, exact in 64 bits since no sum of theirs is beyond 2⁶⁰.
            along = np.sum(rows * _by_row(directions, white, starts), axis=1).astype(np.int64)
            taken = np.add.reduceat(rows.astype(np.int64) * along[:, None], starts, axis=0)
            return rows.T @ rows - directions.T @ (taken // UNITS**2).astype(np.float64)

        return self._total(part, self.whitening.shape)

    def traces(self, *, clip_norm: float, cap: float) -> tuple[float, float]:
        """Traces of `curvature_sum` and of `second_moment_sum`, without forming the matrices.

        A record adds a number in [0, cap²] to the first and one in [0, γ²] to the second.
        """

        def part(found: RecordGradients) -> Sums:
            white, starts = found.white, found.starts
            weights = np.minimum(_trace_weights(white, starts, cap), found.leverage)
            kept = _by_record(weights * white.squares, starts)
            squares = np.minimum(found.lengths, clip_norm) ** 2
            if starts is not None:
                directions = _by_row(found.directions(clip_norm), white, starts)
                along = np.sum(white.rows * directions, axis=1)
                kept = kept - _by_record(weights * along**2, starts)
                kept = kept * _clip_factor(found.lengths, clip_norm)
            else:
                kept = kept * (found.lengths <= clip_norm)
                if self.records.common_width:
                    rows = white.squares * found.leverage**2
                    squares = squares * rows / white.rows.shape[1]
                    if white.roots is not None:
                        squares = squares * white.roots**2
            return _sums(kept, cap**2, squares, clip_norm**2)

        curvature, square = self._total(part, (2,))
        return curvature, square

    def second_moment_sum(self, *, clip_norm: float) -> FloatArray:
        """Sum (p, p) of ggᵀ over records' clipped gradients g; each ggᵀ has norm at most γ²."""

        def part(found: RecordGradients) -> Sums:
            return partial(_gram, found.vectors, found.clipped_weights(clip_norm), clip_norm, None)

        return self._total(part, self.whitening.shape)

    def first_sums(
        self, *, clip_norm: float, short_cap: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Two second moments of unclipped records, and `gradient_sum`.

        .. math::
            \sum_i \min(1, R_1^2/Z_i)\, 1\{q_i \le C\} \sum_{j \in i} z_j z_j^\top

        where Z_i sums ‖z_j‖² over the rows of record i, and q_i is the length of its gradient. The
        second has the cap R in place of R₁ = `short_cap`; both are (p, p). A record adds positive
        semi-definite matrices of Frobenius norm at most R₁² and R², and a vector of norm at most C.
        """

        cap: Any = self.cap

        def part(found: RecordGradients) -> Sums:
            white, starts = found.white, found.starts
            kept = _by_row(found.lengths <= clip_norm, white, starts)
            short = np.sqrt(_trace_weights(white, starts, short_cap) * kept)
            long = np.sqrt(found.leverage * kept)
            clipped = found.sum_clipped(clip_norm)

            def sums(rows: slice) -> FloatArray:
                first = _gram(white.rows, short, short_cap, starts, rows)
                second = _gram(white.rows, long, cap, starts, rows)
                return np.append([first, second], clipped(rows))

            return sums

        p = len(self.parameters)
        sums = self._total(part, (2 * p * p + p,))
        short, long = sums[:-p].reshape(2, p, p)
        return short, long, sums[-p:]

    def last_sums(self, *, clip_norm: float, short_cap: float) -> tuple[FloatArray, float, float]:
        """Σ ggᵀ (p, p) of clipped gradients g, trace of the first of `first_sums`, and Σ ‖g‖².

        A record adds a positive semi-definite matrix of Frobenius norm at most C² to Σ ggᵀ. It adds
        a number in [0, R₁²] to the trace and one in [0, C²] to Σ ‖g‖².
        """

        def part(found: RecordGradients) -> Sums:
            vectors, weights = found.vectors, found.clipped_weights(clip_norm)
            # A record's trace is the smaller of its summed squares and the cap's.
            traces = np.minimum(found.norms, short_cap) ** 2 * (found.lengths <= clip_norm)
            squares = np.minimum(found.lengths, clip_norm) ** 2
            both = _sums(traces, short_cap**2, squares, clip_norm**2)
            return lambda rows: np.append(
                _gram(vectors, weights, clip_norm, None, rows), both(rows)
            )

        p = len(self.parameters)
        found = self._total(part, (p * p + 2,))
        return found[:-2].reshape(p, p), found[-2], found[-1]

    def _total(self, part: Callable[[RecordGradients], Sums], shape: tuple[int, ...]) -> FloatArray:
        """Sum of `part` over chunks; `part` takes the gradients of a chunk's records."""
        return self.records.total(
            lambda *rows: part(self._gradients(*rows)), shape, self.whitening, self.parameters
        )

    def _gradients(
        self, white: WhiteRows, features: Rows, residuals: Rows, starts: Starts
    ) -> RecordGradients:
        norms, vectors = _lengths(white, starts), white.rows
        if self.cap is None and starts is None and self.records.common_width:
            root = float(np.sqrt(len(self.parameters)))
            leverage, lengths = root / np.maximum(norms, root), root * np.abs(residuals)
            if white.roots is not None:
                # Of a weighted row √w(x, y) the residual is √w r, and the clip looks at r.
                lengths = lengths / np.where(white.roots > 0, white.roots, 1)
            return RecordGradients(white, residuals, leverage, norms, lengths, vectors, starts)
        cap = self.cap
        leverage = np.ones_like(residuals) if cap is None else _trace_weights(white, starts, cap)
        if starts is None:
            lengths = leverage * norms * np.abs(residuals)
        else:
            vectors = np.add.reduceat(white.rows * (leverage * residuals)[:, None], starts, axis=0)
            lengths = np.sqrt(squared_lengths(vectors))
        return RecordGradients(white, residuals, leverage, norms, lengths, vectors, starts)


@dataclass(frozen=True)
class RecordGradients:
    """Gradients of a chunk's records: whitened rows, residuals (rows,), and clipped products.

    A row's gradient is leverage · residual · row. If records have several rows, `vectors` holds
    sums over their rows. `lengths` are compared with the clip; `norms` are 0 for blank records.
    """

    white: WhiteRows
    residuals: Rows
    leverage: Rows
    norms: Rows
    lengths: Rows
    vectors: Rows
    starts: Starts

    def histogram(self, edges: FloatArray) -> FloatArray:
        """Counts of gradient lengths divided by √p, without blank records."""
        lengths = _present(self.lengths, self.norms)
        return bin_counts(lengths / np.sqrt(self.white.rows.shape[1]), edges)

    def sum_clipped(self, clip_norm: float) -> Callable[[slice], FloatArray]:
        """Sum (p,) of gradients clipped to this length, over a slice of the records."""
        weights, vectors = self.clipped_weights(clip_norm), self.vectors
        return lambda rows: truncated_sum(vectors[rows], weights[rows], clip_norm)

    def clipped_weights(self, clip_norm: float) -> Rows:
        """Multipliers of `vectors` that clip gradients to this length."""
        factors = _clip_factor(self.lengths, clip_norm)
        return factors if self.starts is not None else factors * self.residuals * self.leverage

    def directions(self, clip_norm: float) -> Rows:
        """Unit vectors along persons' gradients that are clipped, and 0 for the others."""
        clipped = self.lengths > clip_norm
        return self.vectors * (clipped / np.where(clipped, self.lengths, 1.0))[:, None]


def _sums(*values_and_bounds: Any) -> Callable[[slice], FloatArray]:
    """Function from a slice to the sums of all values, each in units of 2⁻²⁰ of its bound."""
    pairs = zip(values_and_bounds[::2], values_and_bounds[1::2], strict=True)
    whole = np.stack([whole_numbers(values, bound) for values, bound in pairs])
    return lambda rows: np.sum(whole[:, rows], axis=1)


def bin_counts(values: Rows, edges: FloatArray) -> FloatArray:
    """Counts (len(edges) + 1,) of nonnegative values; bins include their upper edges."""
    counts = np.zeros(len(edges) + 1)
    # A copy can be written to, as every copy can: one type, which is compiled once.
    _count(values + 0.0, edges, counts)
    return counts


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _count(values: Rows, edges: FloatArray, counts: FloatArray) -> None:
    last = len(edges)
    inverse = (last - 1) / np.log(edges[-1] / edges[0]) if last > 1 else 0.0
    for value in values:
        # A guess that is right on a geometric grid, and then comparisons.
        place = np.log(value / edges[0]) * inverse if value > edges[0] else 0.0
        k = int(place) if place < last else last
        while k > 0 and value <= edges[k - 1]:
            k -= 1
        while k < last and not value <= edges[k]:
            k += 1
        counts[k] += 1


def _gram(vectors: Rows, factors: Rows, bound: float, starts: Starts, rows: slice) -> FloatArray:
    """Sum (p, p) of the outer products of a slice's weighted vectors, in units of 2⁻⁴⁰ bound²."""
    found = truncated(vectors[rows], factors[rows], bound, starts)
    return np.asarray(found.T @ found)


def _trace_weights(white: WhiteRows, starts: Starts, cap: float) -> Rows:
    """Multipliers of rows' outer products at which each record's trace is at most cap²."""
    weights = cap**2 / np.maximum(_by_record(white.squares, starts), cap**2)
    return _by_row(weights, white, starts)


def _lengths(white: WhiteRows, starts: Starts) -> Rows:
    """Root of the summed squares of each record's rows."""
    return white.norms if starts is None else np.sqrt(_by_record(white.squares, starts))


def _by_record(values: Rows, starts: Starts) -> Rows:
    return values if starts is None else np.add.reduceat(values, starts)


def _by_row(values: Rows, white: WhiteRows, starts: Starts) -> Rows:
    if starts is None:
        return values
    return np.repeat(values, np.diff(starts, append=len(white.rows)), axis=0)


def _clip_factor(lengths: Rows, clip_norm: float) -> Rows:
    factor: Rows = clip_norm / np.maximum(lengths, clip_norm)
    return factor


def _present(values: Rows, norms: Rows) -> Rows:
    """Values of the records that are not blank."""
    kept = norms > 0
    return values if kept.all() else values[kept]
