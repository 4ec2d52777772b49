r"""Cost of private noise to the average iterate when gradients are replaced by their means.

With mean gradients H(w - w*) the iterates are linear in the noise, direction by direction, and the
excess risk that the noise adds to :math:`\bar w_N = \frac1N\sum_{t<N} w_t` is

.. math:: P = \frac{\sigma^2}{2}\sum_i\lambda_i\Sigma_{ii}\Big(\frac\eta N\Big)^2 V(\eta\lambda_i)

where V counts how often, and with what weight, a unit of white noise enters the average. The paper
bounds P as if the noise of different steps were independent; the three factors here are exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privreg.units import ORDINARY, from_units, in_units
from privreg.validation import (
    FloatArray,
    require_array,
    require_count,
    require_number,
    require_real,
)


def tree_factor(shrinkage: ArrayLike, *, sample_size: int) -> FloatArray:
    r"""V of tree aggregation, between 0 and about N² log₂ N, in O(log N) by sums of positive terms.

    .. math:: V_N = \sum_{\text{nodes}}\Big(\sum_{t\in\text{use}}\rho^{N-1-t}\Big)^2,
        \qquad \rho = 1 - \eta\lambda

    where the left child of height j and number b is in use for the prefixes of
    t ∈ [2^j (2b+1), 2^(j+1) (b+1) - 1] steps, as far as t < N.

    Parameters
    ----------
    shrinkage : array_like, shape (...)
        ηλ in [0, 1]; may be empty.
    sample_size : int
        N.

    Examples
    --------
    >>> tree_factor(0.0, sample_size=16)
    array(120.)

    Source
    ------
    anon2024, Algorithm 3 (derived); N (N - 1) / 2 at ηλ = 0 for a power of two.
    """
    x = require_real("shrinkage", shrinkage, least=0, most=1)
    size = require_count("sample_size", sample_size)
    total = np.zeros(x.shape)
    for height in range((size - 1).bit_length()):
        span = 1 << height
        complete = size >> (height + 1)
        left = size - complete * 2 * span
        # The youngest complete pair of siblings ends `left` steps before N; older ones 2·span more.
        weight = _power(x, left) * _geometric_sum(x, span)
        total += weight**2 * _power_sum(x, complete, stride=4 * span)
        if left > span:
            total += _geometric_sum(x, left - span) ** 2
    return total


def independent_factor(shrinkage: ArrayLike, *, sample_size: int) -> FloatArray:
    r"""V of noise that is independent from step to step, as in DP-SGD.

    .. math:: V = \sum_{k=1}^{N-1}\Big(\frac{1-\rho^k}{1-\rho}\Big)^2, \qquad \rho = 1 - \eta\lambda

    Found in O(log N) by doubling sums of positive terms: the closed form cancels where Nηλ is
    small.

    Parameters
    ----------
    shrinkage, sample_size
        As in `tree_factor`.

    Examples
    --------
    >>> independent_factor([0.0, 1.0], sample_size=4)
    array([14.,  3.])
    """
    x = require_real("shrinkage", shrinkage, least=0, most=1)
    steps = require_count("sample_size", sample_size) - 1
    # Of the first n terms g_k = (1 - ρ^k)/(1 - ρ): their sum and the sum of their squares. The
    # last one and ρ^n are taken anew: products of a rounded ρ would drift over many steps.
    first, second = np.zeros((2, *x.shape))
    count = 0
    for digit in f"{steps:b}":
        last, power = _geometric_sum(x, count), _power(x, count)
        second = second + count * last**2 + 2 * last * power * first + power**2 * second
        first = first + count * last + power * first
        count *= 2
        if digit == "1":
            count += 1
            last = _geometric_sum(x, count)
            first, second = first + last, second + last**2
    return second


def toeplitz_factor(shrinkage: ArrayLike, *, decoder: ArrayLike, sample_size: int) -> FloatArray:
    r"""V of noise that a lower-triangular Toeplitz matrix correlates, in units of the white noise.

    .. math:: V = \sum_{m=1}^{N-1}\Big(\sum_{k=1}^{m}\beta_{m-k}\frac{1-\rho^k}{1-\rho}\Big)^2

    The noise multiplier that keeps a budget grows with the encoder's sensitivity.

    Parameters
    ----------
    shrinkage, sample_size
        As in `tree_factor`.
    decoder : array_like, shape (steps,)
        β of `privreg.noise.toeplitz`, N - 1 coefficients or more, at least -1e50 and at most 1e50;
        1, 0, 0, ... is `independent_factor`.

    Source
    ------
    choquettechoo2024, equation (13), for the average of anon2024, Algorithm 1 (derived).
    """
    x = require_real("shrinkage", shrinkage, least=0, most=1)
    steps = require_count("sample_size", sample_size) - 1
    beta = require_array("decoder", decoder, shape=(None,), least=-1e50, most=1e50)
    if beta.size < steps:
        raise ValueError(f"decoder must have at least {steps} coefficients, got {beta.size}")
    beta, unit = in_units(beta[:steps])
    total, current = np.zeros(x.shape), np.zeros(x.shape)
    for prefix in np.cumsum(beta):
        current = (1 - x) * current + prefix
        total += current**2
    return from_units(total, 2 * unit)


def privacy_error(
    factor: ArrayLike,
    *,
    eigenvalues: ArrayLike,
    covariance: ArrayLike,
    step_size: float,
    sample_size: int,
    noise_std: float,
) -> float:
    """Excess risk that the noise adds to the average iterate, the module's P.

    Parameters
    ----------
    factor : array_like, shape (d,)
        V(ηλ_i) of the noise's correlation in time, at least 0 and at most 1e50.
    eigenvalues : array_like, shape (d,)
        λ, at least 0 and at most 1e50.
    covariance : array_like, shape (d,)
        Σ_ii in H's eigenbasis, at least 0 and at most 1e50; only the diagonal enters.
    step_size : float
        η, more than 0 and at most 1e30.
    sample_size : int
        N.
    noise_std : float
        σ: standard deviation of the white noise in the norm of Σ, noise multiplier times clip norm;
        at least 0 and at most 1e30.
    """
    within = {"least": 0.0, "most": 1e50}
    lam = require_array("eigenvalues", eigenvalues, shape=(None,), **within)
    shape = require_array("covariance", covariance, shape=lam.shape, **within)
    weight = require_array("factor", factor, shape=lam.shape, **within)
    eta = require_number("step_size", step_size, above=0, most=1e30)
    size = require_count("sample_size", sample_size)
    std = require_number("noise_std", noise_std, least=0, most=1e30)
    scale, total = std * eta / size, float(np.sum(lam * shape * weight))
    if all(ORDINARY[0] <= part <= ORDINARY[1] for part in (scale, total)):
        return 0.5 * scale**2 * total
    # Mantissas and exponents apart: products of three numbers may round to 0.
    parts, exponents = np.frexp([lam, shape, weight])
    (std, std_unit), (eta, eta_unit) = np.frexp(std), np.frexp(eta)
    products, powers = parts.prod(axis=0), exponents.sum(axis=0)
    largest = int(np.max(powers[products > 0], initial=np.min(powers)))
    total = float(np.sum(np.ldexp(products, powers - largest)))
    unit = largest + 2 * int(std_unit + eta_unit)
    return float(from_units(0.5 * (std * eta / size) ** 2 * total, unit))


def _log_contraction(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log1p(-x)


def _power(x: FloatArray, count: int) -> FloatArray:
    """(1 - x)^count."""
    return np.ones_like(x) if count == 0 else np.exp(count * _log_contraction(x))


def _geometric_sum(x: FloatArray, count: int) -> FloatArray:
    """Sum of (1 - x)^k over k < count, without cancellation at small x."""
    if count == 0:
        return np.zeros_like(x)
    numerator = -np.expm1(count * _log_contraction(x))
    return np.divide(numerator, x, out=np.full_like(x, count), where=x > 0)


def _power_sum(x: FloatArray, count: int, *, stride: int) -> FloatArray:
    """Sum of (1 - x)^(stride k) over k < count."""
    if count == 0:
        return np.zeros_like(x)
    log = stride * _log_contraction(x)
    return np.divide(np.expm1(count * log), np.expm1(log), out=np.full_like(x, count), where=x > 0)
