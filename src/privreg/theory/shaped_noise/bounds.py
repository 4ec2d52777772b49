r"""The paper's bounds on the excess risk as functions of the step size, and their minimum.

The paper states them up to constants and powers of log N; here those are 1, so that a value means
nothing by itself and slopes, orders and ratios do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from privreg.checks import (
    FloatArray,
    require_answer,
    require_array,
    require_callable,
    require_count,
    require_instance,
    require_number,
    require_real,
)
from privreg.units import from_units, in_units, squared_times

_MOST_TERMS = 20_000_000
# Up to its exponential, powers of a horizon and the zeta function beside them are finite.
_MOST_LOGARITHM = 600.0


@runtime_checkable
class Decay(Protocol):
    """Eigenvalues in non-increasing order, known through their sums; methods broadcast over k."""

    @property
    def trace(self) -> float:
        """Sum of all eigenvalues."""

    @property
    def squared_trace(self) -> float:
        """Sum of their squares."""

    def cutoff(self, horizon: ArrayLike) -> FloatArray:
        """k* = max{k : λ_k ≥ 1/a} for a horizon a = N η, 0 if there is none."""

    def tail_sum(self, cutoff: ArrayLike) -> FloatArray:
        """Sum of λ_i over i > k."""

    def shaped_trace(self, horizon: float) -> float:
        """tr((I/a + H)⁻¹H) = Σ aλ_i / (1 + aλ_i), what `effective_dimension` approximates."""


@dataclass(frozen=True)
class PowerLawDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = i^{-r}`.

    Parameters
    ----------
    exponent : float
        r, more than 1, so that the trace is finite, and at most 1e10.

    Examples
    --------
    >>> round(PowerLawDecay(2.0).trace, 6)
    1.644934
    """

    exponent: float

    def __post_init__(self) -> None:
        require_number("exponent", self.exponent, above=1, most=1e10)

    @property
    def trace(self) -> float:
        return float(zeta(self.exponent))

    @property
    def squared_trace(self) -> float:
        return float(zeta(2 * self.exponent))

    def cutoff(self, horizon: ArrayLike) -> FloatArray:
        a = require_real("horizon", horizon, above=0)
        k = np.floor(a ** (1.0 / self.exponent))
        # The root of a perfect power may round to just below a whole number, or just above.
        with np.errstate(over="ignore"):
            return k + ((k + 1) ** self.exponent <= a) - (k**self.exponent > a)

    def tail_sum(self, cutoff: ArrayLike) -> FloatArray:
        return np.asarray(zeta(self.exponent, require_real("cutoff", cutoff, least=0) + 1))

    def shaped_trace(self, horizon: float) -> float:
        a = require_number("horizon", horizon, above=0, most=1e300)
        # Beyond this many terms aλ_i < 1/8, and the geometric series in it converges quickly.
        terms = int(np.ceil((8 * a) ** (1.0 / self.exponent))) + 1
        if terms > _MOST_TERMS:
            raise ValueError(
                f"horizon must be at most {_MOST_TERMS**self.exponent / 8:.3g} at this decay, "
                f"got {a:g}"
            )
        head = a * np.arange(1.0, terms + 1) ** -self.exponent
        total = float(np.sum(head / (1 + head)))
        first = a * (terms + 1.0) ** -self.exponent
        for power in range(1, 24):
            s, scale = power * self.exponent, power * np.log(a)
            if max(scale, s * np.log(terms + 1.0)) < _MOST_LOGARITHM:
                term = a**power * float(zeta(s, terms + 1.0))
            else:
                term = first**power * _scaled_zeta(s, terms + 1.0)
            total -= (-1) ** power * term
        return total


def _scaled_zeta(s: float, start: float) -> float:
    """Sum of (i / q)^-s over i ≥ q, where neither q^s nor the Hurwitz zeta function need be finite.

    Terms by themselves, then Euler and Maclaurin's formula for what is left.
    """
    ahead = 40
    with np.errstate(under="ignore"):
        total = float(np.sum((1 + np.arange(ahead) / start) ** -s))
        end = start + ahead
        bracket = end / (s - 1) + 0.5 + s / (12 * end) - s * (s + 1) * (s + 2) / (720 * end**3)
        return total + float((end / start) ** -s * bracket)


