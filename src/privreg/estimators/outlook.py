r"""Settings of the estimator and the error that they will have, from what is public alone.

What is public before a fit is the number n of records, the number p of coefficients and the budget.
The rest is stated by convention, as one declares bounds: they hold four standard deviations of the
labels and of each feature, and the features explain between 40 and 90 % of the labels' variance.
Private Huber regression whitens its features and finds its own scale, so that little depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from privreg.algorithms.huber_settings import HuberSettings, best_clip_width, default_settings
from privreg.algorithms.least_squares_settings import LeastSquaresSettings, with_start_of
from privreg.planning.grid_edges import beyond, next_on
from privreg.planning.search import CAREFUL, DOUBT, WORTH
from privreg.prediction.clipping import clipped_moments
from privreg.prediction.least_squares import predicted_fit
from privreg.prediction.predict import predict_many
from privreg.prediction.problem import Problem
from privreg.prediction.regimes import MOST_RATIO
from privreg.prediction.result import Prediction
from privreg.prediction.rows import rows_of
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import sum_sensitivity
from privreg.validation import require_choice, require_count, require_flag, require_instance

# Share of the labels' variance that is explained: where settings are compared, and the range.
MIDDLE, RANGE = 0.65, (0.4, 0.9)
# Bounds hold so many standard deviations.
DEVIATIONS = 4.0
ROWS = 96
# Budgets that are asked for the least one that is worth it: so many doublings.
DOUBLINGS = 24
MOVES: tuple[tuple[dict[str, Any], ...], ...] = (
    tuple({"gram_share": share} for share in (0.05, 0.16, 0.3)),
    tuple({"scale_share": share} for share in (0.02, 0.08, 0.15)),
    tuple(
        {"warm_up_steps": steps, "warm_up_share": share}
        for steps, share in ((2, 0.1), (2, 0.2), (4, 0.2), (6, 0.3))
    ),
)


@dataclass(frozen=True)
class Outlook:
    """What a fit will be worth.

    Attributes
    ----------
    settings : HuberSettings or LeastSquaresSettings
        What is run.
    predictions : tuple of Prediction
        One for each end of the range, in units of the label's bounds.
    """

    settings: HuberSettings | LeastSquaresSettings
    predictions: tuple[Prediction, ...]

    @property
    def holds(self) -> bool:
        """Whether the theory covers both ends of the range."""
        return all(each.holds for each in self.predictions)

    @property
    def missed(self) -> tuple[float, ...]:
        """Excess risk over that of predicting the mean, at each end of the range."""
        return tuple(each.excess_risk / each.null_risk for each in self.predictions)

    @property
    def worthwhile(self) -> bool:
        """Whether the fit is predicted to be better than predicting the mean."""
        return any(each.holds and each.beats_the_mean for each in self.predictions)

    @property
    def doubt(self) -> str:
        """Why the fit may be worth nothing; empty where it is predicted to be worth something."""
        if self.worthwhile:
            return ""
        found = "the fit is not predicted to be better than predicting the mean"
        reasons = sorted({each.reason for each in self.predictions if not each.holds})
        return f"{found} ({reasons[0]})" if reasons else found

    @property
    def sentences(self) -> list[str]:
        """The prediction for a report."""
        if not self.predictions:
            return []
        found = [
            f"Where the features explain {share:.0%} of the labels' variance and bounds hold four "
            f"standard deviations, the fit misses {missed:.2g} of what they explain; predicting "
            "the mean misses all of it, 1."
            for share, missed in zip(RANGE, self.missed, strict=True)
            if np.isfinite(missed)
        ]
        doubts = {each.reason for each in self.predictions if not each.holds}
        return [*found, *(f"Not to be relied on: {doubt}." for doubt in sorted(doubts))]


def outlook(
    sample_size: int,
    dimension: int,
    budget: Budget,
    *,
    intercept: bool = True,
    settings: HuberSettings | None = None,
) -> Outlook:
    """Settings for a fit, unless they are given, with their prediction.

    `default_settings` are kept unless a short search finds settings whose theory holds, and which
    are predicted to be more than 10 % better if that of the default holds as well. What intervals
    need is never given up for the rest.

    Parameters
    ----------
    sample_size : int
        Number n of records, at least 1.
    dimension : int
        Number p of coefficients, the intercept among them.
    budget : Budget
        What the fit may spend.
    intercept : bool
        Whether the first column is one of ones.
    settings : HuberSettings, optional
        Those of the caller, which are predicted alone.
    """
    n = require_count("sample_size", sample_size)
    p = require_count("dimension", dimension)
    require_instance("budget", budget, Budget)
    require_flag("intercept", intercept)
    if settings is not None:
        require_instance("settings", settings, HuberSettings)
    return _outlook(n, p, budget, intercept, settings)


def least_squares_outlook(
    sample_size: int,
    dimension: int,
    budget: Budget,
    *,
    intercept: bool = True,
    settings: LeastSquaresSettings | None = None,
) -> Outlook:
    """Settings for a least-squares fit, unless they are given, with their prediction.

    Its start is that of a robust fit, whose prediction says whether it comes near; the error is
    that of the wide steps (`prediction.least_squares`) under Gaussian errors, of the variance that
    the start leaves.

    Parameters
    ----------
    sample_size, dimension, budget, intercept
        As for `outlook`.
    settings : LeastSquaresSettings, optional
        Those of the caller.
    """
    start: HuberSettings | None = None
    if settings is not None:
        require_instance("settings", settings, LeastSquaresSettings)
        start = _start_of(settings)
    robust = outlook(sample_size, dimension, budget, intercept=intercept, settings=start)
    assert isinstance(robust.settings, HuberSettings)
    chosen = with_start_of(robust.settings) if settings is None else settings
    predictions = tuple(
        _wide(each, share, sample_size, dimension, budget, chosen)
        for each, share in zip(robust.predictions, RANGE, strict=False)
    )
    return Outlook(chosen, predictions)


def _start_of(settings: LeastSquaresSettings) -> HuberSettings:
    """A robust fit with the same start, and defaults for the rest."""
    names = ("clip_width", "warm_up_steps", "gram_rounds", "norm_share", "gram_share")
    same = {name: getattr(settings, name) for name in (*names, "scale_share", "warm_up_share")}
    left = 1 - sum(same[name] for name in same if name.endswith("share"))
    return HuberSettings(**same, mean_share=0.02 * left, moment_share=0.1 * left)


def _wide(
    robust: Prediction,
    share: float,
    sample_size: int,
    dimension: int,
    budget: Budget,
    settings: LeastSquaresSettings,
) -> Prediction:
    """The prediction of a robust fit, with the error of wide steps from where it ends."""
    noise = (1 - share) * DEVIATIONS**-2
    # Two digits: the labels' bound only says how far the histogram reaches.
    variance = noise + 2 * min(robust.excess_risk, 1e3)
    bound = float(f"{1 / np.sqrt(variance):.2g}")
    found = predicted_fit(sample_size, dimension, budget, settings, label_bound=bound)
    if not np.isfinite(found.error):
        return robust.with_doubt("noise hides the tail of the residuals")
    per_coefficient = variance * found.error / sample_size
    risk = max(per_coefficient * dimension / 2, 0.0)
    return replace(
        robust,
        excess_risk=risk,
        excess_risk_std=robust.excess_risk_std * risk / max(robust.excess_risk, 1e-300),
        parameter_error=robust.parameter_error * risk / max(robust.excess_risk, 1e-300),
        interval_length=robust.interval_length * np.sqrt(risk / max(robust.excess_risk, 1e-300)),
    )


@lru_cache(maxsize=256)
def _outlook(
    n: int, p: int, budget: Budget, intercept: bool, settings: HuberSettings | None
) -> Outlook:
    if n < 2 or not 1e-12 <= budget.rho <= 1e12:
        # Beyond what the theory's numbers can hold, and any use.
        chosen = settings or default_settings(sample_size=n, dimension=p, budget=budget)
        return Outlook(chosen, ())
    chosen = _chosen(n, p, budget, intercept) if settings is None else settings
    return Outlook(
        chosen,
        tuple(_predicted(_problem(n, p, share, intercept), [chosen], budget)[0] for share in RANGE),
    )


def advice(
    sample_size: int,
    dimension: int,
    budget: Budget,
    *,
    intercept: bool = True,
    target: str = "robust",
) -> str:
    """What to do where a fit is predicted to be no better than predicting the mean.

    Parameters
    ----------
    sample_size, dimension, budget, intercept
        As for `outlook`.
    target : {"least_squares", "robust"}
        Whose fit.
    """
    n = require_count("sample_size", sample_size)
    p = require_count("dimension", dimension)
    require_instance("budget", budget, Budget)
    require_flag("intercept", intercept)
    require_choice("target", target, ("least_squares", "robust"))
    found = _least_budget(n, p, budget, intercept, target)
    fewer = "declare fewer features or coarser categories, or bring more records"
    if found is None:
        return f"no larger budget changes that: {fewer}"
    epsilon = found.gaussian_epsilon(delta=1e-6)
    return f"it takes rho = {found.rho:.2g} (epsilon = {epsilon:.2g} at delta = 1e-6), or {fewer}"


def _chosen(n: int, p: int, budget: Budget, intercept: bool) -> HuberSettings:
    default = default_settings(sample_size=n, dimension=p, budget=budget)
    middle = _problem(n, p, MIDDLE, intercept)
    (first,) = _predicted(middle, [default], budget)
    settled = first.holds and first.excess_risk <= WORTH * _floor(middle, budget)
    if settled or p > MOST_RATIO * n:
        return default
    best, found = default, first
    careful = {"warm_up_steps": 2, "warm_up_share": 0.2, "gram_rounds": 1}
    starts = tuple(careful | {"gram_share": gram, "scale_share": scale} for gram, scale in CAREFUL)
    for choices in (starts, *MOVES):
        tried = [_changed(best, changes, n, p, budget) for changes in choices]
        predictions = [found, *_predicted(middle, tried, budget)]
        at = int(np.argmin([_value(each) for each in predictions]))
        best, found = [best, *tried][at], predictions[at]
        further = partial(_further, choices=choices, n=n, p=p, budget=budget)
        past, _ = beyond(
            best,
            _value(found),
            further=further,
            value=lambda each: _value(*_predicted(middle, [each], budget), doubt=np.inf),
        )
        if past is not best:
            best, (found,) = past, _predicted(middle, [past], budget)
    # Numbers that are not to be relied on are no reason to leave what is known to be sound.
    better = found.holds and _value(first) > WORTH * _value(found)
    return best if better else default


def _further(
    settings: HuberSettings, *, choices: Sequence[dict[str, Any]], n: int, p: int, budget: Budget
) -> HuberSettings | None:
    """Settings one more step beyond the end of a ladder of shares, if they lie there."""
    if len(choices[0]) > 1:
        return None
    (name,) = choices[0]
    share = next_on([each[name] for each in choices], getattr(settings, name))
    return None if share is None else _changed(settings, {name: share}, n, p, budget)


def _value(found: Prediction, *, doubt: float = DOUBT) -> float:
    # What does not hold counts for more than anything that does.
    return found.excess_risk * (1.0 if found.holds else doubt)


def _changed(
    settings: HuberSettings, changes: dict[str, Any], n: int, p: int, budget: Budget
) -> HuberSettings:
    """Settings with other shares, and the clip that is best for what is left."""
    try:
        changed = replace(settings, **changes)
    except ValueError:
        # Shares that leave nothing for the final steps.
        return settings
    price = _noise_price(n, p, budget) / changed.final_share
    return replace(changed, clip_width=best_clip_width(price))


def _least_budget(n: int, p: int, budget: Budget, intercept: bool, target: str) -> Budget | None:
    """The least of a few doublings of a budget at which a fit is worth it, if one is."""

    def worth(doublings: int) -> bool:
        larger = Budget(budget.rho * 2.0**doublings, budget.neighbours)
        foresee = outlook if target == "robust" else least_squares_outlook
        return foresee(n, p, larger, intercept=intercept).worthwhile

    if p > MOST_RATIO * n or not worth(DOUBLINGS):
        return None
    low, high = 0, DOUBLINGS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if worth(middle) else (middle, high)
    return Budget(budget.rho * 2.0**high, budget.neighbours)


def _problem(n: int, p: int, share: float, intercept: bool) -> Problem:
    """In units of the bounds: the features explain a share of the variance, evenly."""
    variance = DEVIATIONS**-2
    values = np.full(p, variance)
    if intercept:
        values[0] = 1.0
    return Problem(
        n,
        values,
        signal=np.sqrt(share * variance / (p * values)),
        label_noise_std=float(np.sqrt((1 - share) * variance)),
        feature_norm=float(np.sqrt(p)),
        label_bound=1.0,
    )


def _predicted(
    problem: Problem, methods: Sequence[HuberSettings], budget: Budget
) -> list[Prediction]:
    with np.errstate(all="ignore"):
        return predict_many(problem, list(methods), budget, rows=rows_of(problem, count=ROWS))


def _floor(problem: Problem, budget: Budget) -> float:
    """Excess risk if the final steps had the whole budget and scales were free."""
    width = np.geomspace(0.1, 4.0, 60)
    share, square = clipped_moments(width, np.ones_like(width))
    n, p = problem.sample_size, problem.dimension
    price = _noise_price(n, p, budget)
    least = float(np.min((square + price * width**2) / share**2))
    return problem.label_noise_std**2 * p / (2 * n) * least


def _noise_price(n: int, p: int, budget: Budget) -> float:
    """Variance of a step by private noise over that by rows, for each squared clip width."""
    change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
    return change**2 * p / (2 * n * budget.rho)
