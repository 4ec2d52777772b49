"""Excess risk of Noisy-FTRL after a given number of steps, and the best step size.

The noise is calibrated to the sensitivity over the steps that are run. Nothing is clipped:
gradients are assumed to have norm at most `clip_norm`, as in the event of the paper's Section 2.3.
The paper's step sizes need impractically many steps; these curves hold for any number of steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    require_array,
    require_count,
    require_scale,
    require_scales,
)
from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.theory.correlated_noise.stationary import checked_eigenvalues, stability_limit

# A smaller share is 0: subnormal numbers make some processors many times slower.
NEGLIGIBLE_SHARE = 1e-280
CHECKED_EVERY = 256  # steps
GRID = 25  # step sizes of a first look


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Excess risk of the iterates θ_0, ..., θ_T, split by source.

    Attributes
    ----------
    initial : ndarray, shape (steps + 1,)
        Part due to the start's error; set to 0 once it is less than 1e-280 of its first value.
    private, label : ndarray, shape (steps + 1,)
        Parts due to private noise (with white noise w of standard deviation 1) and to label noise
        of standard deviation 1. Multiply each part by the true variance.
    """

    initial: FloatArray
    private: FloatArray
    label: FloatArray

    def excess_risk(self, *, gradient_noise_std: float, label_noise_std: float = 0.0) -> FloatArray:
        """Excess risk F(θ_t) - F(θ*), the sum of the three parts, shape (steps + 1,)."""
        sigma, zeta = require_scales(
            zero=True, gradient_noise_std=gradient_noise_std, label_noise_std=label_noise_std
        )
        return self.initial + (sigma**2 * self.private + zeta**2 * self.label)


def error_curve(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    coefficients: ArrayLike,
    steps: int,
    initial_error: ArrayLike | None = None,
) -> ErrorCurve:
    r"""Excess risk at every step for any Toeplitz correlation, in O(steps × d) operations.

    .. math::
        s_j(t+1) = (1-2\eta\lambda_j+2\eta^2\lambda_j^2)\,s_j(t)
        + \eta^2\lambda_j\Big(\sum_i\lambda_is_i(t)+\zeta^2\Big) + \eta^2\sigma^2c_j(t),\qquad
        c_j(t) = \sum_{\tau,k\le t}\beta_\tau\beta_k(1-\eta\lambda_j)^{|\tau-k|}

    where s_j is the mean squared error along eigenvector j, σ and ζ are the standard deviations of
    private and label noise, :math:`c_j(t) = c_j(t-1) + \beta_t^2 + 2\beta_tp_j(t)` and
    :math:`p_j(t) = (1-\eta\lambda_j)(p_j(t-1)+\beta_{t-1})`.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance, at least 0.
    step_size : float
        η. If η is unstable, errors grow; η is refused if they overflow.
    coefficients : array_like, shape (at most steps,)
        Decoder β of `noise.toeplitz`. Entries missing or below 1e-280 of the largest count as 0.
    steps : int
        Number T of steps.
    initial_error : array_like, shape (d,), optional
        θ_0 - θ* in the eigenbasis; 0 by default.

    Examples
    --------
    >>> curve = error_curve([1.0], step_size=0.5, coefficients=[1.0], steps=2, initial_error=[1.0])
    >>> curve.initial, curve.private
    (array([0.5    , 0.375  , 0.28125]), array([0.     , 0.125  , 0.21875]))

    Source
    ------
    choquettechoo2024, equation (83), with Gaussian fourth moments.
    """
    values = checked_eigenvalues(eigenvalues, least=0)
    start = np.zeros(values.size) if initial_error is None else initial_error
    count, error = _run(values, steps, start)
    eta = require_scale("step_size", step_size)
    given = require_array("coefficients", coefficients, shape=(None,), least=-MOST, most=MOST)
    if given.size > count:
        raise ValueError(f"coefficients must have at most {count} entries, got {given.size}")
    return _curve(values, eta, given, count, error)


class TunedRun(NamedTuple):
    """Best step size found (0 if no step improves on the start), and the final excess risk."""

    step_size: float
    excess_risk: float


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
    """Find the step size with the least excess risk of the last iterate.

    A geometric grid runs from 0.001/(λ_d steps), λ_d the least λ, to the stability limit. Golden
    section between the neighbours of the best step size refines it to 0.1 %. If the smallest step
    size is best, as under heavy noise, smaller ones are tried until the risk equals the start's.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance.
    steps : int
        Number of steps.
    correlations : callable
        `independent_noise`, or the result of `damped_noise`.
    noise_multiplier, clip_norm, label_noise_std : float
        Noise's standard deviation divided by the sensitivity, 1/√(2ρ) for ρ-zCDP; largest change of
        a gradient by one record; and standard deviation of the label noise. Each may be 0.
    initial_error : array_like, shape (d,)
        θ_0 - θ* in the eigenbasis.

    Source
    ------
    choquettechoo2024, Section 2.3 and Corollaries D.14 and D.15, which bound this risk.
    """
    highest = 0.999 * stability_limit(eigenvalues)
    values = np.ascontiguousarray(eigenvalues, dtype=float)
    count, error = _run(values, steps, initial_error)
    multiplier, norm, zeta = require_scales(
        zero=True,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        label_noise_std=label_noise_std,
    )
    lowest = min(1e-3 / (float(values.min()) * count), 1e-3 * highest)

    def risk(logarithm: float) -> float:
        return final_excess_risk(
            values,
            step_size=float(np.exp(logarithm)),
            steps=count,
            correlations=correlations,
            noise_multiplier=multiplier,
            clip_norm=norm,
            initial_error=error,
            label_noise_std=zeta,
        )

    points = np.linspace(np.log(lowest), np.log(highest), GRID)
    risks = np.array([risk(point) for point in points])
    idle = 0.5 * float(values @ error**2)
    # Small steps change the risk by next to nothing at last, the first part of it for the better.
    while np.argmin(risks) == 0 and abs(risks[0] - idle) > 1e-13 * idle > 0:
        points = np.concatenate([[2 * points[0] - points[1]], points])
        risks = np.concatenate([[risk(points[0])], risks])
    best = int(np.argmin(risks))
    low, high = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
    found = _golden_section(risk, float(low), float(high))
    value, logarithm = min((float(risks[best]), float(points[best])), (risk(found), found))
    if idle <= value:
        return TunedRun(step_size=0.0, excess_risk=idle)
    return TunedRun(step_size=float(np.exp(logarithm)), excess_risk=value)


