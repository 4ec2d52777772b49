"""Gaussian mechanisms on sums over records that share one budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.immutable import Uncopied
from privreg.privacy.assumptions import SECRET_STREAM
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import gram_sensitivity, sum_sensitivity
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.theory.huber_descent.known_noise import symmetric_noise
from privreg.validation import (
    require_array,
    require_count,
    require_instance,
    require_number,
    require_rng,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyValue:
    """A private statistic and the standard deviation of the noise in it.

    A symmetric matrix has the noise of `symmetric_noise`, everything else independent noise.
    """

    value: FloatArray
    noise_std: float


def require_budget(budget: Budget) -> Budget:
    """A budget of which every share gives noise that double precision can hold."""
    found = require_instance("budget", budget, Budget)
    if not 1e-20 <= found.rho <= 1e20:
        raise ValueError(f"budget must be finite with rho in [1e-20, 1e20], got {found.rho:g}")
    return found


def private_count(count: int, *, budget: Budget, rng: np.random.Generator) -> Release[float]:
    """A number of records under any of the relations, at least 1 so that sums can be divided by it.

    Guarantee
    ---------
    ρ-zCDP: the Gaussian mechanism at sensitivity 1, the change under add-remove. Under replace-one
    the number is the same for both, and under zero-out as well unless blanks are left out of it.
    """
    exact = require_count("count", count, least=0)
    std = float(gaussian_noise_std(sensitivity=1.0, rho=require_budget(budget).rho))
    noise = std * float(require_rng("rng", rng).standard_normal())
    return Release(max(1.0, exact + noise), budget, (SECRET_STREAM,))


@dataclass
class SplitBudget(Uncopied):
    """Gaussian mechanisms that share one budget, and a list of what was spent on what.

    The methods take what the share is spent on, the share, a sum over records, the largest norm of
    a record's part of it, and the number that the sum is divided by.

    Guarantee
    ---------
    What the methods return is together as private as the sum of the shares, if what they are given
    is bounded as they say and depends on the data through it and earlier returns alone.
    """

    budget: Budget
    rng: np.random.Generator
    spent: dict[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        require_budget(self.budget)
        require_rng("rng", self.rng)

    def noise_std(self, what: str, share: float, sensitivity: float) -> float:
        part = require_number("share", share, least=1e-12, most=1)
        change = require_number("sensitivity", sensitivity, least=0, most=2e200)
        std = float(gaussian_noise_std(sensitivity=change, rho=part * self.budget.rho))
        self.spent[what] = self.spent.get(what, 0.0) + part
        return std

    def spending(self) -> tuple[tuple[str, Budget], ...]:
        return tuple((what, self.budget.share(min(1.0, x))) for what, x in self.spent.items())

    def histogram(self, what: str, share: float, counts: FloatArray) -> NoisyValue:
        counts = _sum("counts", counts, shape=(None,))
        change = float(gram_sensitivity(1.0, neighbours=self.budget.neighbours))
        std = self.noise_std(what, share, change)
        return NoisyValue(counts + std * self.rng.standard_normal(counts.shape), std)

    def semidefinite(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        total, bound, n = _sum("total", total, shape=(None, None)), _bound(bound), _divisor(n)
        if len(total) != total.shape[1]:
            raise ValueError(f"total must be a square matrix, got shape {total.shape}")
        change = float(gram_sensitivity(bound, neighbours=self.budget.neighbours))
        std = self.noise_std(what, share, change) / n
        noise = symmetric_noise(len(total), noise_std=std, rng=self.rng)
        return NoisyValue((total + total.T) / (2 * n) + noise, std)

    def vector(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        total, bound, n = _sum("total", total, shape=(..., None)), _bound(bound), _divisor(n)
        change = float(sum_sensitivity(bound, neighbours=self.budget.neighbours))
        std = self.noise_std(what, share, change) / n
        return NoisyValue(total / n + std * self.rng.standard_normal(total.shape), std)

    def number(self, what: str, share: float, total: float, bound: float, n: float) -> NoisyValue:
        total, bound, n = float(_sum("total", total, shape=())), _bound(bound), _divisor(n)
        std = self.noise_std(what, share, bound) / n
        return NoisyValue(np.asarray(total / n + std * self.rng.standard_normal()), std)


def _sum(name: str, value: Any, *, shape: tuple[Any, ...]) -> FloatArray:
    return require_array(name, value, shape=shape, least=-1e250, most=1e250)


def _bound(value: float) -> float:
    return require_number("bound", value, least=0, most=1e200)


def _divisor(value: float) -> float:
    return require_number("n", value, least=1e-9, most=1e100)
