"""Zero-concentrated differential privacy: Gaussian mechanism, composition, (ε, δ) conversion.

A mechanism is ρ-zCDP if D_α(M(D)‖M(D')) ≤ ρα for all neighbours D, D' and all orders α > 1. What
neighbours are enters only through the sensitivity (`privreg.privacy.neighbours`): every function
here keeps the relation that its input was computed for. A paper that writes its budget as ρ²/2
passes ρ²/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_real


def gaussian_budget(*, sensitivity: ArrayLike, noise_std: ArrayLike) -> NDArray[np.float64]:
    r"""zCDP budget of one Gaussian mechanism.

    .. math:: \rho = \frac{\Delta^2}{2\lambda^2}

    Parameters
    ----------
    sensitivity : array_like, shape (...)
        ℓ2 sensitivity Δ of what is released, at least 0.
    noise_std : array_like, shape (...)
        Standard deviation λ of the noise in each coordinate, at least 0.

    Returns
    -------
    ndarray, shape (...)
        ρ; 0 without sensitivity, otherwise `inf` without noise.

    Guarantee
    ---------
    Releasing f(D) + N(0, λ² I) is ρ-zCDP under the neighbouring relation of the sensitivity, and no
    smaller ρ holds if some pair of neighbours attains Δ.

    Source
    ------
    brown2024, Claim A.5.
    """
    shift, spread = np.broadcast_arrays(
        require_real("sensitivity", sensitivity, least=0, infinite=True),
        require_real("noise_std", noise_std, least=0, infinite=True),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(shift == 0, 0.0, shift / spread)
    return 0.5 * ratio**2


def gaussian_noise_std(*, sensitivity: ArrayLike, rho: ArrayLike) -> NDArray[np.float64]:
    r"""Least noise of a Gaussian mechanism with a given zCDP budget, λ = Δ / √(2ρ).

    Parameters
    ----------
    sensitivity : array_like, shape (...)
        ℓ2 sensitivity Δ, at least 0.
    rho : array_like, shape (...)
        Budget ρ, more than 0; `inf` adds no noise.

    Returns
    -------
    ndarray, shape (...)
        λ, the inverse of `gaussian_budget`.

    Source
    ------
    brown2024, Claim A.5.
    """
    budget = require_real("rho", rho, above=0, infinite=True)
    return require_real("sensitivity", sensitivity, least=0, infinite=True) / np.sqrt(2 * budget)


def compose(budgets: ArrayLike, *, axis: int | None = None) -> NDArray[np.float64]:
    r"""Budget of releasing everything, each release may depend on the earlier ones: ρ = Σ ρ_i.

    Parameters
    ----------
    budgets : array_like, shape (...)
        Budgets ρ_i of the releases under one neighbouring relation, at least 0.
    axis : int, optional
        Axis of the releases; all axes by default.

    Returns
    -------
    ndarray
        The sum.

    Source
    ------
    brown2024, Claim A.4.
    """
    return np.asarray(np.sum(require_real("budgets", budgets, least=0, infinite=True), axis=axis))


def to_approximate(rho: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    r"""Closed-form ε at which ρ-zCDP implies (ε, δ)-DP.

    .. math:: \varepsilon = \rho + 2\sqrt{\rho\ln(1/\delta)}

    Parameters
    ----------
    rho : array_like, shape (...)
        Budget ρ, at least 0.
    delta : array_like, shape (...)
        δ in (0, 1].

    Returns
    -------
    ndarray, shape (...)
        ε, increasing in ρ and decreasing in δ. It is an upper bound; `to_approximate_tight` is
        smaller.

    Guarantee
    ---------
    Every ρ-zCDP mechanism is (ε, δ)-DP under the same neighbouring relation.

    Source
    ------
    brown2024, Claim A.6; bombari2025, Proposition A.3 with ρ²/2 in place of ρ.
    """
    budget = require_real("rho", rho, least=0, infinite=True)
    return budget + 2 * np.sqrt(budget * _log_inverse(delta))


def from_approximate(epsilon: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    r"""Largest ρ whose closed-form conversion is at most ε.

    .. math::
        \rho = \Big(\frac{\varepsilon}{\sqrt{L + \varepsilon} + \sqrt L}\Big)^2,
        \qquad L = \ln(1/\delta)

    Parameters
    ----------
    epsilon : array_like, shape (...)
        ε, at least 0.
    delta : array_like, shape (...)
        δ in (0, 1].

    Returns
    -------
    ndarray, shape (...)
        ρ, the inverse of `to_approximate` in ρ.

    Guarantee
    ---------
    Every mechanism with this ρ is (ε, δ)-DP. The converse fails: (ε, δ)-DP implies no zCDP.

    Source
    ------
    brown2024, Claim A.6 solved for ρ.
    """
    target = require_real("epsilon", epsilon, least=0, infinite=True)
    target, log_inverse = np.broadcast_arrays(target, _log_inverse(delta))
    denominator = np.sqrt(log_inverse + target) + np.sqrt(log_inverse)
    # At ε = 0 with δ = 1 both vanish, and so does ρ.
    return np.square(np.divide(target, denominator, out=np.zeros_like(target), where=target > 0))


def to_approximate_tight(rho: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    r"""Smaller ε at which ρ-zCDP implies (ε, δ)-DP, from the best Rényi order.

    .. math::
        \varepsilon = \min_{\alpha > 1}\; \rho\alpha
        + \frac{\ln(1/\delta) - \ln\alpha}{\alpha - 1} + \ln\Big(1 - \frac1\alpha\Big)

    Parameters
    ----------
    rho : array_like, shape (...)
        Budget ρ, at least 0 and finite.
    delta : array_like, shape (...)
        δ in (0, 1).

    Returns
    -------
    ndarray, shape (...)
        ε, at most `to_approximate`, and 0 where δ alone covers the divergence. The minimum runs
        over a fine grid of orders that contains 1 + √(ln(1/δ)/ρ), the best order of the closed
        form; any grid gives a valid ε.

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

    budget, failure = np.broadcast_arrays(
        require_real("rho", rho, least=0), require_real("delta", delta, above=0, below=1)
    )
    epsilon = np.zeros(budget.shape)
    grid = np.concatenate([[1.0], np.geomspace(0.05, 20.0, 2000)])
    for index in np.ndindex(budget.shape):
        this_rho, this_delta = float(budget[index]), float(failure[index])
        if this_rho == 0.0:
            continue
        orders = 1 + np.sqrt(-np.log(this_delta) / this_rho) * grid
        tight = compute_epsilon(orders, this_rho * orders, this_delta)[0]
        # dp-accounting leaves out orders below 1.01, where the closed form can be the better one.
        epsilon[index] = min(tight, float(to_approximate(this_rho, delta=this_delta)))
    return epsilon


