r"""Private one-pass SGD with shaped noise: excess risk, bounds and rates (anon2024).

`sgd_risk` and `private_risk` are exact for Gaussian features, in the eigenbasis of their covariance
H. If mean gradients H(w - w*) replace sampled ones, the iterates are linear in the noise in each
direction. The excess risk of :math:`\bar w_N = \frac1N\sum_{t<N} w_t` due to noise N(0, σ²Σ) is

.. math:: P = \frac{\sigma^2}{2}\sum_i\lambda_i\Sigma_{ii}\Big(\frac\eta N\Big)^2 V(\eta\lambda_i)

where η²V is the variance that unit white noise gives to the sum of the iterates. The paper bounds P
as if the noise of different steps were independent; the three factors V of this module are exact.

The paper states its bounds up to constants and powers of log N. These factors are set to 1 here, so
that only slopes, orders and ratios are meaningful. For exponentially decaying eigenvalues,
logarithms are negligible only from N = 1e60 on, so horizons Nη from 1e-100 to 1e112 are allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
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

Number = TypeVar("Number", Fraction, float)
MOST_TERMS = 20_000_000
# Up to its exponential, powers of a horizon and the zeta function beside them are finite.
MOST_LOGARITHM = 600.0
# For λ_i = e^-i at constant ε: no privacy, Σ = I, designed Σ (Corollaries 4.4 and 4.6, part 2).
EXPONENTIAL_EXPONENTS = (Fraction(1), Fraction(1, 2), Fraction(2, 3))


class RiskParts(NamedTuple):
    """Mean excess risk of the average iterate: its bias and label-noise parts, and their sum."""

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

    where m_{t,i} is the second moment of w_t - w* in direction i, and ρ_i = 1 - ηλ_i. The risk
    is infinite if the step is so large that m overflows.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the features' covariance, at least 0.
    target : array_like, shape (d,)
        w* in the eigenbasis; the start is 0.
    label_noise_std : float
        Standard deviation σ_ζ of the label noise; may be 0.
    step_size, sample_size : float and int
        Step size η and number N of steps.

    Source
    ------
    anon2024, Lemma B.6 with equality, for Gaussian features.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    offset = _along("target", target, lam, least=-MOST)
    label_noise_std = require_scale("label_noise_std", label_noise_std, zero=True)
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
        bias, label = _finite_or_infinite(np.array([bias, label_noise_std**2 * float(label)]))
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
    """Mean excess risk that shaped private noise adds to the average iterate, without clipping.

    The risk is infinite if the second moment of the iterates overflows.

    Parameters
    ----------
    eigenvalues, step_size, sample_size
        Eigenvalues λ, step size η and number N of steps, as in `sgd_risk`.
    covariance : array_like, shape (d,)
        Diagonal Σ_ii ≥ 0 of the noise shape Σ in the eigenbasis; other entries do not matter.
    noise_std : float
        σ, the noise multiplier times the clipping norm; may be 0.
    decoder : array_like, shape (steps,), optional
        Coefficients β as in `toeplitz_factor`; by default the noise is tree-aggregated.
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