@dataclass(frozen=True)
class ExponentialDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = e^{-i}`, i from 1.

    Examples
    --------
    >>> ExponentialDecay().cutoff([10.0, 100.0])
    array([2., 4.])
    """

    @property
    def trace(self) -> float:
        return float(1 / np.expm1(1.0))

    @property
    def squared_trace(self) -> float:
        return float(1 / np.expm1(2.0))

    def cutoff(self, horizon: ArrayLike) -> FloatArray:
        return np.floor(np.maximum(np.log(require_real("horizon", horizon, above=0)), 0.0))

    def tail_sum(self, cutoff: ArrayLike) -> FloatArray:
        return np.exp(-require_real("cutoff", cutoff, least=0)) * self.trace

    def shaped_trace(self, horizon: float) -> float:
        a = require_number("horizon", horizon, above=0)
        values = a * np.exp(-np.arange(1.0, np.log(a) + 45 if a > 1 else 46))
        return float(np.sum(values / (1 + values)))


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
        a, more than 0 and at most 1e300; may be empty.

    Examples
    --------
    >>> effective_dimension(PowerLawDecay(2.0), [1.0, 10.0]).round(3)
    array([1.645, 5.838])

    Source
    ------
    anon2024, Corollary 4.3 and what follows it.
    """
    require_instance("decay", decay, Decay)  # type: ignore[type-abstract]
    a = require_real("horizon", horizon, above=0, most=1e300)
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
    decay: Decay,
    *,
    sample_size: float,
    step_size: ArrayLike,
    noise_multiplier: float,
    target_norm: float = 1.0,
    label_noise_std: float = 1.0,
    residual_scale: float = 1.0,
) -> BoundParts:
    r"""Bound for Σ = I.

    .. math:: \frac{B^2}{N\eta} + \Big(\frac{\sigma_\zeta^2}{N} + \frac{B^2}{N^2\eta}\Big) D
        + l^2\tau^2\eta D, \qquad D = D(N\eta)

    Parameters
    ----------
    decay : Decay
        Eigenvalues of the features' covariance.
    sample_size : float
        N, at least 1 and at most 1e100; a float because asymptotics need N beyond every
        whole-number type.
    step_size : array_like, shape (...)
        η, at least 1e-100 and at most 1e10; may be empty.
    noise_multiplier : float
        τ, at least 0 and at most 1e50; 0 gives the bound without privacy.
    target_norm : float
        B, a bound on ‖w_0 - w*‖, at least 0 and at most 1e50.
    label_noise_std : float
        σ_ζ, at least 0 and at most 1e50.
    residual_scale : float
        l, the largest residual estimate, at least 0 and at most 1e50.

    Source
    ------
    anon2024, Corollary 4.3, which prints L² for l².
    """
    _, eta, dimension, bias, variance = _nonprivate(
        decay, sample_size, step_size, target_norm, label_noise_std
    )
    scale = _private_scale(noise_multiplier, residual_scale)
    with np.errstate(over="ignore"):
        private = (scale * eta) * (scale * dimension)
    return BoundParts(bias, variance, require_answer("step_size and noise_multiplier", private))


def designed_bound(
    decay: Decay,
    *,
    sample_size: float,
    step_size: ArrayLike,
    noise_multiplier: float,
    target_norm: float = 1.0,
    label_noise_std: float = 1.0,
    residual_scale: float = 1.0,
) -> BoundParts:
    r"""Bound for Σ = H + I/(Nη), the population's version of the public-data design.

    .. math:: \dots + l^2\tau^2\Big[\eta^2\operatorname{tr}(H^2) D + \frac{D^3}{N}\Big]

    with the parameters, the bias and the variance of `identity_bound`.

    Source
    ------
    anon2024, Corollary 4.5 with λ = M/(Nη); equation (B.16) for the fourth power.
    """
    size, eta, dimension, bias, variance = _nonprivate(
        decay, sample_size, step_size, target_norm, label_noise_std
    )
    scale = _private_scale(noise_multiplier, residual_scale)
    with np.errstate(over="ignore"):
        along = scale * eta * np.sqrt(decay.squared_trace)
        across = scale * dimension
        private = along * (along * dimension) + across * (across * (dimension / size))
    return BoundParts(bias, variance, require_answer("step_size and noise_multiplier", private))


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
    feature_scale: float = 1.0,
) -> BoundParts:
    r"""Bound for any Σ that shares H's eigenvectors, at the cutoff k ≥ 1 with the least sum.

    With Λ = k/N + Nη² Σ_{i>k} λ_i², Q = I_{0:k} + NηH_{k:∞}, R = H_{0:k}^{-1} + N²η²H_{k:∞} and
    Ḡ = ησ_z⁴ tr(HΣ) Q + (ψ² + ψ⁴ + 1)Σ,

    .. math::
        \frac{\|w^*\|^2_{H_{0:k}^{-1}}}{\eta^2N^2} + \|w^*\|^2_{H_{k:\infty}}
        + \frac{\sigma_z^4\|w^*\|_Q^2}{N\eta(1-\sigma_z^4\eta\operatorname{tr}H)}\Lambda
        + \sigma_\zeta^2\sigma_z^4(1+\eta\langle Q, H\rangle)\Lambda
        + \tau^2\sigma_z^4\eta\langle Q,\bar G\rangle\Lambda
        + \frac{\tau^2}{N}\langle R,\bar G\rangle

    Infinite where σ_z⁴ η tr H ≥ 1, for which the theorem says nothing.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        λ, at least 1e-30 and at most 1e20, non-increasing.
    target : array_like, shape (d,)
        w* in the eigenbasis, at least -1e20 and at most 1e20; the start is 0.
    covariance : array_like, shape (d,)
        Diagonal of Σ in the eigenbasis, at least 1e-30 and at most 1e20.
    sample_size : int
        N, at most 1e15.
    step_size : float
        η, at least 1e-20 and at most 1e20.
    noise_multiplier, clip_norm, label_noise_std : float
        τ, ψ_max and σ_ζ, at least 0 and at most 1e20.
    feature_scale : float
        σ_z, at least 1e-10 and at most 1e10; the theorem's is that of the sub-Gaussian norm, 1
        leaves constants out.

    Source
    ------
    anon2024, Theorem 4.2.
    """
    scale = {"least": 1e-30, "most": 1e20}
    lam = require_array("eigenvalues", eigenvalues, shape=(None,), **scale)
    if np.any(np.diff(lam) > 0):
        raise ValueError("eigenvalues must be non-increasing, got an increase")
    start = require_array("target", target, shape=lam.shape, least=-1e20, most=1e20)
    shape = require_array("covariance", covariance, shape=lam.shape, **scale)
    size = require_count("sample_size", sample_size)
    require_number("sample_size", size, most=1e15)
    eta = require_number("step_size", step_size, least=1e-20, most=1e20)
    tau = require_number("noise_multiplier", noise_multiplier, least=0, most=1e20)
    psi2 = require_number("clip_norm", clip_norm, least=0, most=1e20) ** 2
    zeta = require_number("label_noise_std", label_noise_std, least=0, most=1e20)
    sigma4 = require_number("feature_scale", feature_scale, least=1e-10, most=1e10) ** 4
    horizon = size * eta
    margin = 1 - sigma4 * eta * np.sum(lam)
    if margin <= 0:
        infinite = np.asarray(np.inf)
        return BoundParts(infinite, infinite, infinite)
    start, unit = in_units(start)
    weight = start**2
    k = np.arange(1, lam.size + 1)
    # Against Q and R: sums over head and tail for every cutoff at once.
    q_of_q = k + horizon**2 * _tail(lam**2)
    spread = q_of_q / size
    bias = _head(weight / lam) / horizon**2 + _tail(lam * weight)
    q_of_target = _head(weight) + horizon * _tail(lam * weight)
    bias += sigma4 * q_of_target / (horizon * margin) * spread
    bias = from_units(bias, 2 * unit)
    q_of_h = _head(lam) + horizon * _tail(lam**2)
    variance = squared_times(zeta, sigma4 * (1 + eta * q_of_h) * spread)
    along = eta * sigma4 * np.sum(lam * shape)
    clipped = psi2 + psi2**2 + 1
    q_of_g = along * q_of_q + clipped * (_head(shape) + horizon * _tail(lam * shape))
    r_of_q = _head(1 / lam) + horizon**3 * _tail(lam**2)
    r_of_g = along * r_of_q + clipped * (_head(shape / lam) + horizon**2 * _tail(lam * shape))
    private = squared_times(tau, sigma4 * eta * q_of_g * spread + r_of_g / size)
    best = int(np.argmin(bias + variance + private))
    return BoundParts(np.asarray(bias[best]), np.asarray(variance[best]), np.asarray(private[best]))


def minimise_over_step_size(
    bound: Callable[[FloatArray], ArrayLike], *, sample_size: float, largest: float = 1.0
) -> Minimum:
    """Least value of a bound over step sizes between 1/N and `largest`.

    The floor in k* makes bounds jump, so that no derivative is used: 600 steps even in the
    logarithm, then two finer grids around the best.

    Parameters
    ----------
    bound : callable
        From step sizes, shape (m,), to values, shape (m,), which may be infinite.
    sample_size : float
        N, at least 1 and at most 1e100.
    largest : float
        Largest step size, at least 1/N and at most 1e10.

    Examples
    --------
    >>> best = minimise_over_step_size(lambda eta: 1 / (1e6 * eta) + eta, sample_size=1e6)
    >>> round(best.step_size * 1e3, 3)
    1.0
    """
    require_callable("bound", bound)
    size = require_number("sample_size", sample_size, least=1, most=1e100)
    top = require_number("largest", largest, least=1 / size, most=1e10)
    low, high = np.log(1 / size), np.log(top)
    step, value = np.nan, np.inf
    for points in (600, 200, 200):
        grid = np.linspace(low, high, points)
        # Exponentials of the ends' logarithms may round to beyond the ends.
        steps = np.clip(np.exp(grid), 1 / size, top)
        values = require_array("bound", bound(steps), shape=grid.shape, infinite=True)
        at = int(np.argmin(values))
        if values[at] < value or np.isnan(step):
            step, value = float(steps[at]), float(values[at])
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, points - 1)]
    return Minimum(step, value)


def fitted_exponent(sample_sizes: ArrayLike, values: ArrayLike) -> float:
    """x of the least-squares fit log(value) = c - x log(N).

    Parameters
    ----------
    sample_sizes, values : array_like, shape (m,)
        More than 0; at least two different sizes.
    """
    sizes = require_real(
        "sample_sizes", require_array("sample_sizes", sample_sizes, shape=(None,)), above=0
    )
    risks = require_real("values", require_array("values", values, shape=sizes.shape), above=0)
    logs = _log_ratios(sizes)
    if not np.any(logs):
        raise ValueError("sample_sizes must hold at least two sizes, got one")
    logs = logs - np.mean(logs)
    return float(-(logs @ _log_ratios(risks)) / (logs @ logs))


def _log_ratios(values: FloatArray) -> FloatArray:
    """Logarithms of the values over the first, with the digits of small differences."""
    first = values[0]
    near = np.abs(values / 2 - first / 2) < first / 4
    ratios = np.log1p((np.where(near, values, first) - first) / first)
    return np.where(near, ratios, np.log(values) - np.log(first))


def _nonprivate(
    decay: Decay,
    sample_size: float,
    step_size: ArrayLike,
    target_norm: float,
    label_noise_std: float,
) -> tuple[float, FloatArray, FloatArray, FloatArray, FloatArray]:
    size = require_number("sample_size", sample_size, least=1, most=1e100)
    eta = require_real("step_size", step_size, least=1e-100, most=1e10)
    norm = require_number("target_norm", target_norm, least=0, most=1e50)
    zeta = require_number("label_noise_std", label_noise_std, least=0, most=1e50)
    dimension = effective_dimension(decay, size * eta)
    with np.errstate(over="ignore", invalid="ignore"):
        # In an order in which nothing rounds to 0 but what is nothing.
        bias = norm * (norm / (size * eta))
        label = (zeta * dimension) * (zeta / size)
        variance = label + (norm * (dimension / (size * eta))) * (norm / size)
    require_answer("target_norm and step_size", np.asarray(bias + variance))
    return size, eta, dimension, bias, variance


def _private_scale(noise_multiplier: float, residual_scale: float) -> float:
    multiplier = require_number("noise_multiplier", noise_multiplier, least=0, most=1e50)
    return require_number("residual_scale", residual_scale, least=0, most=1e50) * multiplier


def _head(values: FloatArray) -> FloatArray:
    """Sums of the first k entries, k from 1."""
    return np.cumsum(values)


def _tail(values: FloatArray) -> FloatArray:
    """Sums of the entries after the first k, k from 1."""
    sums: FloatArray = np.concatenate([np.cumsum(values[:0:-1])[::-1], [0.0]])
    return sums


Number = TypeVar("Number", Fraction, float)


@dataclass(frozen=True)
class LinearFraction:
    """Branch (a + b r) / (c + d r) of a rate, of whole numbers, d > 0, without a pole at r > 1.

    Examples
    --------
    >>> LinearFraction(0, 1, 3, 1)(Fraction(2))
    Fraction(2, 5)
    """

    a: int
    b: int
    c: int
    d: int

    def __call__(self, decay: Number) -> Number:
        decay = _decay(decay)
        return (self.a + self.b * decay) / (self.c + self.d * decay)

    def crossings(self, other: LinearFraction) -> list[Fraction]:
        """Rational r > 1 at which two branches agree, increasing."""
        square = self.b * other.d - other.b * self.d
        linear = self.a * other.d + self.b * other.c - other.a * self.d - other.b * self.c
        constant = self.a * other.c - other.a * self.c
        if square == 0:
            roots = [Fraction(-constant, linear)] if linear else []
        else:
            discriminant = linear**2 - 4 * square * constant
            root = isqrt(max(discriminant, 0))
            if root**2 != discriminant:
                return []
            roots = [Fraction(-linear + sign * root, 2 * square) for sign in (-1, 1)]
        return sorted({value for value in roots if value > 1})


NON_PRIVATE = LinearFraction(0, 1, 1, 1)
IDENTITY = LinearFraction(0, 1, 1, 2)
DESIGNED_BRANCHES = (LinearFraction(0, 1, 3, 1), LinearFraction(0, 2, 1, 3))
IDENTITY_THRESHOLD = LinearFraction(0, 1, 2, 2)
DESIGNED_THRESHOLD_BRANCHES = (LinearFraction(1, 0, 1, 1), LinearFraction(-1, 1, 2, 2))


def nonprivate_exponent(decay: Number) -> Number:
    """x in the excess risk Õ(N^-x) of SGD without privacy, r/(1+r) (anon2024, Table 1)."""
    return NON_PRIVATE(decay)


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
    decay, epsilon_power = _decay(decay), _power(epsilon_power)
    best = nonprivate_exponent(decay)
    return best - IDENTITY(decay) * max(0 * best, best - 2 * epsilon_power)


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
    decay, epsilon_power = _decay(decay), _power(epsilon_power)
    best = nonprivate_exponent(decay)
    first = decay / (3 + decay) * (2 / (1 + decay) - 2 * epsilon_power)
    second = decay / (1 + 3 * decay) * ((decay - 1) / (1 + decay) - 2 * epsilon_power)
    return best - max(0 * best, first, second)


def identity_threshold(decay: Number) -> Number:
    """p at which ε = N^p gives Σ = I the rate without privacy, r/(2+2r) (anon2024, Cor. 4.4)."""
    return IDENTITY_THRESHOLD(decay)


def designed_threshold(decay: Number) -> Number:
    """The same for the designed Σ, max(1/(1+r), (r-1)/(2+2r)) (anon2024, Cor. 4.6)."""
    return max(branch(decay) for branch in DESIGNED_THRESHOLD_BRANCHES)


def exponential_exponents(*, epsilon_power: Number | int = 0) -> tuple[Number | Fraction, ...]:
    """Exponents for λ_i = e^-i: without privacy, Σ = I, the designed Σ.

    Source
    ------
    anon2024, Corollaries 4.4 and 4.6, second parts.
    """
    epsilon_power = _power(epsilon_power)
    shortfall: Number | Fraction = Fraction(1) - 2 * epsilon_power
    if shortfall <= 0:
        return Fraction(1), Fraction(1), Fraction(1)
    # At ε of N^(-1/4) and less the term D³/N decides, as for a power law.
    return Fraction(1), 1 - shortfall / 2, 1 - max(shortfall / 3, shortfall - 1)


def switch_points() -> dict[str, Fraction]:
    """Decay exponents at which the rates change character, solved from the branches.

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
    return {
        "better": _only(DESIGNED_BRANCHES[0].crossings(IDENTITY)),
        "branch": _only(DESIGNED_BRANCHES[0].crossings(DESIGNED_BRANCHES[1])),
        "threshold": _only(
            DESIGNED_THRESHOLD_BRANCHES[0].crossings(DESIGNED_THRESHOLD_BRANCHES[1])
        ),
        "threshold_better": _only(DESIGNED_THRESHOLD_BRANCHES[0].crossings(IDENTITY_THRESHOLD)),
    }


def _only(values: list[Fraction]) -> Fraction:
    (value,) = values
    return value


def _decay(decay: Number) -> Number:
    if not isinstance(decay, Fraction):
        return require_number("decay", decay, above=1, most=1e100)
    if decay <= 1:
        raise ValueError(f"decay must be more than 1, got {decay}")
    return decay


def _power(power: Any) -> Any:
    # Exact as they come; what is left must be a number of the machine.
    if isinstance(power, Fraction) or type(power) is int:
        return power
    return require_number("epsilon_power", power, least=-1e100, most=1e100)
