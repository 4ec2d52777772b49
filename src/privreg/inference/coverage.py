"""Exact coverage and expected length of Student's interval when its replicates are Gaussian.

The replicates may be correlated and biased, as blocks of an autoregression are. The interval covers
where a quadratic form in them is not positive; Imhof's inversion of its characteristic function
gives that probability.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from privreg.validation import (
    require_answer,
    require_array,
    require_broadcast,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]
# The integrands decay exponentially on both sides in the logarithm of the frequency and are
# analytic in a strip of half-width π/2, so the trapezoid rule at this step is exact to rounding.
LOG_STEP = 0.05
LOG_REACH = 38.0
LARGEST_NONCENTRALITY = 1e5


def t_interval_coverage(bias: ArrayLike, covariance: ArrayLike, *, level: float) -> FloatArray:
    r"""Probability that Student's interval from m Gaussian replicates covers its target.

    .. math::
        \Pr\Big[\bar x^2 \le \frac{t^2}{m}\hat\sigma^2\Big] = \Pr[x^\top Q x \le 0], \qquad
        Q = \frac{\mathbf 1\mathbf 1^\top}{m^2}
        - \frac{t^2}{m(m-1)}\Big(I - \frac{\mathbf 1\mathbf 1^\top}m\Big), \quad x \sim N(b, C)

    Parameters
    ----------
    bias : array_like, shape (..., m)
        Means b of the replicates less the target; 0 broadcasts.
    covariance : array_like, shape (..., m, m)
        Covariance C of the replicates, positive definite.
    level : float
        Nominal level of the interval in (0, 1), which sets t on m - 1 degrees of freedom.

    Returns
    -------
    ndarray, shape (...)
        Coverage in [0, 1]; equal to `level` for b = 0 and C a multiple of the identity.

    Raises
    ------
    ValueError
        If the covariance is not positive definite, or the bias is over 300 standard deviations and
        the answer neither plainly 0 nor 1.

    Source
    ------
    brown2024, equation (12), under the law of equations (88) to (94); Imhof (1961), equation (3.2).
    """
    bias, covariance, root, _ = _replicates(bias, covariance)
    m = covariance.shape[-1]
    quantile = _quantile(m, level)
    ones = np.full((m, m), 1.0 / m)
    form = ones / m - quantile**2 / (m * (m - 1)) * (np.eye(m) - ones)
    weights, shifts = _diagonalise(form, bias, root)
    require_answer("bias and covariance", weights)
    inside = np.empty(weights.shape[:-1])
    # One at a time: each needs a grid of its own, as fine as its bias makes the phase turn.
    for index in np.ndindex(inside.shape):
        inside[index] = _nonpositive_probability(weights[index], shifts[index])
    return require_answer("bias and covariance", inside)


def expected_half_width(bias: ArrayLike, covariance: ArrayLike, *, level: float) -> FloatArray:
    r"""Expected half-width of Student's interval from m Gaussian replicates.

    .. math::
        \frac{t}{\sqrt m}\,\mathbb E\,\hat\sigma, \qquad
        \mathbb E\sqrt S = \frac1{2\sqrt\pi}\int_0^\infty \big(1 - \mathbb E e^{-uS}\big)
        u^{-3/2}\,du, \quad S = \hat\sigma^2

    Parameters
    ----------
    bias : array_like, shape (..., m)
        Means of the replicates less any common value.
    covariance : array_like, shape (..., m, m)
        Covariance of the replicates, positive definite.
    level : float
        Nominal level in (0, 1).

    Returns
    -------
    ndarray, shape (...)

    Source
    ------
    Ours: the Laplace transform of a quadratic form in normal variables.
    """
    bias, covariance, root, scale = _replicates(bias, covariance)
    m = covariance.shape[-1]
    form = (np.eye(m) - 1.0 / m) / (m - 1)
    weights, shifts = _diagonalise(form, bias, root)
    frequencies = _log_grid(weights, reach=2 * LOG_REACH)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.maximum(weights, 0.0)[..., None, :] * frequencies[..., :, None]
        exponent = np.sum(
            0.5 * np.log1p(2 * product) + shifts[..., None, :] * product / (1 + 2 * product),
            axis=-1,
        )
        integrand = -np.expm1(-exponent) / np.sqrt(frequencies)
        deviation = LOG_STEP / (2 * np.sqrt(np.pi)) * np.sum(integrand, axis=-1)
        width = _quantile(m, level) / np.sqrt(m) * deviation * scale
    return require_answer("bias and covariance", width)


def _replicates(
    bias: ArrayLike, covariance: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Bias, covariance and its root for a largest variance of 1, and the scale that was taken."""
    matrix = require_array("covariance", covariance, shape=(..., None, None))
    if matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] < 2:
        raise ValueError(f"covariance must have shape (..., m, m), m >= 2, got {matrix.shape}")
    largest = np.max(np.diagonal(matrix, axis1=-2, axis2=-1), axis=-1)
    if not np.all(largest > 0):
        raise ValueError("covariance must be positive definite, got a diagonal that is not")
    if np.max(np.abs(matrix - np.swapaxes(matrix, -1, -2))) > 1e-9 * np.max(largest):
        raise ValueError("covariance must be symmetric, got another matrix")
    matrix = matrix / largest[..., None, None]
    try:
        root = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise ValueError(
            "covariance must be positive definite, got a matrix that is not"
        ) from error
    shift = require_real("bias", bias)
    if require_broadcast(bias=shift, covariance=matrix[..., 0]) != matrix.shape[:-1]:
        raise ValueError(f"bias must broadcast to {matrix.shape[:-1]}, got {shift.shape}")
    scale = np.sqrt(largest)
    with np.errstate(over="ignore"):
        relative = np.broadcast_to(shift, matrix.shape[:-1]) / scale[..., None]
    return require_answer("bias and covariance", relative), matrix, root, scale


