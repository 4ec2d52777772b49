r"""Settings of the estimator and their predicted error, from public numbers alone.

These numbers are the counts of records and coefficients, and the budget. By convention, bounds lie
4 standard deviations from the mean, and features explain 40 to 90 % of the labels' variance.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Any, Literal, get_args

import numpy as np

from privreg.algorithms.huber_descent import HuberFit, best_clip_width
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.checks import LARGEST_COUNT, MOST, require_number, rounded
from privreg.estimators.columns import Frame
from privreg.inference.least_squares_intervals import UNSEEN, least_squares_law, tail_is_hidden
from privreg.inference.population_intervals import last_iterate_law
from privreg.methods.clipping import noise_moments
from privreg.methods.huber import CAREFUL, PrivateHuber
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.methods.method import Fitted, Method
from privreg.methods.problem import MOST_RATIO, Prediction, Problem
from privreg.planning import DOUBT, WORTH
from privreg.privacy.budget import Budget, Neighbours, sum_sensitivity
from privreg.theory.huber_descent import noise_edge

FitTarget = Literal["least_squares", "huber"]
FIT_TARGETS: tuple[FitTarget, ...] = get_args(FitTarget)

FEW = "there are at most as many records as coefficients"
NOISE = "the released fit is indistinguishable from noise and likely worse than predicting the mean"
MORE = ": use more records, a larger budget, fewer features or narrower bounds"
# Explained share of the labels' variance: the value for comparing settings, and the range.
MIDDLE, RANGE = 0.65, (0.4, 0.9)
# Assumed half-width of the bounds, in standard deviations.
DEVIATIONS = 4.0
ROWS = 96
# Doublings of the budget, or of the records, in search of the least worthwhile one.
DOUBLINGS = [2**k for k in range(1, 25)]
# Largest epsilon that advice names.
MOST_EPSILON = 10.0
# A step beyond the end of a ladder of shares must gain 1 %.
GAIN = 0.99
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
    """Settings of a fit, and predictions for the least and the largest assumed R² (`RANGE`).

    Both are for labels in [-1, 1]. For fewer than two records there are no predictions.
    """

    settings: Method
    predictions: tuple[Prediction, ...]

    @property
    def missed(self) -> tuple[float, ...]:
        """For each prediction, the excess risk divided by that of predicting the mean."""
        return tuple(each.excess_risk / each.null_risk for each in self.predictions)

    @property
    def worthwhile(self) -> bool:
        """True if at least one prediction holds and beats predicting the mean."""
        return any(each.holds and each.beats_the_mean for each in self.predictions)

    @property
    def doubt(self) -> str:
        """Reason why the fit may not beat predicting the mean; empty otherwise."""
        if self.worthwhile:
            return ""
        reasons = sorted({each.reason for each in self.predictions if not each.holds})
        why = f" ({reasons[0]})" if reasons else ""
        if any(each.beats_the_mean for each in self.predictions):
            return f"no theory says whether the fit beats predicting the mean{why}"
        return f"the fit is not expected to beat predicting the mean{why}"

    @property
    def sentences(self) -> list[str]:
        """Sentences about the prediction for a report."""
        if not self.predictions:
            return []
        found = [
            f"If R² = {share:.2f}, sampling and privacy should cost "
            f"{rounded(100 * missed)} % of it."
            for share, missed in zip(RANGE, self.missed, strict=True)
            if np.isfinite(missed)
        ]
        scale = "100 % is the cost of predicting the mean. Assumed bounds: ±4 standard deviations."
        doubts = {each.reason for each in self.predictions if not each.holds}
        doubted = [f"Unreliable: {doubt}." for doubt in sorted(doubts)]
        return [*found, scale, *doubted] if found else doubted


def outlook(
    sample_size: int,
    dimension: int,
    budget: Budget,
    *,
    intercept: bool = True,
    target: FitTarget = "least_squares",
    settings: Method | None = None,
) -> Outlook:
    """Given or planned settings of a fit, with their predicted error.

    Planned settings are those of `PrivateHuber.default`, unless a short search finds settings with
    valid theory and the default's risk is over 10 % higher. `dimension` includes the intercept.
    """
    if settings is None:
        return _planned(sample_size, dimension, budget, intercept, target)
    if sample_size < 2:
        return Outlook(settings, ())
    size = sample_size, dimension
    problems = [problem_in_bounds(*size, share, intercept=intercept) for share in RANGE]
    found = [settings.predictions([settings], each, budget, rows=ROWS)[0] for each in problems]
    return Outlook(settings, tuple(found))


@lru_cache(maxsize=256)
def _planned(n: int, p: int, budget: Budget, intercept: bool, target: FitTarget) -> Outlook:
    robust = _chosen(n, p, budget, intercept)
    chosen: Method = robust
    if target != "huber":
        chosen = PrivateLeastSquares.with_start_of(robust, n, p, budget)
    return outlook(n, p, budget, intercept=intercept, settings=chosen)


def forecast(
    sample_size: int, frame: Frame, budget: Budget, target: FitTarget, settings: Method | None
) -> tuple[Outlook, list[str]]:
    """Outlook of a fit in the units of a frame, and the warnings about it."""
    if budget.neighbours is Neighbours.ADD_REMOVE:
        # The number is noisy: a plan for its first two digits serves many fits.
        sample_size = max(1, int(float(f"{sample_size:.2g}")))
    size = sample_size, frame.dimension, budget
    found = outlook(*size, intercept=frame.intercept, target=target, settings=settings)
    if not found.predictions or found.worthwhile:
        return found, []
    what_to_do = advice(*size, intercept=frame.intercept, target=target)
    return found, [f"{found.doubt}; {what_to_do}"]


def advice(
    sample_size: int,
    dimension: int,
    budget: Budget,
    *,
    intercept: bool = True,
    target: FitTarget = "least_squares",
) -> str:
    """Advice for a fit that is not expected to beat predicting the mean."""

    def worth(records: int, larger: Budget) -> bool:
        return _planned(records, dimension, larger, intercept, target).worthwhile

    larger = [Budget(min(budget.rho * more, MOST), budget.neighbours) for more in DOUBLINGS]
    epsilons = [each.gaussian_epsilon(delta=1e-6) for each in larger]
    few = bisect_right(epsilons, MOST_EPSILON) if dimension <= MOST_RATIO * sample_size else 0
    at = bisect_left(larger[:few], True, key=lambda each: worth(sample_size, each))
    if at < few:
        named = f"rho = {rounded(larger[at].rho)} (epsilon = {epsilons[at]:.2g} at delta = 1e-6)"
        return f"use at least {named}, or fewer features, coarser categories or more records"
    sizes = [min(sample_size * more, LARGEST_COUNT) for more in DOUBLINGS]
    at = bisect_left(sizes, True, key=lambda size: worth(size, budget))
    enough = f" (about {rounded(sizes[at])})" if at < len(sizes) else ""
    return f"use more records{enough}, fewer features or coarser categories"


def hopeless(fit: Fitted, records: float, doubts: list[str]) -> list[str]:
    r"""Extend a plan's warnings if the fit is likely worse than predicting the mean.

    .. math:: (1 + e) \operatorname{tr} V \ge \|(I - m m^\top)\hat\varphi\|^2

    φ̂ = W⁻¹θ̂ is the estimate in coordinates that whiten the rows, and V its covariance. m is the
    unit vector of the intercept, and e the larger `noise_edge` of the Gram matrix and the
    curvature. On average, the right side is the squared signal plus tr V.
    """
    found = [FEW] if records <= fit.parameters.size else []
    if isinstance(fit, LeastSquaresFit) and tail_is_hidden(fit):
        found.append(f"every interval is infinite: {UNSEEN}")
    bad = [*doubts, *found, NOISE + MORE * (not doubts)]
    if not isinstance(fit, (LeastSquaresFit, HuberFit)):
        return [*doubts, *found]
    if np.linalg.matrix_rank(fit.whitening) < fit.parameters.size:
        return bad
    if isinstance(fit, LeastSquaresFit):
        law = least_squares_law(fit).last_iterate(fit.sample_size)
    else:
        law = last_iterate_law(fit)
    estimate = np.linalg.solve(fit.whitening, fit.parameters)
    if fit.centre is not None:
        constant = np.linalg.solve(fit.whitening, np.eye(estimate.size)[0])
        estimate = estimate - constant * (constant @ estimate) / (constant @ constant)
    noise = max(each.noise_std for each in (fit.gram, fit.curvature) if each is not None)
    grown = 1 + noise_edge(estimate.size, noise_std=noise)
    missed = grown * float(np.trace(law.sampling + law.privacy))
    seen = missed < float(estimate @ estimate)
    return found if seen else bad


def harmful_share(fit: Fitted, frame: Frame, settings: Method) -> float:
    r"""Least share s of lost or clipped records that may move a slope to the end of its interval.

    .. math::
        f^\top(\theta' - \theta) = a^\top \frac1n \sum_{i \in T} x_i r_i \le 2 s\,\|a\|_1, \qquad
        a = M^{-1} f

    f selects a slope. θ solves Σ x r = 0 over all n records; θ′ solves it without the s n records
    of T. M = (W Wᵀ)⁻¹ is the second moment of rows, |x_j| is at most 1, and |r| at most 2.
    """
    if not hasattr(fit, "whitening"):
        return inf
    slopes = frame.functionals()[0][: len(frame.features)]
    options: Any = {"functionals": slopes, "offset": np.zeros(len(slopes))}
    half = settings.intervals(fit, level=0.95, target="population", **options).half_width
    reach = 2 * np.abs(slopes @ fit.whitening @ fit.whitening.T).sum(axis=1)
    return float(np.min(half / reach))


def _chosen(n: int, p: int, budget: Budget, intercept: bool) -> PrivateHuber:
    """The default, or the best settings of a search that changes one share after another."""
    default = PrivateHuber.default(sample_size=n, dimension=p, budget=budget)
    if n < 2 or p > MOST_RATIO * n:
        return default
    middle = problem_in_bounds(n, p, MIDDLE, intercept=intercept)
    change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
    price = change**2 * p / (2 * n * budget.rho)
    found: dict[PrivateHuber, Prediction] = {}

    def value(settings: PrivateHuber, doubt: float = DOUBT) -> float:
        if settings not in found:
            (found[settings],) = settings.predictions([settings], middle, budget, rows=ROWS)
        return found[settings].excess_risk * (1.0 if found[settings].holds else doubt)

    def changed(changes: dict[str, Any]) -> PrivateHuber:
        """The best settings so far with `changes`, and the best clip for the final steps."""
        try:
            moved = replace(best, **changes)
        except ValueError:
            # Shares that leave nothing for the final steps.
            return best
        return replace(moved, clip_width=best_clip_width(price / moved.final_share))

    def further(ladder: tuple[dict[str, Any], ...]) -> PrivateHuber:
        """Settings one step beyond a ladder's end, if the best ones lie at that end."""
        (name, *others) = ladder[0]
        first, second, *_ = shares = [each[name] for each in ladder]
        share = getattr(best, name)
        for end, inner in ((first, second), (shares[-1], shares[-2])):
            if not others and (share - end) * (end - inner) >= 0:
                return changed({name: share * end / inner})
        return best

    best = default
    if value(default, inf) <= WORTH * _floor(middle, price):
        return default
    careful = {"warm_up_steps": 2, "warm_up_share": 0.2, "gram_rounds": 1}
    starts = tuple(careful | {"gram_share": gram, "scale_share": scale} for gram, scale in CAREFUL)
    for ladder in (starts, *MOVES):
        best = min((best, *map(changed, ladder)), key=value)
        while value(past := further(ladder), inf) < GAIN * value(best):
            best = past
    # Unreliable predictions are no reason to leave sound default settings.
    return best if value(default) > WORTH * value(best, inf) else default


def _floor(problem: Problem, price: float) -> float:
    """Excess risk if the final steps had the whole budget and private scales cost nothing.

    `price` × width² is a step's private variance divided by its sampling variance without clips.
    """
    width = np.geomspace(0.1, 4.0, 60)
    share, square = noise_moments(width, label_noise_std=1.0)
    least = float(np.min((square + price * width**2) / share**2))
    return problem.label_noise_std**2 * problem.dimension / (2 * problem.sample_size) * least


def problem_in_bounds(
    sample_size: int, dimension: int, share: float, *, intercept: bool = True
) -> Problem:
    """Problem assumed by convention for a table, in the units of its declared bounds.

    Settings for this problem suit `PrivateLinearRegression`, which scales rows to these units. The
    `dimension` coefficients (with intercept) explain equal parts of the variance, `share` in all.

    Examples
    --------
    >>> problem_in_bounds(10_000, 3, 0.5).eigenvalues.tolist()
    [1.0, 0.0625, 0.0625]
    """
    require_number("share", share, above=0, below=1)
    variance = DEVIATIONS**-2
    values = np.full(dimension, variance)
    if intercept:
        values[0] = 1.0
    return Problem(
        sample_size,
        values,
        signal=np.sqrt(share * variance / (dimension * values)),
        label_noise_std=float(np.sqrt((1 - share) * variance)),
        feature_norm=float(np.sqrt(dimension)),
        label_bound=1.0,
    )
