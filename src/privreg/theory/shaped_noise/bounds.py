r"""Bounds of anon2024 on the excess risk as functions of the step size.

The paper states them up to constants and powers of log N; here those are 1, so that only slopes,
orders and ratios mean something.

For exponential decay logarithms vanish only at sample sizes N of 1e60 and more. Beyond the domain
of other scales, the asymptotic bounds take N from 1 to 1e100, step sizes from 1e-100 to 1e12, noise
multipliers from 0 to 1e50, and horizons from 1e-100 to 1e112.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    require_array,
    require_count,
    require_number,
    require_real,
    require_scale,
    require_scales,
)

_MOST_TERMS = 20_000_000
# Up to its exponential, powers of a horizon and the zeta function beside them are finite.
_MOST_LOGARITHM = 600.0


@dataclass(frozen=True)
class PowerLawDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = i^{-r}`.

    The `exponent` r is more than 1, so that the trace is finite, and at most 100.

    Examples
    --------
    >>> round(PowerLawDecay(2.0).trace, 6)
    1.644934
    """

    exponent: float

    def __post_init__(self) -> None:
        require_number("exponent", self.exponent, above=1, most=100)

    @property
    def trace(self) -> float:
        """Sum of all eigenvalues."""
        return float(zeta(self.exponent))

    @property
    def squared_trace(self) -> float:
        """Sum of their squares."""
        return float(zeta(2 * self.exponent))

    def cutoff(self, horizon: FloatArray) -> FloatArray:
        """k* = max{k : λ_k ≥ 1/a} for horizons a = N η, 0 if there is none."""
        k = np.floor(horizon ** (1.0 / self.exponent))
        # The root of a perfect power may round to just below a whole number, or just above.
        return k + ((k + 1) ** self.exponent <= horizon) - (k**self.exponent > horizon)

    def tail_sum(self, cutoff: FloatArray) -> FloatArray:
        """Sum of λ_i over i > k."""
        return np.asarray(zeta(self.exponent, cutoff + 1))

    def shaped_trace(self, horizon: float) -> float:
        """tr((I/a + H)⁻¹H) = Σ aλ_i / (1 + aλ_i), what `effective_dimension` approximates."""
        a = require_scale("horizon", horizon)
        # Beyond this many terms aλ_i < 1/8, and the geometric series in it converges quickly.
        terms = int(np.ceil((8 * a) ** (1.0 / self.exponent))) + 1
        if terms > _MOST_TERMS:
            raise ValueError(
                f"horizon must be at most {_MOST_TERMS**self.exponent / 8:.3g} at this decay, "
                f"got {a:g}"
            )
        head = a * np.arange(1.0, terms + 1) ** -self.exponent
        total = float(np.sum(head / (1 + head)))
        for power in range(1, 24):
            s = power * self.exponent
            if max(power * np.log(a), s * np.log(terms + 1.0)) >= _MOST_LOGARITHM:
                # What is left is less than a rounding error of the sum.
                break
            total -= (-1) ** power * (a**power * float(zeta(s, terms + 1.0)))
        return total


