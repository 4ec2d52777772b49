"""Private least squares, the default of `PrivateLinearRegression`: settings, search and error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.least_squares_descent import (
    TAIL_ASSUMPTION,
    LeastSquaresFit,
    LeastSquaresSettings,
    least_squares_descent,
    with_start_of,
)
from privreg.algorithms.warm_up import ASSUMPTIONS
from privreg.inference.least_squares_intervals import (
    NewObservations,
    least_squares_intervals,
    least_squares_law,
    new_observations,
)
from privreg.inference.population_intervals import LastIterateLaw
from privreg.methods.method import Candidates
from privreg.methods.private_regression import PrivateRegression, WhitenedDescent, in_regime
from privreg.prediction.least_squares import WideOutcome, follow_wide
from privreg.prediction.predicted_error import Prediction, Regime
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]
# Derived in `_regime`.
MOST_SPIKE = 0.04
SPIKED = (
    "in up to one run of 50 noise is taken for a tail, and the interval is long: the mean error "
    "may be three times as large"
)


@dataclass(frozen=True)
class PrivateLeastSquares(LeastSquaresSettings, WhitenedDescent):
    r"""Private least squares: budget shares of a start, a tail and three wide steps.

    It estimates the best linear prediction of the mean label, whatever the law of the errors is.
    Under the errors that a `Problem` without misfit states, `PrivateRegression` has less risk.

    .. math::
        \rho = \rho_{\text{norms}} + \rho_{\text{Gram}} + \rho_{\text{scales}}
        + \rho_{\text{warm-up}} + \rho_{\text{tail}} + \rho_{\text{curvature}}
        + \rho_{\text{long}} + \rho_{\text{moment}} + \rho_{\text{means}} + \rho_{\text{wide}}

    Parameters
    ----------
    clip_width : float
        Clip of the warm-up steps in residual scales, in [1e-3, 1e3]; that of the wide steps is
        found privately.
    warm_up_steps, gram_rounds : int
        Steps that come near, and rounds of the private Gram matrix, each at least 1.
    norm_share, gram_share, scale_share, warm_up_share : float
        Shares of ρ for the start, each in (0, 1), as all shares are.
    tail_share : float
        Share for the histogram from which the clip and the allowance for bias come.
    curvature_share, long_share, moment_share, mean_share : float
        Shares for the moments that intervals need. What is left goes to the wide steps.

    Guarantee
    ---------
    That of `least_squares_descent`, with the bounds that are declared.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> budget = Budget.zcdp(0.5)
    >>> method = PrivateLeastSquares.default(sample_size=10_000, dimension=10, budget=budget)
    >>> method.predict(problem, budget).holds
    True

    Source
    ------
    `least_squares_descent`; `LeastSquaresSettings` says what each setting does.
    """

    name: ClassVar[str] = "least_squares"
    supposes: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = (*ASSUMPTIONS, TAIL_ASSUMPTION)
    _descent = staticmethod(least_squares_descent)
    _intervals = staticmethod(least_squares_intervals)

    @classmethod
    def with_start_of(cls, settings: HuberSettings) -> Self:
        """Settings with the start of a robust fit's, and the rest in proportion."""
        return cls(**asdict(with_start_of(settings)))

    @classmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings with the start of `PrivateRegression.default`."""
        return cls.with_start_of(
            PrivateRegression.default(sample_size=sample_size, dimension=dimension, budget=budget)
        )

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        (robust,) = PrivateRegression.candidates(problem, budget, intervals=True)
        return [Candidates(cls.name, [cls.with_start_of(each) for each in robust.starts])]

    def new_observations(
        self, fit: LeastSquaresFit, rows: FloatArray, *, level: float
    ) -> NewObservations:
        """Those of `new_observations` of the released histogram, at no further cost."""
        return new_observations(fit, rows, level=level)

    @staticmethod
    def _law(fit: LeastSquaresFit) -> LastIterateLaw:
        return least_squares_law(fit).last_iterate(fit.sample_size)

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problems: Sequence[Problem], rows: Rows, budget: Budget
    ) -> list[list[Prediction]]:
        followed = [follow_wide(problems[0], rows, method, budget) for method in settings]
        return [
            [
                _regime(problem, outcome.moments.predictions(problem, rows)[0], outcome)
                for outcome in followed
            ]
            for problem in problems
        ]


def _regime(problem: Problem, found: Prediction, outcome: WideOutcome) -> Prediction:
    r"""Regime of private least squares: that of its start, and of its clip.

    Where a noisy count far out is taken for a tail the clip follows it, and the noise of the steps
    the clip. Of 400 histograms each for 3 to 40 features and 2,000 to 100,000 rows, normal and
    exponential errors, at most one had a clip four times the typical one where `WideOutcome.spike`
    is below `MOST_SPIKE`, and up to 2.3 % of those where it is above 0.05. Such runs make the mean
    error, and typical ones are as predicted: a warning, not a refusal.
    """
    started = in_regime(problem, found, outcome.start)
    stated = replace(started, interval_length=outcome.length * problem.least_squares_length)
    if not stated.holds:
        return stated
    marked = stated.marked(Regime.EXTENDED, "expected products of records, and draws of the noise")
    if outcome.spike > MOST_SPIKE:
        return replace(marked, warnings=(*marked.warnings, SPIKED))
    return marked
