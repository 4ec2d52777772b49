"""Law of the last iterate of preconditioned, clipped descent about the population parameter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_array, require_count, require_number, require_real

FloatArray = NDArray[np.float64]


def privacy_covariance(
    curvature: ArrayLike,
    step_matrices: Sequence[ArrayLike],
    gradient_noise_stds: ArrayLike,
    *,
    start_covariance: ArrayLike,
    curvature_noise: float = 0.0,
) -> FloatArray:
    r"""Covariance of the last iterate about the minimiser, private noise and start together.

    .. math::
        V_t = (I - S_t A) V_{t-1} (I - S_t A)^\top + \lambda_t^2 S_t S_t^\top
        + \tfrac{s^2}2 S_t(\operatorname{tr}(V_{t-1}) I + V_{t-1}) S_t^\top

    Parameters
    ----------
    curvature : array_like, shape (p, p)
        A, the mean derivative of the clipped gradient.
    step_matrices : sequence of array_like, shape (p, p)
        S_t, step size and preconditioner together.
    gradient_noise_stds : array_like, shape (T,)
        λ_t, noise of the mean clipped gradient.
    start_covariance : array_like, shape (p, p)
        V_0: what the start may be away from the minimiser. Directions that no step reaches keep it.
    curvature_noise : float
        s: A is only known up to `symmetric_noise` of this standard deviation.

    Returns
    -------
    ndarray, shape (p, p)

    Source
    ------
    brown2024, equation (18), with one matrix and one noise a step. Exact for a linear gradient.
    """
    slope = require_array("curvature", curvature, shape=(None, None))
    noise = require_real("gradient_noise_stds", gradient_noise_stds, least=0)
    covariance = require_array("start_covariance", start_covariance, shape=slope.shape)
    unknown = require_number("curvature_noise", curvature_noise, least=0) ** 2 / 2
    identity = np.eye(len(slope))
    for step, std in zip(step_matrices, noise, strict=True):
        matrix = require_array("step_matrices", step, shape=slope.shape)
        kept = identity - matrix @ slope
        missed = unknown * (np.trace(covariance) * identity + covariance)
        covariance = kept @ covariance @ kept.T + matrix @ (missed + std**2 * identity) @ matrix.T
    return covariance


def sandwich(curvature: ArrayLike, second_moment: ArrayLike, *, sample_size: float) -> FloatArray:
    r"""Asymptotic covariance of the minimiser of a clipped loss, A⁻¹ B A⁻ᵀ / n.

    .. math::
        A = \mathbb E[\mathbf x\mathbf x^\top 1\{|r| \le w\}], \qquad
        B = \mathbb E[\mathbf x\mathbf x^\top\,\mathrm{clip}(r, \pm w)^2],
        \qquad w = \gamma/\|\mathbf x\|

    Parameters
    ----------
    curvature, second_moment : array_like, shape (p, p)
        A and B.
    sample_size : float
        n, more than 0.

    Returns
    -------
    ndarray, shape (p, p)

    Source
    ------
    Huber (1967); per-record widths are those of Schweppe's generalised M-estimators.
    """
    slope = require_array("curvature", curvature, shape=(None, None))
    middle = require_array("second_moment", second_moment, shape=slope.shape)
    n = require_number("sample_size", sample_size, above=0)
    half = np.linalg.solve(slope, middle)
    return np.linalg.solve(slope, half.T).T / n


def averaging_step_sizes(warm_up_steps: int, final_steps: int) -> FloatArray:
    """Step sizes 1, ..., 1 and then 1, 1/2, ..., 1/K: the last iterate averages K Newton steps.

    Parameters
    ----------
    warm_up_steps, final_steps : int

    Examples
    --------
    >>> averaging_step_sizes(1, 2).tolist()
    [1.0, 1.0, 0.5]
    """
    warm = require_count("warm_up_steps", warm_up_steps, least=0)
    final = require_count("final_steps", final_steps)
    return np.concatenate([np.ones(warm), 1.0 / np.arange(1, final + 1)])
