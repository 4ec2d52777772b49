"""Private Huber regression (`target="robust"`): settings, search and regime."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_descent import HuberSettings, default_settings, huber_descent
from privreg.algorithms.samples import Samples
from privreg.algorithms.warm_up import ASSUMPTIONS
from privreg.inference.population_intervals import (
    CoefficientCovariance,
    CoefficientIntervals,
    LastIterateLaw,
    Target,
    coefficient_covariance,
    last_iterate_law,
    population_intervals,
)
from privreg.methods.method import Candidates, Declared, Method
from privreg.prediction import huber
from privreg.prediction.predicted_error import Prediction, Regime, too_few_rows
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release

FloatArray = NDArray[np.float64]
# Derived in `in_regime`.
MOST_SCALE_NOISE, MOST_WHITENING_NOISE, MOST_THINNESS = 0.1, 0.2, 8.0
MOST_OVERSHOT, MOST_EXCURSION, MOST_ARRIVAL = 0.1, 1.3, 1.8
# Shares for the Gram matrix and for scales where the budget is small.
CAREFUL = ((0.1, 0.1), (0.2, 0.15), (0.3, 0.2))
MOVES: tuple[tuple[dict[str, Any], ...], ...] = (
    tuple({"clip_width": width} for width in np.geomspace(0.35, 3.0, 10).round(3).tolist()),
    tuple({"gram_share": share} for share in (0.02, 0.05, 0.1, 0.18, 0.3)),
    tuple(
        {"warm_up_steps": steps, "warm_up_share": share}
        for steps, share in (
            (2, 0.04),
            (2, 0.1),
            (3, 0.06),
            (4, 0.1),
            (4, 0.2),
            (6, 0.15),
            (6, 0.3),
        )
    ),
    tuple({"norm_share": share} for share in (0.01, 0.03, 0.08)),
    ({"gram_rounds": 1}, {"gram_rounds": 2}, {"gram_rounds": 3}),
    ({"final_steps": 2}, {"final_steps": 3}, {"final_steps": 5}),
    ({"common_width": False},),
    tuple({"scale_share": share} for share in (0.02, 0.04, 0.08, 0.15, 0.25)),
)


class WhitenedDescent(Method):
    """A method whose `_descent` on whitened rows or persons takes it for its settings."""

    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    takes_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    has_intervals: ClassVar[bool] = True
    gaussian_dp: ClassVar[bool] = True
    _descent: ClassVar[Callable[..., Release[Any]]]
    _intervals: ClassVar[Callable[..., CoefficientIntervals]]
    _law: ClassVar[Callable[..., LastIterateLaw]]

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

    def intervals(
        self,
        fit: Any,
        *,
        level: float,
        target: Target,
        functionals: FloatArray,
        offset: FloatArray,
    ) -> CoefficientIntervals:
        """Intervals from what the fit released, at no further cost."""
        return self._intervals(
            fit, level=level, target=target, functionals=functionals, offset=offset
        )

    def covariance(
        self, fit: Any, *, target: Target, functionals: FloatArray
    ) -> CoefficientCovariance:
        """Standard errors of the intervals, and correlations of the last iterate's law."""
        offset = np.zeros(len(functionals))
        intervals = self.intervals(
            fit, level=0.95, target=target, functionals=functionals, offset=offset
        )
        return coefficient_covariance(intervals, self._law(fit), functionals @ fit.whitening)

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


