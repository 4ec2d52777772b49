"""Bounded sums over records that private descents ask for, one pass each.

A record is a row, or all rows of one person. Every sum is bounded record by record, so that its
sensitivity is known whatever the data are. A record of zeros, an intercept's entry included, is
absent: it adds nothing to any sum and is in no count, whatever its label is.

With z = Wᵀx and Z = Σ ‖z‖² over a record's rows, its gradient is Σ z r, or under a cap R
g = min(1, R²/Z) Σ z r: long rows are shortened together with their residuals, to at most R. The
clip then looks at q = ‖g‖, the product of a row's length and its residual, so that a long row with
a small residual is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.records import Records, Starts, WhiteRows
from privreg.algorithms.samples import row_norms

FloatArray = NDArray[np.float64]
Rows = NDArray[Any]
# Records of a block from which compiled loops are worth loading, and a comparison with every edge
# is quicker than a search for each.
MANY = 1000


class ResidualSums(NamedTuple):
    """`residual_histogram`, and (clips, p) `gradient_sum` for each clip."""

    counts: FloatArray
    gradients: FloatArray


class FirstSums(NamedTuple):
    """Second moments (p, p) of the rows of records that the clip leaves alone, at two lengths.

    `gradient` (p,) is `gradient_sum`.
    """

    short: FloatArray
    long: FloatArray
    gradient: FloatArray


class LastSums(NamedTuple):
    """Σ ggᵀ (p, p), the trace of the short curvature, and Σ ‖g‖²."""

    second_moment: FloatArray
    curvature: float
    square: float


def row_sum(records: Records) -> FloatArray:
    """Sum over records of the mean of their rows, (p,): each adds a vector of `feature_norm`.

    A weighted row √w(1, x) adds w(1, x), by its first entry.
    """

    def part(features: Rows, labels: Rows, starts: Starts) -> FloatArray:
        if records.weighted:
            features = features * np.clip(features[:, :1], 0, 1)
        if starts is None:
            return np.sum(features, axis=0, dtype=np.float64)
        sizes = np.diff(starts, append=len(labels))
        return np.sum(np.add.reduceat(features, starts, axis=0) / sizes[:, None], axis=0)

    return records.total(part, (records.samples.dimension,))


def length_histogram(records: Records, whitening: FloatArray, edges: FloatArray) -> FloatArray:
    """Records by the root of the summed squares of their rows Wᵀx; (len(edges) + 1,) counts.

    A record adds one to one count; a record of zeros adds nothing.
    """

    def part(white: WhiteRows, features: Rows, labels: Rows, starts: Starts) -> FloatArray:
        lengths = _lengths(white, starts)
        return bin_counts(_present(lengths, lengths), edges)

    return records.total(part, (len(edges) + 1,), whitening)


def gram_sum(records: Records, whitening: FloatArray, *, cap: float) -> FloatArray:
    """Sum of zzᵀ for z = Wᵀx, each record's shrunk to a trace of at most cap²; (p, p).

    A record adds a positive semi-definite matrix of Frobenius norm at most cap².
    """

    def part(white: WhiteRows, features: Rows, labels: Rows, starts: Starts) -> FloatArray:
        weights = _trace_weights(white, starts, cap)
        rows = white.rows
        if np.min(weights, initial=1.0) < 1:
            rows = rows * np.sqrt(weights)[:, None]
        return rows.T @ rows

    return records.total(part, whitening.shape, whitening)


def residual_histogram(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    edges: FloatArray,
    *,
    cap: float | None = None,
) -> FloatArray:
    """Records by the length of their gradient, over √p; (len(edges) + 1,) counts.

    A record adds one to one count; a record of zeros adds nothing.
    """
    root = np.sqrt(len(parameters))

    def part(found: RecordGradients) -> FloatArray:
        return bin_counts(_present(found.lengths, found.norms) / root, edges)

    return _total(records, parameters, whitening, part, (len(edges) + 1,), cap)


def gradient_sum(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float | None = None,
) -> FloatArray:
    """Negative sum of clipped gradients, (p,): each record adds a vector of norm at most γ."""

    def part(found: RecordGradients) -> FloatArray:
        return found.sum_clipped(clip_norm)

    return _total(records, parameters, whitening, part, parameters.shape, cap)


def residual_sums(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    edges: FloatArray,
    *,
    clip_norms: FloatArray,
) -> ResidualSums:
    r"""One pass for a histogram of residuals and the step whose clip will be chosen from it.

    .. math::
        \sum_i g_i\min(1, \gamma/\ell_i)
        = \sum_{\ell_i \le \gamma} g_i + \gamma \sum_{\ell_i > \gamma} g_i/\ell_i

    with both sums from those between neighbouring clips, which increase. Each is a sum of
    `gradient_sum`, but for the order of its terms: what is released of them is bounded as there.
    """
    # Rows that are in memory never come here, and most processes hold theirs.
    from scipy.sparse import csc_array

    p, size = len(parameters), len(clip_norms) + 1
    root = np.sqrt(p)

    def part(found: RecordGradients) -> FloatArray:
        counts = bin_counts(_present(found.lengths, found.norms) / root, edges)
        weights, vectors = found.terms
        # Below the first clip nothing is clipped.
        clipped = weights / np.maximum(found.lengths, clip_norms[0])
        place = np.searchsorted(clip_norms, found.lengths)
        terms = np.column_stack([weights, clipped]).ravel()
        places = np.column_stack([place, place + size]).ravel()
        ends = np.arange(0, 2 * len(place) + 1, 2)
        by_place = csc_array((terms, places, ends), shape=(2 * size, len(place))) @ vectors
        return np.concatenate([counts, np.ravel(by_place)])

    bins = len(edges) + 1
    total = _total(records, parameters, whitening, part, (bins + 2 * size * p,))
    whole, clipped = total[bins:].reshape(2, size, p)
    below = np.cumsum(whole, axis=0)[:-1]
    above = np.cumsum(clipped[::-1], axis=0)[-2::-1]
    return ResidualSums(total[:bins], below + clip_norms[:, None] * above)


def curvature_sum(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
) -> FloatArray:
    r"""Sum over records of the derivative of their clipped gradient, shrunk as in `gram_sum`.

    .. math::
        \sum_i \mathbf z_i\mathbf z_i^\top 1\{\|\mathbf z_i r_i\| \le \gamma\}

    At a common width zzᵀ is multiplied by min(1, √p/‖z‖), and the residual decides. For a record of
    several rows with gradient g and C = Σ zzᵀ it is the matrix C, or (γ/‖g‖)(I - ggᵀ/‖g‖²) C where
    it is clipped. Its Frobenius norm is at most cap².
    """

    def part(found: RecordGradients) -> FloatArray:
        white, starts = found.white, found.starts
        weights = _trace_weights(white, starts, cap)
        if starts is None:
            weights = np.minimum(weights, found.leverage) * (found.lengths <= clip_norm)
            rows = white.rows * np.sqrt(weights)[:, None]
            return rows.T @ rows
        # Neither a row's matrix nor a person's is formed: only products with the directions are.
        factors, directions = _clip_factor(found.lengths, clip_norm), found.directions(clip_norm)
        rows = white.rows * np.sqrt(weights * _by_row(factors, white, starts))[:, None]
        along = np.einsum("ij,ij->i", white.rows, _by_row(directions, white, starts))
        taken = np.add.reduceat(white.rows * (weights * along)[:, None], starts, axis=0)
        return rows.T @ rows - (directions * factors[:, None]).T @ taken

    return _total(records, parameters, whitening, part, whitening.shape)


def traces(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
) -> tuple[float, float]:
    """Traces of `curvature_sum` and of `second_moment_sum`, neither of which is formed.

    A record adds a number in [0, cap²] to the first and one in [0, γ²] to the second.
    """

    def part(found: RecordGradients) -> FloatArray:
        white, starts = found.white, found.starts
        weights = np.minimum(_trace_weights(white, starts, cap), found.leverage)
        kept = _by_record(weights * white.squares, starts)
        squares = np.minimum(found.lengths, clip_norm) ** 2
        if starts is not None:
            directions = _by_row(found.directions(clip_norm), white, starts)
            along = np.einsum("ij,ij->i", white.rows, directions)
            kept = kept - _by_record(weights * along**2, starts)
            kept = kept * _clip_factor(found.lengths, clip_norm)
        else:
            kept = kept * (found.lengths <= clip_norm)
            if records.common_width:
                rows = white.squares * found.leverage**2
                squares = squares * rows / white.rows.shape[1]
                if white.roots is not None:
                    squares = squares * white.roots**2
        return np.array([np.sum(kept, dtype=np.float64), np.sum(squares, dtype=np.float64)])

    curvature, square = _total(records, parameters, whitening, part, (2,))
    return float(curvature), float(square)


def second_moment_sum(
    records: Records, parameters: FloatArray, whitening: FloatArray, *, clip_norm: float
) -> FloatArray:
    """Sum of ggᵀ over records' clipped gradients g, (p, p): Frobenius norm at most γ² each."""

    def part(found: RecordGradients) -> FloatArray:
        rows = found.clipped(clip_norm)
        return rows.T @ rows

    return _total(records, parameters, whitening, part, whitening.shape)


