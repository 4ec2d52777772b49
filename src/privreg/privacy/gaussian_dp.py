"""Exact trade-off of Gaussian mechanisms: adaptive compositions of them are one of them.

A composition of mechanisms that only add Gaussian noise, whose shares of ρ are fixed beforehand, is
μ-Gaussian DP with μ = √(2ρ), however each depends on the earlier ones' outputs (Dong, Roth and Su
2022, Corollary 3.3). Its (ε, δ) are then those of a single Gaussian mechanism.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from privreg.immutable import frozen
from privreg.validation import require_number

FloatArray = NDArray[np.float64]
LARGEST = 1e100
# What rounding may take from a sum and from the root in it, relative to its terms, and from δ.
ROUNDING, ROUNDING_OF_DELTA = 16 * float(np.finfo(np.float64).eps), 3e-14


def gaussian_epsilon(rho: float, *, delta: float) -> float:
    r"""Exact ε of one Gaussian mechanism whose zCDP budget is ρ, from 1e-250 to 1e100.

    .. math:: \delta = \Phi\Big(\frac\mu2 - \frac\varepsilon\mu\Big)
        - e^\varepsilon\Phi\Big(-\frac\mu2 - \frac\varepsilon\mu\Big), \qquad \mu = \sqrt{2\rho}

    It is rounded up, and exact to some 1e-14 of the larger of μ²/2 and its distance to it (Balle
    and Wang, 2018, Theorem 8).

    Guarantee
    ---------
    It holds for prefix sums of fixed gradients and, as Gaussian noise on adaptive queries is no
    worse, for those of a run.
    """
    # Imported here: a budget that is stated in another unit needs none of it.
    from scipy.optimize import brentq
    from scipy.special import ndtri

    mu = sqrt(2 * require_number("rho", rho, least=1e-250, most=LARGEST))
    wanted = require_number("delta", delta, above=0, below=1)
    # At ε = μ²/2 + μt nothing large cancels; Φ(40) is 1, and δ is at most Φ(-t).
    low, high = max(-mu / 2, -40.0), 1e-6 - float(ndtri(wanted))
    if _missed(mu, low, wanted) <= 0:
        return 0.0
    shift = brentq(
        lambda t: _missed(mu, t, wanted), low, high, xtol=1e-300, rtol=1e-15, maxiter=2000
    )
    # The sum may be less than what it is rounded to.
    return float(mu * (mu / 2 + shift + ROUNDING * (mu / 2 + abs(shift))))


def _missed(mu: float, shift: float, wanted: float) -> float:
    """By how much δ at ε = μ²/2 + μt, with its rounding, is more than wanted.

    In the logarithm, since a small δ has no digits left itself; next to 1 in its distance to 1.
    """
    if wanted <= 0.5 or mu <= 0.5:
        return _log_delta(mu, shift) - log(wanted) + ROUNDING_OF_DELTA
    from scipy.special import erfcx, ndtr

    left = ndtr(shift) + np.exp(-(shift**2) / 2) * erfcx((mu + shift) / sqrt(2)) / 2
    return float((1 - wanted) * (1 + ROUNDING_OF_DELTA) - left)


def _log_delta(mu: float, shift: float) -> float:
    """Logarithm of δ = e^(-t²/2) (F(t) - F(t + μ)) / 2 at ε = μ²/2 + μt, F(x) = erfcx(x/√2)."""
    from scipy.special import erfcx, ndtr

    if mu <= 0.5:
        # The difference is small: the integral of -F' keeps its digits.
        nodes, weights = _gauss_legendre()
        inside = (shift + mu * (nodes + 1) / 2) / sqrt(2)
        slope = 2 / sqrt(np.pi) - 2 * inside * erfcx(inside)
        return log(mu * (weights @ slope) / (4 * sqrt(2))) - shift**2 / 2
    if shift > 0:
        return log((erfcx(shift / sqrt(2)) - erfcx((mu + shift) / sqrt(2))) / 2) - shift**2 / 2
    return log(ndtr(-shift) - np.exp(-(shift**2) / 2) * erfcx((mu + shift) / sqrt(2)) / 2)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of order 16, which take as long as the rest of a small fit."""
    nodes, weights = np.polynomial.legendre.leggauss(16)
    return frozen(nodes), frozen(weights)


def gaussian_rho(epsilon: float, *, delta: float) -> float:
    """Largest ρ at which Gaussian mechanisms are exactly (ε, δ)-DP, to a relative 1e-12 from below.

    The inverse of `gaussian_epsilon`, for ε from 1e-100 to 1e99 and δ from 1e-100.

    Guarantee
    ---------
    Every composition of Gaussian mechanisms with this budget, its shares fixed beforehand, is
    (ε, δ)-DP. Other mechanisms of ρ-zCDP need `from_approximate_tight`.
    """
    from scipy.optimize import brentq

    target = require_number("epsilon", epsilon, least=1e-100, most=1e99)
    failure = require_number("delta", delta, least=1e-100, below=1)

    def excess(log_rho: float) -> float:
        return gaussian_epsilon(min(float(np.exp(log_rho)), LARGEST), delta=failure) - target

    # ε = 0 is kept up to a total variation of δ, and ε is at most ρ + 2 √(ρ ln(1/δ)).
    low = log(failure**2) - 2.0
    high = log(4 * (target + 1 + failure)) + 5.0
    while high < log(LARGEST) and excess(high) <= 0:
        high += 5.0
    high = min(high, log(LARGEST))
    root = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14, maxiter=500))
    while excess(root) > 0:
        root -= 1e-13 * max(1.0, abs(root))
    return min(float(np.exp(root)), LARGEST)