@dataclass(frozen=True)
class ExponentialDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = e^{-i}`, i from 1, as `PowerLawDecay`.

    Examples
    --------
    >>> ExponentialDecay().cutoff(np.array([10.0, 100.0]))
    array([2., 4.])
    """

    @property
    def trace(self) -> float:
        return float(1 / np.expm1(1.0))

    @property
    def squared_trace(self) -> float:
        return float(1 / np.expm1(2.0))

    def cutoff(self, horizon: FloatArray) -> FloatArray:
        return np.floor(np.maximum(np.log(horizon), 0.0))

    def tail_sum(self, cutoff: FloatArray) -> FloatArray:
        return np.exp(-cutoff) * self.trace

    def shaped_trace(self, horizon: float) -> float:
        a = require_scale("horizon", horizon)
        values = a * np.exp(-np.arange(1.0, np.log(a) + 45 if a > 1 else 46))
        return float(np.sum(values / (1 + values)))


Decay = PowerLawDecay | ExponentialDecay


def effective_dimension(decay: Decay, horizon: ArrayLike) -> FloatArray:
    r"""Number D of directions that N steps of size η can learn.

    .. math:: D(a) = k^* + a\sum_{i>k^*}\lambda_i = \sum_i\min(1, a\lambda_i),
        \qquad a = N\eta,\ k^* = \max\{k : \lambda_k \ge 1/a\}

    It lies between `decay.shaped_trace` and twice that.

    Parameters
    ----------
    decay : Decay
    horizon : array_like, shape (...)
        a; may be empty.

    Examples
    --------
    >>> effective_dimension(PowerLawDecay(2.0), [1.0, 10.0]).round(3)
    array([1.645, 5.838])

    Source
    ------
    anon2024, Corollary 4.3 and what follows it.
    """
    a = require_real("horizon", horizon, least=1e-100, most=1e112)
    cutoff = decay.cutoff(a)
    return cutoff + a * decay.tail_sum(cutoff)


class BoundParts(NamedTuple):
    """Summands of a bound, each of the shape of the step sizes, and their sum."""

    bias: FloatArray
    variance: FloatArray
    private: FloatArray

    @property
    def total(self) -> FloatArray:
        return self.bias + self.variance + self.private


def identity_bound(
    decay: Decay, *, sample_size: float, step_size: ArrayLike, noise_multiplier: float
) -> BoundParts:
    r"""Bound for Σ = I where ‖w_0 - w*‖, the label noise and the residual estimates are at most 1.

    .. math:: \frac1{N\eta} + \Big(\frac1N + \frac1{N^2\eta}\Big) D + \tau^2\eta D,
        \qquad D = D(N\eta)

    Parameters
    ----------
    decay : Decay
        Eigenvalues of the features' covariance.
    sample_size : float
        N.
    step_size : array_like, shape (...)
        η; may be empty.
    noise_multiplier : float
        τ; 0 gives the bound without privacy.

    Source
    ------
    anon2024, Corollary 4.3.
    """
    return _bound(decay, sample_size, step_size, noise_multiplier, designed=False)


def designed_bound(
    decay: Decay, *, sample_size: float, step_size: ArrayLike, noise_multiplier: float
) -> BoundParts:
    r"""Bound for Σ = H + I/(Nη), the population's version of the public-data design.

    .. math:: \dots + \tau^2\Big[\eta^2\operatorname{tr}(H^2) D + \frac{D^3}{N}\Big]

    with the parameters, the bias and the variance of `identity_bound`.

    Source
    ------
    anon2024, Corollary 4.5 with λ = M/(Nη); equation (B.16) for the fourth power.
    """
    return _bound(decay, sample_size, step_size, noise_multiplier, designed=True)


def _bound(
    decay: Decay,
    sample_size: float,
    step_size: ArrayLike,
    noise_multiplier: float,
    *,
    designed: bool,
) -> BoundParts:
    """Either bound, with products in an order in which none rounds to 0."""
    size = require_number("sample_size", sample_size, least=1, most=1e100)
    eta = np.asarray(step_size, dtype=float)
    tau = require_number("noise_multiplier", noise_multiplier, least=0, most=1e50)
    dimension = effective_dimension(decay, size * eta)
    variance = dimension * (1.0 / size) + (dimension / (size * eta)) * (1.0 / size)
    if designed:
        along, across = tau * eta * np.sqrt(decay.squared_trace), tau * dimension
        private = along * (along * dimension) + across * (across * (dimension / size))
    else:
        private = (tau * eta) * (tau * dimension)
    return BoundParts(1.0 / (size * eta), variance, private)


def general_bound(
    eigenvalues: ArrayLike,
    *,
    target: ArrayLike,
    covariance: ArrayLike,
    sample_size: int,
    step_size: float,
    noise_multiplier: float,
    clip_norm: float,
    label_noise_std: float,
) -> BoundParts:
    r"""Bound for any Σ that shares H's eigenvectors, at the cutoff k ≥ 1 with the least sum.

    With Λ = k/N + Nη² Σ_{i>k} λ_i², Q = I_{0:k} + NηH_{k:∞}, R = H_{0:k}^{-1} + N²η²H_{k:∞} and
    Ḡ = η tr(HΣ) Q + (ψ² + ψ⁴ + 1)Σ, and the scale σ_z of the features 1,

    .. math::
        \frac{\|w^*\|^2_{H_{0:k}^{-1}}}{\eta^2N^2} + \|w^*\|^2_{H_{k:\infty}}
        + \frac{\|w^*\|_Q^2}{N\eta(1-\eta\operatorname{tr}H)}\Lambda
        + \sigma_\zeta^2(1+\eta\langle Q, H\rangle)\Lambda
        + \tau^2\eta\langle Q,\bar G\rangle\Lambda
        + \frac{\tau^2}{N}\langle R,\bar G\rangle

    Infinite where η tr H ≥ 1, for which the theorem says nothing.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        λ, non-increasing.
    target : array_like, shape (d,)
        w* in the eigenbasis; the start is 0.
    covariance : array_like, shape (d,)
        Diagonal of Σ in the eigenbasis.
    sample_size : int
        N.
    step_size : float
        η.
    noise_multiplier, clip_norm, label_noise_std : float
        τ, ψ_max and σ_ζ; may be 0.

    Source
    ------
    anon2024, Theorem 4.2.
    """
    lam = require_array("eigenvalues", eigenvalues, shape=(None,), least=LEAST, most=MOST)
    if np.any(np.diff(lam) > 0):
        raise ValueError("eigenvalues must be non-increasing, got an increase")
    start = require_array("target", target, shape=lam.shape, least=-MOST, most=MOST)
    shape = require_array("covariance", covariance, shape=lam.shape, least=LEAST, most=MOST)
    size = require_count("sample_size", sample_size)
    eta = require_scale("step_size", step_size)
    tau, psi, zeta = require_scales(
        zero=True,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        label_noise_std=label_noise_std,
    )
    horizon = size * eta
    margin = 1 - eta * np.sum(lam)
    if margin <= 0:
        infinite = np.asarray(np.inf)
        return BoundParts(infinite, infinite, infinite)
    weight = start**2
    k = np.arange(1, lam.size + 1)
    # Against Q and R: sums over head and tail for every cutoff at once.
    q_of_q = k + horizon**2 * _tail(lam**2)
    spread = q_of_q / size
    bias = np.cumsum(weight / lam) / horizon**2 + _tail(lam * weight)
    q_of_target = np.cumsum(weight) + horizon * _tail(lam * weight)
    bias += q_of_target / (horizon * margin) * spread
    q_of_h = np.cumsum(lam) + horizon * _tail(lam**2)
    variance = zeta**2 * ((1 + eta * q_of_h) * spread)
    along = eta * np.sum(lam * shape)
    clipped = psi**2 + (psi**2) ** 2 + 1
    q_of_g = along * q_of_q + clipped * (np.cumsum(shape) + horizon * _tail(lam * shape))
    r_of_q = np.cumsum(1 / lam) + horizon**3 * _tail(lam**2)
    r_of_g = along * r_of_q + clipped * (np.cumsum(shape / lam) + horizon**2 * _tail(lam * shape))
    private = tau**2 * (eta * q_of_g * spread + r_of_g / size)
    best = int(np.argmin(bias + variance + private))
    return BoundParts(np.asarray(bias[best]), np.asarray(variance[best]), np.asarray(private[best]))


def _tail(values: FloatArray) -> FloatArray:
    """Sums of the entries after the first k, k from 1."""
    sums: FloatArray = np.concatenate([np.cumsum(values[:0:-1])[::-1], [0.0]])
    return sums