def first_sums(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
    short_cap: float,
) -> FirstSums:
    r"""Curvatures of records that are not clipped, and gradients, for the first wide step.

    .. math::
        \sum_i \min(1, R_1^2/Z_i)\, 1\{q_i \le C\} \sum_{j \in i} z_j z_j^\top

    and the same with R for R₁. A record adds positive semi-definite matrices of Frobenius norm at
    most R₁² and R², and a vector of norm at most C.
    """

    def part(found: RecordGradients) -> FloatArray:
        white, starts = found.white, found.starts
        kept = _by_row(found.lengths <= clip_norm, white, starts)
        short = np.sqrt(_trace_weights(white, starts, short_cap) * kept)[:, None]
        long = np.sqrt(found.leverage * kept)[:, None]
        rows = white.rows * short
        first = second = np.ravel(rows.T @ rows)
        if not np.array_equal(short, long):
            rows = white.rows * long
            second = np.ravel(rows.T @ rows)
        return np.concatenate([first, second, found.sum_clipped(clip_norm)])

    p = len(parameters)
    sums = _total(records, parameters, whitening, part, (2 * p * p + p,), cap)
    short, long = sums[:-p].reshape(2, p, p)
    return FirstSums(short, long, sums[-p:])


def last_sums(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
    short_cap: float,
) -> LastSums:
    """Sums that intervals need at the last iterate.

    A record adds a positive semi-definite matrix of Frobenius norm at most C² to the first, a
    number in [0, R₁²] to the second, and one in [0, C²] to the third.
    """

    def part(found: RecordGradients) -> FloatArray:
        rows = found.clipped(clip_norm)
        # A record's trace is the smaller of its summed squares and the cap's.
        traces = np.minimum(found.norms, short_cap) ** 2 * (found.lengths <= clip_norm)
        squares = np.minimum(found.lengths, clip_norm) ** 2
        sums = [np.sum(each, dtype=np.float64) for each in (traces, squares)]
        return np.concatenate([np.ravel(rows.T @ rows), sums])

    p = len(parameters)
    found = _total(records, parameters, whitening, part, (p * p + 2,), cap)
    return LastSums(found[:-2].reshape(p, p), float(found[-2]), float(found[-1]))


