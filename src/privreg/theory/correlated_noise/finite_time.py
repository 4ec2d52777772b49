"""Excess risk of Noisy-FTRL for linear regression after each of its steps, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    require_array,
    require_count,
    require_number,
    require_scales,
)

# A smaller share is 0: subnormal numbers make some processors many times slower.
NEGLIGIBLE_SHARE = 1e-280
CHECKED_EVERY = 256  # steps


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """Excess risk of the iterates θ_0, ..., θ_T, and what causes it.

    Attributes
    ----------
    initial : ndarray, shape (steps + 1,)
        What is left of the start's error; 0 once that is less than a share of 1e-280.
    private, label : ndarray, shape (steps + 1,)
        From private noise of standard deviation 1 at its white source, and from label noise of
        standard deviation 1; multiply by the variances.
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
    r"""Excess risk at every step in O(steps × d), for any Toeplitz correlation.

    .. math::
        s_j(t+1) = (1-2\eta\lambda_j+2\eta^2\lambda_j^2)\,s_j(t)
        + \eta^2\lambda_j\Big(\sum_i\lambda_is_i(t)+\zeta^2\Big) + \eta^2\sigma^2c_j(t),\qquad
        c_j(t) = \sum_{\tau,k\le t}\beta_\tau\beta_k(1-\eta\lambda_j)^{|\tau-k|}

    with :math:`c_j(t) = c_j(t-1) + \beta_t^2 + 2\beta_tp_j(t)` and
    :math:`p_j(t) = (1-\eta\lambda_j)(p_j(t-1)+\beta_{t-1})`.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance, at least 0.
    step_size : float
        η, at least 1e-100: heavy noise leaves minute steps. An unstable one gives growing errors,
        refused where one overflows.
    coefficients : array_like, shape (at most steps,)
        Decoder β from `privreg.noise.toeplitz`; what is missing, or below a share of 1e-280 of
        the largest, is 0.
    steps : int
        T.
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
    values = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=MOST)
    eta = require_number("step_size", step_size, least=1e-100, most=MOST)
    count = require_count("steps", steps)
    given = require_array("coefficients", coefficients, shape=(None,), least=-MOST, most=MOST)
    if given.size > count:
        raise ValueError(f"coefficients must be at most steps, {count}, got {given.size}")
    start = np.zeros(values.size) if initial_error is None else initial_error
    error = require_array("initial_error", start, shape=values.shape, least=-MOST, most=MOST)
    decoder = np.zeros(count)
    sizes = np.abs(given)
    least = NEGLIGIBLE_SHARE * sizes.max()
    decoder[: sizes.size] = np.where(sizes < least, 0.0, given)
    parts = _second_moments(values, eta, eta**2, decoder, error**2, least)
    if not np.all(np.isfinite(parts)):
        first = int(np.argmin(np.all(np.isfinite(parts), axis=0)))
        raise ValueError(
            f"step_size must be small enough for the error to stay finite, got {eta}: "
            f"it overflows at step {first}"
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
    """Half of q for the start's error, for unit private noise and for unit label noise.

    Private noise has the variance `drive`, η²; its memory is dropped below `least`.
    """
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
