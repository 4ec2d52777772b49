"""The paper's own accounting, Theorem 4.1."""

from __future__ import annotations

from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np

from privreg.privacy.budget import gaussian_epsilon, to_approximate


def published_noise_multiplier(*, epsilon: float, delta: float, steps: int) -> float:
    r"""The paper's τ, which suffices for zero-out but not for its own replace-one neighbours.

    .. math:: \tau^2 = \frac{4\bar k(\ln(1/\delta)+\varepsilon)}{\varepsilon^2},
        \qquad \bar k = \lceil\log_2 N\rceil + 1

    The proof of Theorem 4.1 bounds the sensitivity of a node by 2ψ and then charges α/(2τ²) a node,
    the cost of a sensitivity of ψ; `published_readings` computes the true guarantee.
    """
    levels = ceil(log2(steps)) + 1
    return float(sqrt(4 * levels * (epsilon - np.log(delta))) / epsilon)


class PublishedReadings(NamedTuple):
    """ε at the paper's τ by the paper's conversion, and exactly for one Gaussian mechanism."""

    stated: float
    replace_one: float
    zero_out: float
    exact_stated: float
    exact_replace_one: float
    exact_zero_out: float


def published_readings(*, epsilon: float, delta: float) -> PublishedReadings:
    """Guarantee of the paper's noise, whatever N: ρ = k/τ², 2k/τ² and k/(2τ²).

    The proof of Theorem 4.1 states "(α, αk/τ²)-RDP" and converts by ρ + 2√(ρ ln(1/δ)).
    """
    stated = epsilon**2 / (4 * (epsilon - np.log(delta)))
    budgets = np.array([stated, 2 * stated, stated / 2])
    closed = to_approximate(budgets, delta=delta)
    exact = [gaussian_epsilon(rho, delta=delta) for rho in budgets]
    return PublishedReadings(*map(float, closed), *exact)