def tree_factor(shrinkage: ArrayLike, *, sample_size: int) -> FloatArray:
    r"""Factor V in `privacy_error` for tree noise, from 0 to about N²/2, in O(log N) operations.

    .. math:: V_N = \sum_{\text{nodes}}\Big(\sum_{t\in\text{use}}\rho^{N-1-t}\Big)^2,
        \qquad \rho = 1 - \eta\lambda

    The nodes are the tree's left children. The node of height j and number b is in use for prefixes
    of t steps with 2^j (2b+1) ≤ t < 2^(j+1) (b+1) and t < N.

    Parameters
    ----------
    shrinkage : array_like, shape (...)
        ηλ in [0, 1]; may be empty.
    sample_size : int
        Number N of steps.

    Examples
    --------
    >>> tree_factor(0.0, sample_size=16)
    array(120.)

    Source
    ------
    Derived from anon2024, Algorithm 3. At ηλ = 0, V is N (N - 1) / 2 if N is a power of two.
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
    r"""Factor V in `privacy_error` for noise that is independent between steps, as in DP-SGD.

    .. math:: V = \sum_{k=1}^{N-1}\Big(\frac{1-\rho^k}{1-\rho}\Big)^2, \qquad \rho = 1 - \eta\lambda

    Positive terms are summed by doubling, in O(log N); a closed form loses digits for small Nηλ.

    Parameters
    ----------
    shrinkage, sample_size
        ηλ in [0, 1] and number N of steps, as in `tree_factor`.

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
    r"""Factor V in `privacy_error` for unit white noise times a lower-triangular Toeplitz matrix.

    .. math:: V = \sum_{m=1}^{N-1}\Big(\sum_{k=1}^{m}\beta_{m-k}\frac{1-\rho^k}{1-\rho}\Big)^2

    At a fixed budget, the noise multiplier is proportional to the encoder's sensitivity.

    Parameters
    ----------
    shrinkage, sample_size
        ηλ = 1 - ρ in [0, 1] and number N of steps, as in `tree_factor`.
    decoder : array_like, shape (steps,)
        At least N - 1 coefficients β of `noise.toeplitz`; 1, 0, 0, ... gives `independent_factor`.

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
    """Excess risk P that the noise adds to the average iterate (formula at the top of the module).

    Parameters
    ----------
    factor : array_like, shape (d,)
        Factor V(ηλ_i) of the noise's correlation in time, such as `tree_factor`.
    eigenvalues, covariance, step_size, sample_size, noise_std
        λ, Σ_ii, step size η, number N of steps and σ, as in `private_risk`.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    shape, std = _noise(lam, covariance, noise_std)
    return 0.5 * (std * eta / size) ** 2 * float(np.sum(lam * shape * np.asarray(factor)))


@dataclass(frozen=True)
class PowerLawDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = i^{-r}`.

    The `exponent` r is at most 100; it is more than 1, so that the trace is finite.

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
        """Sum of the squared eigenvalues."""
        return float(zeta(2 * self.exponent))

    def cutoff(self, horizon: FloatArray) -> FloatArray:
        """k* = max{k : λ_k ≥ 1/a} for horizons a = N η; 0 if no eigenvalue is large enough."""
        k = np.floor(np.asarray(horizon) ** (1.0 / self.exponent))
        # The root of a perfect power may round to just below a whole number, or just above.
        return k + ((k + 1) ** self.exponent <= horizon) - (k**self.exponent > horizon)

    def tail_sum(self, cutoff: FloatArray) -> FloatArray:
        """Sum of λ_i over i > k, with k the `cutoff`."""
        return np.asarray(zeta(self.exponent, cutoff + 1))

    def shaped_trace(self, horizon: float) -> float:
        """Trace tr((I/a + H)⁻¹H) = Σ aλ_i / (1 + aλ_i), similar to `effective_dimension`."""
        a = float(horizon)
        # Beyond this many terms aλ_i < 1/8, and the geometric series in it converges quickly.
        terms = int(np.ceil((8 * a) ** (1.0 / self.exponent))) + 1
        if terms > MOST_TERMS:
            raise ValueError(
                f"horizon must be at most {MOST_TERMS**self.exponent / 8:.3g} for this exponent, "
                f"got {a:g}"
            )
        head = a * np.arange(1.0, terms + 1) ** -self.exponent
        total = float(np.sum(head / (1 + head)))
        for power in range(1, 24):
            s = power * self.exponent
            if max(power * np.log(a), s * np.log(terms + 1.0)) >= MOST_LOGARITHM:
                # What is left is less than a rounding error of the sum.
                break
            total -= (-1) ** power * (a**power * float(zeta(s, terms + 1.0)))
        return total


@dataclass(frozen=True)
class ExponentialDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = e^{-i}`, i ≥ 1; methods: see `PowerLawDecay`.

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
        values = horizon * np.exp(-np.arange(1.0, np.log(horizon) + 45 if horizon > 1 else 46))
        return float(np.sum(values / (1 + values)))


Decay = PowerLawDecay | ExponentialDecay


