"""Bounded sums over records that private descents ask for, one pass each.

A record is a row, or all rows of one person. Every sum is bounded record by record, so that its
sensitivity is known whatever the data are. A record of zeros, an intercept's entry included, is
absent: it adds nothing to any sum and is in no count, whatever its label is.

Products: with z = Wᵀx and Z = Σ ‖z‖² over a record's rows, its gradient under a cap R is
g = min(1, R²/Z) Σ z r: long rows are shortened together with their residuals, to at most R. What
is clipped is the length q = ‖g‖, the product of a row's length and its residual, so that a long
row with a small residual is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_scales import require_edges
from privreg.algorithms.records import Records, WhiteRows
from privreg.algorithms.samples import row_norms
from privreg.validation import require_array, require_instance, require_number

FloatArray = NDArray[np.float64]
# Records of a block from which compiled loops are worth loading, and a comparison with every edge
# is quicker than a search for each.
MANY = 1000
Rows = NDArray[Any]
# Entries of parameters and whitenings, and clips: products of all with rows stay numbers.
LARGEST, NARROWEST, WIDEST = 1e90, 1e-100, 1e100


class ResidualSums(NamedTuple):
    """What `residual_histogram` gives, and (clips, p) what `gradient_sum` gives for each clip."""

    counts: FloatArray
    gradients: FloatArray


def row_sum(records: Records) -> FloatArray:
    """Sum over records of the mean of their rows, (p,): each adds a vector of `feature_norm`.

    A weighted row √w(1, x) adds w(1, x), by its first entry.
    """
    require_instance("records", records, Records)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
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
    whitening, edges = require_map(records, whitening), require_edges(edges)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        lengths = record_lengths(white, starts)
        return bin_counts(present(lengths, lengths), edges)

    return records.white_total(part, whitening, (len(edges) + 1,))


def gram_sum(records: Records, whitening: FloatArray, *, cap: float) -> FloatArray:
    """Sum of zzᵀ for z = Wᵀx, each record's shrunk to a trace of at most cap²; (p, p).

    A record adds a positive semi-definite matrix of Frobenius norm at most cap².
    """
    whitening, cap = require_map(records, whitening), require_length("cap", cap)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        weights = trace_weights(white, starts, cap)
        rows = white.rows
        if np.min(weights, initial=1.0) < 1:
            rows = rows * np.sqrt(weights)[:, None]
        return rows.T @ rows

    p = len(whitening)
    return records.white_total(part, whitening, (p, p))


def residual_histogram(
    records: Records, parameters: FloatArray, whitening: FloatArray, edges: FloatArray
) -> FloatArray:
    """Records by the length of their gradient Wᵀx r, over √p; (len(edges) + 1,) counts.

    A record adds one to one count; a record of zeros adds nothing.
    """
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    edges, root = require_edges(edges), np.sqrt(len(parameters))

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters)
        return bin_counts(present(found.lengths, found.norms) / root, edges)

    return records.white_total(part, whitening, (len(edges) + 1,))


def gradient_sum(
    records: Records, parameters: FloatArray, whitening: FloatArray, *, clip_norm: float
) -> FloatArray:
    """Negative sum of clipped gradients, (p,): each record adds a vector of norm at most γ."""
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm = require_length("clip_norm", clip_norm)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters)
        return found.sum_clipped(clip_norm)

    return records.white_total(part, whitening, parameters.shape)


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

    with both sums from those between neighbouring clips. Each is a sum of `gradient_sum`, but for
    the order of its terms: what is released of them is bounded as there.
    """
    # Rows that are in memory never come here, and most processes hold theirs.
    from scipy.sparse import csc_array

    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    edges, clips, p = require_edges(edges), require_edges(clip_norms), len(parameters)
    root, size = np.sqrt(p), len(clips) + 1

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters)
        counts = bin_counts(present(found.lengths, found.norms) / root, edges)
        weights, vectors = found.terms
        # Below the first clip nothing is clipped.
        clipped = weights / np.maximum(found.lengths, clips[0])
        place = np.searchsorted(clips, found.lengths)
        terms = np.column_stack([weights, clipped]).ravel()
        places = np.column_stack([place, place + size]).ravel()
        ends = np.arange(0, 2 * len(place) + 1, 2)
        by_place = csc_array((terms, places, ends), shape=(2 * size, len(place))) @ vectors
        return np.concatenate([counts, np.ravel(by_place)])

    bins = len(edges) + 1
    total = records.white_total(part, whitening, (bins + 2 * size * p,))
    whole, clipped = total[bins:].reshape(2, size, p)
    below = np.cumsum(whole, axis=0)[:-1]
    above = np.cumsum(clipped[::-1], axis=0)[-2::-1]
    return ResidualSums(total[:bins], below + clips[:, None] * above)


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
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm, cap = require_length("clip_norm", clip_norm), require_length("cap", cap)
    p = len(parameters)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters)
        weights = trace_weights(white, starts, cap)
        if starts is None:
            weights = np.minimum(weights, found.leverage) * (found.lengths <= clip_norm)
            rows = white.rows * np.sqrt(weights)[:, None]
            return rows.T @ rows
        # Neither a row's matrix nor a person's is formed: only products with the directions are.
        factors, sizes = clip_factor(found.lengths, clip_norm), np.diff(starts, append=len(labels))
        rows = white.rows * np.sqrt(weights * np.repeat(factors, sizes))[:, None]
        directions = found.directions(clip_norm)
        along = weights * np.einsum("ij,ij->i", white.rows, np.repeat(directions, sizes, axis=0))
        taken = np.add.reduceat(white.rows * along[:, None], starts, axis=0)
        return rows.T @ rows - (directions * factors[:, None]).T @ taken

    return records.white_total(part, whitening, (p, p))


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
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm, cap = require_length("clip_norm", clip_norm), require_length("cap", cap)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters)
        weights = np.minimum(trace_weights(white, starts, cap), found.leverage)
        kept = by_record(weights * white.squares, starts)
        if starts is None:
            kept = kept * (found.lengths <= clip_norm)
        else:
            sizes = np.diff(starts, append=len(labels))
            directions = np.repeat(found.directions(clip_norm), sizes, axis=0)
            along = np.einsum("ij,ij->i", white.rows, directions)
            kept = kept - by_record(weights * along**2, starts)
            kept = kept * clip_factor(found.lengths, clip_norm)
        squares = np.minimum(found.lengths, clip_norm) ** 2
        if starts is None and records.common_width:
            rows = white.squares * found.leverage**2
            squares = squares * rows / white.rows.shape[1]
            if white.roots is not None:
                squares = squares * white.roots**2
        return np.array([np.sum(kept, dtype=np.float64), np.sum(squares, dtype=np.float64)])

    curvature, square = records.white_total(part, whitening, (2,))
    return float(curvature), float(square)


