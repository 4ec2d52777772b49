r"""Excess risk of one-pass SGD's average iterate, and what shaped private noise adds to it.

With mean gradients H(w - w*) the iterates are linear in the noise, direction by direction, and the
excess risk that the noise adds to :math:`\bar w_N = \frac1N\sum_{t<N} w_t` is

.. math:: P = \frac{\sigma^2}{2}\sum_i\lambda_i\Sigma_{ii}\Big(\frac\eta N\Big)^2 V(\eta\lambda_i)

where V counts how often, and with what weight, a unit of white noise enters the average. The paper
bounds P as if the noise of different steps were independent; the three factors here are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    require_array,
    require_count,
    require_real,
    require_scale,
)


class RiskParts(NamedTuple):
    """Mean excess risk of the average iterate by its causes, and their sum."""

    bias: float
    label_noise: float

    @property
    def total(self) -> float:
        return self.bias + self.label_noise


def sgd_risk(
    eigenvalues: ArrayLike,
    *,
    target: ArrayLike,
    label_noise_std: float,
    step_size: float,
    sample_size: int,
) -> RiskParts:
    r"""Mean excess risk of the average of one-pass SGD's first N iterates, without private noise.

    .. math:: \frac1{2N^2}\sum_i\lambda_i\sum_{t<N} m_{t,i}\Big(1 + 2\sum_{k=1}^{N-1-t}\rho_i^k\Big)

    Infinite where the second moment overflows because the step is too large.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        λ of the features' covariance, at least 0.
    target : array_like, shape (d,)
        w* in the eigenbasis; the start is 0.
    label_noise_std : float
        σ_ζ; may be 0.
    step_size : float
        η.
    sample_size : int
        N.

    Source
    ------
    anon2024, Lemma B.6 with equality, for Gaussian features.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    offset = require_array("target", target, shape=lam.shape, least=-MOST, most=MOST)
    zeta = require_scale("label_noise_std", label_noise_std, zero=True)
    moments = np.stack([offset**2, np.zeros_like(lam)])
    # Label noise of deviation 1.
    source = np.stack([np.zeros_like(lam), eta**2 * lam])
    # E[S_t u_t] of the partial sums S_t, and E[S_t²], by direction.
    cross, squares = moments.copy(), moments.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(1, size):
            shrunk = (1 - 2 * eta * lam + 2 * (eta * lam) ** 2) * moments
            moments = shrunk + eta**2 * lam * (moments @ lam)[..., None] + source
            cross = (1 - eta * lam) * cross + moments
            squares += 2 * cross - moments
        bias, label = squares @ lam / (2 * size**2)
        bias, label = _finite_or_infinite(np.array([bias, zeta**2 * float(label)]))
    return RiskParts(float(bias), float(label))


