"""What clipping leaves of a Gaussian residual, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

FloatArray = NDArray[np.float64]


def clipped_moments(width: FloatArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Share of residuals that are not clipped, and second moment of the clipped ones.

    .. math:: \pi = \Pr(|r| \le w),\qquad q = \mathbb E\,\min(|r|, w)^2,\qquad r \sim N(0, s^2)

    Parameters
    ----------
    width : ndarray, shape (...)
        w, at least 0; `inf` clips nothing.
    std : ndarray, shape (...)
        s, more than 0; broadcast with `width`.

    Returns
    -------
    share, second_moment : ndarray, shape (...)
    """
    ratio = np.minimum(width / std, 40.0)
    share = 1 - 2 * ndtr(-ratio)
    density = np.exp(-(ratio**2) / 2) * np.sqrt(2 / np.pi)
    # The difference keeps its digits: below this ratio its series is exact to 1e-9.
    small = ratio < 1e-2
    inside = np.where(small, np.sqrt(2 / np.pi) * ratio**3 / 3, share - ratio * density)
    return share, std**2 * (inside + ratio**2 * (1 - share))
