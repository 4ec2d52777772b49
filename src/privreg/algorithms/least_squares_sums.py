"""What private least squares asks of the data: bounded sums over records, one pass each.

A record is a row, or all rows of one person. With z = Wᵀx and Z = Σ ‖z‖² over its rows, its
gradient is g = min(1, R²/Z) Σ z r: long rows are shortened together with their residuals, to at
most R. What is clipped is the length q = ‖g‖, the product of a row's length and its residual, so
that a long row with a small residual is left alone. A record of zeros adds nothing to any sum and
is in no count.
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
    present,
    record_gradients,
    require_length,
    require_map,
    require_point,
    trace_weights,
)
from privreg.algorithms.records import Records
from privreg.algorithms.white_rows import WhiteRows


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
