"""What private Huber regression asks of the data: bounded sums over records, one pass each.

A record is a row, or all rows of one person. Every sum is bounded record by record, so that its
sensitivity is known whatever the data are. A record of zeros, an intercept's entry included, is
absent: it adds nothing to any sum and is in no count, whatever its label is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_scales import require_edges
from privreg.algorithms.record_gradients import (
    FloatArray,
    Rows,
    bin_counts,
    by_record,
    clip_factor,
    present,
    record_gradients,
    record_lengths,
    require_length,
    require_map,
    require_point,
    trace_weights,
)
from privreg.algorithms.records import Records
from privreg.algorithms.white_rows import WhiteRows
from privreg.validation import require_instance


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
