"""Best excess risk after a given number of steps, by tuning the step size on the exact curves.

The noise is calibrated to the sensitivity of the steps that are run, and nothing is clipped: a
record's gradient is taken to have norm at most `clip_norm`, as on the event of the paper's Section
2.3. Its printed step sizes need numbers of steps that no one runs; the curves always hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.theory.correlated_noise.error_curves import error_curve
from privreg.theory.correlated_noise.linear_regression import stability_limit
from privreg.units import from_units, in_units
from privreg.validation import require_array, require_callable, require_count, require_number

FloatArray = NDArray[np.float64]
GRID = 25  # step sizes of a first look
WITHIN = {"least": -1e50, "most": 1e50}


class Correlation(NamedTuple):
    """Decoder coefficients, shape (at most steps,), and the squared sensitivity of its inverse."""

    coefficients: FloatArray
    squared_sensitivity: float


Correlations = Callable[[int, float], Correlation]


class TunedRun(NamedTuple):
    """The best step size found, 0 where no step beats the start, and its final excess risk."""

    step_size: float
    excess_risk: float


def independent_noise(steps: int, step_size: float) -> Correlation:
    """Independent noise whatever the steps: DP-SGD."""
    require_count("steps", steps)
    require_number("step_size", step_size, above=0)
    return Correlation(np.ones(1), 1.0)


def damped_noise(damping_rate: float) -> Correlations:
    r"""Correlation of ν-FTRL with :math:`\nu=\min(1,\eta\,r)` as a function of steps and step size.

    Parameters
    ----------
    damping_rate : float
        r, at least 0; the paper takes λ_d.
    """
    rate = require_number("damping_rate", damping_rate, least=0)

    def correlation(steps: int, step_size: float) -> Correlation:
        damping = min(1.0, step_size * rate)
        encoder = damped_square_root_encoder(steps, damping=damping)
        return Correlation(damped_square_root(steps, damping=damping), float(encoder @ encoder))

    return correlation


def final_excess_risk(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    steps: int,
    correlations: Correlations,
    noise_multiplier: float,
    clip_norm: float,
    initial_error: ArrayLike,
    label_noise_std: float = 0.0,
) -> float:
    """Excess risk after the last step, with noise for the sensitivity of all of them."""
    multiplier = require_number("noise_multiplier", noise_multiplier, least=0, most=1e40)
    norm = require_number("clip_norm", clip_norm, above=0, most=1e40)
    require_callable("correlations", correlations)
    eta = require_number("step_size", step_size, above=0)
    error = require_array("initial_error", initial_error, shape=(None,), **WITHIN)
    coefficients, squared = correlations(require_count("steps", steps), eta)
    require_number("correlations", squared, above=0, most=1e40)
    curve = error_curve(
        eigenvalues,
        step_size=step_size,
        coefficients=coefficients,
        steps=steps,
        initial_error=error,
    )
    risk = curve.excess_risk(
        gradient_noise_std=multiplier * norm * squared**0.5, label_noise_std=label_noise_std
    )
    return float(risk[-1])


def tune_step_size(
    eigenvalues: ArrayLike,
    *,
    steps: int,
    correlations: Correlations,
    noise_multiplier: float,
    clip_norm: float,
    initial_error: ArrayLike,
    label_noise_std: float = 0.0,
) -> TunedRun:
    """The step size whose last iterate has the least excess risk.

    The best of a geometric grid from a thousandth of 1/(λ_d steps) up to the stability limit,
    refined by golden section between its neighbours to 0.1 %. Where the least step is the best, as
    under heavy noise, the grid goes on below it until the risk is that of the start.

    Parameters
    ----------
    eigenvalues, steps
        As for `error_curve`.
    correlations : callable
        `independent_noise`, or what `damped_noise` returns.
    noise_multiplier : float
        Noise standard deviation over the sensitivity, 1/√(2ρ); at least 0 and at most 1e40.
    clip_norm : float
        How far one record moves a gradient, more than 0 and at most 1e40.
    initial_error : array_like, shape (d,)
        θ_0 - θ* in the eigenbasis, at least -1e50 and at most 1e50.
    label_noise_std : float
        At least 0 and at most 1e100.

    Source
    ------
    choquettechoo2024, Section 2.3 and Corollaries D.14 and D.15, which bound this.
    """
    values = require_array("eigenvalues", eigenvalues, shape=(None,))
    error = require_array("initial_error", initial_error, shape=values.shape, **WITHIN)
    count = require_count("steps", steps)
    highest = 0.999 * stability_limit(values)
    lowest = min(1e-3 / (float(values.min()) * count), 1e-3 * highest)

    def risk(logarithm: float) -> float:
        return final_excess_risk(
            values,
            step_size=float(np.exp(logarithm)),
            steps=count,
            correlations=correlations,
            noise_multiplier=noise_multiplier,
            clip_norm=clip_norm,
            initial_error=initial_error,
            label_noise_std=label_noise_std,
        )

    points = np.linspace(np.log(lowest), np.log(highest), GRID)
    risks = np.array([risk(point) for point in points])
    scaled, unit = in_units(error)
    idle = float(from_units(0.5 * float(values @ scaled**2), 2 * unit))
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
