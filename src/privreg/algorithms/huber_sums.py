"""What private Huber regression asks of the data: bounded sums over records, one pass each.

A record is a row, or all rows of one person. Every sum is bounded record by record, so that its
sensitivity is known whatever the data are. A record of zeros, an intercept's entry included, is
absent: it adds nothing to any sum and is in no count, whatever its label is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_scales import require_edges
from privreg.algorithms.records import Records
from privreg.algorithms.samples import row_norms
from privreg.validation import require_array, require_instance, require_number

FloatArray = NDArray[np.float64]
Rows = NDArray[Any]
# Entries of parameters and whitenings, and clips: products of all with rows stay numbers.
LARGEST, NARROWEST, WIDEST = 1e90, 1e-100, 1e100


def row_sum(records: Records) -> FloatArray:
    """Sum over records of the mean of their rows, (p,): each adds a vector of `feature_norm`."""
    require_instance("records", records, Records)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        if starts is None:
            return np.sum(features, axis=0, dtype=np.float64)
        sizes = np.diff(starts, append=len(labels))
        return np.sum(np.add.reduceat(features, starts, axis=0) / sizes[:, None], axis=0)

    return records.total(part, (records.samples.dimension,))


def length_histogram(records: Records, whitening: FloatArray, edges: FloatArray) -> FloatArray:
    """Records by the root of the summed squares of their rows Wᵀx; (len(edges) + 1,) counts.

    A record adds one to one count; a record of zeros adds nothing.
    """
    whitening, edges = _map(records, whitening), require_edges(edges)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        lengths = _record_lengths(_whitened(features, whitening), starts)
        return _counts(lengths[lengths > 0], edges)

    return records.total(part, (len(edges) + 1,))


def gram_sum(records: Records, whitening: FloatArray, *, cap: float) -> FloatArray:
    """Sum of zzᵀ for z = Wᵀx, each record's shrunk to a trace of at most cap²; (p, p).

    A record adds a positive semi-definite matrix of Frobenius norm at most cap².
    """
    whitening, cap = _map(records, whitening), _length("cap", cap)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        white = _whitened(features, whitening)
        weights = _trace_weights(white, starts, cap)
        rows = white * np.sqrt(weights)[:, None]
        return rows.T @ rows

    p = len(whitening)
    return records.total(part, (p, p))


def residual_histogram(
    records: Records, parameters: FloatArray, whitening: FloatArray, edges: FloatArray
) -> FloatArray:
    """Records by the length of their gradient Wᵀx r, over √p; (len(edges) + 1,) counts.

    A record adds one to one count; a record of zeros adds nothing.
    """
    whitening, parameters = _map(records, whitening), _point(records, parameters)
    edges, root = require_edges(edges), np.sqrt(len(parameters))

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        found = _gradients(records, features, labels, starts, parameters, whitening)
        present = found.norms > 0
        return _counts(found.lengths[present] / root, edges)

    return records.total(part, (len(edges) + 1,))


def gradient_sum(
    records: Records, parameters: FloatArray, whitening: FloatArray, *, clip_norm: float
) -> FloatArray:
    """Negative sum of clipped gradients, (p,): each record adds a vector of norm at most γ."""
    whitening, parameters = _map(records, whitening), _point(records, parameters)
    clip_norm = _length("clip_norm", clip_norm)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        found = _gradients(records, features, labels, starts, parameters, whitening)
        return found.sum_of(_clip_factor(found.lengths, clip_norm))

    return records.total(part, parameters.shape)


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
    whitening, parameters = _map(records, whitening), _point(records, parameters)
    clip_norm, cap = _length("clip_norm", clip_norm), _length("cap", cap)
    p = len(parameters)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        found = _gradients(records, features, labels, starts, parameters, whitening)
        weights = _trace_weights(found.white, starts, cap)
        if starts is None:
            weights = np.minimum(weights, found.leverage) * (found.lengths <= clip_norm)
            rows = found.white * np.sqrt(weights)[:, None]
            return rows.T @ rows
        # Neither a row's matrix nor a person's is formed: only products with the directions are.
        factors, sizes = _clip_factor(found.lengths, clip_norm), np.diff(starts, append=len(labels))
        rows = found.white * np.sqrt(weights * np.repeat(factors, sizes))[:, None]
        directions = found.directions(clip_norm)
        along = weights * np.einsum("ij,ij->i", found.white, np.repeat(directions, sizes, axis=0))
        taken = np.add.reduceat(found.white * along[:, None], starts, axis=0)
        return rows.T @ rows - (directions * factors[:, None]).T @ taken

    return records.total(part, (p, p))


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
    whitening, parameters = _map(records, whitening), _point(records, parameters)
    clip_norm, cap = _length("clip_norm", clip_norm), _length("cap", cap)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        found = _gradients(records, features, labels, starts, parameters, whitening)
        weights = np.minimum(_trace_weights(found.white, starts, cap), found.leverage)
        kept = _by_record(weights * np.einsum("ij,ij->i", found.white, found.white), starts)
        if starts is None:
            kept = kept * (found.lengths <= clip_norm)
        else:
            sizes = np.diff(starts, append=len(labels))
            directions = np.repeat(found.directions(clip_norm), sizes, axis=0)
            along = np.einsum("ij,ij->i", found.white, directions)
            kept = kept - _by_record(weights * along**2, starts)
            kept = kept * _clip_factor(found.lengths, clip_norm)
        squares = np.minimum(found.lengths, clip_norm) ** 2
        if starts is None and records.common_width:
            rows = np.einsum("ij,ij->i", found.white, found.white) * found.leverage**2
            squares = squares * rows / found.white.shape[1]
        return np.array([np.sum(kept, dtype=np.float64), np.sum(squares, dtype=np.float64)])

    curvature, square = records.total(part, (2,))
    return float(curvature), float(square)


def second_moment_sum(
    records: Records, parameters: FloatArray, whitening: FloatArray, *, clip_norm: float
) -> FloatArray:
    """Sum of ggᵀ over records' clipped gradients g, (p, p): Frobenius norm at most γ² each."""
    whitening, parameters = _map(records, whitening), _point(records, parameters)
    clip_norm, p = _length("clip_norm", clip_norm), len(parameters)

    def part(features: Rows, labels: Rows, starts: NDArray[np.int64] | None) -> FloatArray:
        found = _gradients(records, features, labels, starts, parameters, whitening)
        rows = found.clipped(_clip_factor(found.lengths, clip_norm))
        return rows.T @ rows

    return records.total(part, (p, p))