def second_moment_sum(
    records: Records, parameters: FloatArray, whitening: FloatArray, *, clip_norm: float
) -> FloatArray:
    """Sum of ggᵀ over records' clipped gradients g, (p, p): Frobenius norm at most γ² each."""
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm, p = require_length("clip_norm", clip_norm), len(parameters)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters)
        rows = found.clipped(clip_norm)
        return rows.T @ rows

    return records.white_total(part, whitening, (p, p))


class FirstSums(NamedTuple):
    """Second moments (p, p) of the rows of records that the clip leaves alone, at two lengths.

    `gradient` (p,) is what `product_gradient_sum` gives.
    """

    short: FloatArray
    long: FloatArray
    gradient: FloatArray


class LastSums(NamedTuple):
    """Σ ggᵀ (p, p), the trace of the short curvature, and Σ ‖g‖²."""

    second_moment: FloatArray
    curvature: float
    square: float


def product_histogram(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    edges: FloatArray,
    *,
    cap: float,
) -> FloatArray:
    """Records by q/√p; (len(edges) + 1,) counts.

    A record adds one to one count; a record of zeros adds nothing.
    """
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    edges, cap, root = require_edges(edges), require_length("cap", cap), np.sqrt(len(parameters))

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters, cap)
        return bin_counts(present(found.lengths, found.norms) / root, edges)

    return records.white_total(part, whitening, (len(edges) + 1,))


