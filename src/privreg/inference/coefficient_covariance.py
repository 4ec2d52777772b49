"""Covariance of the coefficients of a private fit, in a part of sampling and one of private noise.

Intervals look at one coefficient at a time, and lower what shrinkage would hide along it. So the
standard errors are those of the intervals, and the correlations those of the whole law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privreg.inference.population_intervals import CoefficientIntervals, LastIterateLaw

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CoefficientCovariance:
    """Covariance of coefficients about their target, in a part of sampling and one of noise.

    Attributes
    ----------
    sampling, privacy : ndarray, shape (k, k)
        Symmetric and positive semi-definite. Where nothing bounds a coefficient its variance is
        `inf` and its covariances are NaN.
    """

    sampling: FloatArray
    privacy: FloatArray

    @property
    def total(self) -> FloatArray:
        """Sum of both, (k, k); its diagonal is the square of the intervals' standard errors."""
        return self.sampling + self.privacy


def coefficient_covariance(
    intervals: CoefficientIntervals, law: LastIterateLaw, directions: FloatArray
) -> CoefficientCovariance:
    r"""Covariance with the intervals' standard errors and the law's correlations.

    .. math:: C_{jk} = s_j s_k\, \frac{u_j^\top L u_k}{\sqrt{u_j^\top L u_j\; u_k^\top L u_k}}

    for L and s those of sampling, and those of private noise.
    """
    assert intervals.privacy_error is not None
    error = intervals.standard_error
    size = np.max(np.abs(directions), axis=1, keepdims=True)
    directions = directions / np.where(size > 0, size, 1.0)
    known = np.isfinite(error)
    sampling = np.where(known, np.nan_to_num(intervals.sampling_error), np.inf)
    return CoefficientCovariance(
        sampling=_with_errors(directions @ law.sampling @ directions.T, sampling),
        privacy=_with_errors(directions @ law.privacy @ directions.T, intervals.privacy_error),
    )


def _with_errors(matrix: FloatArray, error: FloatArray) -> FloatArray:
    """The matrix scaled to a diagonal of squared errors."""
    root = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    seen = root > 0
    scale = np.where(seen, np.where(np.isfinite(error), error, 0.0) / np.where(seen, root, 1.0), 0)
    found = np.outer(scale, scale) * ((matrix + matrix.T) / 2)
    found[~np.isfinite(error)] = np.nan
    found[:, ~np.isfinite(error)] = np.nan
    np.fill_diagonal(found, error**2)
    return found