def private_risk(
    eigenvalues: ArrayLike,
    *,
    covariance: ArrayLike,
    noise_std: float,
    step_size: float,
    sample_size: int,
    decoder: ArrayLike | None = None,
) -> float:
    """Mean excess risk that shaped private noise adds to the average, gradients unclipped.

    Infinite where the second moment overflows.

    Parameters
    ----------
    eigenvalues, step_size, sample_size
        As in `sgd_risk`.
    covariance : array_like, shape (d,)
        Σ_ii in the eigenbasis, at least 0; only the diagonal enters.
    noise_std : float
        σ, noise multiplier times clip norm; may be 0.
    decoder : array_like, shape (steps,), optional
        β of Toeplitz-correlated noise, as in `toeplitz_factor`. The tree by default.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    shape, std = _noise(lam, covariance, noise_std)
    beta = None if decoder is None else _decoder(decoder, size - 1)
    if std == 0:
        return 0.0
    if beta is not None:
        total = float(np.sum(_finite_or_infinite(_impulse_risks(lam, shape, eta, beta))))
    else:
        total = 0.0
        for height in range((size - 1).bit_length()):
            span = 1 << height
            entries = np.arange(span, size, 2 * span)
            # Added on entry, taken back `span` steps later.
            kicks = np.zeros(size - span)
            kicks[:1], kicks[span : span + 1] = 1.0, -1.0
            risks = _finite_or_infinite(_impulse_risks(lam, shape, eta, kicks))
            total += float(np.sum(risks[size - entries - 1]))
    return std**2 * total / size**2


def _setting(
    eigenvalues: ArrayLike, step_size: float, sample_size: int
) -> tuple[FloatArray, float, int]:
    lam = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=MOST)
    return lam, require_scale("step_size", step_size), require_count("sample_size", sample_size)


def _noise(lam: FloatArray, covariance: ArrayLike, noise_std: float) -> tuple[FloatArray, float]:
    shape = require_array("covariance", covariance, shape=lam.shape, least=0, most=MOST)
    return shape, require_scale("noise_std", noise_std, zero=True)


def _decoder(decoder: ArrayLike, steps: int) -> FloatArray:
    beta = require_array("decoder", decoder, shape=(None,), least=-MOST, most=MOST)
    if beta.size < steps:
        raise ValueError(f"decoder must have at least {steps} coefficients, got {beta.size}")
    return beta[:steps]


@njit(nogil=True, cache=True, error_model="numpy")
def _impulse_risks(lam: FloatArray, shape: FloatArray, eta: float, kicks: FloatArray) -> FloatArray:
    """½ λᵀE[S²] of the sum S of the first L iterates after z entered, for L from 1.

    z of covariance diag(shape) is added -ηβ_l times in step l, where β are the kicks.
    """
    d = lam.size
    risks = np.zeros(kicks.size)
    # Second moments of u_l with itself, with z, and of the sum S_l with u_l, z and itself.
    moments, with_kick, sum_with_kick = np.zeros(d), np.zeros(d), np.zeros(d)
    cross, squares = np.zeros(d), np.zeros(d)
    contraction, decay, coupling = np.empty(d), np.empty(d), np.empty(d)
    for i in range(d):
        rate = eta * lam[i]
        contraction[i] = 1.0 - rate
        decay[i] = 1.0 - 2.0 * rate + 2.0 * rate**2
        coupling[i] = eta * rate
    for step in range(kicks.size):
        moved = -eta * kicks[step]
        total = 0.0
        for i in range(d):
            total += lam[i] * moments[i]
        risk = 0.0
        for i in range(d):
            moment = decay[i] * moments[i] + coupling[i] * total
            moment += 2.0 * moved * contraction[i] * with_kick[i] + moved**2 * shape[i]
            moments[i] = moment
            cross[i] = contraction[i] * cross[i] + moved * sum_with_kick[i] + moment
            with_kick[i] = contraction[i] * with_kick[i] + moved * shape[i]
            squares[i] += 2.0 * cross[i] - moment
            sum_with_kick[i] += with_kick[i]
            risk += lam[i] * squares[i]
        risks[step] = 0.5 * risk
    return risks


def _finite_or_infinite(values: FloatArray) -> FloatArray:
    return np.where(np.isfinite(values), values, np.inf)


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
    x, size = _shrinkage(shrinkage, sample_size)
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
    x, size = _shrinkage(shrinkage, sample_size)
    # Of the first n terms g_k = (1 - ρ^k)/(1 - ρ): their sum and the sum of their squares. The
    # last one and ρ^n are taken anew: products of a rounded ρ would drift over many steps.
    first, second = np.zeros((2, *x.shape))
    count = 0
    for digit in f"{size - 1:b}":
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
        β of `privreg.noise.toeplitz`, N - 1 coefficients or more; 1, 0, 0, ... is
        `independent_factor`.

    Source
    ------
    choquettechoo2024, equation (13), for the average of anon2024, Algorithm 1 (derived).
    """
    x, size = _shrinkage(shrinkage, sample_size)
    total, current = np.zeros(x.shape), np.zeros(x.shape)
    for prefix in np.cumsum(_decoder(decoder, size - 1)):
        current = (1 - x) * current + prefix
        total += current**2
    return total


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
        V(ηλ_i) of the noise's correlation in time.
    eigenvalues, covariance, step_size, sample_size, noise_std
        As in `private_risk`: λ, Σ_ii, η, N and σ.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    shape, std = _noise(lam, covariance, noise_std)
    return 0.5 * (std * eta / size) ** 2 * float(np.sum(lam * shape * np.asarray(factor)))


def _shrinkage(shrinkage: ArrayLike, sample_size: int) -> tuple[FloatArray, int]:
    x = require_real("shrinkage", shrinkage, least=0, most=1)
    return x, require_count("sample_size", sample_size)


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