def product_gradient_sum(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
) -> FloatArray:
    """Negative sum of g min(1, C/q), (p,): each record adds a vector of norm at most C."""
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm, cap = require_length("clip_norm", clip_norm), require_length("cap", cap)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters, cap)
        return found.sum_clipped(clip_norm)

    return records.white_total(part, whitening, parameters.shape)


def first_sums(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
    short_cap: float,
) -> FirstSums:
    r"""What the first wide step needs: curvatures of records that are not clipped, and gradients.

    .. math::
        \sum_i \min(1, R_1^2/Z_i)\, 1\{q_i \le C\} \sum_{j \in i} z_j z_j^\top

    and the same with R for R₁. A record adds positive semi-definite matrices of Frobenius norm at
    most R₁² and R², and a vector of norm at most C.
    """
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm, cap = require_length("clip_norm", clip_norm), require_length("cap", cap)
    short_cap, p = require_length("short_cap", short_cap), len(parameters)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters, cap)
        kept = _by_row(found.lengths <= clip_norm, starts, len(labels))
        short = np.sqrt(trace_weights(white, starts, short_cap) * kept)[:, None]
        long = np.sqrt(found.leverage * kept)[:, None]
        rows = white.rows * short
        first = second = np.ravel(rows.T @ rows)
        if not np.array_equal(short, long):
            rows = white.rows * long
            second = np.ravel(rows.T @ rows)
        gradient = found.sum_clipped(clip_norm)
        return np.concatenate([first, second, gradient])

    square = p * p
    sums = records.white_total(part, whitening, (2 * square + p,))
    short, long = sums[: 2 * square].reshape(2, p, p)
    return FirstSums(short, long, sums[2 * square :])


def last_sums(
    records: Records,
    parameters: FloatArray,
    whitening: FloatArray,
    *,
    clip_norm: float,
    cap: float,
    short_cap: float,
) -> LastSums:
    """What intervals need at the last iterate.

    A record adds a positive semi-definite matrix of Frobenius norm at most C² to the first, a
    number in [0, R₁²] to the second, and one in [0, C²] to the third.
    """
    whitening, parameters = require_map(records, whitening), require_point(records, parameters)
    clip_norm, cap = require_length("clip_norm", clip_norm), require_length("cap", cap)
    short_cap, p = require_length("short_cap", short_cap), len(parameters)

    def part(
        white: WhiteRows, features: Rows, labels: Rows, starts: NDArray[np.int64] | None
    ) -> FloatArray:
        found = record_gradients(records, white, features, labels, starts, parameters, cap)
        rows = found.clipped(clip_norm)
        # A record's trace is the smaller of its summed squares and the cap's.
        traces = np.minimum(found.norms, short_cap) ** 2 * (found.lengths <= clip_norm)
        squares = np.minimum(found.lengths, clip_norm) ** 2
        sums = [np.sum(each, dtype=np.float64) for each in (traces, squares)]
        return np.concatenate([np.ravel(rows.T @ rows), sums])

    found = records.white_total(part, whitening, (p * p + 2,))
    return LastSums(found[:-2].reshape(p, p), float(found[-2]), float(found[-1]))


