"""Gaussian mechanisms on sums over records that share one budget."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.theory.huber_descent.known_noise import symmetric_noise
from privreg.validation import require_count

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyValue:
    """A private statistic and the standard deviation of the noise in it.

    Attributes
    ----------
    value : ndarray
        A symmetric matrix has the noise of `symmetric_noise`, everything else independent noise.
    noise_std : float
    """

    value: FloatArray
    noise_std: float


def private_count(count: int, *, budget: Budget, rng: np.random.Generator) -> Release[float]:
    """A number of records, at least 1, under any of the relations.

    Guarantee
    ---------
    The Gaussian mechanism at sensitivity 1: the number spends the whole budget.
    """
    exact = require_count("count", count)
    std = float(gaussian_noise_std(sensitivity=1.0, rho=budget.rho))
    return Release(max(1.0, exact + std * float(rng.standard_normal())), budget)


@dataclass
class SplitBudget:
    """Gaussian mechanisms that share one budget, and a list of what was spent on what.

    Parameters
    ----------
    budget : Budget
        The whole; shares are parts of its ρ.
    rng : Generator
        Source of the noise.

    Guarantee
    ---------
    What the methods return is together as private as the sum of the shares, if what they are given
    is bounded as they say and depends on the data through it and earlier returns alone.
    """

    budget: Budget
    rng: np.random.Generator
    spent: dict[str, float] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        return self.budget.neighbours is Neighbours.REPLACE_ONE

    def noise_std(self, what: str, share: float, sensitivity: float) -> float:
        self.spent[what] = self.spent.get(what, 0.0) + share
        return float(gaussian_noise_std(sensitivity=sensitivity, rho=share * self.budget.rho))

    def spending(self) -> tuple[tuple[str, Budget], ...]:
        return tuple((what, self.budget.share(min(1.0, x))) for what, x in self.spent.items())

    def histogram(self, what: str, share: float, counts: FloatArray) -> NoisyValue:
        std = self.noise_std(what, share, np.sqrt(2.0) if self.replaces else 1.0)
        return NoisyValue(counts + std * self.rng.standard_normal(counts.shape), std)

    def semidefinite(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        std = self.noise_std(what, share, bound * (np.sqrt(2.0) if self.replaces else 1.0)) / n
        noise = symmetric_noise(len(total), noise_std=std, rng=self.rng)
        return NoisyValue((total + total.T) / (2 * n) + noise, std)

    def vector(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        std = self.noise_std(what, share, bound * (2.0 if self.replaces else 1.0)) / n
        return NoisyValue(total / n + std * self.rng.standard_normal(total.shape), std)

    def number(self, what: str, share: float, total: float, bound: float, n: float) -> NoisyValue:
        std = self.noise_std(what, share, bound) / n
        return NoisyValue(np.asarray(total / n + std * self.rng.standard_normal()), std)
