"""Closed forms for homogenised SGD at a constant rate: the stationary risk, isotropic features."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.theory.noisy_sgd.diffusion import LARGEST, RidgeRegression
from privreg.validation import (
    require_answer,
    require_array,
    require_instance,
    require_number,
    require_real,
)


def stationary_risk(problem: RidgeRegression, *, rate: float, gradient_noise_std: float) -> float:
    r"""Limit of the mean population risk as time grows, at a constant scaled rate.

    .. math::
        P_\infty = \frac{P(r) + \frac{\sigma^2\gamma}{4d}\operatorname{tr}(\Sigma A^{-1})}
        {1 - \frac\gamma{2d}\operatorname{tr}(\Sigma^2A^{-1})},\qquad A = \Sigma+\delta I,\quad
        r = A^{-1}\Sigma\tilde x

    `inf` unless the denominator is positive, the stability condition.

    Parameters
    ----------
    problem : RidgeRegression
    rate : float
        Scaled rate γ = d η, more than 0.
    gradient_noise_std : float
        Standard deviation σ of the gradient noise, at least 0.

    Source
    ------
    The fixed point of lin2025, equation (6), which the paper does not print.
    """
    require_instance("problem", problem, RidgeRegression)
    rate = require_number("rate", rate, above=0, most=LARGEST)
    std = require_number("gradient_noise_std", gradient_noise_std, least=0, most=LARGEST)
    moving = problem.eigenvalues > 0
    share = np.zeros(problem.eigenvalues.size)
    share[moving] = problem.eigenvalues[moving] / problem.curvatures[moving]
    share *= problem.multiplicities / problem.dimension
    gain = float(0.5 * rate * (share @ problem.eigenvalues))
    noise = float(0.25 * rate * std**2 * share.sum())
    if gain >= 1.0:
        return np.inf
    weights = problem.multiplicities * problem.eigenvalues
    flow = 0.5 * (weights @ problem.bias**2 + problem.label_noise_std**2)
    return float((flow + noise) / (1.0 - gain))


def isotropic_risk(
    time: ArrayLike,
    *,
    eigenvalue: float,
    target: ArrayLike,
    initial: ArrayLike,
    rate: float,
    gradient_noise_std: float,
    ridge: float = 0.0,
    label_noise_std: float = 0.0,
) -> NDArray[np.float64]:
    r"""Mean population risk for Σ = λI and a constant scaled rate, of the shape of `time`.

    .. math::
        P_t = F(t) + \int_0^t e^{-b(t-u)}\big(\gamma^2\lambda^2F(u)
        + \tfrac12\gamma^2\lambda\sigma^2\big)du,\qquad
        b = 2\gamma(\lambda+\delta)-\gamma^2\lambda^2

    where F, the risk of the gradient flow, is a constant and two exponentials.

    Parameters
    ----------
    time : array_like, shape (...)
        Times t, at least 0.
    eigenvalue, rate : float
        λ and γ, at least 1e-30 and at most 1e30.
    target, initial : array_like, shape (d,)
        Ground truth and start.
    gradient_noise_std, ridge, label_noise_std : float
        σ, δ and ζ, at least 0 and at most 1e30.

    Source
    ------
    lin2025, Theorem 4.2, the special case that the text mentions without a formula.
    """
    eigenvalue = require_number("eigenvalue", eigenvalue, least=1e-30, most=LARGEST)
    rate = require_number("rate", rate, least=1e-30, most=LARGEST)
    std = require_number("gradient_noise_std", gradient_noise_std, least=0, most=LARGEST)
    ridge = require_number("ridge", ridge, least=0, most=LARGEST)
    label_noise_std = require_number("label_noise_std", label_noise_std, least=0, most=LARGEST)
    t = require_real("time", time, least=0, most=LARGEST)
    truth = require_array("target", target, shape=(None,), least=-LARGEST, most=LARGEST)
    origin = require_array("initial", initial, shape=truth.shape, least=-LARGEST, most=LARGEST)
    curvature = eigenvalue + ridge
    limit = eigenvalue / curvature * truth
    start = origin - limit
    # Not the difference, which rounds it away under a small penalty.
    bias = -ridge / curvature * truth
    amplitudes = (
        0.5 * eigenvalue * (bias @ bias) + 0.5 * label_noise_std**2,
        eigenvalue * (bias @ start),
        0.5 * eigenvalue * (start @ start),
    )
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        decay = 2.0 * rate * curvature - (rate * eigenvalue) ** 2
        risk = 0.5 * rate**2 * eigenvalue * std**2 * _convolution(t, decay, 0.0)
        for power, amplitude in enumerate(amplitudes):
            speed = power * rate * curvature
            feedback = (rate * eigenvalue) ** 2 * _convolution(t, decay, speed)
            risk = risk + amplitude * (np.exp(-speed * t) + feedback)
    return require_answer("time, eigenvalue and rate", np.asarray(risk))


def _convolution(t: NDArray[np.float64], decay: float, speed: float) -> NDArray[np.float64]:
    """Integral over u in [0, t] of exp(-decay (t - u) - speed u), also where the two rates meet."""
    gap = decay - speed
    ratio = t if gap == 0.0 else -np.expm1(-gap * t) / gap
    return np.exp(-speed * t) * ratio
