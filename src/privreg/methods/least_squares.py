"""Private least squares, the default method: settings, their search and the predicted error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from math import inf, sqrt
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gdtrix, ndtri, pdtrik, stdtrit

from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.least_squares_descent import (
    SQUARE,
    START,
    TAIL_ASSUMPTION,
    WIDE_SHARES,
    LeastSquaresFit,
    LeastSquaresSettings,
    ProductTail,
    default_least_squares_settings,
    least_squares_descent,
    long_cap,
    product_edges,
    step_sizes,
    with_start_of,
)
from privreg.algorithms.whitened_descent import (
    ASSUMPTIONS,
    NoisyValue,
    raised,
    scale_is_hidden,
    shrunk_curvature,
    white_cap,
)
from privreg.checks import frozen, require_choice, require_flag, require_instance
from privreg.inference.least_squares_intervals import (
    NewObservations,
    least_squares_intervals,
    least_squares_law,
    new_observations,
)
from privreg.inference.population_intervals import LastIterateLaw
from privreg.kernels import plain_sum, standard_normal
from privreg.methods import huber
from privreg.methods.clipping import clipped_count_bias, clipped_rows, slopes_at_once, squared_shift
from privreg.methods.huber import PrivateHuber, WhitenedDescent, in_regime
from privreg.methods.method import Candidates
from privreg.methods.problem import (
    LABEL_CLIPPED,
    LABEL_NOISE_LAWS,
    MOST_BIAS,
    ROWS,
    WHOLE_LAWS,
    ErrorMoments,
    Prediction,
    Problem,
    Regime,
    Rows,
    rows_of,
)
from privreg.privacy.budget import Budget, gaussian_noise_std, gram_sensitivity, sum_sensitivity
from privreg.theory.huber_descent import privacy_covariance, symmetric_noise

FloatArray = NDArray[np.float64]
# Draws of the noise, in pairs that differ in the sign of the histogram's; a search makes fewer, and
# takes every fourth of the points.
PAIRS, FEW_PAIRS, THINNING, SEED = 16, 2, 4, 20261123
# Coordinates and directions that stand for all, since curvatures are near the identity.
COORDINATES, DIRECTIONS = 32, 2
# A fit is lost if the start's residual variance exceeds the errors' variance by this factor.
MOST_ARRIVAL = 1e6
ErrorLaw = Literal["gaussian", "laplace", "student_t5", "student_t3", "exponential", "lognormal"]
ERROR_LAWS: tuple[ErrorLaw, ...] = get_args(ErrorLaw)
POINTS = 2**16  # of `RecordProducts`


class ClippedMoments(NamedTuple):
    """Mean squares of a whitened coordinate over unclipped records, by distinct eigenvalue."""

    short: FloatArray  # of rows shortened to R₁, at the start
    long: FloatArray  # of rows shortened to R, at the start
    slope: FloatArray  # derivative of the mean clipped gradient at the end
    second: FloatArray  # of clipped gradients at the end


class RecordProducts:
    """Products q of a residual and its row's length, at points spread evenly over their laws.

    A point has a row, the row's error and clipped label, and the error of the steps' start. q/√p is
    in units of the errors' standard deviation.
    """

    def __init__(
        self,
        problem: Problem,
        rows: Rows,
        start: huber.Outcome,
        settings: LeastSquaresSettings,
        budget: Budget,
        *,
        errors: ErrorLaw,
        thinning: int = 1,
    ) -> None:
        n, p, sigma = problem.sample_size, problem.dimension, problem.label_noise_std
        row_place, label_place, start_place = (each[::thinning] for each in _places())
        mass = np.cumsum(rows.weights)
        # Row of each point, (points,).
        self.row = np.minimum(np.searchsorted(mass, row_place * mass[-1]), len(mass) - 1)
        # Factor by which the declared bound shortens a row, (rows,).
        self.shrink = np.minimum(1.0, problem.feature_norm / rows.norms)
        energies = rows.energies * self.shrink[:, None] ** 2 * start.whitening.squares
        # Whitened squares, means over a group's coordinates, (rows, groups).
        self.energies = energies / rows.multiplicities
        squares = energies.sum(axis=1)
        self.short_cap = white_cap(p, sample_size=n, rho=settings.curvature_share * budget.rho)
        longest = problem.feature_norm * sqrt(float(np.max(start.whitening.squares)))
        cap = long_cap(p, sample_size=n, rho=settings.long_share * budget.rho, longest=longest)
        self.cap = max(cap, self.short_cap)
        # Factors of a row's square in the curvature of short rows and in gradients, (rows,).
        self.short = self.short_cap**2 / np.maximum(squares, self.short_cap**2)
        self.leverage = self.cap**2 / np.maximum(squares, self.cap**2)
        self.lengths = np.sqrt(squares / p)
        bound = problem.label_bound / sigma
        mean = sqrt(2 * problem.null_risk) / sigma * label_place
        whole = errors.startswith(WHOLE_LAWS)
        labels = _whole_labels(errors, mean) if whole else mean + _quantiles(errors)[::thinning]
        last = np.clip(labels, -bound, bound) - mean
        first = last + sqrt(max(start.arrival - 1.0, 0.0)) * start_place
        lever = (self.lengths * self.leverage * self.shrink)[self.row]
        # Products at the start of the wide steps and at their end, (points,).
        self.first, self.last = lever * np.abs(first), lever * np.abs(last)
        self.scale = float(np.median(np.abs(self.first)) / ndtri(0.75))
        self.edges = product_edges(self.scale, bound, cap=self.cap, dimension=p)
        bins = np.searchsorted(self.edges, self.first)
        self.shares = np.bincount(bins, minlength=len(self.edges) + 1) / len(self.row)

    def moments(self, width: float) -> ClippedMoments:
        """Moments of the records that a clip of q/√p leaves unclipped."""
        size, points = len(self.lengths), len(self.row)

        def mean(values: NDArray[Any], weights: FloatArray) -> FloatArray:
            by_row = np.bincount(self.row, weights=values, minlength=size)
            return np.asarray((by_row * weights / points) @ self.energies)

        early, late = self.first <= width, self.last <= width
        return ClippedMoments(
            short=mean(early, self.short),
            long=mean(early, self.leverage),
            slope=mean(late, self.leverage),
            # Of a row of length ℓ, ggᵀ is zzᵀ (q/ℓ)².
            second=mean(np.minimum(self.last, width) ** 2, self.lengths**-2.0),
        )


@lru_cache(maxsize=1)
def _places() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Uniform places for rows, normal ones for labels and for starts: Roberts's sequence."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** 0.25
    numbers = np.arange(POINTS)
    uniform, *others = ((0.5 + numbers * root**-k) % 1.0 for k in (1, 2, 3))
    label, start = (np.asarray(ndtri(np.clip(each, 1e-9, 1 - 1e-9))) for each in others)
    return frozen(np.asarray(uniform, dtype=np.float64)), frozen(label), frozen(start)


@lru_cache(maxsize=8)
def _quantiles(law: ErrorLaw) -> FloatArray:
    """Equally likely errors of mean 0 and variance 1."""
    levels = (np.arange(POINTS) + 0.5) / POINTS
    sides = np.sign(levels - 0.5)
    found = {
        "gaussian": lambda: ndtri(levels),
        "laplace": lambda: -sides * np.log(2 * np.minimum(levels, 1 - levels)) / sqrt(2),
        "student_t5": lambda: stdtrit(5, levels) / sqrt(5 / 3),
        "student_t3": lambda: stdtrit(3, levels) / sqrt(3),
        "exponential": lambda: gdtrix(1.0, 1.0, levels) - 1.0,
        "lognormal": lambda: (np.exp(ndtri(levels)) - np.exp(0.5)) / sqrt(np.exp(2) - np.exp(1)),
    }[law]()
    return frozen(np.asarray(found))


def _whole_labels(law: str, means: FloatArray) -> FloatArray:
    """Standardised labels 0 and 1, or counts, at equally likely quantiles, one mean per label."""
    kind, _, number = law.partition("_")
    mean, levels = float(number), (np.arange(len(means)) + 0.5) / len(means)
    variance = mean * (1 - mean) / (1 + np.mean(means**2)) if kind == "binary" else mean
    own = np.maximum(mean + np.sqrt(variance) * means, 1e-9)
    values = levels > 1 - own if kind == "binary" else np.ceil(pdtrik(levels, own))
    return (values - mean) / np.sqrt(variance)


@dataclass(frozen=True)
class LeastSquaresPrediction:
    """Interval length and error of private least squares, relative to non-private least squares."""

    length: float  # of a slope's 95 % interval; `inf` where noise hides the tail or the slope
    error: float  # mean squared prediction error
    clip_width: float  # clip of q/√p (`RecordProducts`), in standard deviations of the errors


@dataclass(frozen=True, eq=False)
class WideOutcome(LeastSquaresPrediction):
    """A prediction with its moments and the numbers that decide its reliability."""

    start: huber.Outcome  # of a robust fit with the same start
    moments: ErrorMoments
    label_bias: float  # bound on the excess risk from labels beyond the declared bound


def predicted_length(
    problem: Problem,
    budget: Budget,
    *,
    errors: ErrorLaw | None = None,
    intercept: bool = True,
    settings: LeastSquaresSettings | None = None,
) -> LeastSquaresPrediction:
    """Predicted interval length and error of private least squares, relative to non-private values.

    Parameters
    ----------
    problem : Problem
        Sizes and laws of the regression.
    budget : Budget
        Budget of the whole fit.
    errors : str, optional
        Law of the centred errors, independent of the features; the problem's law by default. A law
        of `Problem`, "exponential" or "lognormal" (exp of a standard normal).
    intercept : bool
        True if one coefficient is an intercept; the slopes' intervals then allow for less bias.
    settings : LeastSquaresSettings, optional
        Settings of the fit, `default_least_squares_settings` by default.

    Examples
    --------
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> budget = Budget.approximate(1.0, 1e-6).gaussian()
    >>> normal = predicted_length(problem, budget)
    >>> skewed = predicted_length(problem, budget, errors="exponential")
    >>> 1.5 < normal.length < 1.8, skewed.length > normal.length
    (True, True)
    """
    require_instance("problem", problem, Problem)
    require_instance("budget", budget, Budget)
    require_flag("intercept", intercept)
    if errors is not None:
        require_choice("errors", errors, ERROR_LAWS)
    if settings is None:
        n, p = problem.sample_size, problem.dimension
        settings = default_least_squares_settings(sample_size=n, dimension=p, budget=budget)
    rows = rows_of(problem)
    found = follow_wide(problem, rows, settings, budget, errors=errors, intercept=intercept)
    return LeastSquaresPrediction(found.length, found.error, found.clip_width)


def follow_wide(
    problem: Problem,
    rows: Rows,
    settings: LeastSquaresSettings,
    budget: Budget,
    *,
    errors: ErrorLaw | None = None,
    intercept: bool = False,
) -> WideOutcome:
    """Predict one fit, its start and its wide-clip steps, in expectation and with drawn noise."""
    law: ErrorLaw = problem.label_noise_law if errors is None else errors
    # A start clips skewed errors as it clips Gaussian ones of their size.
    like = law if law in LABEL_NOISE_LAWS else "gaussian"
    near = problem if like == problem.label_noise_law else replace(problem, label_noise_law=like)
    start = huber.follow(near, rows, _start(settings), budget)
    n, p, sigma = problem.sample_size, problem.dimension, problem.label_noise_std
    steps = _WideSteps(n, p, budget, settings, intercept)
    count_std = float(steps.noise((1 - SQUARE) * settings.tail_share, 1.0, gram_sensitivity))
    if scale_is_hidden(noise_std=count_std, sample_size=n) or not start.arrival < MOST_ARRIVAL:
        unknown = np.full((1, len(rows.eigenvalues)), inf)
        return WideOutcome(inf, inf, inf, start, ErrorMoments(unknown, unknown), inf)
    few = problem.feature_law != "one_hot" and len(rows.weights) < ROWS
    thin = THINNING if few else 1
    products = RecordProducts(problem, rows, start, settings, budget, errors=law, thinning=thin)
    # Clips lie on a grid: several draws have the same one.
    moments_at = lru_cache(maxsize=None)(products.moments)
    drawn = [
        steps.draw(products, moments_at, rows, start, pair, sign * count_std)
        for pair in range(FEW_PAIRS if few else PAIRS)
        for sign in (-1, 1)
    ]
    clip_width = float(np.median([each.width for each in drawn]))
    gain = start.whitening.gain(p / n)
    variance = np.mean([each.sampling + gain * each.private for each in drawn], axis=0)
    variance = (sigma**2 * start.whitening.squares * variance)[None]
    # Residuals at which each row's gradient is clipped.
    widths = clip_width / (products.lengths * products.leverage * products.shrink)
    moved = squared_shift(
        near, rows, sigma * widths[None], leverage=products.leverage * products.shrink**2
    )
    # Clipped labels have other slopes; this bound supposes that no product is clipped.
    factors, slopes = products.shrink**2 * products.leverage, np.empty((3, len(rows.eigenvalues)))
    bound = np.full_like(factors, inf if like.startswith("binary") else problem.label_bound)
    still = np.zeros_like(rows.squared_signal)
    slopes_at_once(clipped_rows(near, rows), bound, factors, rows.squared_signal, still, slopes)
    pulled = slopes[0] / rows.per_coordinate(factors) - 1
    label_bias = float(rows.total(rows.eigenvalues * pulled**2 * rows.squared_signal)) / 2
    moments = ErrorMoments(np.zeros_like(variance), variance, moved)
    energy = (problem.misfit**2 * moments.shift + moments.variance)[0]
    # Typical runs: the mean of the middle half.
    half = np.sort(np.concatenate([each.half for each in drawn]))
    return WideOutcome(
        length=float(np.mean(half[len(half) // 4 : -(len(half) // 4)])),
        error=float(rows.total(rows.eigenvalues * energy)) * max(n - p, 1) / (p * sigma**2),
        clip_width=clip_width,
        start=start,
        moments=moments,
        label_bias=max(label_bias, clipped_count_bias(problem)),
    )


@dataclass(frozen=True, eq=False)
class _Draw:
    """One run: clip, variances by groups in whitened coordinates, relative half-widths."""

    width: float
    sampling: FloatArray
    private: FloatArray
    half: FloatArray


@dataclass(frozen=True, eq=False)
class _WideSteps:
    """The last steps, with a wide clip, of a fit of given size, budget and settings."""

    n: int
    p: int
    budget: Budget
    settings: LeastSquaresSettings
    intercept: bool

    def noise(self, shares: ArrayLike, bound: float, change: Callable[..., Any]) -> FloatArray:
        """Standard deviations of the noise of sums over records."""
        sensitivity = change(bound, neighbours=self.budget.neighbours)
        rho = np.asarray(shares) * self.budget.rho
        return gaussian_noise_std(sensitivity=sensitivity, rho=rho)

    @cached_property
    def unit_noise(self) -> float:
        """Noise of a coordinate of the mean gradient at the clip √p."""
        return float(self.noise(self.settings.final_share, sqrt(self.p), sum_sensitivity)) / self.n

    def draw(
        self,
        products: RecordProducts,
        moments_at: Callable[[float], ClippedMoments],
        rows: Rows,
        start: huber.Outcome,
        pair: int,
        count_std: float,
    ) -> _Draw:
        """One run; the runs of a pair differ only in the sign of the histogram's noise."""
        n, p, settings = self.n, self.p, self.settings
        rng = np.random.Generator(np.random.SFC64([SEED, pair]))
        counts = n * products.shares + count_std * standard_normal(rng, products.shares.shape)
        tail = ProductTail(products.edges, NoisyValue(counts, abs(count_std)), float(n))
        width = tail.best_width(noise=self.unit_noise, ease=1.0 + self.intercept)
        short, long, slope, second = moments_at(width)
        # Groups in proportion to their size.
        size = min(p, COORDINATES)
        ends = np.cumsum(rows.multiplicities)
        group = np.searchsorted(ends, (np.arange(size) + 0.5) / size * ends[-1])

        def seen(diagonal: FloatArray, share: float, square: float) -> NoisyValue:
            std = float(self.noise(share, square, gram_sensitivity)) / n
            noise = symmetric_noise(size, noise_std=std, rng=rng)
            return NoisyValue(np.diag(diagonal[group]) + noise, std)

        near = seen(short, settings.curvature_share, products.short_cap**2)
        far = seen(long, settings.long_share, products.cap**2)
        newton = np.linalg.inv(raised(shrunk_curvature(near.pooled(far)), far))
        matrices = np.array([step * newton for step in step_sizes(WIDE_SHARES)])
        clip_norm, wide = sqrt(p) * width, settings.final_share * np.array(WIDE_SHARES)
        stds = self.noise(wide, clip_norm, sum_sensitivity) / n
        away = start.arrived[group]
        covariance = privacy_covariance(
            np.diag(slope[group]), matrices, stds, start_covariance=np.diag(away)
        )
        private = np.full(len(slope), np.trace(covariance) / size)
        for own in np.unique(group):
            private[own] = np.mean(np.diag(covariance)[group == own])
        begin = end = np.sqrt(away) * standard_normal(rng, (size,))
        for matrix, std in zip(matrices, stds, strict=True):
            end = end - matrix @ (slope[group] * end + std * standard_normal(rng, (size,)))
        rho = settings.mean_share / 2 * self.budget.rho
        square_std = float(gaussian_noise_std(sensitivity=width**2, rho=rho))
        fit = LeastSquaresFit(
            iterates=(end - begin)[None],
            robust_start=np.zeros(size),
            robust_start_variance=float(np.mean(away)),
            whitening=np.eye(size),
            step_matrices=matrices,
            gradient_noise_stds=stds,
            clip_norm=sqrt(size) * width,
            cap=products.cap,
            short_cap=products.short_cap,
            residual_scale=products.scale,
            tail=tail,
            gram=near,
            # The mean row is the first coordinate's.
            centre=NoisyValue(np.eye(size)[0], 0.0) if self.intercept else None,
            curvature=near,
            long_curvature=far,
            second_moment=seen(second, settings.moment_share, clip_norm**2),
            mean_curvature=NoisyValue(np.asarray(short.mean()), 0.0),
            mean_square=NoisyValue(np.asarray(second.mean()), square_std / n),
            sample_size=float(n),
            settings=settings,
            spending=(),
        )
        asked = np.arange(size)[:: -max(size // DIRECTIONS, 1)][:DIRECTIONS]
        found = least_squares_intervals(fit, functionals=np.eye(size)[asked])
        # Least squares on the same rows: their second moment is WᵀΣW.
        moments = (rows.eigenvalues * start.whitening.squares)[group[asked]]
        own = ndtri(0.975) / np.sqrt(moments * max(n - size, 1))
        return _Draw(
            width,
            second / np.maximum(slope, 1e-3) ** 2 / max(n - p, 1),
            private,
            found.half_width / own,
        )


def _start(settings: LeastSquaresSettings) -> HuberSettings:
    """Settings of a robust fit with the same start."""
    shares = {name: getattr(settings, name) for name in ("norm_share", *START)}
    left = 1 - plain_sum(shares.values())
    return HuberSettings(
        clip_width=settings.clip_width,
        warm_up_steps=settings.warm_up_steps,
        gram_rounds=settings.gram_rounds,
        **shares,
        mean_share=0.02 * left,
        moment_share=0.1 * left,
    )


@dataclass(frozen=True)
class PrivateLeastSquares(LeastSquaresSettings, WhitenedDescent):
    """Private least squares: robust start, tail histogram, then three steps with a wide clip.

    Under any law of errors, the method estimates the best linear prediction of the mean label.
    Under the laws of `Problem` with `misfit` 0, `PrivateHuber` has the smaller excess risk.
    `WhitenedDescent` (methods/huber.py) defines neighbours, groups and the preparation of rows.

    Parameters
    ----------
    clip_width : float
        Clip of the warm-up steps, from 1e-3 to 1e3, in units of the residual scale. The wide clip
        of the last three steps is found privately.
    warm_up_steps, gram_rounds : int
        Number of warm-up steps, and number of private estimates of the Gram matrix.
    norm_share, label_share, gram_share, scale_share, warm_up_share : float
        Shares of the zCDP budget ρ for the start. All shares, also those below, are in (0, 1).
    tail_share : float
        Share for the histogram and mean square of products: each residual times its row's length.
        Both determine the wide clip and the intervals' allowance for bias.
    curvature_share, long_share, moment_share, mean_share : float
        Shares for the moments that intervals need. The rest of ρ goes to the last three steps.

    Guarantee
    ---------
    Releasing the whole fit spends the budget: `least_squares_descent` with the declared bounds.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> budget = Budget.zcdp(0.5)
    >>> method = PrivateLeastSquares.default(sample_size=10_000, dimension=10, budget=budget)
    >>> method.predict(problem, budget).holds
    True
    """

    name: ClassVar[str] = "least_squares"
    supposes: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = (*ASSUMPTIONS, TAIL_ASSUMPTION)
    _descent = staticmethod(least_squares_descent)
    _intervals = staticmethod(least_squares_intervals)

    @classmethod
    def with_start_of(cls, settings: HuberSettings, *size: Any) -> Self:
        """Settings with the start of Huber `settings` (`algorithms.least_squares_descent`)."""
        return cls(**asdict(with_start_of(settings, *size)))

    @classmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings with the start of `PrivateHuber.default`."""
        robust = PrivateHuber.default(sample_size=sample_size, dimension=dimension, budget=budget)
        return cls.with_start_of(robust, sample_size, dimension, budget)

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        (robust,) = PrivateHuber.candidates(problem, budget, intervals=True)
        size = problem.sample_size, problem.dimension, budget
        return [Candidates(cls.name, [cls.with_start_of(each, *size) for each in robust.starts])]

    def new_observations(
        self, fit: LeastSquaresFit, rows: FloatArray, *, level: float
    ) -> NewObservations:
        """Intervals for labels of new records, from a released histogram, at no privacy cost."""
        return new_observations(fit, rows, level=level)

    @staticmethod
    def _law(fit: LeastSquaresFit) -> LastIterateLaw:
        return least_squares_law(fit).last_iterate(fit.sample_size)

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        followed = [follow_wide(problem, rows, method, budget) for method in settings]
        return lambda each: [
            _regime(each, found.moments.predictions(each, rows)[0], found) for found in followed
        ]


def _regime(problem: Problem, found: Prediction, outcome: WideOutcome) -> Prediction:
    """Regime of private least squares, from its start and its clip."""
    started = in_regime(problem, found, outcome.start)
    stated = replace(started, interval_length=outcome.length * problem.least_squares_length)
    if not stated.holds:
        return stated
    if outcome.label_bias > MOST_BIAS * stated.excess_risk:
        return stated.with_doubt(LABEL_CLIPPED)
    return stated.marked(Regime.EXTENDED, "expected sums over records, with simulated noise")
