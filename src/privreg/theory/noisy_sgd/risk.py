"""Mean risk of noisy SGD: exact for discrete steps, and of the diffusion by Volterra equations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    require_answer,
    require_array,
    require_scale,
    require_scales,
    warn_beyond,
)
from privreg.schedules import RateWithIntegral
from privreg.theory.noisy_sgd.diffusion import RidgeRegression

# Of the change by halving, between the 2 of order 1 and the 4 of order 2.
LEAST_GAIN = 2.5
EXTRAPOLATIONS = 3


def mean_risk(
    problem: RidgeRegression,
    step_sizes: ArrayLike,
    *,
    gradient_noise_std: float,
    kurtosis: float = 3.0,
) -> FloatArray:
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
        Discrete step sizes η = γ(k/d)/d, from 0 to 1e12.
    gradient_noise_std, kurtosis : float
        Standard deviation σ of the gradient noise, which may be 0, and β, from 1 to 1e12: 3 for
        Gaussian features (which may be rotated freely), 9/5 for uniform ones.

    Source
    ------
    The second moment of lin2025, equation (26).
    """
    kurtosis = require_scale("kurtosis", kurtosis, least=1)
    std = require_scale("gradient_noise_std", gradient_noise_std, zero=True)
    steps = require_array("step_sizes", step_sizes, shape=(None,), least=0, most=MOST)
    eigenvalues, target, ridge = problem.eigenvalues, problem.target, problem.ridge
    weights = problem.multiplicities * eigenvalues
    with np.errstate(over="ignore", invalid="ignore"):
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
    rate, gradient_noise_std : float
        Scaled rate γ = d η, 0 for the limit of small ones, and standard deviation σ of the gradient
        noise, which may be 0.

    Source
    ------
    The fixed point of lin2025, equation (6), which the paper does not print.
    """
    rate, std = require_scales(zero=True, rate=rate, gradient_noise_std=gradient_noise_std)
    moving = problem.eigenvalues > 0
    share = problem.eigenvalues / np.where(moving, problem.curvatures, 1.0)
    share *= problem.multiplicities / problem.dimension
    gain = float(0.5 * rate * (share @ problem.eigenvalues))
    noise = float(0.25 * rate * std**2 * share.sum())
    if gain >= 1.0:
        return np.inf
    weights = problem.multiplicities * problem.eigenvalues
    flow = 0.5 * (weights @ problem.bias**2 + problem.label_noise_std**2)
    return float((flow + noise) / (1.0 - gain))


class VolterraRisk(NamedTuple):
    """Mean risks, shape (intervals + 1,), on a grid uniform in the integrated rate.

    The largest relative error of the risks is estimated as `error`.
    """

    time: FloatArray
    risk: FloatArray
    regularised_risk: FloatArray
    error: float


def solve_volterra(
    problem: RidgeRegression,
    schedule: RateWithIntegral,
    *,
    gradient_noise_std: float,
    horizon: float,
    intervals: int = 200,
    rtol: float = 1e-6,
) -> VolterraRisk:
    r"""Mean risks from the Volterra equations, by the trapezoid rule with extrapolation.

    .. math::
        P_t = P(X^{\rm gf}_{\Gamma(t)}) + \int_0^tG(t,s;\Sigma)P_sds
        + \int_0^tG'(t,s;\Sigma)ds,\qquad
        R_t = R(X^{\rm gf}_{\Gamma(t)}) + \int_0^tG(t,s;A)P_sds + \int_0^tG'(t,s;A)ds

    with :math:`G(t,s;M) = \frac{\gamma(s)^2}d\operatorname{tr}(\Sigma M\Phi(t,s)^2)` and
    :math:`G'(t,s;M) = \frac{\sigma^2\gamma(s)^2}{2d}\operatorname{tr}(M\Phi(t,s)^2)`. In the
    variable Γ(t) both kernels are convolutions, acting on γP and σ²γ/2, at any schedule.

    Parameters
    ----------
    problem : RidgeRegression
    schedule : RateWithIntegral
        Scaled rate, positive, so that Γ can be inverted.
    gradient_noise_std, horizon : float
        Standard deviation σ of the gradient noise, and last time; either may be 0.
    intervals : int
        Intervals of the coarsest grid, on which the answer is returned. It is halved three times:
        the error is of order 8 in the step, for a smooth rate.
    rtol : float
        Relative error in (0, 1) beyond which the answer warns. It is estimated by the last
        extrapolation, or, where halving shows no order 2, by the last halving.

    Warns
    -----
    AccuracyWarning
        If the estimated error exceeds `rtol`: more `intervals` are needed.

    Source
    ------
    lin2025, Theorem 4.2, equations (6) and (7).
    """
    std, horizon = require_scales(zero=True, gradient_noise_std=gradient_noise_std, horizon=horizon)
    table: list[list[FloatArray]] = []
    # At too large a rate the risk grows exponentially.
    with np.errstate(over="ignore", invalid="ignore"):
        for level in range(EXTRAPOLATIONS + 1):
            fine = _trapezoid(problem, schedule, std, horizon, intervals * 2**level)
            row = [fine[:, :: 2**level]]
            for column in range(level):
                weight = 4.0 ** (column + 1)
                row.append((weight * row[column] - table[-1][column]) / (weight - 1.0))
            table.append(row)
        time, risk, regularised = require_answer("problem, schedule and horizon", table[-1][-1])
        # The time is exact; risks are positive unless nothing is left to lose.
        best, other = table[-1][-1][1:], table[-1][-2][1:]
        change = np.abs(best - other)
        # Beside a jump of the rate the rule has order 1, and extrapolation hides its error.
        before, last = np.abs(np.diff([row[0][1:] for row in table[-3:]], axis=0))
        change = np.where(before < LEAST_GAIN * last, np.maximum(change, last), change)
        error = float(np.max(np.divide(change, np.abs(best), out=change, where=change > 0)))
    warn_beyond("risk", error=error, tolerance=rtol)
    return VolterraRisk(time, risk, regularised, error)


def _trapezoid(
    problem: RidgeRegression,
    schedule: RateWithIntegral,
    gradient_noise_std: float,
    horizon: float,
    intervals: int,
) -> FloatArray:
    """Rows time, risk and regularised risk by the trapezoid rule on a uniform grid of Γ."""
    end = float(schedule.integral(horizon))
    step = end / intervals
    integral = step * np.arange(intervals + 1, dtype=np.float64)
    time = _inverse_integral(schedule, integral, horizon)
    rate = schedule.rate(time)
    spectrum, group = np.unique(problem.eigenvalues, return_inverse=True)
    curvature = spectrum + problem.ridge
    weight = np.bincount(group, problem.multiplicities) / problem.dimension
    decay = np.exp(-2.0 * integral[:, None] * curvature)
    risk_kernel = decay @ (weight * spectrum**2)
    regularised_kernel = decay @ (weight * spectrum * curvature)
    noise = 0.5 * gradient_noise_std**2
    flow = problem.gradient_flow(integral)
    flow_risk = problem.risk(flow)
    forcing = flow_risk + noise * _convolve(decay @ (weight * spectrum), rate, step)

    risk = np.empty(intervals + 1)
    source = np.empty(intervals + 1)
    risk[0] = forcing[0]
    source[0] = rate[0] * risk[0]
    reversed_kernel = risk_kernel[::-1].copy()
    for k in range(1, intervals + 1):
        history = 0.5 * risk_kernel[k] * source[0]
        history += reversed_kernel[intervals - k + 1 : intervals] @ source[1:k]
        risk[k] = (forcing[k] + step * history) / (1.0 - 0.5 * step * risk_kernel[0] * rate[k])
        source[k] = rate[k] * risk[k]
    regularised = (
        flow_risk
        + problem.penalty(flow)
        + _convolve(regularised_kernel, source, step)
        + noise * _convolve(decay @ (weight * curvature), rate, step)
    )
    return np.stack([time, risk, regularised])


def _convolve(kernel: FloatArray, source: FloatArray, step: float) -> FloatArray:
    """Trapezoid rule for the convolution of two functions on a uniform grid."""
    size = kernel.size
    length = 2 * size
    full = np.fft.irfft(np.fft.rfft(kernel, length) * np.fft.rfft(source, length), length)[:size]
    result = step * (full - 0.5 * (kernel * source[0] + kernel[0] * source))
    result[0] = 0.0
    return result


def _inverse_integral(
    schedule: RateWithIntegral, integral: FloatArray, horizon: float
) -> FloatArray:
    """Times at which the integrated rate takes the given values, to some ulp of either."""
    low, high = np.zeros(integral.size), np.where(integral > 0.0, horizon, 0.0)
    time = 0.5 * (low + high)
    turn = 0
    while True:
        turn += 1
        excess = schedule.integral(time) - integral
        low, high = np.where(excess < 0.0, time, low), np.where(excess < 0.0, high, time)
        newton = time - excess / schedule.rate(time)
        # Each third time halves what is left, whatever the rate does.
        inside = (newton >= low) & (newton <= high) & (turn % 3 > 0)
        following = np.where(inside, newton, 0.5 * (low + high))
        found = np.abs(excess) <= 4 * np.spacing(integral)
        if np.all(found | (np.abs(following - time) <= 4 * np.spacing(time))):
            return time
        time = np.where(found, time, following)
