"""Law of the last iterate of preconditioned, clipped descent about the population parameter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_answer, require_array, require_count, require_number

FloatArray = NDArray[np.float64]


def privacy_covariance(
    curvature: ArrayLike,
    step_matrices: ArrayLike,
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
        S_t, at least one, step size and preconditioner together.
    gradient_noise_stds : array_like, shape (T,)
        λ_t, noise of the mean clipped gradient, at least 0.
    start_covariance : array_like, shape (p, p)
        V_0: what the start may be away from the minimiser. Directions that no step reaches keep it.
    curvature_noise : float
        s: A is only known up to `symmetric_noise` of this standard deviation, at least 0 and
        at most 1e150.

    Returns
    -------
    ndarray, shape (p, p)

    Source
    ------
    brown2024, equation (18), with one matrix and one noise a step. Exact for a linear gradient.
    """
    slope = _square("curvature", curvature)
    matrices = require_array("step_matrices", step_matrices, shape=(None, *slope.shape))
    noise = require_array(
        "gradient_noise_stds", gradient_noise_stds, shape=(len(matrices),), least=0
    )
    covariance = require_array("start_covariance", start_covariance, shape=slope.shape)
    if np.any(np.diag(covariance) < 0):
        raise ValueError("start_covariance must have a diagonal of at least 0, got another")
    unknown = require_number("curvature_noise", curvature_noise, least=0, most=1e150)
    identity = np.eye(len(slope))
    with np.errstate(over="ignore", invalid="ignore"):
        for matrix, std in zip(matrices, noise, strict=True):
            kept = identity - matrix @ slope
            # By a power of two, so that no square of a small noise vanishes beside a large step.
            unit = np.ldexp(1.0, np.frexp(np.max(np.abs(matrix)))[1])
            part = matrix / unit
            missed = (unknown * unit) ** 2 / 2 * (np.trace(covariance) * identity + covariance)
            added = part @ (missed + (std * unit) ** 2 * identity) @ part.T
            covariance = kept @ covariance @ kept.T + added
    return require_answer("step_matrices, curvature and their noise", covariance)


def sandwich(curvature: ArrayLike, second_moment: ArrayLike, *, sample_size: float) -> FloatArray:
    r"""Asymptotic covariance of the minimiser of a clipped loss, A⁻¹ B A⁻ᵀ / n.

    .. math::
        A = \mathbb E[\mathbf x\mathbf x^\top 1\{|r| \le w\}], \qquad
        B = \mathbb E[\mathbf x\mathbf x^\top\,\mathrm{clip}(r, \pm w)^2],
        \qquad w = \gamma/\|\mathbf x\|

    Parameters
    ----------
    curvature, second_moment : array_like, shape (p, p)
        A, invertible in double precision (condition number below 4.5e15), and B.
    sample_size : float
        n, at least 1.

    Returns
    -------
    ndarray, shape (p, p)

    Source
    ------
    Huber (1967); per-record widths are those of Schweppe's generalised M-estimators.
    """
    slope = _square("curvature", curvature)
    middle = require_array("second_moment", second_moment, shape=slope.shape)
    n = require_number("sample_size", sample_size, least=1)
    with np.errstate(all="ignore"):
        try:
            # Rounding gives a singular matrix an inverse of no meaning.
            if not np.linalg.cond(slope) < 1 / np.finfo(float).eps:
                raise np.linalg.LinAlgError
            half = np.linalg.solve(slope, middle)
            found = np.linalg.solve(slope, half.T).T / n
        except np.linalg.LinAlgError:
            raise ValueError("curvature must be invertible, got a singular matrix") from None
    return require_answer("curvature, second_moment and sample_size", found)


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


def _square(name: str, value: ArrayLike) -> FloatArray:
    matrix = require_array(name, value, shape=(None, None))
    if len(matrix) != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}")
    return matrix
