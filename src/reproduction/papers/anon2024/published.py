"""The paper's own accounting, Theorem 4.1, and its residual estimates, Algorithm 2."""

from __future__ import annotations

from math import ceil, inf, log2, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privreg.algorithms.shaped_dp_ftrl import ResidualClip
from privreg.privacy.budget import gaussian_epsilon, to_approximate

# β_1 of the paper, "some large constant": groups that a private estimate needs, per log/ε.
GROUPS_FACTOR = 8.0


def published_noise_multiplier(*, epsilon: float, delta: float, steps: int) -> float:
    r"""The paper's τ, which keeps (ε, δ) for zero-out neighbours but not for its own replace-one.

    .. math:: \tau^2 = \frac{4\bar k(\ln(1/\delta)+\varepsilon)}{\varepsilon^2},
        \qquad \bar k = \lceil\log_2 N\rceil + 1

    The proof of Theorem 4.1 bounds the sensitivity of a node by 2ψ and then charges α/(2τ²) a node,
    which is what a sensitivity of ψ costs; `published_readings` says what holds.
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


def public_residual_scale(
    features: np.ndarray, labels: np.ndarray, parameters: np.ndarray
) -> float:
    r"""Root of twice the mean squared residual of public rows (Algorithm 2, Option 1).

    .. math:: l = \sqrt{\frac2m\sum_{i\le m}(\tilde y_i - \tilde x_i^\top w)^2}

    Its square estimates twice ‖w - w*‖²_H + σ².
    """
    return ResidualClip(1.0, features, labels).clip_norm(parameters)


def private_residual_scale(
    features: ArrayLike,
    labels: ArrayLike,
    parameters: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    failure_probability: float,
    rng: np.random.Generator,
) -> float:
    """Private version: the fullest dyadic bin of group means, by a stability histogram (Option 2).

    The squared residuals are split into groups; a bin [2^k, 2^(k+1)) that holds a share of the
    group means gets Laplace noise of scale 2/(εg) for g groups, and only a noisy share of at least
    2 ln(2/δ)/(εg) + 1/g counts. The scale is √(2 b) for the upper end b of the bin, so that its
    square is 2 to 4 times the mean of a typical group; `inf` if no bin is full enough to be named.
    Fewer rows than `private_groups_needed` are refused: the histogram would be noise.

    Guarantee
    ---------
    The estimate is (ε, δ)-DP for replacing one of these rows, none of which is used elsewhere: one
    group's mean moves from one bin to another, which changes two shares by 1/g each.

    Source
    ------
    Algorithm 2, Option 2, after Karwa and Vadhan (2017), Lemma 2.3. As printed, lines 9 to 12 add
    noise only to shares below the threshold and drop those above, which would return an almost
    empty bin without privacy; here the noisy share is compared, as in the lemma.
    """
    squared = (np.asarray(labels) - np.asarray(features) @ np.asarray(parameters)) ** 2
    groups = private_groups_needed(
        epsilon=epsilon, delta=delta, failure_probability=failure_probability
    )
    if squared.size < groups:
        raise ValueError(
            f"labels must have at least {groups} rows for a private residual estimate at "
            f"epsilon = {epsilon:.3g}, got {squared.size}"
        )
    means = np.array([group.mean() for group in np.array_split(squared, groups)])
    bins, counts = np.unique(np.floor(np.log2(means)), return_counts=True)
    noisy = counts / groups + rng.laplace(0.0, 2.0 / (epsilon * groups), bins.size)
    threshold = 2.0 * np.log(2.0 / delta) / (epsilon * groups) + 1.0 / groups
    fullest = int(np.argmax(noisy))
    return float(np.sqrt(2.0 * np.exp2(bins[fullest] + 1))) if noisy[fullest] >= threshold else inf


def private_groups_needed(*, epsilon: float, delta: float, failure_probability: float) -> int:
    """Groups, and so rows at least, for a private estimate: ⌈β_1 ln(1/(βδ)) / ε⌉."""
    return int(np.ceil(GROUPS_FACTOR * np.log(1.0 / (failure_probability * delta)) / epsilon))


def private_share(*, epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    """(ε, δ) of each of many private estimates, ε/√(8 N ln(2/δ)) and δ/(2N), by Theorem 4.1.

    All calls together are (ε, δ)-DP by advanced composition, for ε below about 4 ln(2/δ).
    """
    largest = 4 * np.log(2 / delta)
    share = float(epsilon / np.sqrt(2 * calls * largest))
    # What composition adds to ε/2 is Nε̃(e^ε̃ - 1), at most ε²(1 + ε̃)/(2·largest) for ε̃ ≤ 1.
    if epsilon * (1 + share) > largest or share > 1:
        raise ValueError(f"epsilon must be less than {largest:.3g}, got {epsilon}")
    return share, delta / (2 * calls)