def effective_dimension(decay: Decay, horizon: ArrayLike) -> FloatArray:
    r"""Effective dimension D: number of directions that N steps of size η can learn.

    .. math:: D(a) = k^* + a\sum_{i>k^*}\lambda_i = \sum_i\min(1, a\lambda_i),
        \qquad a = N\eta,\ k^* = \max\{k : \lambda_k \ge 1/a\}

    D lies between `decay.shaped_trace` and twice `decay.shaped_trace`.

    Parameters
    ----------
    decay : Decay
        Eigenvalues λ of the features' covariance.
    horizon : array_like, shape (...)
        Horizon a = N η; may be empty.

    Examples
    --------
    >>> effective_dimension(PowerLawDecay(2.0), [1.0, 10.0]).round(3)
    array([1.645, 5.838])

    Source
    ------
    anon2024, Corollary 4.3 and the text after it.
    """
    a = require_real("horizon", horizon, least=1e-100, most=1e112)
    cutoff = decay.cutoff(a)
    return cutoff + a * decay.tail_sum(cutoff)


class BoundParts(NamedTuple):
    """Terms of a bound and their sum, each with the shape of the step sizes."""

    bias: FloatArray
    variance: FloatArray
    private: FloatArray

    @property
    def total(self) -> FloatArray:
        return self.bias + self.variance + self.private


def identity_bound(
    decay: Decay, *, sample_size: float, step_size: ArrayLike, noise_multiplier: float
) -> BoundParts:
    r"""Risk bound for Σ = I if ‖w_0 - w*‖, label noise and residual estimates are at most 1.

    .. math:: \frac1{N\eta} + \Big(\frac1N + \frac1{N^2\eta}\Big) D + \tau^2\eta D,
        \qquad D = D(N\eta)

    Parameters
    ----------
    decay : Decay
        Eigenvalues of the features' covariance; D is their `effective_dimension`.
    sample_size : float
        Number N of samples.
    step_size : array_like, shape (...)
        η; may be empty.
    noise_multiplier : float
        τ, for noise of shape Σ; 0 gives the bound without privacy.

    Source
    ------
    anon2024, Corollary 4.3.
    """
    return _bound(decay, sample_size, step_size, noise_multiplier, designed=False)


def designed_bound(
    decay: Decay, *, sample_size: float, step_size: ArrayLike, noise_multiplier: float
) -> BoundParts:
    r"""Risk bound for noise shape Σ = H + I/(Nη), the public-data design at the true covariance H.

    .. math:: \dots + \tau^2\Big[\eta^2\operatorname{tr}(H^2) D + \frac{D^3}{N}\Big]

    The dots are the first two terms of `identity_bound`, with the same parameters and dimension D.

    Source
    ------
    anon2024, Corollary 4.5 with penalty M/(Nη), M public rows. D³ comes from ψ⁴ in equation (B.16).
    """
    return _bound(decay, sample_size, step_size, noise_multiplier, designed=True)


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
    r"""Risk bound for any noise shape Σ with the eigenvectors of H, at the best cutoff k ≥ 1.

    For features of scale σ_z = 1, let Λ = k/N + Nη² Σ_{i>k} λ_i², Q = I_{0:k} + NηH_{k:∞},
    R = H_{0:k}^{-1} + N²η²H_{k:∞} and Ḡ = η tr(HΣ) Q + (ψ² + ψ⁴ + 1)Σ; 0:k means the first k.

    .. math::
        \frac{\|w^*\|^2_{H_{0:k}^{-1}}}{\eta^2N^2} + \|w^*\|^2_{H_{k:\infty}}
        + \frac{\|w^*\|_Q^2}{N\eta(1-\eta\operatorname{tr}H)}\Lambda
        + \sigma_\zeta^2(1+\eta\langle Q, H\rangle)\Lambda
        + \tau^2\eta\langle Q,\bar G\rangle\Lambda
        + \frac{\tau^2}{N}\langle R,\bar G\rangle

    The bound is infinite if η tr H ≥ 1; the theorem does not cover that case.

    Parameters
    ----------
    eigenvalues, target, sample_size, step_size
        Eigenvalues λ, not increasing; target w*, number N of steps and η, as in `sgd_risk`.
    covariance : array_like, shape (d,)
        Diagonal of Σ in the eigenbasis.
    noise_multiplier, clip_norm, label_noise_std : float
        τ, ψ (the paper's ψ_max) and σ_ζ; each may be 0.

    Source
    ------
    anon2024, Theorem 4.2.
    """
    lam, eta, size = _setting(eigenvalues, step_size, sample_size)
    if np.any(np.diff(lam) > 0) or lam[-1] < LEAST:
        raise ValueError(f"eigenvalues must be non-increasing and at least {LEAST:g}, got others")
    start, shape = _along("target", target, lam, least=-MOST), _along("covariance", covariance, lam)
    tau, psi, label_noise_std = require_scales(
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
    variance = label_noise_std**2 * ((1 + eta * q_of_h) * spread)
    along = eta * np.sum(lam * shape)
    clipped = psi**2 + (psi**2) ** 2 + 1
    q_of_g = along * q_of_q + clipped * (np.cumsum(shape) + horizon * _tail(lam * shape))
    r_of_q = np.cumsum(1 / lam) + horizon**3 * _tail(lam**2)
    r_of_g = along * r_of_q + clipped * (np.cumsum(shape / lam) + horizon**2 * _tail(lam * shape))
    private = tau**2 * (eta * q_of_g * spread + r_of_g / size)
    best = int(np.argmin(bias + variance + private))
    return BoundParts(np.asarray(bias[best]), np.asarray(variance[best]), np.asarray(private[best]))


class Minimum(NamedTuple):
    """Step size with the least bound, and the bound at that step size."""

    step_size: float
    value: float


def minimise_over_step_size(
    bound: Callable[[FloatArray], FloatArray], *, sample_size: float
) -> Minimum:
    """Least value of a bound among step sizes from 1/N to 1.

    The search tries a logarithmic grid of 600 step sizes, then two finer grids around the best one.
    It uses no derivative, because bounds jump where the whole number k* changes.
    """
    least = 1 / sample_size
    low, high = np.log(least), 0.0
    best = Minimum(np.nan, np.inf)
    for points in (600, 200, 200):
        grid = np.linspace(low, high, points)
        # Exponentials of the ends' logarithms may round to beyond the ends.
        steps = np.clip(np.exp(grid), least, 1.0)
        values = bound(steps)
        at = int(np.argmin(values))
        if values[at] < best.value or np.isnan(best.step_size):
            best = Minimum(float(steps[at]), float(values[at]))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, points - 1)]
    return best


