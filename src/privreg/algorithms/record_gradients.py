"""Whitened rows, residuals and gradients of records, and the length at which each is clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.records import Records
from privreg.algorithms.samples import row_norms
from privreg.algorithms.white_rows import WhiteRows
from privreg.validation import require_array, require_instance, require_number

FloatArray = NDArray[np.float64]
# Records of a block from which compiled loops are worth loading, and a comparison with every edge
# is quicker than a search for each.
MANY = 1000
Rows = NDArray[Any]
# Entries of parameters and whitenings, and clips: products of all with rows stay numbers.
LARGEST, NARROWEST, WIDEST = 1e90, 1e-100, 1e100


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
