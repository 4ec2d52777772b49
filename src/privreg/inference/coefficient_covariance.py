"""Covariance of the coefficients of a private fit, in a part of sampling and one of private noise.

Intervals look at one coefficient at a time, and lower what shrinkage would hide along it. So the
standard errors are those of the intervals, and the correlations those of the whole law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privreg.inference.population_intervals import CoefficientIntervals, LastIterateLaw
from privreg.validation import require_array, require_instance

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class CoefficientCovariance:
    """Covariance of coefficients about their target.

    Attributes
    ----------
    sampling, privacy : ndarray, shape (k, k)
        What the rows' sampling and what private noise adds, each symmetric and positive
        semi-definite. Where an interval is infinite for want of a bound the variance is `inf`, and
        its covariances are NaN.
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

    Parameters
    ----------
    intervals : CoefficientIntervals
        Of k functionals, with the errors that private noise gives.
    law : LastIterateLaw
        In whitened coordinates.
    directions : ndarray, shape (k, p)
        u_j, the functionals in these coordinates, of entries up to 1e100.

    Examples
    --------
    >>> law = LastIterateLaw(sampling=np.eye(2), privacy=np.eye(2))
    >>> intervals = CoefficientIntervals(
    ...     centre=np.zeros(1), half_width=np.ones(1), standard_error=np.array([2.0]),
    ...     degrees_of_freedom=np.array([np.inf]), level=0.95, target="population",
    ...     privacy_error=np.array([1.0]))
    >>> found = coefficient_covariance(intervals, law, np.array([[1.0, 1.0]]))
    >>> found.sampling.round(9).tolist(), found.total.round(9).tolist()
    ([[3.0]], [[4.0]])
    """
    require_instance("intervals", intervals, CoefficientIntervals)
    require_instance("law", law, LastIterateLaw)
    if intervals.privacy_error is None:
        raise ValueError("intervals must say what private noise adds, got None")
    error = intervals.standard_error
    shape = (len(error), len(law.privacy))
    directions = require_array("directions", directions, shape=shape, least=-1e100, most=1e100)
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