@dataclass(frozen=True)
class RecordGradients:
    """Whitened rows (rows, p), residuals (rows,), and what is clipped of each record.

    A row's gradient is leverage · residual · row; a record of several rows has its sum in `vectors`
    instead. `lengths` is what the clip looks at; `norms` are 0 for absent records.
    """

    white: WhiteRows
    residuals: Rows
    leverage: Rows
    norms: Rows
    lengths: Rows
    vectors: Rows
    starts: Starts

    @property
    def terms(self) -> tuple[Rows, Rows]:
        """Weights (records,) and vectors (records, p) whose products are the gradients."""
        if self.starts is not None:
            return np.ones_like(self.lengths), self.vectors
        return self.residuals * self.leverage, self.white.rows

    def sum_clipped(self, clip_norm: float) -> FloatArray:
        """Sum of gradients clipped to this length, (p,)."""
        weights, vectors = self._weighted(clip_norm)
        return np.asarray(weights @ vectors, dtype=np.float64)

    def clipped(self, clip_norm: float) -> Rows:
        """Gradients clipped to this length, (records, p)."""
        weights, vectors = self._weighted(clip_norm)
        return vectors * weights[:, None]

    def _weighted(self, clip_norm: float) -> tuple[Rows, Rows]:
        if self.starts is None and _compiled(self.residuals):
            from privreg.algorithms.record_kernels import clipped_weights

            weights = clipped_weights(self.residuals, self.leverage, self.lengths, clip_norm)
            return weights, self.white.rows
        factors = _clip_factor(self.lengths, clip_norm)
        if self.starts is not None:
            return factors, self.vectors
        return factors * self.residuals * self.leverage, self.white.rows

    def directions(self, clip_norm: float) -> Rows:
        """Unit vectors along the persons' clipped gradients, 0 where a gradient is not clipped."""
        clipped = self.lengths > clip_norm
        return self.vectors * (clipped / np.where(clipped, self.lengths, 1.0))[:, None]


