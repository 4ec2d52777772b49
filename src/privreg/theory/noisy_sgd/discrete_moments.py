"""Exact mean risk of discrete one-pass noisy SGD for features with independent coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from privreg.validation import require_answer, require_array, require_instance, require_number


def mean_risk(
    problem: RidgeRegression,
    step_sizes: ArrayLike,
    *,
    gradient_noise_std: float,
    kurtosis: float = 3.0,
) -> NDArray[np.float64]:
    r"""Mean population risk of the discrete algorithm, before each step and at the end.

    .. math::
        \mu_i^+ = (1-\eta A_i)\mu_i - \eta\delta\tilde x_i,\qquad
        q_i^+ = \big((1-\eta\delta)^2 - 2(1-\eta\delta)\eta\lambda_i
        + \eta^2(\beta-1)\lambda_i^2\big)q_i
        + \eta^2\lambda_i\Big(\sum_jw_j\lambda_jq_j + \zeta^2\Big)
        - 2\eta\delta\tilde x_i(1-\eta A_i)\mu_i + \eta^2(\delta^2\tilde x_i^2+\sigma^2)

    for the mean μ and second moment q of the error x - x̃, step size η and kurtosis β, without any
    limit. The features' coordinates are independent with mean 0, variance λ_i and fourth moment
    βλ_i².

    Parameters
    ----------
    problem : RidgeRegression
    step_sizes : array_like, shape (n,)
        Discrete step sizes η = γ(k/d)/d, at least 0.
    gradient_noise_std : float
        Standard deviation σ of the gradient noise, at least 0.
    kurtosis : float
        β, at least 1: 3 for Gaussian features (which may be rotated freely), 9/5 for uniform ones.

    Source
    ------
    The second moment of lin2025, equation (26).
    """
    require_instance("problem", problem, RidgeRegression)
    kurtosis = require_number("kurtosis", kurtosis, least=1, most=1e30)
    std = require_number("gradient_noise_std", gradient_noise_std, least=0, most=1e30)
    steps = require_array("step_sizes", step_sizes, shape=(None,), least=0, most=1e30)
    eigenvalues, target, ridge = problem.eigenvalues, problem.target, problem.ridge
    weights = problem.multiplicities * eigenvalues
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean = problem.initial - target
        second = mean**2
        risk = np.empty(steps.size + 1)
        for k in range(steps.size + 1):
            excess = float(weights @ second)
            risk[k] = 0.5 * (excess + problem.label_noise_std**2)
            if k == steps.size:
                break
            step = steps[k]
            shrink = 1.0 - step * ridge
            contraction = shrink - step * eigenvalues
            second = (
                (
                    shrink**2
                    - 2 * shrink * step * eigenvalues
                    + step**2 * (kurtosis - 1) * eigenvalues**2
                )
                * second
                + step**2 * eigenvalues * (excess + problem.label_noise_std**2)
                - 2 * step * ridge * target * contraction * mean
                + step**2 * (ridge**2 * target**2 + std**2)
            )
            mean = contraction * mean - step * ridge * target
    return require_answer("step_sizes", risk)