@dataclass(frozen=True)
class _Gradients:
    """Whitened rows (rows, p), residuals (rows,), and what is clipped of each record.

    A row's gradient is leverage · residual · row; a record of several rows has its sum in `vectors`
    instead. `lengths` is what the clip looks at; `norms` are 0 for absent records.
    """

    white: Rows
    residuals: Rows
    leverage: Rows
    norms: Rows
    lengths: Rows
    vectors: Rows
    grouped: bool

    def sum_of(self, factors: Rows) -> FloatArray:
        if self.grouped:
            return np.asarray(factors @ self.vectors, dtype=np.float64)
        weights = factors * self.residuals * self.leverage
        return np.asarray(weights @ self.white, dtype=np.float64)

    def clipped(self, factors: Rows) -> Rows:
        if self.grouped:
            return self.vectors * factors[:, None]
        return self.white * (factors * self.residuals * self.leverage)[:, None]

    def directions(self, clip_norm: float) -> Rows:
        """Unit vectors along the persons' clipped gradients, 0 where a gradient is not clipped."""
        clipped = self.lengths > clip_norm
        return self.vectors * (clipped / np.where(clipped, self.lengths, 1.0))[:, None]


def _gradients(
    records: Records,
    features: Rows,
    labels: Rows,
    starts: NDArray[np.int64] | None,
    parameters: FloatArray,
    whitening: FloatArray,
) -> _Gradients:
    white = _whitened(features, whitening)
    residuals = labels - features @ parameters.astype(features.dtype, copy=False)
    if starts is not None:
        vectors = np.add.reduceat(white * residuals[:, None], starts, axis=0)
        ones, norms = np.ones_like(residuals), _record_lengths(white, starts)
        return _Gradients(white, residuals, ones, norms, row_norms(vectors), vectors, True)
    norms, absolute = np.sqrt(np.einsum("ij,ij->i", white, white)), np.abs(residuals)
    if not records.common_width:
        ones = np.ones_like(residuals)
        return _Gradients(white, residuals, ones, norms, norms * absolute, white[:0], False)
    root = float(np.sqrt(len(parameters)))
    leverage = root / np.maximum(norms, root)
    return _Gradients(white, residuals, leverage, norms, root * absolute, white[:0], False)


def _map(records: Records, whitening: FloatArray) -> FloatArray:
    p = require_instance("records", records, Records).samples.dimension
    return require_array("whitening", whitening, shape=(p, p), least=-LARGEST, most=LARGEST)


def _point(records: Records, parameters: FloatArray) -> FloatArray:
    shape = (records.samples.dimension,)
    return require_array("parameters", parameters, shape=shape, least=-LARGEST, most=LARGEST)


def _length(name: str, value: float) -> float:
    return require_number(name, value, least=NARROWEST, most=WIDEST)


def _whitened(features: Rows, whitening: FloatArray) -> Rows:
    return features @ whitening.astype(features.dtype, copy=False)


def _trace_weights(white: Rows, starts: NDArray[np.int64] | None, cap: float) -> Rows:
    """What each row's outer product is multiplied by so that its record's trace is at most cap²."""
    squares = _by_record(np.einsum("ij,ij->i", white, white), starts)
    weights = cap**2 / np.maximum(squares, cap**2)
    if starts is None:
        return weights
    return np.repeat(weights, np.diff(starts, append=len(white)))


def _record_lengths(white: Rows, starts: NDArray[np.int64] | None) -> Rows:
    """Root of the summed squares of each record's rows."""
    return np.asarray(np.sqrt(_by_record(np.einsum("ij,ij->i", white, white), starts)))


def _by_record(values: Rows, starts: NDArray[np.int64] | None) -> Rows:
    return values if starts is None else np.add.reduceat(values, starts)


def _clip_factor(lengths: Rows, clip_norm: float) -> Rows:
    factor: Rows = clip_norm / np.maximum(lengths, clip_norm)
    return factor


def _counts(values: Rows, edges: FloatArray) -> FloatArray:
    bins = np.searchsorted(edges, values, side="left")
    return np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)
