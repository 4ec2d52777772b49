"""Best excess risk after a given number of steps, by tuning the step size on the exact curves.

The noise is calibrated to the sensitivity of the steps that are run, and nothing is clipped: a
record's gradient is taken to have norm at most `clip_norm`, as on the event of Section 2.3. The
printed step sizes need numbers of steps that no one runs; the curves always hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from privreg.checks import FloatArray
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.theory.correlated_noise.finite_time import error_curve
from privreg.theory.correlated_noise.stationary import stability_limit

GRID = 25  # step sizes of a first look


class Correlation(NamedTuple):
    """Decoder coefficients, shape (at most steps,), and the squared sensitivity of its inverse."""

    coefficients: FloatArray
    squared_sensitivity: float


# From a number of steps and a step size.
Correlations = Callable[[int, float], Correlation]


class TunedRun(NamedTuple):
    """The best step size found, 0 where no step beats the start, and its final excess risk."""

    step_size: float
    excess_risk: float


def independent_noise(steps: int, step_size: float) -> Correlation:
    """Independent noise whatever the steps: DP-SGD."""
    return Correlation(np.ones(1), 1.0)


def damped_noise(damping_rate: float) -> Correlations:
    r"""Correlation of ν-FTRL with :math:`\nu=\min(1,\eta\,r)`; the paper takes r = λ_d."""

    def correlation(steps: int, step_size: float) -> Correlation:
        damping = min(1.0, step_size * damping_rate)
        encoder = damped_square_root_encoder(steps, damping=damping)
        return Correlation(damped_square_root(steps, damping=damping), float(encoder @ encoder))

    return correlation


def final_excess_risk(
    eigenvalues: FloatArray,
    *,
    step_size: float,
    steps: int,
    correlations: Correlations,
    noise_multiplier: float,
    clip_norm: float,
    initial_error: FloatArray,
    label_noise_std: float = 0.0,
) -> float:
    """Excess risk after the last step, with noise for the sensitivity of all of them."""
    coefficients, squared = correlations(steps, step_size)
    curve = error_curve(
        eigenvalues,
        step_size=step_size,
        coefficients=coefficients,
        steps=steps,
        initial_error=initial_error,
    )
    std = noise_multiplier * clip_norm * squared**0.5
    noise = std**2 * curve.private[-1] + label_noise_std**2 * curve.label[-1]
    return float(curve.initial[-1] + noise)


def tune_step_size(
    eigenvalues: FloatArray,
    *,
    steps: int,
    correlations: Correlations,
    noise_multiplier: float,
    clip_norm: float,
    initial_error: FloatArray,
    label_noise_std: float = 0.0,
) -> TunedRun:
    """The step size whose last iterate has the least excess risk; Corollaries D.14, D.15 bound it.

    The best of a geometric grid from a thousandth of 1/(λ_d steps) up to the stability limit,
    refined by golden section between its neighbours to 0.1 %. Where the least step is the best, as
    under heavy noise, the grid goes on below it until the risk is that of the start.

    The noise multiplier is the noise over the sensitivity, 1/√(2ρ), the clip norm how far one
    record moves a gradient, and the initial error θ_0 - θ* in the eigenbasis.
    """
    highest = 0.999 * stability_limit(eigenvalues)
    lowest = min(1e-3 / (float(eigenvalues.min()) * steps), 1e-3 * highest)

    def risk(logarithm: float) -> float:
        return final_excess_risk(
            eigenvalues,
            step_size=float(np.exp(logarithm)),
            steps=steps,
            correlations=correlations,
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            initial_error=initial_error,
            label_noise_std=label_noise_std,
        )

    points = np.linspace(np.log(lowest), np.log(highest), GRID)
    risks = np.array([risk(point) for point in points])
    idle = 0.5 * float(eigenvalues @ initial_error**2)
    # Small steps change the risk by next to nothing at last, the first part of it for the better.
    while np.argmin(risks) == 0 and abs(risks[0] - idle) > 1e-13 * idle > 0:
        points = np.concatenate([[2 * points[0] - points[1]], points])
        risks = np.concatenate([[risk(points[0])], risks])
    best = int(np.argmin(risks))
    low, high = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
    found = _golden_section(risk, float(low), float(high), tolerance=1e-3)
    value, logarithm = min((float(risks[best]), float(points[best])), (risk(found), found))
    if idle <= value:
        return TunedRun(step_size=0.0, excess_risk=idle)
    return TunedRun(step_size=float(np.exp(logarithm)), excess_risk=value)


def _golden_section(
    function: Callable[[float], float], low: float, high: float, *, tolerance: float
) -> float:
    share = (5**0.5 - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > tolerance:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)
