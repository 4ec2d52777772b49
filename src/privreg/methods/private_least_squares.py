"""Private least squares, the default of `PrivateLinearRegression`: settings, search and error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.least_squares_descent import TAIL_ASSUMPTION, least_squares_descent
from privreg.algorithms.least_squares_fit import LeastSquaresFit
from privreg.algorithms.least_squares_settings import LeastSquaresSettings, with_start_of
from privreg.algorithms.warm_up import ASSUMPTIONS
from privreg.inference.least_squares_intervals import least_squares_intervals
from privreg.inference.population_intervals import CoefficientIntervals, Target
from privreg.methods.candidates import Candidates
from privreg.methods.private_regression import PrivateRegression
from privreg.methods.whitened_descent import WhitenedDescent
from privreg.prediction.least_squares import predicted_fit
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction, Regime
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]
START = ("clip_width", "warm_up_steps", "gram_rounds")
START_SHARES = ("norm_share", "gram_share", "scale_share", "warm_up_share")
# Errors above this many label bounds say no more than that a fit is lost.
MOST_RISK = 1e3
MOVES: tuple[tuple[dict[str, Any], ...], ...] = (
    tuple({"gram_share": share} for share in (0.04, 0.08, 0.15, 0.24)),
    tuple(
        {"warm_up_steps": steps, "warm_up_share": share}
        for steps, share in ((2, 0.05), (2, 0.1), (4, 0.1), (6, 0.15))
    ),
    tuple({"scale_share": share} for share in (0.01, 0.02, 0.04, 0.08)),
    tuple({"tail_share": share} for share in (0.05, 0.088, 0.15)),
)


@dataclass(frozen=True)
class PrivateLeastSquares(LeastSquaresSettings, WhitenedDescent):
    r"""Private least squares: budget shares of a start, a tail and three wide steps.

    It estimates the best linear prediction of the mean label, whatever the law of the errors is.
    Plans leave it out unless they name it: it buys another target than `PrivateRegression`, not
    less risk under the symmetric errors that a `Problem` states.

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

    Raises
    ------
    ValueError
        If a value is out of range or nothing is left for the wide steps.

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
    planned: ClassVar[bool] = False
    assumptions: ClassVar[tuple[str, ...]] = (*ASSUMPTIONS, TAIL_ASSUMPTION)
    _descent = staticmethod(least_squares_descent)

    @classmethod
    def with_start_of(cls, settings: HuberSettings) -> Self:
        """Settings whose start follows that of a robust fit, with the rest in proportion.

        Parameters
        ----------
        settings : HuberSettings
            What a robust fit would be run with, such as a planned `PrivateRegression`.
        """
        return cls(**asdict(with_start_of(settings)))

    @classmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings from the numbers of records and coefficients and the budget alone.

        Parameters
        ----------
        sample_size, dimension, budget
            As for `PrivateRegression.default`, whose start they take.
        """
        return cls.with_start_of(
            PrivateRegression.default(sample_size=sample_size, dimension=dimension, budget=budget)
        )

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        (robust,) = PrivateRegression.candidates(problem, budget, intervals=True)
        starts = [cls.with_start_of(each) for each in robust.starts]
        moves = [partial(cls._moved, choices=choices) for choices in MOVES]
        return [Candidates(cls.name, starts, 2 * moves)]

    def intervals(
        self,
        fit: LeastSquaresFit,
        *,
        level: float,
        target: Target,
        functionals: FloatArray,
        offset: FloatArray,
    ) -> CoefficientIntervals:
        """Those of `least_squares_intervals`, at no further cost."""
        return least_squares_intervals(
            fit, level=level, target=target, functionals=functionals, offset=offset
        )

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> list[Prediction]:
        starts = [_robust(each) for each in settings]
        robust = PrivateRegression.predictions(starts, problem, budget, rows=rows)
        return [
            _wide(each, problem, budget, method)
            for each, method in zip(robust, settings, strict=True)
        ]


def _robust(method: PrivateLeastSquares) -> PrivateRegression:
    """A robust fit with the same start, and defaults for the rest."""
    same = {name: getattr(method, name) for name in (*START, *START_SHARES)}
    left = 1 - sum(same[name] for name in START_SHARES)
    return PrivateRegression(**same, mean_share=0.02 * left, moment_share=0.1 * left)


def _wide(
    robust: Prediction, problem: Problem, budget: Budget, method: PrivateLeastSquares
) -> Prediction:
    """The prediction of the robust start, with the error of the wide steps that follow it.

    Whether the start comes near is what a robust fit's prediction says; the residuals' variance is
    that of the errors and of the start's own error.
    """
    if not np.isfinite(robust.excess_risk):
        return robust
    most = MOST_RISK * problem.label_bound**2
    variance = problem.label_noise_std**2 + 2 * min(robust.excess_risk, most)
    # Two digits: the labels' bound only says how far the histogram reaches.
    bound = float(f"{problem.label_bound / np.sqrt(variance):.2g}")
    found = predicted_fit(
        problem.sample_size,
        problem.dimension,
        budget,
        method,
        errors=problem.label_noise_law,
        label_bound=bound,
    )
    if not np.isfinite(found.error):
        return robust.with_doubt("noise hides the tail of the residuals")
    risk = max(variance * found.error / problem.sample_size * problem.dimension / 2, 0.0)
    ratio = risk / max(robust.excess_risk, 1e-300)
    widened = replace(
        robust,
        excess_risk=risk,
        excess_risk_std=robust.excess_risk_std * ratio,
        parameter_error=robust.parameter_error * ratio,
        interval_length=robust.interval_length * np.sqrt(ratio),
    )
    if not widened.holds:
        return widened
    return widened.marked(Regime.EXTENDED, "expected histogram of products of Gaussian rows")
