"""Rates of DP-FTRL in the sample size (anon2024, Table 1), and rates fitted to a bound."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import FloatArray, require_number

Number = TypeVar("Number", Fraction, float)
# For λ_i = e^-i at a constant ε: without privacy, Σ = I, the designed Σ (second parts of
# Corollaries 4.4 and 4.6).
EXPONENTIAL_EXPONENTS = (Fraction(1), Fraction(1, 2), Fraction(2, 3))


def nonprivate_exponent(decay: Number) -> Number:
    """x in the excess risk Õ(N^-x) of SGD without privacy, r/(1+r) (Table 1)."""
    require_number("decay", float(decay), above=1)
    return decay / (1 + decay)


def identity_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""x in the excess risk Õ(N^-x) of DP-FTRL with Σ = I at ε = N^p (Corollary 4.4).

    .. math:: x = \frac r{1+r} - \frac r{1+2r}\max\Big(0, \frac r{1+r} - 2p\Big)
    """
    best: Any = nonprivate_exponent(decay)
    return best - decay / (1 + 2 * decay) * max(0 * best, best - 2 * epsilon_power)


def designed_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""x in the excess risk Õ(N^-x) of DP-FTRL with Σ = H + I/(Nη) (Corollary 4.6).

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
    """p at which ε = N^p gives Σ = I the rate without privacy, r/(2+2r) (Corollary 4.4)."""
    return nonprivate_exponent(decay) / 2


def designed_threshold(decay: Number) -> Number:
    """The same for the designed Σ, max(1/(1+r), (r-1)/(2+2r)) (Corollary 4.6)."""
    require_number("decay", float(decay), above=1)
    return max(1 / (1 + decay), (decay - 1) / (2 + 2 * decay))


def switch_points() -> dict[str, Fraction]:
    """Whole decay exponents at which the rates change character: two of them are equal.

    `better`: where the designed Σ's exponent passes that of Σ = I at constant ε; `branch`: where
    its own minimum changes branch; `threshold`: where its ε threshold does; `threshold_better`:
    where its threshold falls below that of Σ = I. The first is in Section 4.2 (r ≥ 2); the others
    follow from Corollaries 4.4 and 4.6.
    """

    def first(gap: Callable[[Fraction], Fraction]) -> Fraction:
        return next(r for r in map(Fraction, range(2, 100)) if gap(r) == 0)

    return {
        "better": first(lambda r: designed_exponent(r) - identity_exponent(r)),
        "branch": first(lambda r: r / (3 + r) - 2 * r / (1 + 3 * r)),
        "threshold": first(lambda r: 1 / (1 + r) - (r - 1) / (2 + 2 * r)),
        "threshold_better": first(lambda r: designed_threshold(r) - identity_threshold(r)),
    }


class Minimum(NamedTuple):
    """Best step size of a bound and the bound there."""

    step_size: float
    value: float


def minimise_over_step_size(
    bound: Callable[[FloatArray], FloatArray], *, sample_size: float
) -> Minimum:
    """Least value of a bound over step sizes between 1/N and 1.

    The floor in k* makes bounds jump, so that no derivative is used: 600 steps even in the
    logarithm, then two finer grids around the best.
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
    """x of the least-squares fit log(value) = c - x log(N), from at least two sizes."""
    logs = _log_ratios(np.asarray(sample_sizes, dtype=float))
    logs = logs - np.mean(logs)
    return float(-(logs @ _log_ratios(np.asarray(values, dtype=float))) / (logs @ logs))


def _log_ratios(values: FloatArray) -> FloatArray:
    """Logarithms of the values over the first, with the digits of small differences."""
    first = values[0]
    near = np.abs(values - first) < first / 2
    ratios = np.log1p((np.where(near, values, first) - first) / first)
    return np.where(near, ratios, np.log(values) - np.log(first))
