"""Reductions of a mechanism's outputs to one number, by which an audit tells neighbours apart."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from privreg.validation import (
    require_array,
)

FloatArray = NDArray[np.float64]


def statistics(
    first: FloatArray, second: FloatArray, direction: ArrayLike | None
) -> list[Callable[[FloatArray], FloatArray]]:
    """Reductions of outputs to one number, NaN where an output is not finite."""
    if first.ndim == 1:
        if direction is not None:
            raise ValueError("direction must be left out where an output is one number")
        return [np.asarray]
    if direction is not None:
        along = require_array("direction", direction, shape=(first.shape[1],))
        return [lambda outputs: apply(outputs, lambda rows: rows @ along)]
    finite = [outputs[np.all(np.isfinite(outputs), axis=1)] for outputs in (first, second)]
    p = first.shape[1]
    if min(map(len, finite)) <= 2 * p:
        return [lambda outputs: apply(outputs, lambda rows: np.zeros(len(rows)))]
    # Coordinates of very different or no spread must not decide whether the fit is stable.
    pooled = np.concatenate(finite)
    size = np.maximum(np.max(np.abs(pooled), axis=0), np.finfo(np.float64).tiny)
    shift, scale = np.mean(pooled / size, axis=0), np.std(pooled / size, axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def standard(rows: FloatArray) -> FloatArray:
        return (rows / size - shift) / scale

    whitened = [Gaussian(standard(rows)) for rows in finite]
    gap = whitened[1].mean - whitened[0].mean
    between = (whitened[0].covariance + whitened[1].covariance) / 2
    linear = np.linalg.lstsq(between, gap, rcond=1e-12)[0]

    def ratio(rows: FloatArray) -> FloatArray:
        return whitened[1].log_density(rows) - whitened[0].log_density(rows)

    return [
        lambda outputs: apply(outputs, lambda rows: standard(rows) @ linear),
        lambda outputs: apply(outputs, lambda rows: ratio(standard(rows))),
    ]


def apply(outputs: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> FloatArray:
    values = np.full(len(outputs), np.nan)
    finite = np.all(np.isfinite(outputs), axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        values[finite] = statistic(outputs[finite])
    return values


class Gaussian:
    """A Gaussian law fitted to rows (m, p)."""

    def __init__(self, rows: FloatArray) -> None:
        self.mean = rows.mean(axis=0)
        self.covariance = np.atleast_2d(np.cov(rows, rowvar=False))
        # Without it an output that never varies would have no density.
        ridge = 1e-9 * np.eye(len(self.mean))
        self._factor = np.linalg.cholesky(self.covariance + ridge)

    def log_density(self, rows: FloatArray) -> FloatArray:
        white = solve_triangular(self._factor, (rows - self.mean).T, lower=True, check_finite=False)
        return -0.5 * np.sum(white**2, axis=0) - np.sum(np.log(np.diag(self._factor)))
