"""Zero-concentrated privacy: Gaussian mechanism, composition, iteration, (ε, δ) conversion.

A mechanism is ρ-zCDP if D_α(M(D)‖M(D')) ≤ ρα for all neighbours D, D' and all orders α > 1. What
neighbours are enters only through the sensitivity (`privreg.privacy.neighbours`): every function
here keeps the relation that its input was computed for. A paper that writes its budget as ρ²/2
passes ρ²/2.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.ranges import inside
from privreg.units import ORDINARY
from privreg.validation import require_array, require_broadcast, require_count, require_real

LEAST = float(np.finfo(np.float64).tiny)


def gaussian_budget(*, sensitivity: ArrayLike, noise_std: ArrayLike) -> NDArray[np.float64]:
    r"""zCDP budget of one Gaussian mechanism (brown2024, Claim A.5).

    .. math:: \rho = \frac{\Delta^2}{2\lambda^2}

    It is 0 without sensitivity, otherwise `inf` without noise or with unbounded sensitivity.

    Guarantee
    ---------
    Releasing f(D) + N(0, λ² I) is ρ-zCDP under the neighbouring relation of the sensitivity, and no
    smaller ρ holds if some pair of neighbours attains Δ.
    """
    shift = require_real("sensitivity", sensitivity, least=0, infinite=True)
    spread = require_real("noise_std", noise_std, least=0, infinite=True)
    require_broadcast(sensitivity=shift, noise_std=spread)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.asarray(shift / spread)
        if inside(ratio, least=1e-150):
            return 0.5 * ratio**2
        # No finite noise, and no infinite one either, hides what is unbounded.
        ratio = np.where(shift == 0, 0.0, np.where(np.isinf(shift), np.inf, ratio))
        # A budget that underflows would promise more than the noise gives.
        hidden = (shift > 0) & np.isfinite(spread) & (ratio < 1e-150)
        square = np.where(hidden, 1e-300, ratio**2)
    return 0.5 * square


def gaussian_noise_std(*, sensitivity: ArrayLike, rho: ArrayLike) -> NDArray[np.float64]:
    """Least noise λ = Δ / √(2ρ) of a Gaussian mechanism with a given zCDP budget.

    The inverse of `gaussian_budget`, infinite for an unbounded sensitivity (brown2024, Claim A.5).
    """
    budget = require_real("rho", rho, above=0, infinite=True)
    shift = require_real("sensitivity", sensitivity, least=0, infinite=True)
    require_broadcast(sensitivity=shift, rho=budget)
    with np.errstate(invalid="ignore", over="ignore"):
        # The roots apart, since 2 ρ can overflow.
        noise = np.asarray(shift / (np.sqrt(2.0) * np.sqrt(budget)))
    if inside(noise, least=LEAST):
        return noise
    # Noise that underflows would keep no budget.
    noise = np.where((shift > 0) & np.isfinite(budget), np.maximum(noise, LEAST), noise)
    return np.where(np.isinf(shift), np.inf, noise)


def compose(budgets: ArrayLike, *, axis: int | None = None) -> NDArray[np.float64]:
    """Budget Σ ρ_i of several releases under one neighbouring relation, over one axis or all.

    Each release may depend on the earlier ones (brown2024, Claim A.4).
    """
    spent = require_real("budgets", budgets, least=0, infinite=True)
    if axis is not None and require_count("axis", axis, least=0) >= spent.ndim:
        raise ValueError(f"axis must be less than {spent.ndim}, got {axis}")
    with np.errstate(over="ignore"):
        return np.asarray(np.sum(spent, axis=axis))


def one_pass_zcdp_root(step_sizes: ArrayLike, noise_multipliers: ArrayLike) -> NDArray[np.float64]:
    r"""Privacy parameter of one-pass DP-GD that releases its last iterate, over the last axis.

    .. math:: \rho = \max_k \; \eta_k \Big/ \Big(\sum_{j \ge k} \sigma_j^2\Big)^{1/2}

    Step k adds noise of standard deviation 2 C σ_k a coordinate, where C is the norm that gradients
    are clipped to; the step taken on a sample may be smaller than η_k. ρ is infinite where a sample
    is used and no noise follows.

    Guarantee
    ---------
    The last iterate is ρ²/2-zCDP for data sets that differ in one sample (replace one), provided
    that each sample is used once, its gradient is clipped to norm C, and the step is a contraction,
    which a step of at most 2 / |x|² is for least squares. Earlier iterates stay secret.

    Source
    ------
    bombari2025, Proposition 4.1 and equation (4.1), after Feldman, Mironov, Talwar and Thakurta.
    """
    steps = require_array("step_sizes", step_sizes, shape=(..., None), least=0)
    noise = require_array("noise_multipliers", noise_multipliers, shape=(..., None), least=0)
    require_broadcast(step_sizes=steps, noise_multipliers=noise)
    # In units of the largest noise its squares neither overflow nor lose what matters.
    scale = np.max(noise, axis=-1, keepdims=True)
    relative = noise / np.where(scale > 0, scale, 1.0)
    remaining = np.cumsum((relative**2)[..., ::-1], axis=-1)[..., ::-1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        ratio = steps / scale / np.sqrt(remaining)
        small = (remaining < ORDINARY[0]) & (noise > 0)
        if np.any(small) or not np.all(np.abs(np.log2(scale)) < 200):
            # Squares of the noise that is left at the end, or quotients, may have left the range of
            # double precision. A root of a sum does so only beyond its upper end.
            left = _root_of_rest(noise)
            beyond = np.isinf(left) & np.isfinite(scale)
            left = np.where(beyond, _root_of_rest(np.ldexp(noise, -64)), left)
            (step, own), (deviation, other) = np.frexp(steps), np.frexp(left)
            quotient = np.ldexp(step / deviation, own - other - 64 * beyond)
            ratio = np.where(left > 0, quotient, np.inf)
        largest = np.asarray(np.where(steps > 0, ratio, 0.0).max(axis=-1))
    least = np.finfo(np.float64).tiny
    # A parameter that underflows would promise more than the noise gives.
    return np.where(np.any(steps > 0, axis=-1) & (largest < least), least, largest)


def _root_of_rest(noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Roots of the sums of squares from each place to the end."""
    return np.asarray(np.hypot.accumulate(noise[..., ::-1], axis=-1)[..., ::-1])