def from_approximate_tight(epsilon: ArrayLike, *, delta: ArrayLike) -> NDArray[np.float64]:
    """Largest ρ whose tight conversion is at most ε, the inverse of `to_approximate_tight`.

    Parameters
    ----------
    epsilon : array_like, shape (...)
        ε, more than 0 and finite.
    delta : array_like, shape (...)
        δ in (0, 1).

    Returns
    -------
    ndarray, shape (...)
        ρ, at least `from_approximate`, to a relative 1e-9 from below.

    Guarantee
    ---------
    Every mechanism with this ρ is (ε, δ)-DP.

    Source
    ------
    As `to_approximate_tight`, inverted numerically.
    """
    target, failure = np.broadcast_arrays(
        require_real("epsilon", epsilon, above=0), require_real("delta", delta, above=0, below=1)
    )
    rho = np.empty(target.shape)
    for index in np.ndindex(target.shape):
        wanted, this_delta = float(target[index]), float(failure[index])
        low = float(from_approximate(wanted, delta=this_delta))
        high = 2 * low
        while to_approximate_tight(high, delta=this_delta) <= wanted:
            low, high = high, 2 * high
        while high - low > 1e-9 * low:
            middle = 0.5 * (low + high)
            inside = to_approximate_tight(middle, delta=this_delta) <= wanted
            low, high = (middle, high) if inside else (low, middle)
        rho[index] = low
    return rho


def _log_inverse(delta: ArrayLike) -> NDArray[np.float64]:
    return -np.log(require_real("delta", delta, above=0, most=1))
