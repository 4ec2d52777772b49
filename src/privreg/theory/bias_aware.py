"""Critical values of intervals whose centre may be biased by a known amount."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from privreg.validation import require_number, require_real

FloatArray = NDArray[np.float64]


def bias_aware_quantile(bias: ArrayLike, *, level: float = 0.95) -> FloatArray:
    r"""Quantile of |N(t, 1)|: half-width over standard error of an interval with bias up to t.

    .. math:: \Phi(c - t) - \Phi(-c - t) = \ell

    It increases in t, from the two-sided normal quantile at 0 to t more than the one-sided one for
    large t (Armstrong and Kolesár, 2018, equation 10). Relative error below 1e-12 for levels of at
    least 1e-3; `bias` t is at most 1e100.

    Examples
    --------
    >>> bias_aware_quantile([0.0, 1.0, 10.0]).round(3).tolist()
    [1.96, 2.646, 11.645]
    """
    shift = require_real("bias", bias, least=0, most=1e100)
    level = require_number("level", level, above=0, below=1)
    two_sided = -float(ndtri((1 - level) / 2))
    # Beyond 40 the other tail is less than the smallest double, and c - t no longer changes.
    near = np.minimum(shift, 40.0)
    low = np.maximum(near - float(ndtri(1 - level)), 0.0)
    high = near + two_sided
    quantile = high
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for _ in range(60):
            # Newton's steps inside a bracket, from the smaller of level and its complement.
            if level < 0.5:
                excess = ndtr(quantile - near) - ndtr(-quantile - near) - level
            else:
                excess = (1 - level) - ndtr(near - quantile) - ndtr(-quantile - near)
            low, high = np.where(excess >= 0, low, quantile), np.where(excess >= 0, quantile, high)
            density = np.exp(-((quantile - near) ** 2) / 2) + np.exp(-((quantile + near) ** 2) / 2)
            moved = np.clip(quantile - excess / density * sqrt(2 * pi), low, high)
            # What is left after such a step is its square.
            settled = np.all(np.abs(moved - quantile) <= 1e-10 * moved)
            quantile = moved
            if settled:
                break
    return np.asarray(np.where(shift > near, shift + (quantile - near), quantile))