class Correlation(NamedTuple):
    """Decoder coefficients, shape (at most steps,), and the squared sensitivity of the encoder."""

    coefficients: FloatArray
    squared_sensitivity: float


# From a number of steps and a step size.
Correlations = Callable[[int, float], Correlation]


def independent_noise(steps: int, step_size: float) -> Correlation:
    """Independent noise for any number of steps: DP-SGD."""
    return Correlation(np.ones(1), 1.0)


def damped_noise(damping_rate: float) -> Correlations:
    """Function (steps, step size η) -> `Correlation` of ν-FTRL, damped by ν = min(1, ηr).

    Parameters
    ----------
    damping_rate : float
        r, at least 0; the paper takes the least eigenvalue λ_d.
    """

    def correlation(steps: int, step_size: float) -> Correlation:
        damping = min(step_size * damping_rate, 1.0)
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
    """Excess risk after the last step, with noise calibrated to the sensitivity over all steps."""
    coefficients, squared = correlations(steps, step_size)
    curve = _curve(eigenvalues, step_size, coefficients, steps, initial_error)
    std = noise_multiplier * clip_norm * squared**0.5
    noise = std**2 * curve.private[-1] + label_noise_std**2 * curve.label[-1]
    return float(curve.initial[-1] + noise)


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    share = (5**0.5 - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-3:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = function(right)
    return 0.5 * (low + high)


def _run(values: FloatArray, steps: int, initial_error: ArrayLike) -> tuple[int, FloatArray]:
    error = require_array(
        "initial_error", initial_error, shape=values.shape, least=-MOST, most=MOST
    )
    return require_count("steps", steps), error


def _curve(
    values: FloatArray, eta: float, coefficients: FloatArray, steps: int, error: FloatArray
) -> ErrorCurve:
    """Curve of checked arguments; the step may be smaller than users may set it."""
    decoder = np.zeros(steps)
    sizes = np.abs(coefficients)
    least = NEGLIGIBLE_SHARE * sizes.max()
    decoder[: sizes.size] = np.where(sizes < least, 0.0, coefficients)
    parts = _second_moments(values, eta, eta**2, decoder, error**2, least)
    if not np.all(np.isfinite(parts)):
        first = int(np.argmin(np.all(np.isfinite(parts), axis=0)))
        limit = stability_limit(np.maximum(values, LEAST))
        raise ValueError(
            f"step_size must be less than {limit:.4g} for the error to stay finite, got {eta}: "
            f"the error overflows at step {first}"
        )
    return ErrorCurve(*parts)


@njit(nogil=True, cache=True, error_model="numpy")
def _second_moments(
    values: FloatArray,
    eta: float,
    drive: float,
    decoder: FloatArray,
    start: FloatArray,
    least: float,
) -> FloatArray:
    """Half of q from the start's error, private noise of variance `drive`, unit label noise."""
    steps, d = decoder.size, values.size
    halves = np.zeros((3, steps + 1))
    moments = np.zeros((d, 3))
    contraction, decay, own = np.empty(d), np.empty(d), np.empty(d)
    memory, power = np.zeros(d), np.zeros(d)
    q0, q1, q2 = 0.0, 0.0, 0.0
    for j in range(d):
        rate = eta * values[j]
        contraction[j] = 1.0 - rate
        decay[j] = 1.0 - 2.0 * rate + 2.0 * rate * rate
        own[j] = eta * rate
        moments[j, 0] = start[j]
        q0 += values[j] * start[j]
    halves[0, 0] = 0.5 * q0
    at_start, previous = q0, 0.0
    for step in range(steps):
        if step % CHECKED_EVERY == 0:
            for j in range(d):
                if abs(memory[j]) < least:
                    memory[j] = 0.0
            if q0 < NEGLIGIBLE_SHARE * at_start:
                q0 = 0.0
                moments[:, 0] = 0.0
        beta = decoder[step]
        new0, new1, new2 = 0.0, 0.0, 0.0
        for j in range(d):
            memory[j] = contraction[j] * (memory[j] + previous)
            power[j] += beta * (beta + 2.0 * memory[j])
            moments[j, 0] = decay[j] * moments[j, 0] + own[j] * q0
            moments[j, 1] = decay[j] * moments[j, 1] + own[j] * q1 + drive * power[j]
            moments[j, 2] = decay[j] * moments[j, 2] + own[j] * (q2 + 1.0)
            new0 += values[j] * moments[j, 0]
            new1 += values[j] * moments[j, 1]
            new2 += values[j] * moments[j, 2]
        q0, q1, q2 = new0, new1, new2
        halves[0, step + 1], halves[1, step + 1] = 0.5 * q0, 0.5 * q1
        halves[2, step + 1] = 0.5 * q2
        previous = beta
    return halves
