"""What clipping leaves of a residual, row by row."""

from __future__ import annotations

from math import erfc, exp, sqrt
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.prediction.label_noise import squared_scales
from privreg.prediction.problem import LabelNoiseLaw, Problem
from privreg.prediction.rows import Rows

FloatArray = NDArray[np.float64]
# Beyond 40 standard deviations nothing is clipped.
WIDEST = 40.0
# Widths of so many standard deviations take less than the last bit of what they leave.
UNCLIPPED = 9.0
ROOT_HALF = sqrt(0.5)
# Of a residual of variance 1 about 0, both signs together.
DENSITY = sqrt(2 / np.pi)


class ClippedResidual(NamedTuple):
    """What a row's clipped residual does to the error's mean and variance, (settings, rows).

    Attributes
    ----------
    drift : ndarray
        Mean of the clipped residual over that of the residual: how fast the mean error falls.
    share : ndarray
        Probability that the residual is not clipped: how fast a deviation from the mean falls.
    square : ndarray
        Second moment of the clipped residual.
    """

    drift: FloatArray
    share: FloatArray
    square: FloatArray


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
    ratio = np.asarray(width / std)
    share, second = _each(ratio.ravel())
    return share.reshape(ratio.shape)[()], std * std * second.reshape(ratio.shape)[()]


def noise_moments(
    width: FloatArray,
    *,
    label_noise_std: float,
    law: LabelNoiseLaw = "gaussian",
    other_variance: FloatArray | float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    r"""`clipped_moments` of label noise with an independent Gaussian error of a prediction.

    Parameters
    ----------
    width : ndarray, shape (...)
        w, at least 0.
    label_noise_std : float
        σ.
    law : str
        Of the noise.
    other_variance : float or ndarray, shape (...)
        Of the error; broadcast with `width`.

    Returns
    -------
    share, second_moment : ndarray, shape (...)
    """
    squares, weights = squared_scales(law)
    widths, others = np.broadcast_arrays(width, np.asarray(other_variance, dtype=np.float64))
    share, square = _mixed(widths.ravel(), others.ravel(), label_noise_std**2 * squares, weights)
    return share.reshape(widths.shape)[()], square.reshape(widths.shape)[()]


@njit(nogil=True, cache=True, error_model="numpy")
def _of_ratio(ratio: float) -> tuple[float, float]:
    """`clipped_moments` at a standard deviation of 1."""
    if ratio >= UNCLIPPED:
        return 1.0, 1.0
    squared, beyond = ratio * ratio, erfc(ratio * ROOT_HALF)
    share = 1.0 - beyond
    inside = share - ratio * (DENSITY * exp(-0.5 * squared))
    # Differences lose digits: below these ratios their series are exact to 1e-9.
    if ratio < 1e-2:
        inside = DENSITY / 3 * squared * ratio
        if ratio < 5e-5:
            share = DENSITY * ratio
    return share, inside + squared * beyond


@njit(nogil=True, cache=True, error_model="numpy")
def _each(ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
    share, second = np.empty_like(ratios), np.empty_like(ratios)
    for index, ratio in enumerate(ratios):
        share[index], second[index] = _of_ratio(ratio)
    return share, second


@njit(nogil=True, cache=True, error_model="numpy")
def _mixed(
    widths: FloatArray, others: FloatArray, squares: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Over Gaussians of variances that are sums of one of `squares`, weighted, and of `others`."""
    share, second = np.zeros_like(widths), np.zeros_like(widths)
    for index in range(widths.size):
        for square, weight in zip(squares, weights):  # noqa: B905, which compiled code lacks
            variance = square + others[index]
            one = _of_ratio(widths[index] / sqrt(variance))
            share[index] += weight * one[0]
            second[index] += weight * (variance * one[1])
    return share, second


def clipped_residual(
    problem: Problem,
    rows: Rows,
    widths: FloatArray,
    *,
    squared_bias: FloatArray,
    variance: FloatArray,
    scales: FloatArray | float = 1.0,
) -> ClippedResidual:
    r"""Clipped residuals of rows for errors of given mean square and variance by group.

    Where a row has many coordinates, its prediction's error is Gaussian about 0 whatever the mean
    error, and by Stein's lemma drift and share are one. A one-hot row sees its own category's error
    alone: :math:`r \sim N(m, s^2)`. Label noise that is no Gaussian is a mixture of them.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    widths : ndarray, shape (settings, rows)
        Largest residual of a row.
    squared_bias, variance : ndarray, shape (settings, groups)
        Of a coordinate's error.
    scales : ndarray, shape (rows,)
        What a row and its label are multiplied by before.
    """
    noise, law = problem.label_noise_std, problem.label_noise_law
    if problem.feature_law != "one_hot":
        share, square = noise_moments(
            widths / scales,
            label_noise_std=noise,
            law=law,
            other_variance=rows.quadratic(squared_bias + variance),
        )
        return ClippedResidual(share, share, scales**2 * square)
    mean = scales * np.sqrt(rows.quadratic(squared_bias))
    around = rows.quadratic(variance)
    parts = [
        (weight, _about(widths, mean, scales * np.sqrt(noise**2 * scale + around)))
        for scale, weight in zip(*squared_scales(law), strict=True)
    ]
    drift, share, square = (sum(weight * each[at] for weight, each in parts) for at in range(3))
    return ClippedResidual(drift, share, square)


def _about(widths: FloatArray, mean: FloatArray, std: FloatArray) -> ClippedResidual:
    """Of a Gaussian residual about its mean."""
    above = np.clip((widths - mean) / std, -WIDEST, WIDEST)
    below = np.clip((widths + mean) / std, -WIDEST, WIDEST)
    share = ndtr(above) - ndtr(-below)
    density = [np.exp(-(each**2) / 2) / np.sqrt(2 * np.pi) for each in (above, below)]
    tilt = std * (density[1] - density[0])
    first = widths * (ndtr(-above) - ndtr(-below)) + mean * share + tilt
    square = (
        mean**2 * share
        + 2 * mean * tilt
        + std**2 * (share - above * density[0] - below * density[1])
        + widths**2 * (1 - share)
    )
    # As the mean goes to 0 its clipped part falls like the share.
    near = mean < 1e-3 * std
    drift = np.where(near, share, first / np.where(near, 1.0, mean))
    return ClippedResidual(drift, share, square)


def finite(energy: FloatArray) -> FloatArray:
    """What has diverged, infinite or no number, stays so; but residuals need a number."""
    return np.fmin(energy, 1e100)
