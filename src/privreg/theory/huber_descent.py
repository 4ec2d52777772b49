"""Law of the last iterate of a clipped, preconditioned descent; shrinkage of noisy matrices."""

from __future__ import annotations

from math import frexp, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from privreg.checks import require_answer
from privreg.kernels import standard_normal

FloatArray = NDArray[np.float64]


def privacy_covariance(
    curvature: FloatArray,
    step_matrices: ArrayLike,
    gradient_noise_stds: ArrayLike,
    *,
    start_covariance: FloatArray,
    curvature_noise: float = 0.0,
) -> FloatArray:
    r"""Second moment of the last iterate about the minimiser, due to noise and the starting error.

    .. math::
        V_t = (I - S_t A) V_{t-1} (I - S_t A)^\top + \lambda_t^2 S_t S_t^\top
        + \tfrac{s^2}2 S_t(\operatorname{tr}(V_{t-1}) I + V_{t-1}) S_t^\top

    A is the mean derivative of the clipped gradient, known up to `symmetric_noise` of standard
    deviation s. S_t is step size times preconditioner, λ_t the standard deviation of the gradient's
    noise, V_0 the second moment of the start's error. Directions that no step reaches keep V_0.
    In brown2024, equation (18), S and λ are constant. The recursion is exact for linear gradients.
    """
    matrices, noise = np.asarray(step_matrices), np.asarray(gradient_noise_stds)
    covariance, identity = start_covariance, np.eye(len(curvature))
    # Many steps that are much too long leave double precision.
    with np.errstate(over="ignore", invalid="ignore"):
        for matrix, std in zip(matrices, noise, strict=True):
            kept = identity - matrix @ curvature
            # As in `shrink_to`.
            unit = np.ldexp(1.0, np.frexp(np.max(np.abs(matrix)))[1])
            part, spread = matrix / unit, np.trace(covariance) * identity + covariance
            missed = (curvature_noise * unit) ** 2 / 2 * spread
            added = part @ (missed + (std * unit) ** 2 * identity) @ part.T
            covariance = kept @ covariance @ kept.T + added
    return require_answer("step_matrices, curvature and their noise", covariance)


def sandwich(curvature: FloatArray, second_moment: FloatArray, *, sample_size: float) -> FloatArray:
    r"""Asymptotic covariance of the minimiser of a clipped loss, A⁻¹ B A⁻ᵀ / n.

    .. math::
        A = \mathbb E[\mathbf x\mathbf x^\top 1\{|r| \le w\}], \qquad
        B = \mathbb E[\mathbf x\mathbf x^\top\,\mathrm{clip}(r, \pm w)^2],
        \qquad w = \gamma/\|\mathbf x\|

    r is the residual, γ the clipping norm. A curvature A of condition number 4.5e15 or more is
    refused, since rounding could give a singular A a meaningless inverse. Source: Huber (1967).
    The widths w are those of Schweppe's generalised M-estimators.
    """
    if not np.linalg.cond(curvature) < 1 / np.finfo(float).eps:
        raise ValueError("curvature must be invertible, got a singular matrix")
    half = np.linalg.solve(curvature, second_moment)
    return np.asarray(np.linalg.solve(curvature, half.T).T / sample_size)


def averaging_step_sizes(warm_up_steps: int, final_steps: int) -> FloatArray:
    """Step sizes 1 for the warm-up, then 1, 1/2, ..., 1/K; the latter average K Newton steps."""
    return np.concatenate([np.ones(warm_up_steps), 1.0 / np.arange(1, final_steps + 1)])