@dataclass(frozen=True)
class PrivateRegression(HuberSettings, WhitenedDescent):
    r"""Private Huber regression: steps, clip and budget shares, chosen without the data.

    .. math::
        \rho = \rho_{\text{norms}} + \rho_{\text{Gram}} + \rho_{\text{scales}}
        + \rho_{\text{warm-up}} + \rho_{\text{means}} + \rho_{\text{moments}} + \rho_{\text{final}}

    Parameters
    ----------
    clip_width : float
        Width of the clip in units of the residual scale, at least 1e-3 and at most 1e3. About 1
        where privacy decides; wider where the sample does.
    warm_up_steps, final_steps, gram_rounds : int
        Steps that only come near, steps that are averaged, and rounds of the private Gram matrix,
        each at least 1.
    norm_share, gram_share, scale_share, warm_up_share, mean_share : float
        Shares of ρ, each in (0, 1).
    moment_share : float
        Share for intervals under errors whose size depends on the features, in [0, 1).
    common_width : bool
        Whether all residuals are clipped at one width and long rows shortened instead.

    Guarantee
    ---------
    That of `huber_descent`, with the bounds that are declared.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> budget = Budget.zcdp(0.5)
    >>> method = PrivateRegression.default(sample_size=10_000, dimension=10, budget=budget)
    >>> method.predict(problem, budget).holds
    True

    Source
    ------
    brown2024, section 2.5 (clipping as Huber's loss); `HuberSettings` says what each setting does.
    """

    name: ClassVar[str] = "huber"
    assumptions: ClassVar[tuple[str, ...]] = ASSUMPTIONS
    _descent = staticmethod(huber_descent)
    _intervals = staticmethod(population_intervals)
    _law = staticmethod(last_iterate_law)

    @classmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings from the numbers of records and coefficients and the budget alone.

        Parameters
        ----------
        sample_size : int
            Number n of records, at least 1.
        dimension : int
            Number p of coefficients, the intercept among them, at least 1.
        budget : Budget
            ρ in [1e-20, 1e20].
        """
        found = default_settings(sample_size=sample_size, dimension=dimension, budget=budget)
        return cls(**asdict(found))

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        first = cls.default(
            sample_size=problem.sample_size, dimension=problem.dimension, budget=budget
        )
        if not intervals:
            first = replace(first, moment_share=0.0)
        # Where the budget is small, so much must go to scales that single moves do not get there.
        careful: dict[str, Any] = {
            "warm_up_steps": 2,
            "warm_up_share": 0.2,
            "moment_share": 0.0,
            "gram_rounds": 1,
        }
        starts = [
            first,
            *(replace(first, gram_share=g, scale_share=s, **careful) for g, s in CAREFUL),
        ]
        moves = [partial(cls._moved, choices=choices) for choices in MOVES]
        return [Candidates(cls.name, starts, 2 * moves, clip="clip_width")]

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problems: Sequence[Problem], rows: Rows, budget: Budget
    ) -> list[list[Prediction]]:
        followed = [huber.follow(problems[0], rows, method, budget) for method in settings]
        return [
            [
                in_regime(problem, outcome.moments.predictions(problem, rows)[0], outcome)
                for outcome in followed
            ]
            for problem in problems
        ]


def in_regime(problem: Problem, found: Prediction, outcome: huber.Outcome) -> Prediction:
    r"""A prediction with the regime of private Huber regression, or of a fit with its start.

    - A warm-up step is taken back where the private residual scale has grown by a quarter. With a
      noise of `MOST_SCALE_NOISE` in the histogram's counts the scale has a deviation of 9 %, and
      noise alone takes back 0.5 % of the steps; with twice that, 11 % of them.
    - Noise of variance v, relative and summed over a row, spreads the eigenvalues of a Gram matrix
      over 1 ± 2√v (Wigner): the lowest is 0.11 at v = `MOST_WHITENING_NOISE`, and 0 at 1/4.
    - Runs that overshoot end near predicting the mean: `MOST_OVERSHOT` of the mean error is the
      stated accuracy.
    - A residual variance that grows by `MOST_EXCURSION` on the way is a scale 14 % larger; with a
      tenth of noise that is the quarter at which a step is taken back, which no mean follows.
    - The final steps keep the clip and the Newton matrix of their start. Where the residual
      variance falls by `MOST_ARRIVAL` from there on, the share of whole gradients at a clip of one
      scale rises from 0.68 to 0.82: the matrix is a fifth too large.
    - Beyond `MOST_THINNESS`, the edge of the first matrix's noise over the smallest eigenvalue,
      simulations had up to half again the error: a warning, not a refusal.

    Source
    ------
    Derived as above; the simulations are those of docs/prediction.md.
    """
    if not np.isfinite(found.excess_risk):
        return found.with_doubt(
            "too few rows or too small a budget: the descent does not come near"
        )
    few = too_few_rows(problem, outcome.unclipped)
    if few is not None:
        return found.with_doubt(few)
    if outcome.scale_noise > MOST_SCALE_NOISE:
        return found.with_doubt("the budget is too small for a private residual scale")
    if (
        outcome.whitening.variance > MOST_WHITENING_NOISE
        or outcome.whitening.overshooting * problem.null_risk > MOST_OVERSHOT * found.excess_risk
    ):
        return found.with_doubt("the budget is too small for a private Gram matrix")
    if outcome.excursion > MOST_EXCURSION or outcome.arrival > MOST_ARRIVAL:
        # The clip follows the residuals and the noise the clip: means say little about such runs.
        return found.with_doubt("the noise of the warm-up steps carries the descent away")
    reason = f"{1 - outcome.unclipped:.0%} of gradients clip: expansion around θ*"
    marked = found.marked(Regime.EXTENDED, reason)
    if outcome.whitening.thinness > MOST_THINNESS:
        thin = (
            "directions thinner than the Gram matrix's noise: the error may be half again as large"
        )
        return replace(marked, warnings=(thin,))
    return marked
