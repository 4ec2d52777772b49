"""Law of the last iterate of preconditioned, clipped descent about the population parameter."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_answer

FloatArray = NDArray[np.float64]


def privacy_covariance(
    curvature: FloatArray,
    step_matrices: ArrayLike,
    gradient_noise_stds: ArrayLike,
    *,
    start_covariance: FloatArray,
    curvature_noise: float = 0.0,
) -> FloatArray:
    r"""Covariance of the last iterate about the minimiser, private noise and start together.

    .. math::
        V_t = (I - S_t A) V_{t-1} (I - S_t A)^\top + \lambda_t^2 S_t S_t^\top
        + \tfrac{s^2}2 S_t(\operatorname{tr}(V_{t-1}) I + V_{t-1}) S_t^\top

    with the mean derivative A of the clipped gradient, known up to `symmetric_noise` of standard
    deviation s, step size and preconditioner S_t, noise λ_t of the mean gradient, and V_0, how far
    the start may be away. Directions that no step reaches keep V_0. This is brown2024, equation
    (18), with one matrix and one noise a step; exact for a linear gradient.
    """
    matrices, noise = np.asarray(step_matrices), np.asarray(gradient_noise_stds)
    covariance, identity = start_covariance, np.eye(len(curvature))
    with np.errstate(over="ignore", invalid="ignore"):
        for matrix, std in zip(matrices, noise, strict=True):
            kept = identity - matrix @ curvature
            # By a power of two, so that no square of a small noise vanishes beside a large step.
            unit = np.ldexp(1.0, np.frexp(np.max(np.abs(matrix)))[1])
            part = matrix / unit
            missed = (
                (curvature_noise * unit) ** 2 / 2 * (np.trace(covariance) * identity + covariance)
            )
            added = part @ (missed + (std * unit) ** 2 * identity) @ part.T
            covariance = kept @ covariance @ kept.T + added
    return require_answer("step_matrices, curvature and their noise", covariance)


def sandwich(curvature: FloatArray, second_moment: FloatArray, *, sample_size: float) -> FloatArray:
    r"""Asymptotic covariance of the minimiser of a clipped loss, A⁻¹ B A⁻ᵀ / n.

    .. math::
        A = \mathbb E[\mathbf x\mathbf x^\top 1\{|r| \le w\}], \qquad
        B = \mathbb E[\mathbf x\mathbf x^\top\,\mathrm{clip}(r, \pm w)^2],
        \qquad w = \gamma/\|\mathbf x\|

    A curvature A of condition number 4.5e15 or more is refused. Huber (1967); per-record widths are
    those of Schweppe's generalised M-estimators.
    """
    with np.errstate(all="ignore"):
        try:
            # Rounding gives a singular matrix an inverse of no meaning.
            if not np.linalg.cond(curvature) < 1 / np.finfo(float).eps:
                raise np.linalg.LinAlgError
            half = np.linalg.solve(curvature, second_moment)
            found = np.linalg.solve(curvature, half.T).T / sample_size
        except np.linalg.LinAlgError:
            raise ValueError("curvature must be invertible, got a singular matrix") from None
    return require_answer("curvature, second_moment and sample_size", found)


def averaging_step_sizes(warm_up_steps: int, final_steps: int) -> FloatArray:
    """Step sizes 1, ..., 1 and then 1, 1/2, ..., 1/K: the last iterate averages K Newton steps."""
    return np.concatenate([np.ones(warm_up_steps), 1.0 / np.arange(1, final_steps + 1)])
