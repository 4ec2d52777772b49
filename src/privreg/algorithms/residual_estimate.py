"""Size of a model's residuals, from public rows or privately: the scale of a clip norm."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privreg.validation import (
    FloatArray,
    require_answer,
    require_array,
    require_count,
    require_number,
    require_rng,
)

# β_1 of the paper, "some large constant": groups that a private estimate needs, per log/ε.
GROUPS_FACTOR = 8.0


def public_residual_scale(features: ArrayLike, labels: ArrayLike, parameters: ArrayLike) -> float:
    r"""Root of twice the mean squared residual of public rows (Option 1).

    .. math:: l = \sqrt{\frac2m\sum_{i\le m}(\tilde y_i - \tilde x_i^\top w)^2}

    Its square estimates twice ‖w - w*‖²_H + σ².

    Source
    ------
    anon2024, Algorithm 2, Option 1.
    """
    squared = _squared_residuals(features, labels, parameters)
    with np.errstate(over="ignore"):
        mean = np.asarray(np.mean(squared))
    # Public rows may be complained about; private ones are not looked at aloud.
    return float(np.sqrt(2.0 * require_answer("features, labels and parameters", mean)))


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
    square is 2 to 4 times the mean of a typical group; 0 if the group means are 0, `inf` if they
    are beyond double precision or if no bin is full enough to be named. Fewer rows than
    `private_groups_needed` are refused: the histogram would be noise.

    Guarantee
    ---------
    The estimate is (ε, δ)-DP for replacing one of these rows, none of which is used elsewhere: one
    group's mean moves from one bin to another, which changes two shares by 1/g each.

    Source
    ------
    anon2024, Algorithm 2, Option 2, after Karwa and Vadhan (2017), Lemma 2.3. As printed, lines 9
    to 12 add noise only to shares below the threshold and drop those above, which would return an
    almost empty bin without privacy; here the noisy share is compared, as in the lemma.
    """
    squared = _squared_residuals(features, labels, parameters)
    require_rng("rng", rng)
    groups = private_groups_needed(
        epsilon=epsilon, delta=delta, failure_probability=failure_probability
    )
    if squared.size < groups:
        raise ValueError(
            f"labels must have at least {groups} rows for a private residual estimate at "
            f"epsilon = {epsilon:.3g}, got {squared.size}; use public rows or a fixed clip norm"
        )
    with np.errstate(divide="ignore", over="ignore"):
        means = _group_means(squared, groups)
        exponents = np.floor(np.log2(means))
    bins, counts = np.unique(exponents, return_counts=True)
    noisy = counts / groups + rng.laplace(0.0, 2.0 / (epsilon * groups), bins.size)
    threshold = 2.0 * np.log(2.0 / delta) / (epsilon * groups) + 1.0 / groups
    fullest = int(np.argmax(noisy))
    if noisy[fullest] < threshold:
        # No bin is full enough to be named; the widest that a caller can still clip by is none.
        return float("inf")
    with np.errstate(over="ignore"):
        return float(np.sqrt(2.0 * np.exp2(bins[fullest] + 1)))


def private_groups_needed(*, epsilon: float, delta: float, failure_probability: float) -> int:
    """Groups, and so rows at least, for a private estimate: ⌈β_1 ln(1/(βδ)) / ε⌉."""
    share = require_number("epsilon", epsilon, least=1e-100)
    small = require_number("delta", delta, least=1e-150, below=1)
    chance = require_number("failure_probability", failure_probability, least=1e-150, below=1)
    return int(np.ceil(GROUPS_FACTOR * np.log(1.0 / (chance * small)) / share))


def private_share(*, epsilon: float, delta: float, calls: int) -> tuple[float, float]:
    r"""(ε, δ) of each of many private estimates: ε/√(8 N ln(2/δ)) and δ/(2N).

    Guarantee
    ---------
    All calls together are (ε, δ)-DP by advanced composition, for ε below about 4 ln(2/δ).

    Source
    ------
    anon2024, Theorem 4.1.
    """
    total = require_number("epsilon", epsilon, above=0)
    small = require_number("delta", delta, above=0, below=1)
    number = require_count("calls", calls)
    largest = 4 * np.log(2 / small)
    share = float(total / np.sqrt(2 * number * largest))
    # What composition adds to ε/2 is Nε̃(e^ε̃ - 1), at most ε²(1 + ε̃)/(2·largest) for ε̃ ≤ 1.
    if total * (1 + share) > largest or share > 1:
        raise ValueError(f"epsilon must be less than {largest:.3g}, got {total}")
    return share, small / (2 * number)


def _group_means(values: FloatArray, groups: int) -> FloatArray:
    """Means of consecutive groups; the first have one row more where sizes do not divide."""
    size, more = divmod(values.size, groups)
    long, short = np.split(values, [more * (size + 1)])
    means = [long.reshape(more, size + 1).mean(axis=1), short.reshape(-1, size).mean(axis=1)]
    return np.concatenate(means)


def _squared_residuals(features: ArrayLike, labels: ArrayLike, parameters: ArrayLike) -> FloatArray:
    rows = require_array("features", features, shape=(None, None))
    values = require_array("labels", labels, shape=(len(rows),))
    weights = require_array("parameters", parameters, shape=(rows.shape[1],))
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = values - rows @ weights
        # Opposite infinities inside a product: a residual beyond double precision all the same.
        return np.where(np.isnan(residuals), np.inf, residuals) ** 2