def record_gradients(
    records: Records,
    white: WhiteRows,
    features: Rows,
    labels: Rows,
    starts: Starts,
    parameters: FloatArray,
    cap: float | None = None,
) -> RecordGradients:
    """Gradients of a chunk's records; the clip looks at all of a gradient under a cap.

    Without one the records' `common_width` says how a row's gradient is bounded.
    """
    fitted = features @ parameters.astype(features.dtype, copy=False)
    root = float(np.sqrt(len(parameters)))
    none = white.rows[:0]
    if starts is None and white.roots is None and _compiled(fitted, labels):
        from privreg.algorithms.record_kernels import bounded_residuals

        residuals, leverage, lengths = bounded_residuals(
            fitted,
            labels,
            white.norms,
            white.squares,
            0.0 if cap is None else cap**2,
            root if records.common_width else 0.0,
        )
        return RecordGradients(white, residuals, leverage, white.norms, lengths, none, None)
    residuals, norms = labels - fitted, _lengths(white, starts)
    leverage = np.ones_like(residuals) if cap is None else _trace_weights(white, starts, cap)
    if starts is not None:
        sums = np.add.reduceat(white.rows * (leverage * residuals)[:, None], starts, axis=0)
        return RecordGradients(white, residuals, leverage, norms, row_norms(sums), sums, starts)
    if cap is not None or not records.common_width:
        lengths = leverage * norms * np.abs(residuals)
        return RecordGradients(white, residuals, leverage, norms, lengths, none, None)
    leverage = root / np.maximum(norms, root)
    lengths = root * np.abs(residuals)
    if white.roots is not None:
        # Of a weighted row √w(x, y) the residual is √w r, and the clip looks at r.
        lengths = lengths / np.where(white.roots > 0, white.roots, 1)
    return RecordGradients(white, residuals, leverage, norms, lengths, none, None)


def bin_counts(values: Rows, edges: FloatArray) -> FloatArray:
    """Number of values in each bin, its upper edge included; (len(edges) + 1,) counts."""
    if len(values) > MANY:
        from privreg.algorithms.record_kernels import count_up_to

        reached = count_up_to(values, edges)
        return np.diff(reached, prepend=0, append=len(values)).astype(np.float64)
    bins = np.searchsorted(edges, values, side="left")
    return np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)


def _total(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    part: Callable[[RecordGradients], FloatArray],
    shape: tuple[int, ...],
    cap: float | None = None,
) -> FloatArray:
    """Sum over chunks of what `part` gives for the gradients of their records."""

    def of_chunk(white: WhiteRows, features: Rows, labels: Rows, starts: Starts) -> FloatArray:
        return part(record_gradients(records, white, features, labels, starts, parameters, cap))

    return records.total(of_chunk, shape, whitening)


def _trace_weights(white: WhiteRows, starts: Starts, cap: float) -> Rows:
    """Multipliers of rows' outer products at which a record's trace is at most cap²."""
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
    """Values of the records that are not absent."""
    kept = norms > 0
    return values if kept.all() else values[kept]


def _compiled(*values: Rows) -> bool:
    """Whether compiled loops, which are for double precision, take over."""
    return len(values[0]) > MANY and all(each.dtype == np.float64 for each in values)
