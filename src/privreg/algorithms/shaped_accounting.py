r"""Privacy of shaped one-pass noise, computed from the noise that is added.

Node noise N(0, (τψ)²Σ) hides gradients of norm √(gᵀΣ⁻¹g) ≤ ψ. With the correlation's sensitivity
γ (for the tree √k, k the nodes that hold a record and enter a prefix), releasing all prefixes is
one Gaussian mechanism of budget

.. math:: \rho = \frac{(s\gamma)^2}{2\tau^2},
    \qquad s = 2 \text{ (replace-one)},\ s = 1 \text{ (zero-out)}.
"""

from __future__ import annotations

from math import ceil, log2, sqrt
from typing import NamedTuple

import numpy as np

from privreg.noise.correlations import Correlation
from privreg.privacy.budget import Budget
from privreg.privacy.gaussian_dp import gaussian_epsilon
from privreg.privacy.neighbours import Neighbours, sum_sensitivity
from privreg.privacy.zcdp import to_approximate
from privreg.validation import require_count, require_instance, require_number


def shaped_noise_multiplier(budget: Budget, *, correlation: Correlation, steps: int) -> float:
    """Least noise multiplier τ at which all iterates of one pass keep a budget, sγ/√(2ρ).

    Guarantee
    ---------
    Releasing every prefix sum of gradients clipped at ψ with node noise τψ keeps the budget, for
    replace-one or zero-out neighbours, and so do the iterates that depend on them, also where ψ
    follows earlier iterates and public rows and a node takes the largest ψ so far.
    """
    require_instance("budget", budget, Budget)
    factor = _sensitivity(budget.neighbours, correlation, steps)
    return factor / budget.root


def shaped_budget(
    noise_multiplier: float,
    *,
    correlation: Correlation,
    steps: int,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
) -> Budget:
    """The budget that a noise multiplier keeps, the inverse of `shaped_noise_multiplier`."""
    multiplier = require_number("noise_multiplier", noise_multiplier, least=1e-100, most=1e100)
    relation = Neighbours(neighbours)
    ratio = _sensitivity(relation, correlation, steps) / multiplier
    return Budget.half_square(ratio, neighbours=relation)


def published_noise_multiplier(*, epsilon: float, delta: float, steps: int) -> float:
    r"""The paper's τ, which keeps (ε, δ) for zero-out neighbours but not for its own replace-one.

    .. math:: \tau^2 = \frac{4\bar k(\ln(1/\delta)+\varepsilon)}{\varepsilon^2},
        \qquad \bar k = \lceil\log_2 N\rceil + 1

    Source
    ------
    anon2024, Theorem 4.1. Its proof bounds the sensitivity of a node by 2ψ and then charges
    α/(2τ²) a node, which is what a sensitivity of ψ costs; `published_readings` says what holds.
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

    Source
    ------
    anon2024, proof of Theorem 4.1: "(α, αk/τ²)-RDP", and its conversion ρ + 2√(ρ ln(1/δ)).
    """
    stated = epsilon**2 / (4 * (epsilon - np.log(delta)))
    budgets = np.array([stated, 2 * stated, stated / 2])
    closed = to_approximate(budgets, delta=delta)
    exact = [gaussian_epsilon(rho, delta=delta) for rho in budgets]
    return PublishedReadings(*map(float, closed), *exact)


def _sensitivity(neighbours: Neighbours, correlation: Correlation, steps: int) -> float:
    if neighbours is Neighbours.ADD_REMOVE:
        raise ValueError(
            "neighbours must be 'replace-one' or 'zero-out', got 'add-remove': a record more would "
            "move the later ones to other steps"
        )
    require_instance("correlation", correlation, Correlation)  # type: ignore[type-abstract]
    change = float(sum_sensitivity(1.0, neighbours=neighbours))
    return change * correlation.sensitivity(require_count("steps", steps))