def _by_row(kept: Rows, starts: NDArray[np.int64] | None, rows: int) -> Rows:
    return kept if starts is None else np.repeat(kept, np.diff(starts, append=rows))


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
    grouped: bool

    @property
    def terms(self) -> tuple[Rows, Rows]:
        """Weights (records,) and vectors (records, p) whose products are the gradients."""
        if self.grouped:
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
        if not self.grouped and _compiled(self.residuals):
            from privreg.algorithms.record_kernels import clipped_weights

            weights = clipped_weights(self.residuals, self.leverage, self.lengths, clip_norm)
            return weights, self.white.rows
        factors = clip_factor(self.lengths, clip_norm)
        if self.grouped:
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
    starts: NDArray[np.int64] | None,
    parameters: FloatArray,
    cap: float | None = None,
) -> RecordGradients:
    """Gradients of a chunk's records.

    With a cap a record's rows are shortened to it together with their residuals: its gradient is
    multiplied by min(1, cap²/Σ‖z‖²), and all of it is looked at by the clip. Without one the
    records' `common_width` says how a row's gradient is bounded.
    """
    fitted = features @ parameters.astype(features.dtype, copy=False)
    root = float(np.sqrt(len(parameters)))
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
        none = white.rows[:0]
        return RecordGradients(white, residuals, leverage, white.norms, lengths, none, False)
    residuals = labels - fitted
    rows, norms = white.rows, record_lengths(white, starts)
    if cap is not None:
        weights = trace_weights(white, starts, cap)
        if starts is None:
            lengths = weights * norms * np.abs(residuals)
            return RecordGradients(white, residuals, weights, norms, lengths, rows[:0], False)
        vectors = np.add.reduceat(rows * (weights * residuals)[:, None], starts, axis=0)
        return RecordGradients(white, residuals, weights, norms, row_norms(vectors), vectors, True)
    if starts is not None:
        vectors = np.add.reduceat(rows * residuals[:, None], starts, axis=0)
        ones = np.ones_like(residuals)
        return RecordGradients(white, residuals, ones, norms, row_norms(vectors), vectors, True)
    absolute = np.abs(residuals)
    if not records.common_width:
        ones = np.ones_like(residuals)
        return RecordGradients(white, residuals, ones, norms, norms * absolute, rows[:0], False)
    leverage = root / np.maximum(norms, root)
    lengths = root * absolute
    if white.roots is not None:
        # Of a weighted row √w(x, y) the residual is √w r, and the clip looks at r.
        lengths = lengths / np.where(white.roots > 0, white.roots, 1)
    return RecordGradients(white, residuals, leverage, norms, lengths, rows[:0], False)


def require_map(records: Records, whitening: FloatArray) -> FloatArray:
    p = require_instance("records", records, Records).samples.dimension
    return require_array("whitening", whitening, shape=(p, p), least=-LARGEST, most=LARGEST)


def require_point(records: Records, parameters: FloatArray) -> FloatArray:
    shape = (records.samples.dimension,)
    return require_array("parameters", parameters, shape=shape, least=-LARGEST, most=LARGEST)


def require_length(name: str, value: float) -> float:
    return require_number(name, value, least=NARROWEST, most=WIDEST)


def trace_weights(white: WhiteRows, starts: NDArray[np.int64] | None, cap: float) -> Rows:
    """What each row's outer product is multiplied by so that its record's trace is at most cap²."""
    squares = by_record(white.squares, starts)
    weights = cap**2 / np.maximum(squares, cap**2)
    if starts is None:
        return weights
    return np.repeat(weights, np.diff(starts, append=len(white.rows)))


def record_lengths(white: WhiteRows, starts: NDArray[np.int64] | None) -> Rows:
    """Root of the summed squares of each record's rows."""
    return white.norms if starts is None else np.sqrt(by_record(white.squares, starts))


def by_record(values: Rows, starts: NDArray[np.int64] | None) -> Rows:
    return values if starts is None else np.add.reduceat(values, starts)


def clip_factor(lengths: Rows, clip_norm: float) -> Rows:
    factor: Rows = clip_norm / np.maximum(lengths, clip_norm)
    return factor


def present(values: Rows, norms: Rows) -> Rows:
    """Values of the records that are not absent."""
    kept = norms > 0
    return values if kept.all() else values[kept]


def bin_counts(values: Rows, edges: FloatArray) -> FloatArray:
    """How many values lie in each bin, its upper edge included; (len(edges) + 1,) counts."""
    if len(values) > MANY:
        from privreg.algorithms.record_kernels import count_up_to

        reached = count_up_to(values, edges)
        return np.diff(reached, prepend=0, append=len(values)).astype(np.float64)
    bins = np.searchsorted(edges, values, side="left")
    return np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)


def _compiled(*values: Rows) -> bool:
    """Whether compiled loops, which are for double precision, take over."""
    return len(values[0]) > MANY and all(each.dtype == np.float64 for each in values)
