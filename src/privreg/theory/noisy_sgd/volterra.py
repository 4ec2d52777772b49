"""The Volterra equations for the risk of homogenised SGD, solved as integral equations.

This route knows nothing of the modes' differential equations in `diffusion`; the two must agree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.accuracy import warn_beyond
from privreg.schedules import RateWithIntegral, require_rate
from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from privreg.validation import require_answer, require_count, require_instance, require_number

# Of the change by halving, between the 2 of order 1 and the 4 of order 2.
LEAST_GAIN = 2.5


class VolterraRisk(NamedTuple):
    """Mean risks on a grid uniform in the integrated rate.

    Attributes
    ----------
    time, risk, regularised_risk : ndarray, shape (intervals + 1,)
    error : float
        Estimated largest relative error of the risks.
    """

    time: NDArray[np.float64]
    risk: NDArray[np.float64]
    regularised_risk: NDArray[np.float64]
    error: float


def solve_volterra(
    problem: RidgeRegression,
    schedule: RateWithIntegral,
    *,
    gradient_noise_std: float,
    horizon: float,
    intervals: int = 200,
    extrapolations: int = 3,
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
    gradient_noise_std : float
        Standard deviation σ of the gradient noise, at least 0.
    horizon : float
        Last time, more than 0.
    intervals : int
        Intervals of the coarsest grid, on which the answer is returned.
    extrapolations : int
        How often the grid is halved and the leading error removed, at least 1: the error is of
        order 2 + 2 `extrapolations` in the step, for a smooth rate.
    rtol : float
        Relative error beyond which the answer warns. It is estimated by the last extrapolation, or,
        where halving shows no order 2, by the last halving.

    Warns
    -----
    AccuracyWarning
        If the estimated error exceeds `rtol`: more `intervals` are needed.

    Source
    ------
    lin2025, Theorem 4.2, equations (6) and (7).
    """
    require_instance("problem", problem, RidgeRegression)
    require_rate(schedule)
    std = require_number("gradient_noise_std", gradient_noise_std, least=0, most=1e30)
    horizon = require_number("horizon", horizon, above=0, most=1e30)
    intervals = require_count("intervals", intervals)
    extrapolations = require_count("extrapolations", extrapolations)
    rtol = require_number("rtol", rtol, above=0, below=1)
    table: list[list[NDArray[np.float64]]] = []
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for level in range(extrapolations + 1):
            fine = _trapezoid(problem, schedule, std, horizon, intervals * 2**level)
            row = [fine[:, :: 2**level]]
            for column in range(level):
                weight = 4.0 ** (column + 1)
                row.append((weight * row[column] - table[-1][column]) / (weight - 1.0))
            table.append(row)
        time, risk, regularised = table[-1][-1]
        # The time is exact; risks are positive unless nothing is left to lose.
        best, other = table[-1][-1][1:], table[-1][-2][1:]
        change = np.abs(best - other)
        if extrapolations > 1:
            # Beside a jump of the rate the rule has order 1, and extrapolation hides its error.
            before, last = np.abs(np.diff([row[0][1:] for row in table[-3:]], axis=0))
            change = np.where(before < LEAST_GAIN * last, np.maximum(change, last), change)
        error = float(np.max(np.divide(change, np.abs(best), out=change, where=change > 0)))
    for part in (time, risk, regularised):
        require_answer("problem, schedule and horizon", part)
    warn_beyond("risk", error=error, tolerance=rtol)
    return VolterraRisk(time, risk, regularised, error)


def _trapezoid(
    problem: RidgeRegression,
    schedule: RateWithIntegral,
    gradient_noise_std: float,
    horizon: float,
    intervals: int,
) -> NDArray[np.float64]:
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


def _convolve(
    kernel: NDArray[np.float64], source: NDArray[np.float64], step: float
) -> NDArray[np.float64]:
    """Trapezoid rule for the convolution of two functions on a uniform grid."""
    size = kernel.size
    length = 2 * size
    full = np.fft.irfft(np.fft.rfft(kernel, length) * np.fft.rfft(source, length), length)[:size]
    result = step * (full - 0.5 * (kernel * source[0] + kernel[0] * source))
    result[0] = 0.0
    return result


def _inverse_integral(
    schedule: RateWithIntegral, integral: NDArray[np.float64], horizon: float
) -> NDArray[np.float64]:
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
