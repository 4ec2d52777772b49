r"""The paper's bounds on the excess risk as functions of the step size, and their minimum.

The paper states them up to constants and powers of log N; here those are 1, so that only slopes,
orders and ratios mean something.

For exponential decay logarithms vanish only at sample sizes N of 1e60 and more. Beyond the domain
of other scales, the asymptotic bounds take N from 1 to 1e100, step sizes from 1e-100 to 1e12, noise
multipliers from 0 to 1e50, and horizons from 1e-100 to 1e112.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    require_array,
    require_callable,
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

    Parameters
    ----------
    exponent : float
        r, more than 1, so that the trace is finite, and at most 100.

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
        Eigenvalues; a power law's tail is a Hurwitz zeta function.
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
    """Summands of a bound, each of the shape of the step sizes."""

    bias: FloatArray
    variance: FloatArray
    private: FloatArray

    @property
    def total(self) -> FloatArray:
        """Their sum."""
        return self.bias + self.variance + self.private


class Minimum(NamedTuple):
    """Best step size of a bound and the bound there."""

    step_size: float
    value: float


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
    eta = require_real("step_size", step_size, least=1e-100, most=MOST)
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


def minimise_over_step_size(
    bound: Callable[[FloatArray], ArrayLike], *, sample_size: float
) -> Minimum:
    """Least value of a bound over step sizes between 1/N and 1.

    The floor in k* makes bounds jump, so that no derivative is used: 600 steps even in the
    logarithm, then two finer grids around the best.

    Parameters
    ----------
    bound : callable
        From step sizes, shape (m,), to values, shape (m,), which may be infinite.
    sample_size : float
        N.

    Examples
    --------
    >>> best = minimise_over_step_size(lambda eta: 1 / (1e6 * eta) + eta, sample_size=1e6)
    >>> round(best.step_size * 1e3, 3)
    1.0
    """
    require_callable("bound", bound)
    least = 1 / require_number("sample_size", sample_size, least=1, most=1e100)
    low, high = np.log(least), 0.0
    best = Minimum(np.nan, np.inf)
    for points in (600, 200, 200):
        grid = np.linspace(low, high, points)
        # Exponentials of the ends' logarithms may round to beyond the ends.
        steps = np.clip(np.exp(grid), least, 1.0)
        values = require_array("bound", bound(steps), shape=grid.shape, infinite=True)
        at = int(np.argmin(values))
        if values[at] < best.value or np.isnan(best.step_size):
            best = Minimum(float(steps[at]), float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, points - 1)]
    return best


def fitted_exponent(sample_sizes: ArrayLike, values: ArrayLike) -> float:
    """x of the least-squares fit log(value) = c - x log(N).

    Parameters
    ----------
    sample_sizes, values : array_like, shape (m,)
        More than 0; at least two different sizes.
    """
    sizes = require_array("sample_sizes", sample_sizes, shape=(None,), above=0)
    risks = require_array("values", values, shape=sizes.shape, above=0)
    logs = _log_ratios(sizes)
    if not np.any(logs):
        raise ValueError("sample_sizes must hold at least two sizes, got one")
    logs = logs - np.mean(logs)
    return float(-(logs @ _log_ratios(risks)) / (logs @ logs))


def _log_ratios(values: FloatArray) -> FloatArray:
    """Logarithms of the values over the first, with the digits of small differences."""
    first = values[0]
    near = np.abs(values - first) < first / 2
    ratios = np.log1p((np.where(near, values, first) - first) / first)
    return np.where(near, ratios, np.log(values) - np.log(first))


Number = TypeVar("Number", Fraction, float)
# For λ_i = e^-i at a constant ε: without privacy, Σ = I, the designed Σ (second parts of
# Corollaries 4.4 and 4.6).
EXPONENTIAL_EXPONENTS = (Fraction(1), Fraction(1, 2), Fraction(2, 3))


def nonprivate_exponent(decay: Number) -> Number:
    """x in the excess risk Õ(N^-x) of SGD without privacy, r/(1+r) (anon2024, Table 1)."""
    r = _exact("decay", decay, above=1, most=MOST)
    return r / (1 + r)


def identity_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""x in the excess risk Õ(N^-x) of DP-FTRL with Σ = I; r/(1+2r) at a constant ε, p = 0.

    .. math:: x = \frac r{1+r} - \frac r{1+2r}\max\Big(0, \frac r{1+r} - 2p\Big)

    Examples
    --------
    >>> identity_exponent(Fraction(2))
    Fraction(2, 5)

    Source
    ------
    anon2024, Corollary 4.4.
    """
    best, spared = nonprivate_exponent(decay), 2 * _exact("epsilon_power", epsilon_power)
    return best - decay / (1 + 2 * decay) * max(0 * best, best - spared)


def designed_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""x in the excess risk Õ(N^-x) of DP-FTRL with Σ = H + I/(Nη).

    .. math:: x = \frac r{1+r} - \max\Big(0,
        \frac r{3+r}\Big(\frac 2{1+r} - 2p\Big),
        \frac r{1+3r}\Big(\frac{r-1}{1+r} - 2p\Big)\Big)

    Examples
    --------
    >>> [designed_exponent(Fraction(r)) for r in (2, 5, 6)]
    [Fraction(2, 5), Fraction(5, 8), Fraction(12, 19)]

    Source
    ------
    anon2024, Corollary 4.6.
    """
    best, spared = nonprivate_exponent(decay), 2 * _exact("epsilon_power", epsilon_power)
    first = decay / (3 + decay) * (2 / (1 + decay) - spared)
    second = decay / (1 + 3 * decay) * ((decay - 1) / (1 + decay) - spared)
    return best - max(0 * best, first, second)


def identity_threshold(decay: Number) -> Number:
    """p at which ε = N^p gives Σ = I the rate without privacy, r/(2+2r) (anon2024, Cor. 4.4)."""
    return nonprivate_exponent(decay) / 2


def designed_threshold(decay: Number) -> Number:
    """The same for the designed Σ, max(1/(1+r), (r-1)/(2+2r)) (anon2024, Cor. 4.6)."""
    r = _exact("decay", decay, above=1, most=MOST)
    return max(1 / (1 + r), (r - 1) / (2 + 2 * r))


def switch_points() -> dict[str, Fraction]:
    """Whole decay exponents at which the rates change character: two of them are equal.

    Returns
    -------
    dict
        `better`: where the designed Σ's exponent passes that of Σ = I at constant ε;
        `branch`: where its own minimum changes branch; `threshold`: where its ε threshold does;
        `threshold_better`: where its threshold falls below that of Σ = I.

    Source
    ------
    anon2024, abstract and Section 4.2 (r ≥ 2); the others follow from Corollaries 4.4 and 4.6.
    """

    def first(gap: Callable[[Fraction], Fraction]) -> Fraction:
        return next(r for r in map(Fraction, range(2, 100)) if gap(r) == 0)

    return {
        "better": first(lambda r: designed_exponent(r) - identity_exponent(r)),
        "branch": first(lambda r: r / (3 + r) - 2 * r / (1 + 3 * r)),
        "threshold": first(lambda r: 1 / (1 + r) - (r - 1) / (2 + 2 * r)),
        "threshold_better": first(lambda r: designed_threshold(r) - identity_threshold(r)),
    }


def _exact(name: str, value: Any, **bounds: float) -> Any:
    """A whole number or a fraction in range as it is, another number as a float."""
    exact = isinstance(value, (int, Fraction))
    number = require_number(name, float(value) if exact else value, **bounds)
    return value if exact else number
