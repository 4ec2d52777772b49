"""What a method is told of a data set beside its rows, and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.adassp import Bounds, require_bounds
from privreg.algorithms.records import Persons
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.privacy.persons import require_names
from privreg.validation import require_count, require_flag, require_instance, require_number

FloatArray = NDArray[np.float64]


class Fitted(Protocol):
    """What every method releases at least."""

    @property
    def iterates(self) -> FloatArray:
        """Iterates that the budget covers, shape (T, p), the estimate last."""

    @property
    def parameters(self) -> FloatArray:
        """The estimate, shape (p,)."""

    @property
    def spending(self) -> tuple[tuple[str, Budget], ...]:
        """What was spent on what; the sum is the whole budget."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Iterates of a run, and what they cost.

    Attributes
    ----------
    iterates : ndarray, shape (T, p)
        Those that the budget covers, the estimate last.
    spending : tuple of (str, Budget)
        What was spent on what.
    """

    iterates: FloatArray
    spending: tuple[tuple[str, Budget], ...]

    @property
    def parameters(self) -> FloatArray:
        """The estimate, shape (p,)."""
        return np.asarray(self.iterates[-1])


@dataclass(frozen=True, eq=False)
class Declared:
    """What is public of a data set beside its rows.

    Parameters
    ----------
    bounds : Bounds, optional
        Largest length of a row and largest label; longer rows are shortened, larger labels clipped.
        AdaSSP and private regression need them.
    sample_size : float, optional
        What sums are divided by, at least 1 and at most 1e15: a number of records that is public or
        was released before. By default the number of rows, which add-remove neighbours do not
        share.
    groups : array_like, shape (n,), optional
        The person whose row it is; only private regression takes them.
    intercept : bool
        Whether the first column is one of ones.
    threads : int
        Threads that read samples which come in parts, at least 1.
    """

    bounds: Bounds | None = None
    sample_size: float | None = None
    groups: ArrayLike | Persons | None = field(default=None, repr=False)
    intercept: bool = False
    threads: int = 1

    def __post_init__(self) -> None:
        if self.bounds is not None:
            require_bounds(self.bounds)
        if self.sample_size is not None:
            require_number("sample_size", self.sample_size, least=1, most=1e15)
        if self.groups is not None and not isinstance(self.groups, Persons):
            rows = np.shape(np.asarray(self.groups, dtype=object))[:1]
            require_names(self.groups, require_count("groups", *rows or (0,)))
        require_flag("intercept", self.intercept)
        require_count("threads", self.threads)

    @classmethod
    def of(cls, problem: Problem) -> Declared:
        """The bounds and the number of rows that a problem states.

        Parameters
        ----------
        problem : Problem
        """
        require_instance("problem", problem, Problem)
        bounds = Bounds(problem.feature_norm, problem.label_bound)
        return cls(bounds, sample_size=problem.sample_size)

    def require_bounds(self, name: str) -> Bounds:
        """The bounds, which the method of this name needs."""
        if self.bounds is None:
            raise ValueError(f"bounds must be declared with {name}, got None")
        return self.bounds