def fitted_exponent(sample_sizes: ArrayLike, values: ArrayLike) -> float:
    """Exponent x of the least-squares fit log(value) = c - x log(N), from at least two sizes."""
    logs = _log_ratios(np.asarray(sample_sizes, dtype=float))
    logs = logs - np.mean(logs)
    return float(-(logs @ _log_ratios(np.asarray(values, dtype=float))) / (logs @ logs))


def nonprivate_exponent(decay: Number) -> Number:
    """Exponent x = r/(1+r) in SGD's risk Õ(N^-x) without privacy, for λ_i = i^-r (Table 1)."""
    return _checked_decay(decay) / (1 + decay)


def identity_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""Exponent x in the excess risk Õ(N^-x) of DP-FTRL with Σ = I at ε = N^p (Corollary 4.4).

    .. math:: x = \frac r{1+r} - \frac r{1+2r}\max\Big(0, \frac r{1+r} - 2p\Big)
    """
    best: Any = nonprivate_exponent(decay)
    return best - decay / (1 + 2 * decay) * max(0 * best, best - 2 * epsilon_power)


def designed_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""Exponent x in the excess risk Õ(N^-x) of DP-FTRL with Σ = H + I/(Nη) (Corollary 4.6).

    .. math:: x = \frac r{1+r} - \max\Big(0,
        \frac r{3+r}\Big(\frac 2{1+r} - 2p\Big),
        \frac r{1+3r}\Big(\frac{r-1}{1+r} - 2p\Big)\Big)
    """
    best: Any = nonprivate_exponent(decay)
    spared = 2 * epsilon_power
    first = decay / (3 + decay) * (2 / (1 + decay) - spared)
    second = decay / (1 + 3 * decay) * ((decay - 1) / (1 + decay) - spared)
    return best - max(0 * best, first, second)


def identity_threshold(decay: Number) -> Number:
    """Least p in ε = N^p at which Σ = I has the non-private rate: r/(2+2r) (Corollary 4.4)."""
    return nonprivate_exponent(decay) / 2


def designed_threshold(decay: Number) -> Number:
    """As `identity_threshold`, for Σ = H + I/(Nη): max(1/(1+r), (r-1)/(2+2r)) (Corollary 4.6)."""
    _checked_decay(decay)
    return max(1 / (1 + decay), (decay - 1) / (2 + 2 * decay))


