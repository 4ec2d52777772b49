"""What private descents on whitened rows share: Huber regression and least squares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.samples import Samples
from privreg.inference.coefficient_covariance import CoefficientCovariance, coefficient_covariance
from privreg.inference.population_intervals import LastIterateLaw, Target
from privreg.methods.method import Method
from privreg.methods.runs import Declared
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release

FloatArray = NDArray[np.float64]


class WhitenedDescent(Method):
    """A method whose run is a descent by shares of ρ, on rows or on persons.

    A subclass is a frozen dataclass of settings that its `_descent` takes.
    """

    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    takes_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    has_intervals: ClassVar[bool] = True
    gaussian_dp: ClassVar[bool] = True
    _descent: ClassVar[Callable[..., Release[Any]]]

    @classmethod
    @abstractmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings from the numbers of records and coefficients and the budget alone."""

    @classmethod
    def from_numbers(cls, values: Mapping[str, float], problem: Problem, budget: Budget) -> Self:
        """As for every method; what is left out is that of `default`."""
        start: Any = cls.default(
            sample_size=problem.sample_size, dimension=problem.dimension, budget=budget
        )
        return cls(**{**asdict(start), **cls._numbers(values, needed=[])})

    def covariance(
        self, fit: Any, *, target: Target, functionals: FloatArray
    ) -> CoefficientCovariance:
        """Standard errors of the intervals, and correlations of the last iterate's law."""
        offset = np.zeros(len(functionals))
        intervals = self.intervals(
            fit, level=0.95, target=target, functionals=functionals, offset=offset
        )
        return coefficient_covariance(intervals, self._law(fit), functionals @ fit.whitening)

    @staticmethod
    @abstractmethod
    def _law(fit: Any) -> LastIterateLaw:
        """Law of the last iterate, from what the fit released."""

    def _moved(self, choices: Sequence[Mapping[str, Any]]) -> list[Self]:
        """These settings with each of the changes, as they are where shares leave nothing."""
        found = []
        for changes in choices:
            try:
                found.append(replace(self, **changes))  # type: ignore[type-var]
            except ValueError:
                found.append(self)
        return found

    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[np.random.Generator], Any]:
        bounds = declared.require_bounds(self.name)

        def fit(rng: np.random.Generator) -> Any:
            return self._descent(
                samples,
                feature_norm=bounds.feature_norm,
                label_bound=bounds.label,
                budget=budget,
                settings=self,
                rng=rng,
                groups=declared.groups,
                sample_size=declared.sample_size,
                intercept=declared.intercept,
                threads=declared.threads,
            ).value

        return fit
