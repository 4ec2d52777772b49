"""Base class of private methods, with their declared inputs, their fits and their searches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import partial
from itertools import product
from math import isclose, isinf
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.adassp import Bounds, require_bounds
from privreg.algorithms.records import Persons
from privreg.algorithms.samples import Samples, as_samples
from privreg.checks import (
    LARGEST_COUNT,
    require_choice,
    require_count,
    require_flag,
    require_instance,
    require_number,
    rounded,
)
from privreg.inference.least_squares_intervals import NewObservations
from privreg.inference.population_intervals import (
    TARGETS,
    CoefficientCovariance,
    CoefficientIntervals,
    Target,
)
from privreg.methods.problem import ROWS, Prediction, Problem, Rows, rows_of
from privreg.privacy import release
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import SECRET, NoiseSource, Release, require_source

FloatArray = NDArray[np.float64]
Settings = TypeVar("Settings")
# Relative difference of values that rounding alone may cause.
EQUAL = 1e-9


@dataclass(frozen=True, eq=False)
class Candidates(Generic[Settings]):
    """Search for a method's best settings: points to try first, and moves to further points."""

    name: str  # under which a plan lists the best of them
    starts: Sequence[Any]  # points that are tried first, at least one
    # From the best point so far to others that are tried next, in this order.
    moves: Sequence[Callable[[Any], Sequence[Any]]] = ()
    settings: Callable[[Any], Settings] = lambda point: point
    clip: str | None = None  # setting that bounds gradients; a plan widens it if that costs little

    @classmethod
    def zoomed(
        cls,
        name: str,
        settings: Callable[[Any], Settings],
        grids: Sequence[NDArray[np.float64]],
        *,
        zooms: int,
        clip: str | None = None,
    ) -> Candidates[Settings]:
        """Search a grid, then `zooms` times a cross around the best point, each half as wide."""
        widths = [float(np.max(np.diff(grid), initial=0.0)) for grid in grids]
        crosses = [partial(_cross, steps=np.diag(widths) / 2**zoom) for zoom in range(1, zooms + 1)]
        return cls(name, list(product(*grids)), crosses, settings, clip)

    def best(self, values: Callable[[list[Settings]], Sequence[float]]) -> Settings:
        """Return the settings of least value; the first ones if several agree up to rounding."""

        def least_of(points: Sequence[Any]) -> tuple[Any, float]:
            found = values([self.settings(point) for point in points])
            least = min(found)
            at = next(at for at, each in enumerate(found) if isclose(each, least, rel_tol=EQUAL))
            return points[at], found[at]

        best, least = least_of(self.starts)
        for move in self.moves:
            point, found = least_of(move(best))
            if found < least and not isclose(found, least, rel_tol=EQUAL):
                best, least = point, found
        return self.settings(best)


def _cross(point: Any, *, steps: NDArray[np.float64]) -> list[Any]:
    return [np.array(point) + sign * step for step in steps if step.any() for sign in (-1, 1)]


class Fitted(Protocol):
    """Attributes that the fit of every method has."""

    @property
    def iterates(self) -> FloatArray:
        """The T iterates that the budget covers, shape (T, p); the last one is the estimate."""

    @property
    def parameters(self) -> FloatArray:
        """The estimate of p coefficients, shape (p,)."""

    @property
    def spending(self) -> tuple[tuple[str, Budget], ...]:
        """Costs of the run's parts, which add up to the whole budget."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Fit of a method that releases its iterates and nothing else."""

    iterates: FloatArray
    spending: tuple[tuple[str, Budget], ...]

    @property
    def parameters(self) -> FloatArray:
        return np.asarray(self.iterates[-1])