def _checked_decay(decay: Number) -> Number:
    require_number("decay", float(decay), above=1)
    return decay


def switch_points() -> dict[str, Fraction]:
    """Integer decay exponents r at which two rates are equal, so that their order changes.

    `better`: at constant ε, `designed_exponent` passes `identity_exponent` (Section 4.2: r ≥ 2).
    `branch`: at constant ε the maximum in `designed_exponent` changes branch. `threshold`: the
    maximum in `designed_threshold` changes branch. `threshold_better`: `designed_threshold` falls
    below `identity_threshold`. The last three points follow from Corollaries 4.4 and 4.6.
    """

    def first(gap: Callable[[Fraction], Fraction]) -> Fraction:
        return next(r for r in map(Fraction, range(2, 100)) if gap(r) == 0)

    return {
        "better": first(lambda r: designed_exponent(r) - identity_exponent(r)),
        "branch": first(lambda r: r / (3 + r) - 2 * r / (1 + 3 * r)),
        "threshold": first(lambda r: 1 / (1 + r) - (r - 1) / (2 + 2 * r)),
        "threshold_better": first(lambda r: designed_threshold(r) - identity_threshold(r)),
    }


def _setting(
    eigenvalues: ArrayLike, step_size: float, sample_size: int
) -> tuple[FloatArray, float, int]:
    lam = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=MOST)
    return lam, require_scale("step_size", step_size), require_count("sample_size", sample_size)


def _along(name: str, values: ArrayLike, lam: FloatArray, *, least: float = 0.0) -> FloatArray:
    return require_array(name, values, shape=lam.shape, least=least, most=MOST)


def _noise(lam: FloatArray, covariance: ArrayLike, noise_std: float) -> tuple[FloatArray, float]:
    shape = _along("covariance", covariance, lam)
    return shape, require_scale("noise_std", noise_std, zero=True)


def _decoder(decoder: ArrayLike, steps: int) -> FloatArray:
    beta = require_array("decoder", decoder, shape=(None,), least=-MOST, most=MOST)
    if beta.size < steps:
        raise ValueError(f"decoder must have at least {steps} coefficients, got {beta.size}")
    return beta[:steps]


def _shrinkage(shrinkage: ArrayLike, sample_size: int) -> tuple[FloatArray, int]:
    x = require_real("shrinkage", shrinkage, least=0, most=1)
    return x, require_count("sample_size", sample_size)


@njit(nogil=True, cache=True, error_model="numpy")
def _impulse_risks(lam: FloatArray, shape: FloatArray, eta: float, kicks: FloatArray) -> FloatArray:
    """½ λᵀE[S²] of the sum S of the first L iterates, L from 1, if step l adds -η `kicks`[l] z."""
    # z has the covariance diag(shape).
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


def _bound(
    decay: Decay,
    sample_size: float,
    step_size: ArrayLike,
    noise_multiplier: float,
    *,
    designed: bool,
) -> BoundParts:
    """Either bound; the order of its products keeps them from rounding to 0."""
    size, eta, tau = float(sample_size), np.asarray(step_size, dtype=float), float(noise_multiplier)
    dimension = effective_dimension(decay, size * eta)
    variance = dimension * (1.0 / size) + (dimension / (size * eta)) * (1.0 / size)
    if designed:
        along, across = tau * eta * np.sqrt(decay.squared_trace), tau * dimension
        private = along * (along * dimension) + across * (across * (dimension / size))
    else:
        private = (tau * eta) * (tau * dimension)
    return BoundParts(1.0 / (size * eta), variance, private)


def _tail(values: FloatArray) -> FloatArray:
    """Sums of the entries after the first k, for k from 1."""
    sums: FloatArray = np.concatenate([np.cumsum(values[:0:-1])[::-1], [0.0]])
    return sums


def _log_ratios(values: FloatArray) -> FloatArray:
    """Logarithms of the values relative to the first, accurate also for small differences."""
    first = values[0]
    near = np.abs(values - first) < first / 2
    ratios = np.log1p((np.where(near, values, first) - first) / first)
    return np.where(near, ratios, np.log(values) - np.log(first))
