"""Private Huber regression, which `PrivateLinearRegression` runs: settings, search and regime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_descent import (
    HuberFit,
    HuberSettings,
    default_settings,
    huber_descent,
)
from privreg.algorithms.warm_up import ASSUMPTIONS
from privreg.inference.population_intervals import (
    CoefficientIntervals,
    LastIterateLaw,
    Target,
    last_iterate_law,
    population_intervals,
)
from privreg.methods.candidates import Candidates
from privreg.methods.whitened_descent import WhitenedDescent
from privreg.prediction import huber
from privreg.prediction.problem import Problem
from privreg.prediction.regimes import too_few_rows
from privreg.prediction.result import Prediction, Regime
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget
from privreg.validation import require_instance

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

    Raises
    ------
    ValueError
        If a value is out of range or nothing is left for the final steps.

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

        Source
        ------
        `privreg.algorithms.huber_descent.default_settings`.
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

    def intervals(
        self,
        fit: HuberFit,
        *,
        level: float,
        target: Target,
        functionals: FloatArray,
        offset: FloatArray,
    ) -> CoefficientIntervals:
        """Those of `population_intervals`, at no further cost."""
        return population_intervals(
            fit, level=level, target=target, functionals=functionals, offset=offset
        )

    @staticmethod
    def _law(fit: HuberFit) -> LastIterateLaw:
        return last_iterate_law(fit)

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

    Parameters
    ----------
    problem : Problem
    found : Prediction
    outcome : huber.Outcome

    Source
    ------
    Derived as above; the simulations are those of docs/prediction.md.
    """
    require_instance("problem", problem, Problem)
    require_instance("found", found, Prediction)
    require_instance("outcome", outcome, huber.Outcome)
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
