r"""Error and interval length of private least squares, from public numbers.

What records' products with residuals will be follows from the laws of errors and rows. Their
expected histogram and moments, each with a few draws of the noise that private ones have, go
through the code of the fit: its clip, its Newton matrix, and the interval that it states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.huber_scales import scale_is_hidden
from privreg.algorithms.least_squares_descent import (
    START,
    LeastSquaresFit,
    LeastSquaresSettings,
    default_least_squares_settings,
)
from privreg.algorithms.product_tail import LEAN, ProductTail
from privreg.algorithms.split_budget import NoisyValue
from privreg.algorithms.whitening import raised, shrunk_curvature
from privreg.inference.least_squares_intervals import least_squares_intervals
from privreg.noise.normals import standard_normal
from privreg.prediction import huber
from privreg.prediction.gram_rounds import nodes_gain
from privreg.prediction.misfit import squared_shift
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import LABEL_NOISE_LAWS, Problem
from privreg.prediction.record_products import (
    ERROR_LAWS,
    ClippedMoments,
    ErrorLaw,
    RecordProducts,
    record_products,
)
from privreg.prediction.rows import ROWS, Rows, require_setting, rows_of
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import gram_sensitivity, sum_sensitivity
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.theory.huber_descent.known_noise import symmetric_noise
from privreg.theory.huber_descent.last_iterate import privacy_covariance
from privreg.validation import require_choice, require_flag, require_instance

FloatArray = NDArray[np.float64]
# Draws of the noise in pairs, of opposite signs of the histogram's, and where rows are few; the
# coordinates and directions that stand for all, since curvatures are near the identity.
PAIRS, FEW_PAIRS, COORDINATES, DIRECTIONS, SEED = 16, 2, 32, 2, 20261123
THINNING = 4
# Residual variance at the start over that of the errors beyond which a fit is lost.
MOST_ARRIVAL = 1e6


@dataclass(frozen=True)
class LeastSquaresPrediction:
    """What a private least-squares fit will be worth, beside least squares on the same rows.

    Attributes
    ----------
    length : float
        Length of a slope's 95 % interval over that of least squares; `inf` where noise hides the
        tail or the slope.
    error : float
        Mean squared prediction error over that of least squares.
    clip_width : float
        Clip of q/√p over the errors' standard deviation.
    """

    length: float
    error: float
    clip_width: float


@dataclass(frozen=True, eq=False)
class WideOutcome(LeastSquaresPrediction):
    """What the wide steps make of a start, besides what is said of it.

    Attributes
    ----------
    start : huber.Outcome
        Of a robust fit with the same start.
    moments : ErrorMoments
    spike : float
        What a noisy count far out can do to the clip (`_spike`).
    """

    start: huber.Outcome
    moments: ErrorMoments
    spike: float


def predicted_length(
    problem: Problem,
    budget: Budget,
    *,
    errors: ErrorLaw | None = None,
    intercept: bool = True,
    settings: LeastSquaresSettings | None = None,
) -> LeastSquaresPrediction:
    """Length and error of a fit that has not happened.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    errors : str, optional
        Law of the errors about their mean, independent of the features: that of the problem by
        default, another one of `Problem`'s, "exponential", or "lognormal", exp of a standard normal
        one.
    intercept : bool
        Whether one of the coefficients is an intercept: intervals of the others then allow for less
        bias.
    settings : LeastSquaresSettings, optional
        `default_least_squares_settings` by default.

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
    """Follow one fit: its start, then the wide steps on expectations and draws of their noise.

    Parameters
    ----------
    problem : Problem
        Its bounds are those of the algorithm.
    rows : Rows
        Those of the problem; fewer than `rows_of` draws for a rougher answer in less time.
    settings : LeastSquaresSettings
    budget : Budget
    errors : str, optional
    intercept : bool
        As for `predicted_length`.
    """
    require_setting(problem, rows, budget)
    require_instance("settings", settings, LeastSquaresSettings)
    law: ErrorLaw = problem.label_noise_law if errors is None else errors
    require_choice("errors", law, ERROR_LAWS)
    # A start clips skewed errors as it clips Gaussian ones of their size.
    near = replace(problem, label_noise_law=law if law in LABEL_NOISE_LAWS else "gaussian")
    with np.errstate(over="ignore", invalid="ignore"):
        start = huber.follow(near, rows, _start(settings), budget)
    n, p, sigma = problem.sample_size, problem.dimension, problem.label_noise_std
    steps = _WideSteps(n, p, budget, settings, require_flag("intercept", intercept))
    count_std = steps.noise(settings.tail_share, 1.0, gram_sensitivity)
    if scale_is_hidden(noise_std=count_std, sample_size=n) or not start.arrival < MOST_ARRIVAL:
        unknown = np.full((1, len(rows.eigenvalues)), inf)
        return WideOutcome(inf, inf, inf, start, ErrorMoments(unknown, unknown), inf)
    few = problem.feature_law != "one_hot" and len(rows.weights) < ROWS
    thinning = THINNING if few else 1
    products = record_products(
        problem, rows, start, settings, budget, errors=law, thinning=thinning
    )
    # Clips lie on a grid: several draws have the same one.
    moments_at = lru_cache(maxsize=None)(products.moments)
    drawn = [
        steps.draw(products, moments_at, rows, start, pair, sign * count_std)
        for pair in range(FEW_PAIRS if few else PAIRS)
        for sign in (-1, 1)
    ]
    clip_width = float(np.median([each.width for each in drawn]))
    gain = nodes_gain(start.whitening, p / n)
    variance = np.mean([each.sampling + gain * each.private for each in drawn], axis=0)
    variance = (sigma**2 * start.whitening.squares * variance)[None]
    moments = ErrorMoments(
        np.zeros_like(variance),
        variance,
        squared_shift(
            near,
            rows,
            sigma * products.residual_widths(clip_width)[None],
            leverage=products.leverage * products.shrink**2,
        ),
    )
    energy = (problem.misfit**2 * moments.shift + moments.variance)[0]
    half = np.sort(np.concatenate([each.half for each in drawn]))
    return WideOutcome(
        length=float(np.mean(half[len(half) // 4 : -(len(half) // 4)])),
        error=float(rows.total(rows.eigenvalues * energy)) * max(n - p, 1) / (p * sigma**2),
        clip_width=clip_width,
        start=start,
        moments=moments,
        spike=_spike(count_std / n, steps.unit_noise, products.edges[-1] / clip_width),
    )


@dataclass(frozen=True, eq=False)
class _Draw:
    """Of one run: its clip, variances by groups in whitened coordinates, relative half-widths."""

    width: float
    sampling: FloatArray
    private: FloatArray
    half: FloatArray


@dataclass(frozen=True, eq=False)
class _WideSteps:
    """The wide steps of a fit of given size, budget and settings."""

    n: int
    p: int
    budget: Budget
    settings: LeastSquaresSettings
    intercept: bool

    def noise(self, share: float, bound: float, change: Callable[..., object]) -> float:
        """Standard deviation of the noise of a sum over records."""
        sensitivity = change(bound, neighbours=self.budget.neighbours)
        return float(gaussian_noise_std(sensitivity=sensitivity, rho=share * self.budget.rho))  # type: ignore[arg-type]

    @property
    def unit_noise(self) -> float:
        """Noise of a coordinate of the mean gradient at the clip √p."""
        return self.noise(self.settings.final_share, sqrt(self.p), sum_sensitivity) / self.n

    def draw(
        self,
        products: RecordProducts,
        moments_at: Callable[[float], ClippedMoments],
        rows: Rows,
        start: huber.Outcome,
        pair: int,
        count_std: float,
    ) -> _Draw:
        """One run; those of a pair differ in the sign of the histogram's noise alone."""
        n, p, settings = self.n, self.p, self.settings
        rng = np.random.Generator(np.random.SFC64([SEED, pair]))
        counts = n * products.shares + count_std * standard_normal(rng, products.shares.shape)
        tail = ProductTail(products.edges, NoisyValue(counts, abs(count_std)), float(n))
        width = tail.best_width(noise=self.unit_noise)
        short, long, slope, second = moments_at(width)
        # Groups in proportion to their size.
        size = min(p, COORDINATES)
        ends = np.cumsum(rows.multiplicities)
        group = np.searchsorted(ends, (np.arange(size) + 0.5) / size * ends[-1])

        def seen(diagonal: FloatArray, share: float, square: float) -> NoisyValue:
            std = self.noise(share, square, gram_sensitivity) / n
            noise = symmetric_noise(size, noise_std=std, rng=rng)
            return NoisyValue(np.diag(diagonal[group]) + noise, std)

        near = seen(short, settings.curvature_share, products.short_cap**2)
        far = seen(long, settings.long_share, products.cap**2)
        newton = np.linalg.inv(raised(shrunk_curvature(near), far))
        matrices = np.array([step * newton for step in settings.wide_sizes])
        clip_norm = sqrt(p) * width
        stds = np.array(
            [self.noise(share, clip_norm, sum_sensitivity) / n for share in settings.wide_shares]
        )
        away = sqrt(max(start.arrival - 1.0, 0.0) / p)
        covariance = privacy_covariance(
            np.diag(slope[group]), matrices, stds, start_covariance=away**2 * np.eye(size)
        )
        private = np.full(len(slope), np.trace(covariance) / size)
        for own in np.unique(group):
            private[own] = np.mean(np.diag(covariance)[group == own])
        begin = end = away * standard_normal(rng, (size,))
        for matrix, std in zip(matrices, stds, strict=True):
            end = end - matrix @ (slope[group] * end + std * standard_normal(rng, (size,)))
        square_std = float(
            gaussian_noise_std(sensitivity=width**2, rho=settings.mean_share / 2 * self.budget.rho)
        )
        fit = LeastSquaresFit(
            iterates=(end - begin)[None],
            start=np.zeros(size),
            start_variance=away**2,
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


def _spike(count_noise: float, unit_noise: float, reach: float) -> float:
    r"""How far noise in the last counts carries the clip.

    .. math:: \frac{3 \kappa \sigma_h / n}{\nu} \cdot \frac{\sigma_h}{n} \cdot \frac{t_{\max}}{t}

    Three deviations in a bin at t' add 3κ(σ_h/n)t' to the bias that a clip t leaves, a clip at t'
    costs noise of νt': where the first factor is above 1 the clip goes there, if the smoothing
    believes the count; the rest is what the count does to the mean product, in units of the clip.
    """
    return 3 * LEAN * count_noise / unit_noise * count_noise * reach


def _start(settings: LeastSquaresSettings) -> HuberSettings:
    """A robust fit with the same start, and defaults for the rest."""
    shares = {name: getattr(settings, name) for name in ("norm_share", *START)}
    left = 1 - sum(shares.values())
    return HuberSettings(
        clip_width=settings.clip_width,
        warm_up_steps=settings.warm_up_steps,
        gram_rounds=settings.gram_rounds,
        **shares,
        mean_share=0.02 * left,
        moment_share=0.1 * left,
    )