def bias_aware_quantile(bias: ArrayLike, *, level: float = 0.95) -> FloatArray:
    r"""Quantile c of |N(t, 1)|: half-width, in standard errors, of an interval for biases up to t.

    .. math:: \Phi(c - t) - \Phi(-c - t) = \ell

    ℓ is `level`. c increases in t, from the two-sided normal quantile at t = 0 to t plus the
    one-sided quantile for large t (Armstrong and Kolesár, 2018, equation 10). The relative error of
    c is below 1e-12 for levels of at least 1e-3.

    Examples
    --------
    >>> bias_aware_quantile([0.0, 1.0, 10.0]).round(3).tolist()
    [1.96, 2.646, 11.645]
    """
    shift = np.asarray(bias, dtype=np.float64)
    two_sided = -float(ndtri((1 - level) / 2))
    # Beyond 40 the other tail is less than the smallest double, and c - t no longer changes.
    near = np.minimum(shift, 40.0)
    low = np.maximum(near - float(ndtri(1 - level)), 0.0)
    high = near + two_sided
    quantile = high
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


class Shrunk(NamedTuple):
    """Shrunk matrix (p, p), and the weight in [0, 1] of the noisy matrix."""

    matrix: FloatArray
    weight: float


def symmetric_noise(dimension: int, *, noise_std: float, rng: np.random.Generator) -> FloatArray:
    """Symmetric Gaussian noise E = s (Z + Zᵀ)/2, (p, p), isotropic in the Frobenius norm.

    Diagonal entries, and uᵀEu for unit vectors u, have standard deviation s; other entries s/√2.
    The Gaussian mechanism adds E to symmetric matrices of known Frobenius sensitivity.
    """
    normals = standard_normal(rng, (dimension, dimension))
    return noise_std * (normals + normals.T) / 2


def shrink_to_identity(
    noisy: FloatArray, *, noise_std: float, scale: float | None = None
) -> Shrunk:
    """Shrink a noisy matrix to `scale` times the identity, by default the mean of its diagonal."""
    p = len(noisy)
    centre = np.trace(noisy) / p if scale is None else scale
    return shrink_to(centre * np.eye(p), noisy, noise_std=noise_std)


def shrink_to(target: FloatArray, noisy: FloatArray, *, noise_std: float) -> Shrunk:
    r"""Linear shrinkage of a noisy matrix Y toward a target T, for known noise.

    .. math::
        \hat M = T + \omega (Y - T), \qquad
        \omega = \Big(1 - \frac{s^2\,p(p+1)/2}{\|Y - T\|_F^2}\Big)_+

    where Y = M + E, with E of `symmetric_noise`. E has the mean squared Frobenius norm s²p(p+1)/2.
    ω estimates the weight of least mean squared error, as in Ledoit and Wolf (2004); s is known.
    """
    p = len(noisy)
    deviation = noisy - target
    largest = float(np.max(np.abs(deviation)))
    if largest == 0:
        return Shrunk(target, 0.0)
    # The square of one number is not always correctly rounded, and its last digit depends on the
    # unit: a power of two, so that results stay as they have been released.
    unit = 2.0 ** frexp(largest)[1]
    observed = float(np.sum((deviation / unit) ** 2))
    weight = max(0.0, 1.0 - (noise_std / unit) ** 2 * p * (p + 1) / 2 / observed)
    return Shrunk(target + weight * deviation, weight)


def floored(matrix: FloatArray, floor: ArrayLike) -> FloatArray:
    """Raise the eigenvalues of a symmetric matrix, in ascending order, to `floor` or more."""
    values, vectors = np.linalg.eigh(matrix)
    raised: FloatArray = (vectors * np.maximum(values, floor)) @ vectors.T
    return raised


def inverse_root(matrix: FloatArray, *, floor: float) -> FloatArray:
    """Inverse square root of a symmetric matrix after its eigenvalues are raised to `floor`."""
    values, vectors = np.linalg.eigh(matrix)
    root: FloatArray = (vectors / np.sqrt(np.maximum(values, floor))) @ vectors.T
    return root


def noise_edge(dimension: int, *, noise_std: float) -> float:
    """Upper edge s √(2p) of the spectrum of `symmetric_noise` for large p."""
    return float(noise_std * np.sqrt(2.0 * dimension))