def _diagonalise(
    form: FloatArray, bias: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights and noncentralities of the form as a sum of weighted noncentral chi-squares."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            weights, vectors = np.linalg.eigh(np.swapaxes(root, -1, -2) @ form @ root)
            standard = np.linalg.solve(root, bias[..., None])
            shifts = (np.swapaxes(vectors, -1, -2) @ standard)[..., 0] ** 2
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be well conditioned, got a nearly singular one") from None
    return weights, require_answer("bias and covariance", shifts)


def _nonpositive_probability(weights: FloatArray, shifts: FloatArray) -> float:
    r"""P[Σ w_k χ²_1(δ_k²) ≤ 0] by Imhof's ½ - (1/π) ∫ sin θ(u) / (u ρ(u)) du, in s = ln u."""
    noncentrality = float(np.sum(shifts))
    if noncentrality > LARGEST_NONCENTRALITY:
        mean = np.sum(weights * (1 + shifts))
        deviation = np.sqrt(2 * np.sum(weights**2 * (1 + 2 * shifts)))
        if abs(mean) > 40 * deviation:
            return float(mean < 0)
        raise ValueError(
            f"bias must be within {np.sqrt(LARGEST_NONCENTRALITY):.0f} standard deviations of 0, "
            f"got {np.sqrt(noncentrality):.3g}"
        )
    step = min(LOG_STEP, 0.5 / np.sqrt(max(noncentrality, 1.0)))
    product = weights * _log_grid(weights, step=step)[:, None]
    square = product**2
    angle = 0.5 * np.sum(np.arctan(product) + shifts * product / (1 + square), axis=-1)
    log_modulus = np.sum(0.25 * np.log1p(square) + 0.5 * shifts * square / (1 + square), axis=-1)
    integral = step * np.sum(np.sin(angle) * np.exp(-log_modulus))
    return float(np.clip(0.5 - integral / np.pi, 0.0, 1.0))


def _log_grid(
    weights: FloatArray, *, step: float = LOG_STEP, reach: float = LOG_REACH
) -> FloatArray:
    """Frequencies, equally spaced in logarithm about the inverse of the largest weight."""
    scale = np.max(np.abs(weights), axis=-1, keepdims=True)
    return np.exp(np.arange(-reach, reach, step)) / scale


def _quantile(replicates: int, level: float) -> float:
    level = require_number("level", level, above=0, below=1)
    return float(stdtrit(replicates - 1, (1 + level) / 2))