def to_approximate(rho: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    r"""Closed-form ε at which ρ-zCDP implies (ε, δ)-DP, for δ in (0, 1].

    .. math:: \varepsilon = \rho + 2\sqrt{\rho\ln(1/\delta)}

    Guarantee
    ---------
    Every ρ-zCDP mechanism is (ε, δ)-DP under the same neighbouring relation.

    Source
    ------
    brown2024, Claim A.6; bombari2025, Proposition A.3 with ρ²/2 in place of ρ.
    """
    budget, log_inverse = require_real("rho", rho, least=0, infinite=True), _log_inverse(delta)
    require_broadcast(rho=budget, delta=log_inverse)
    # The roots apart: a product of an infinity with ln 1 is no number, and one of large numbers
    # overflows.
    root = np.where(log_inverse > 0, np.sqrt(budget), 0.0)
    return budget + 2 * root * np.sqrt(log_inverse)


def from_approximate(epsilon: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    r"""Largest ρ whose closed-form conversion is at most ε, the inverse of `to_approximate`.

    .. math::
        \rho = \Big(\frac{\varepsilon}{\sqrt{L + \varepsilon} + \sqrt L}\Big)^2,
        \qquad L = \ln(1/\delta)

    Guarantee
    ---------
    Every mechanism with this ρ is (ε, δ)-DP. The converse fails: (ε, δ)-DP implies no zCDP.
    """
    target = require_real("epsilon", epsilon, least=0, infinite=True)
    log_inverse = _log_inverse(delta)
    require_broadcast(epsilon=target, delta=log_inverse)
    target, log_inverse = np.broadcast_arrays(target, log_inverse)
    denominator = np.sqrt(log_inverse + target) + np.sqrt(log_inverse)
    # At ε = 0 with δ = 1 both vanish, and so does ρ.
    inside = (target > 0) & np.isfinite(target)
    ratio = np.divide(target, denominator, out=np.array(np.sqrt(target)), where=inside)
    return np.square(ratio)


def to_approximate_tight(rho: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    r"""Smaller ε at which ρ-zCDP implies (ε, δ)-DP, from the best Rényi order.

    .. math::
        \varepsilon = \min_{\alpha > 1}\; \rho\alpha
        + \frac{\ln(1/\delta) - \ln\alpha}{\alpha - 1} + \ln\Big(1 - \frac1\alpha\Big)

    The minimum runs over a fine grid of orders that contains 1 + √(ln(1/δ)/ρ), the best order of
    the closed form; any grid gives a valid ε. ρ is at most 1e100.

    Guarantee
    ---------
    As for `to_approximate`. It is not the exact trade-off of a single Gaussian mechanism, which
    lies lower still, but it holds for every ρ-zCDP mechanism.

    Source
    ------
    Canonne, Kamath and Steinke (2020), Proposition 12, as computed by dp-accounting.
    """
    # Imported here: it costs a second, and the closed form needs none of it.
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    budget, failure = require_real("rho", rho, least=0, most=1e100), _failure(delta)
    require_broadcast(rho=budget, delta=failure)
    budget, failure = np.broadcast_arrays(budget, failure)
    epsilon = np.zeros(budget.shape)
    grid = np.concatenate([[1.0], np.geomspace(0.05, 20.0, 2000)])
    for index in np.ndindex(budget.shape):
        this_rho, this_delta = float(budget[index]), float(failure[index])
        if this_rho == 0.0:
            continue
        # Beyond these orders the bound has reached what it tends to.
        orders = 1 + min(np.sqrt(-np.log(this_delta) / this_rho), 1e100) * grid
        tight = compute_epsilon(orders, this_rho * orders, this_delta)[0]
        # dp-accounting leaves out orders below 1.01, where the closed form can be the better one.
        epsilon[index] = min(tight, float(to_approximate(this_rho, delta=this_delta)))
    return epsilon


def from_approximate_tight(epsilon: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    """Largest ρ whose tight conversion is at most ε, to a relative 1e-9 from below.

    The inverse of `to_approximate_tight`, at least `from_approximate`, for ε from 1e-100 to 1e99.

    Guarantee
    ---------
    Every mechanism with this ρ is (ε, δ)-DP.
    """
    target, failure = require_real("epsilon", epsilon, least=1e-100, most=1e99), _failure(delta)
    require_broadcast(epsilon=target, delta=failure)
    target, failure = np.broadcast_arrays(target, failure)
    rho = np.empty(target.shape)
    for index in np.ndindex(target.shape):
        rho[index] = _largest_tight(float(target[index]), float(failure[index]))
    return rho


@lru_cache(maxsize=1024)
def _largest_tight(epsilon: float, delta: float) -> float:
    """One inversion; it takes a fifth of a second, and a budget is often stated again."""
    low = float(from_approximate(epsilon, delta=delta))
    high = 2 * low
    while to_approximate_tight(high, delta=delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > 1e-9 * low:
        middle = 0.5 * (low + high)
        inside = to_approximate_tight(middle, delta=delta) <= epsilon
        low, high = (middle, high) if inside else (low, middle)
    # Rounding may leave the closed form, if nothing above it was inside, just beyond.
    while to_approximate_tight(low, delta=delta) > epsilon:
        low *= 1 - 1e-15
    return low


def _failure(delta: ArrayLike) -> NDArray[np.float64]:
    return require_real("delta", delta, above=0, below=1)


def _log_inverse(delta: ArrayLike) -> NDArray[np.float64]:
    return -np.log(require_real("delta", delta, above=0, most=1))
