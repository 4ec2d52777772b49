"""Half-widths of intervals from a standard error and a largest bias, and the p-values they give.

A p-value is the inversion of the intervals: the least α whose interval of level 1 - α excludes the
value. So a test at level α rejects what that interval leaves out, and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtrit

from privreg.theory.bias_aware import bias_aware_quantile
from privreg.validation import require_array

FloatArray = NDArray[np.float64]
# Fewer say that the noise hides the variance itself: no finite interval is honest.
LEAST_DEGREES = 2.0
# Of a bias or a distance to the standard error, so that no quantile overflows.
LARGEST_RATIO = 1e100


def half_widths(
    standard_error: FloatArray,
    degrees_of_freedom: FloatArray,
    *,
    level: float,
    bias: FloatArray | None = None,
) -> FloatArray:
    r"""Half-widths of intervals of standard error s, ν degrees of freedom and a bias of at most b.

    .. math:: h = \frac{t_\nu}{z}\,c(b/s)\,s, \qquad \Phi(c - t) - \Phi(-c - t) = \ell

    with Student's and the normal quantile t and z; without bias h = t_ν s.

    Source
    ------
    Armstrong and Kolesár (2018), equation (10), for c.
    """
    error, degrees = standard_error, degrees_of_freedom
    known = np.isfinite(error) & (degrees > LEAST_DEGREES)
    quantile = np.full(error.shape, np.inf)
    quantile[known] = stdtrit(degrees[known], (1 + level) / 2)
    if bias is not None:
        normal = float(ndtri((1 + level) / 2))
        # Below a level of 1e-16 both quantiles are 0.
        student = quantile[known] / normal if normal > 0 else 1.0
        ratio = _ratio(bias[known], error[known])
        quantile[known] = student * bias_aware_quantile(ratio, level=level)
    found = np.zeros(error.shape)
    return np.multiply(quantile, error, out=found, where=error > 0)


def p_values(
    distance: ArrayLike,
    standard_error: ArrayLike,
    degrees_of_freedom: ArrayLike,
    *,
    bias: ArrayLike | None = None,
) -> FloatArray:
    r"""The α at which `half_widths` of level 1 - α equal a distance.

    .. math::
        \alpha = \Phi(t - c) + \Phi(-t - c), \qquad
        t = \frac bs,\ c = \frac{|d|}s\,\frac{z_{\alpha/2}}{t_{\nu,\alpha/2}}

    The right side falls with α, so that it has one solution, found by bisection of log α.
    """
    error = require_array("standard_error", standard_error, shape=(None,), least=0, infinite=True)
    same: dict[str, Any] = {"shape": error.shape, "least": 0}
    degrees = require_array("degrees_of_freedom", degrees_of_freedom, **same, infinite=True)
    shift = np.zeros(error.shape) if bias is None else require_array("bias", bias, **same)
    away = np.abs(require_array("distance", distance, shape=error.shape))
    found = np.ones(error.shape)
    # Without a spread the interval is a point.
    found[(error == 0) & (away > 0)] = 0.0
    known = np.isfinite(error) & (error > 0) & (degrees > LEAST_DEGREES) & (away > 0)
    ratio = _ratio(shift[known], error[known])
    with np.errstate(over="ignore"):
        scaled = np.minimum(away[known] / error[known], LARGEST_RATIO)
    found[known] = _solved(scaled, degrees[known], ratio)
    return found


def _solved(distance: FloatArray, degrees: FloatArray, shift: FloatArray) -> FloatArray:
    low, high = np.full(distance.shape, np.log(1e-300)), np.zeros(distance.shape)
    for _ in range(70):
        middle = (low + high) / 2
        half = np.exp(middle) / 2
        # Student's quantile is at least the normal one, and beyond doubles where it is infinite.
        student, share = stdtrit(degrees, half), np.ones(half.shape)
        np.divide(ndtri(half), student, out=share, where=student < 0)
        quantile = distance * np.clip(share, 0.0, 1.0)
        below = np.exp(middle) < ndtr(shift - quantile) + ndtr(-shift - quantile)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(high <= np.log(1e-300) + 1e-9, 0.0, np.minimum(np.exp(high), 1.0))


def _ratio(bias: FloatArray, error: FloatArray) -> FloatArray:
    found = np.zeros(error.shape)
    with np.errstate(over="ignore"):
        np.divide(bias, error, out=found, where=error > 0)
    return np.minimum(found, LARGEST_RATIO)