@dataclass(frozen=True, eq=False)
class Declared:
    """Public facts about a data set.

    Parameters
    ----------
    bounds : Bounds, optional
        Largest length of a row and largest absolute value of a label. Longer rows are shortened,
        and larger labels clipped. Without bounds, a method that needs them raises an error.
    sample_size : float, optional
        Number by which sums are divided, at least 1: a public or released number of records. By
        default it is the exact number, which is private under add-remove.
    groups : array_like, shape (n,), optional
        Person of each row, for methods with `takes_groups` true.
    intercept : bool
        True if the first column consists of ones.
    threads : int
        Number of threads that read samples stored in several parts.
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
            require_number("sample_size", self.sample_size, least=1, most=LARGEST_COUNT)
        require_flag("intercept", self.intercept)
        require_count("threads", self.threads)

    @classmethod
    def of(cls, problem: Problem) -> Declared:
        """Declare the bounds and the number of rows that a problem states."""
        bounds = Bounds(problem.feature_norm, problem.label_bound)
        return cls(bounds, sample_size=problem.sample_size)

    def require_bounds(self, name: str) -> Bounds:
        """Return the bounds; if they are not declared, raise an error about method `name`."""
        if self.bounds is None:
            raise ValueError(f"bounds must be declared with {name}, got None")
        return self.bounds


NOTHING = Declared()


class Method(ABC):
    """A private method with its settings; subclasses are frozen dataclasses.

    A subclass defines the class variables `name` and `relations` and three methods: `candidates`,
    `_prepare` and `_predict`. All other variables and methods have defaults.

    Attributes
    ----------
    name : str
        Name on the command line and in reports.
    relations : frozenset of Neighbours
        Neighbouring relations that the guarantee covers.
    takes_groups, takes_weights : bool
        Whether a record may be all rows of a person, and whether rows may be weighted.
    has_intervals : bool
        True if the released values give intervals.
    gaussian_dp : bool
        True if a run of zCDP budget ρ is also known to be √(2ρ)-Gaussian DP.
    supposes : str
        Assumption on errors that makes the fit estimate least-squares slopes; empty if not needed.
    is_exact : bool
        True if the method adds exact noise to exact sums whenever the noise is secret. It then
        needs no generator, and the guarantee holds in the machine's arithmetic.
    assumptions : tuple of str
        Assumptions of the guarantee, besides those of the noise source.
    """

    name: ClassVar[str]
    relations: ClassVar[frozenset[Neighbours]]
    takes_groups: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    has_intervals: ClassVar[bool] = False
    gaussian_dp: ClassVar[bool] = False
    is_exact: ClassVar[bool] = False
    most_rows: ClassVar[int] = 0
    supposes: ClassVar[str] = "errors are symmetric given the features, or independent of them"
    assumptions: ClassVar[tuple[str, ...]] = release.BESIDES_THE_STREAM

    def run(
        self,
        samples: Samples,
        budget: Budget,
        *,
        declared: Declared = NOTHING,
        noise: NoiseSource = SECRET,
    ) -> Release[Any]:
        """Run the method once, and spend the whole budget.

        Parameters
        ----------
        samples : Samples
            Rows of features and labels, such as `ArraySamples`.
        budget : Budget
            Finite budget for one of the `relations`.
        declared : Declared, default Declared()
            Public facts about the rows, such as their bounds.
        noise : Secret, Seeded or Ongoing, default Secret()
            Source of the noise; only secret noise is private.

        Guarantee
        ---------
        Releasing the whole result spends the budget, under the budget's neighbouring relation. The
        settings and the declared facts must be chosen without looking at the rows.
        """
        return self.prepare(samples, budget, declared)(noise)

    def prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[NoiseSource], Release[Any]]:
        """Check the public numbers, and return a function that runs the method with given noise."""
        samples = self._checked(samples, budget, declared)
        if isinf(budget.rho):
            raise ValueError("budget must be finite for a release, got an infinite one")
        fit = self._prepare(samples, budget, declared)

        def run(noise: NoiseSource) -> Release[Any]:
            source, said = require_source("noise", noise), self.assumptions
            if not (self.is_exact and source.is_secret):
                return Release(fit(source.generator()), budget, (*said, *source.assumptions))
            real, trusted = release.REAL_NUMBERS, release.TRUSTED
            return Release(fit(None), budget, tuple(trusted if x == real else x for x in said))

        return run

    def simulate(
        self,
        samples: Samples,
        budget: Budget,
        rng: np.random.Generator,
        *,
        declared: Declared = NOTHING,
        runs: int = 1,
    ) -> FloatArray:
        """Estimates of several runs on the same rows, shape (runs, p), to study the estimate's law.

        Arguments are as for `run`; the budget may be infinite if the method allows it. Releasing
        all runs would cost `runs` budgets.
        """
        samples = self._checked(samples, budget, declared)
        fit = self._prepare(samples, budget, declared)
        return np.array([fit(rng).parameters for _ in range(runs)])

    def predict(self, problem: Problem, budget: Budget) -> Prediction:
        """Predict the excess risk, parameter error and interval length of one run.

        If the theory is known to fail, `Prediction.holds` is false and `Prediction.reason` says
        why. The budget must be for one of `relations`.
        """
        return self.predictions([self], problem, budget)[0]

    @classmethod
    def predictions(
        cls, settings: Sequence[Self], problem: Problem, budget: Budget, *, rows: int = ROWS
    ) -> list[Prediction]:
        """Predict for several settings together, with `rows` rows drawn from the features' law."""
        require_instance("problem", problem, Problem)
        misfits = [problem.misfit]
        return cls.predictions_over(settings, problem, budget, misfits=misfits, rows=rows)[0]

    @classmethod
    @np.errstate(all="ignore")
    def predictions_over(
        cls,
        settings: Sequence[Self],
        problem: Problem,
        budget: Budget,
        *,
        misfits: Sequence[float],
        rows: int = ROWS,
    ) -> list[list[Prediction]]:
        """Predict for several values of `Problem.misfit` at the cost of one: steps are shared.

        A run whose numbers are not finite is reported as diverged.
        """
        cls.require_relation(budget)
        # The largest first: what a misfit adds is computed where there is one.
        problems = [
            problem if each == problem.misfit else replace(problem, misfit=each)
            for each in sorted(set(misfits), reverse=True)
        ]
        if not settings:
            return [[] for _ in misfits]
        count = max(rows, min(cls.most_rows, 2**22 // problem.dimension))
        predict = cls._predict(settings, problems[0], rows_of(problem, count=count), budget)
        own = {each.misfit: predict(each) for each in problems}
        return [own[misfit] for misfit in misfits]

    @classmethod
    @abstractmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> Iterable[Candidates[Self]]:
        """Return, for each name in `searched`, a search for the best settings.

        If `intervals` is true, the fit must release the values that its intervals need.
        """

    @classmethod
    def searched(cls) -> tuple[str, ...]:
        """Names of the searches, under which a plan lists their results."""
        return (cls.name,)

    @classmethod
    def from_numbers(cls, values: Mapping[str, float], problem: Problem, budget: Budget) -> Self:
        """Create settings from names and numbers, such as a command's options.

        A whole number may be a float. Some methods choose omitted settings themselves.
        """
        needed = [each.name for each in cls._fields() if each.default is MISSING]
        return cls(**cls._numbers(values, needed=needed))

    def intervals(
        self, fit: Any, *, level: float, target: Target, functionals: FloatArray, offset: FloatArray
    ) -> CoefficientIntervals:
        """Intervals for linear functionals of the coefficients plus offsets, at a level in (0, 1).

        The intervals are infinite if the method has none. `fit` is the value of the release.
        `functionals` has shape (k, p), and `offset` has shape (k,).
        """
        require_choice("target", target, TARGETS)
        unknown = np.full(len(functionals), np.inf)
        return CoefficientIntervals(
            centre=functionals @ fit.parameters + offset,
            half_width=unknown,
            standard_error=unknown,
            degrees_of_freedom=np.zeros(len(functionals)),
            level=require_number("level", level, above=0, below=1),
            target=target,
        )

    def covariance(
        self, fit: Any, *, target: Target, functionals: FloatArray
    ) -> CoefficientCovariance:
        """Covariance of linear functionals of the coefficients; infinite variances if unknown."""
        require_choice("target", target, TARGETS)
        unknown = np.full((len(functionals),) * 2, np.nan)
        np.fill_diagonal(unknown, np.inf)
        return CoefficientCovariance(unknown, unknown)

    def new_observations(self, fit: Any, rows: FloatArray, *, level: float) -> NewObservations:
        """Intervals for labels of new records, if the method releases a residual distribution."""
        known = "a method that releases a residual distribution, such as least_squares"
        raise ValueError(f"settings must be of {known}, got {self.name}")

    def __str__(self) -> str:
        """One line with names and values of the settings, to three significant digits."""
        named = {each.name.replace("_", " "): getattr(self, each.name) for each in self._fields()}
        return ", ".join(f"{name} {rounded(value, 3, '')}" for name, value in named.items())

    @classmethod
    def require_relation(cls, budget: Budget, groups: object = None) -> None:
        """Refuse a neighbouring relation, or groups, that the guarantee does not cover."""
        require_instance("budget", budget, Budget)
        if budget.neighbours not in cls.relations:
            names = " or ".join(sorted(repr(each.value) for each in cls.relations))
            raise ValueError(
                f"budget must be for {names} neighbours with {cls.name}, "
                f"got {budget.neighbours.value!r}"
            )
        if groups is not None and not cls.takes_groups:
            raise ValueError(f"groups must be None with {cls.name}, which protects single rows")

    @classmethod
    def _fields(cls) -> tuple[Field[Any], ...]:
        return fields(cls)  # type: ignore[arg-type]

    @classmethod
    def _numbers(cls, values: Mapping[str, float], *, needed: Collection[str]) -> dict[str, Any]:
        """Values of the settings; values of whole-number settings become integers."""
        kinds = {each.name: each.type for each in cls._fields()}
        require_names(values, kinds, needed=needed)
        return {
            name: int(value) if kinds[name] in ("int", int) and float(value).is_integer() else value
            for name, value in values.items()
        }

    def _checked(self, samples: Samples, budget: Budget, declared: Declared) -> Samples:
        require_instance("declared", declared, Declared)
        self.require_relation(budget, declared.groups)
        return as_samples(samples)

    @abstractmethod
    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[Any], Fitted]:
        """Prepare a run: a function of a generator (or None, if exact) that returns a fit."""

    @classmethod
    @abstractmethod
    def _predict(
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        """Function from a problem that differs from `problem` in its misfit to all predictions.

        There is at least one setting. `problem` has the largest misfit. `rows` follow the features'
        law; `ErrorMoments.predictions` turns errors by eigenvalue into predictions.
        """


def require_names(
    values: Mapping[str, float], known: Collection[str], *, needed: Collection[str]
) -> None:
    """Refuse unknown names of settings, and require the needed names."""
    for name in values:
        require_choice("settings", name, known)
    missing = [name for name in needed if name not in values]
    if missing:
        raise ValueError(f"settings must give {', '.join(needed)}, got no {missing[0]}")
