"""Private least squares: whitened descent with a clip chosen from the tail of gradient lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from privreg.algorithms.huber_descent import HuberSettings, default_settings
from privreg.algorithms.records import Persons, Records
from privreg.algorithms.samples import Samples
from privreg.algorithms.whitened_descent import (
    ASSUMPTIONS,
    UNSEEN_SCALE,
    Descent,
    DescentFit,
    NoisyValue,
    SplitBudget,
    StartSettings,
    raised,
    scale_is_hidden,
    shrunk_curvature,
    white_cap,
)
from privreg.checks import Rebuilt, frozen
from privreg.kernels import plain_sum
from privreg.privacy.budget import Budget, gaussian_noise_std
from privreg.privacy.release import Release
from privreg.theory.huber_descent import bias_aware_quantile

FloatArray = NDArray[np.float64]
# What is assumed of the tail: standard deviation of the second difference of log counts where they
# are convex, and where they are concave. Conventions: a power law continues, and the fall of log
# counts from bin to bin may ease by a fifth of what it may steepen by.
CONVEX, CONCAVE = 0.2, 1.0
# Largest probability that noise is taken for records, by convention: one fit of 1,000.
FALSE_ALARM = 0.001
# Log counts beyond the last that is not noise must fall by at least ln √2 a bin, up to a stiff
# deviation: at that slope a law has just no mean, and without one no bias has a bound.
FALL, STRICT = float(np.log(2.0)) / 2, 0.05
# Deviations of the tail's own estimate that are added to it, and share of the largest bias that
# falls on one direction when a clip is chosen: benchmarks/interval_constants.py.
CAUTION, LEAN = 0.25, 0.6
SQUARE = 0.25  # share of the tail's budget for the mean square
LEVEL = 3.0  # variances of its noise that a labels' mean must be from where the warm-up ends
# Points of a midpoint rule within a bin.
PARTS = 8


@dataclass(frozen=True)
class ProductTail(Rebuilt):
    r"""Smoothed law of q/√p from a private histogram: q = residual × row length, p coefficients.

    .. math::
        \min_\eta\ \sum_k \frac{(h_k - e^{\eta_k})^2}{2(\sigma_h^2 + 1)}
        + \sum_k \frac{(\Delta^2\eta_k)^2}{2\tau_k^2}

    η are log counts, h the noisy counts and σ_h the noise deviation of a count. τ is `CONVEX` where
    the second difference Δ²η is positive, and `CONCAVE`, which is larger, elsewhere: bends towards
    a lighter tail are penalised less. For a power law, η is a straight line. Within a bin log
    counts are linear. Counts hidden by noise are extrapolated, not bounded.

    `edges` are the upper ends of all bins but the last, a factor √2 apart. `smoothed` (bins,) is
    e^η; only the first bin, which starts at 0, keeps its noisy count. `square` holds a noisy mean M
    of q²/p and its noise deviation D. If S is the smoothed law's mean of q²/p, `missing` is
    max(M - D - S, 0); `rare` is true if M - D > 2S. `excess` uses (q/√p - t)₊ ≤ q²/(4pt).
    """

    edges: FloatArray
    counts: NoisyValue
    sample_size: float
    square: tuple[float, float] = (0.0, 0.0)
    smoothed: FloatArray = field(init=False)
    missing: float = field(init=False)
    rare: bool = field(init=False)
    _covariance: FloatArray = field(init=False, repr=False)
    _points: FloatArray = field(init=False, repr=False)
    _shares: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        ends, counts, std = self.edges, self.counts.value, self.counts.noise_std
        n = self.sample_size
        log_counts, covariance = _smooth(counts[1:], noise_std=std, sample_size=n)
        smoothed = np.concatenate([[np.clip(counts[0], 0.0, n)], np.exp(log_counts)])
        slopes = np.gradient(log_counts)
        places = (np.arange(PARTS) + 0.5) / PARTS
        weights = np.exp(np.clip(slopes, -60, 60)[:, None] * (places - 0.5))
        weights /= weights.sum(axis=1, keepdims=True)
        points = ends[:, None] * 2.0 ** (places / 2)
        second = np.sum(weights * points**2, axis=1) @ smoothed[1:] + ends[0] ** 2 / 3 * smoothed[0]
        missing = self.square[0] - self.square[1] - float(second) / n
        object.__setattr__(self, "missing", max(missing, 0.0))
        object.__setattr__(self, "rare", missing > float(second) / n)
        arrays = {"edges": ends, "smoothed": smoothed, "_covariance": covariance}
        for name, array in (arrays | {"_points": points, "_shares": weights}).items():
            object.__setattr__(self, name, frozen(array))
        object.__setattr__(self, "counts", NoisyValue(frozen(counts), std))

    def excess(self, width: float) -> float:
        """m₁ at t = `width`: estimated mean of (q/√p - t)₊, plus its std/4, plus `missing`/(4t)."""
        by_bin = np.sum(self._shares * np.maximum(self._points - width, 0.0), axis=1)
        gradient = by_bin * self.smoothed[1:] / self.sample_size
        deviation = float(np.sqrt(max(gradient @ self._covariance @ gradient, 0.0)))
        return float(gradient.sum()) + CAUTION * deviation + self.missing / (4 * width)

    def share_beyond(self, width: float) -> float:
        """Estimated share of the records with q/√p above t = `width`."""
        by_bin = np.sum(self._shares * (self._points > width), axis=1)
        return float(min(by_bin @ self.smoothed[1:] / self.sample_size, 1.0))

    def best_width(self, *, noise: float, ease: float = 1.0) -> float:
        r"""Clip t with the shortest bias-aware interval, if noise has deviation νt, ν = `noise`.

        .. math::
            \arg\min_t\ c(b/s)\,s, \qquad b = \kappa\,m_1(t),\quad s^2 = m_2(t)/n + (t\nu)^2

        with m₁ of `excess`, m₂ the mean of min(q/√p, t)², κ = `LEAN`, c the `bias_aware_quantile`.
        In m₁, `missing` is less by D/2; other terms are divided by min(√(1 + 8nν²), `ease`). `ease`
        is 1; an intercept (intervals allow for less bias) doubles it, and so do infinite intervals.
        """
        grid = np.geomspace(self.edges[0], 2 * self.edges[-1], 6 * len(self.edges) + 1)
        points, shares = self._points, self._shares
        beyond = np.maximum(points[None] - grid[:, None, None], 0.0)
        gradient = np.sum(shares * beyond, axis=2) * self.smoothed[1:] / self.sample_size
        variance = np.einsum("ij,jk,ik->i", gradient, self._covariance, gradient)
        shown = gradient.sum(axis=1) + CAUTION * np.sqrt(np.maximum(variance, 0.0))
        price = min(np.sqrt(1 + 8 * self.sample_size * noise**2), ease)
        # Noise alone passes one deviation in a sixth of the fits, and would widen their clips.
        missing = max(self.missing - self.square[1] / 2, 0.0)
        bias = LEAN * (shown / price + missing / (4 * grid))
        inside = np.sum(shares * np.minimum(points[None], grid[:, None, None]) ** 2, axis=2)
        second = inside @ self.smoothed[1:] + self.edges[0] ** 2 / 3 * self.smoothed[0]
        std = np.sqrt(second / self.sample_size**2 + (noise * grid) ** 2)
        length = bias_aware_quantile(bias / std) * std
        return float(grid[np.argmin(length)])


def _smooth(
    counts: FloatArray, *, noise_std: float, sample_size: float
) -> tuple[FloatArray, FloatArray]:
    """Log counts by penalised least squares (Levenberg's method), and their covariance."""
    size = len(counts)
    variance = noise_std**2 + 1.0
    first, second = (np.diff(np.eye(size), order, axis=0) for order in (1, 2))
    first = first[max(_last_seen(counts, noise_std=noise_std), 0) :]
    top = np.log(2 * sample_size)
    eta = np.log(np.clip(counts, np.sqrt(variance), 2 * sample_size))

    def value(log_counts: FloatArray) -> float:
        bends = second @ log_counts
        width = np.where(bends > 0, CONVEX, CONCAVE)
        misfit = counts - np.exp(log_counts)
        flat = np.maximum(first @ log_counts + FALL, 0.0) / STRICT
        penalty = np.sum((bends / width) ** 2) + flat @ flat
        return float((misfit @ misfit / variance + penalty) / 2)

    def derivatives(log_counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        mass = np.exp(log_counts)
        weights = np.where(second @ log_counts > 0, CONVEX, CONCAVE) ** -2
        flat = np.maximum(first @ log_counts + FALL, 0.0) / STRICT**2
        active = first[flat > 0] / STRICT
        penalty = second.T @ (weights[:, None] * second)
        slope = -(counts - mass) * mass / variance + penalty @ log_counts + first.T @ flat
        return slope, np.diag(mass**2 / variance) + penalty + active.T @ active

    damping, now = 1.0, value(eta)
    slope, hessian, stale = np.zeros(size), np.eye(size), True
    for _ in range(200):
        if stale:
            slope, hessian = derivatives(eta)
        moved = eta - np.linalg.solve(hessian + damping * np.eye(size), slope)
        moved = np.clip(moved, -700.0, top)
        after = value(moved)
        stale = after < now
        if stale:
            gain, eta, now, damping = now - after, moved, after, max(damping / 5, 1e-9)
            if gain < 1e-9 * (1 + now):
                break
        else:
            damping *= 4
            if damping > 1e12:
                break
    return eta, np.asarray(np.linalg.inv(hessian + 1e-9 * np.eye(size)), dtype=np.float64)


def _last_seen(counts: FloatArray, *, noise_std: float) -> int:
    """First index of the last two counts whose sum noise cannot explain; -1 if none."""
    least = noise_std * float(np.sqrt(2) * ndtri(1 - FALSE_ALARM / len(counts)))
    return int(np.max(np.flatnonzero(counts + np.append(counts[1:], 0.0) > least), initial=-1))


# Edge of the noise that A₂ may have, over that of A₁ in `white_cap` (.2): .8.
LONG = 4.0
# Where the histogram of products starts and ends at least, in residual scales: conventions.
LOWEST, HIGHEST = 0.5, 8.0
TAIL_ASSUMPTION = (
    "products of residual and row length that are too rare to see privately continue the visible "
    "tail, no heavier than a power law"
)
# Conventions. Of the wide steps' budget, by steps: the last one decides, the others leave little of
# the start. Of what a robust fit spends on the start. Then what the rest is for, and the wide
# steps, which have what is left.
WIDE_SHARES = (0.1, 0.2, 0.7)
START = {"gram_share": 0.7, "scale_share": 0.5, "warm_up_share": 0.48}
REST = ("tail_share", "curvature_share", "long_share", "moment_share", "mean_share")
WIDE = 0.642  # left by the defaults of `LeastSquaresSettings`
DOUBLINGS = 2  # chosen on 16 tables that no check uses


def least_squares_descent(
    samples: Samples,
    *,
    feature_norm: float,
    label_bound: float,
    budget: Budget,
    settings: LeastSquaresSettings,
    rng: np.random.Generator | None,
    groups: ArrayLike | Persons | None = None,
    sample_size: float | None = None,
    intercept: bool = False,
    threads: int = 1,
) -> Release[LeastSquaresFit]:
    r"""Linear regression under zCDP by three noisy Newton steps with a clip chosen privately.

    .. math::
        \theta_k = \theta_{k-1} + a_k W S\Big(\frac1n\sum_i g_i\min(1, C/q_i)
        + \lambda_k\zeta_k\Big), \qquad g_i = \min(1, R^2/\|z_i\|^2)\,z_i r_i,\quad q_i = \|g_i\|

    with z = Wᵀx, residuals r at θ_{k-1}, sizes a_k (`step_sizes`), noise deviations λ_k and normal
    ζ_k. The steps are called wide, since their clip C may be larger than the warm-up's. A₁ and A₂
    are second moments of rows with q ≤ C, shortened to lengths R₁ and R. S is the inverse of their
    weighted mean, `raised` towards A₂. B is the second moment of clipped gradients. Arguments are
    as for `huber_descent`; the start is that of `Descent`. C comes from a private histogram of q
    and balances the clip's bias against its noise. If no q exceeds C and no row is longer than R,
    the target is least squares under any law of the errors. docs/private-intervals.md lists the
    released values in order, with their shares.

    Guarantee
    ---------
    Releasing the whole `LeastSquaresFit` is √(2ρ)-Gaussian DP, and so ρ-zCDP, under the budget's
    neighbouring relation, if the bounds and settings are chosen without looking at the data.
    Without a generator, this also holds in machine arithmetic. With `groups`, neighbours differ in
    all rows of one person. Proof: as for `huber_descent`, with shares of ρ fixed beforehand (Dong,
    Roth and Su 2022, Corollary 3.3: adaptive composition of μ_i-Gaussian DP is √Σμ_i²-Gaussian DP).
    In addition, a record adds 1 to one count of the histogram of q. It adds to the sum of q² a
    number in [0, p l²], where l bounds a label's distance from the starting intercept. It adds
    semi-definite matrices of Frobenius norm at most R₁² to A₁, R² to A₂ and C² to B, and a gradient
    of length at most C. It adds a number in [0, R₁²] to tr A₁ and one in [0, C²] to tr B.

    A person's record has one q, the length of the summed gradient, and one weight
    min(1, R²/Σ‖z‖²) for all its rows. A blank record adds 0 to every sum and enters no count. Rows
    of `WeightedSamples` are treated like other rows; a row of weight 0 is blank.
    Source: Bias-aware intervals: Armstrong and Kolesár (2018). The clip from a private histogram,
    the products q and the steps are ours.
    """
    shares = SplitBudget(budget, rng)
    widths = {"common_width": True, "clips_weighted": True}
    records = Records(samples, feature_norm, label_bound, groups, threads, **widths)
    run = _LeastSquaresDescent(shares, settings, records, sample_size, intercept)
    return Release(run.fit(), budget, (*ASSUMPTIONS, TAIL_ASSUMPTION))


@dataclass(frozen=True)
class LeastSquaresSettings(StartSettings):
    """Steps and budget shares of `least_squares_descent`, chosen without looking at the data.

    The start is as in `HuberSettings`; the intercept starts from a private mean of the labels
    (`label_share`). `least_squares_descent` defines wide steps, A₁, A₂ and B. `tail_share` is for
    the histogram that gives the wide steps' clip and the largest bias. `curvature_share` is for A₁
    and `long_share` for A₂, in which rows are shortened less, and noise is larger. `moment_share`
    is for B and `mean_share` for the traces of A₁ and B. `final_share`, the rest, is split over
    three wide steps (10, 20 and 70 %). If noise hides residual scales, all steps are wide, and the
    final, scale and warm-up shares are split equally over them.
    """

    end: ClassVar[str] = "wide"
    clip_width: float = 1.0
    warm_up_steps: int = 4
    gram_rounds: int = 3
    norm_share: float = 0.01
    label_share: float = 0.02
    gram_share: float = 0.07
    scale_share: float = 0.02
    warm_up_share: float = 0.048
    tail_share: float = 0.08
    curvature_share: float = 0.03
    long_share: float = 0.02
    moment_share: float = 0.05
    mean_share: float = 0.01

    @property
    def steps(self) -> int:
        return self.warm_up_steps + len(WIDE_SHARES)


def step_sizes(shares: Sequence[float]) -> FloatArray:
    """Step sizes a_k = f_k/(f_1 + ... + f_k); the steps are as noisy as one with all shares f."""
    return np.asarray(shares) / np.cumsum(shares)


def with_start_of(
    settings: HuberSettings, sample_size: int, dimension: int, budget: Budget
) -> LeastSquaresSettings:
    """Settings that start like a Huber fit; the other shares keep their default proportions.

    While noise hides A₁ at any length R₁ of rows, `curvature_share` and `long_share` are doubled,
    at most twice. `least_squares_descent` defines A₁ and R₁.
    """
    start = {name: part * getattr(settings, name) for name, part in START.items()}
    left = 1.0 - settings.norm_share - LeastSquaresSettings.label_share - plain_sum(start.values())
    rest = {name: getattr(LeastSquaresSettings, name) for name in REST}
    whole = plain_sum(rest.values()) + WIDE
    least = white_cap(dimension, sample_size=sample_size, rho=0.0)
    for _ in range(DOUBLINGS):
        rho = LONG**2 * rest["curvature_share"] * budget.rho
        if white_cap(dimension, sample_size=sample_size, rho=rho) == least:
            rest |= {name: 2 * rest[name] for name in ("curvature_share", "long_share")}
    return LeastSquaresSettings(
        clip_width=settings.clip_width,
        warm_up_steps=settings.warm_up_steps,
        gram_rounds=settings.gram_rounds,
        norm_share=settings.norm_share,
        **{name: round(share, 12) for name, share in start.items()},
        **{name: round(part / whole * left, 12) for name, part in rest.items()},
    )


def default_least_squares_settings(
    *, sample_size: int, dimension: int, budget: Budget
) -> LeastSquaresSettings:
    """Default settings from public numbers, with the start of `default_settings`."""
    robust = default_settings(sample_size=sample_size, dimension=dimension, budget=budget)
    return with_start_of(robust, sample_size, dimension, budget)


@dataclass(frozen=True, kw_only=True)
class LeastSquaresFit(DescentFit):
    """Released values of `least_squares_descent`."""

    robust_start: FloatArray  # (p,), last iterate of the warm-up, where the wide steps begin
    robust_start_variance: float  # variance of its private noise along a whitened coordinate
    cap: float  # R, the length to which rows are shortened in gradients and in A₂
    short_cap: float  # R₁, the same in A₁
    tail: ProductTail  # law of q/√p at the robust start
    # A₁ and A₂, both at the robust start.
    curvature: NoisyValue
    long_curvature: NoisyValue
    second_moment: NoisyValue

    @property
    def moved(self) -> FloatArray:
        """Change of the parameters (p,) from `robust_start` to the last iterate."""
        return self.parameters - self.robust_start

    @property
    def tail_clip(self) -> float:
        """Clip norm of the wide steps divided by √p: the clip in the unit of `tail.edges`."""
        return self.clip_norm / float(np.sqrt(self.parameters.size))


class _LeastSquaresDescent(Descent):
    settings: LeastSquaresSettings

    def fit(self) -> LeastSquaresFit:
        settings, n, p, shares = self.settings, self.n, self.p, self.shares
        self.whiten()
        scale, wide = UNSEEN_SCALE * self.records.label_bound, settings.final_share
        rho = settings.scale_share / (settings.warm_up_steps + 1) * shares.budget.rho
        hidden = scale_is_hidden(noise_std=np.sqrt(shares.turns / (2 * rho)), sample_size=n)
        parts = [1.0 / settings.steps] * settings.steps if hidden else WIDE_SHARES
        if hidden:
            wide += settings.scale_share + settings.warm_up_share
        else:
            scale = self.warm_up(2 * float(ndtr(settings.clip_width)) - 1)[1]
        steps = zip(self.matrices, self.noise_stds, strict=True)
        # Of the last step that was kept.
        variance = [0.0, *((matrix[0, 0] * std) ** 2 for matrix, std in steps if matrix.any())][-1]
        self.theta = robust_start = self._shrunk(p * variance)
        if self.centre is not None:
            # A narrow clip ends at one heap of 0/1 labels, from where the other is a tail.
            gap = float(self.start[0] - robust_start[0] - self.centre.value[1:] @ robust_start[1:])
            unit = self.records.label_bound / (2 * self.records.feature_norm)
            square = self.centre.noise_std**2 * (unit**2 + float(np.sum(robust_start[1:] ** 2)))
            robust_start[0] += max(1 - LEVEL * square / max(gap**2, 1e-300), 0.0) * gap
        short_cap = self.white_cap(settings.curvature_share)
        cap = long_cap(
            p,
            sample_size=n,
            rho=settings.long_share * shares.budget.rho,
            longest=self.records.feature_norm * float(np.linalg.norm(self.whitening, 2)),
        )
        cap = max(cap, short_cap)
        edges = product_edges(scale, self.records.label_bound, cap=cap, dimension=p)
        # No label is further from where the descent starts.
        limit = (self.records.label_bound + abs(float(self.start[0]))) * float(np.sqrt(p))
        *counts, total = self.at(cap).gradient_length_histogram(edges, limit)
        what, share = "tail of products", settings.tail_share
        noisy = shares.histogram(what, (1 - SQUARE) * share, counts)
        mean = shares.number(what, SQUARE * share, total, limit**2 / p, n)
        tail = ProductTail(edges, noisy, n, (float(mean.value), mean.noise_std))
        # Noise of a coordinate of the mean gradient at the clip √p, over all wide steps.
        change = float(np.sqrt(shares.moves * p))
        noise = gaussian_noise_std(sensitivity=change, rho=wide * shares.budget.rho)
        ease = (1.0 + self.intercept) * (1.0 + hidden)
        width = tail.best_width(noise=float(noise) / n, ease=ease)
        clip_norm = float(width * np.sqrt(p))
        short, long, total = self.at(cap).first_sums(clip_norm=clip_norm, short_cap=short_cap)
        matrix = shares.semidefinite
        curvature = matrix("curvature", settings.curvature_share, short, short_cap**2, n)
        long_curvature = matrix("curvature of long rows", settings.long_share, long, cap**2, n)
        kept = raised(shrunk_curvature(curvature.pooled(long_curvature)), long_curvature)
        newton = np.asarray(np.linalg.inv(kept), dtype=np.float64)
        for number, (size, part) in enumerate(zip(step_sizes(parts), parts, strict=True)):
            if number:
                total = self.at(cap).gradient_sum(clip_norm=clip_norm)
            self.step(size * newton, shares.vector("wide steps", part * wide, total, clip_norm, n))
        if hidden:
            # No interval is finite then: nothing is lost by a bias, and much of the noise goes.
            explained = parts[-1] * self.noise_stds[-1] ** 2 * float(np.sum(newton**2))
            self.theta = self.iterates[-1] = self._shrunk(explained)
        second, trace, squares = self.at(cap).last_sums(clip_norm=clip_norm, short_cap=short_cap)
        bound, means, half = clip_norm**2, "means for intervals", settings.mean_share / 2
        return LeastSquaresFit(
            robust_start=robust_start,
            robust_start_variance=float(variance),
            clip_norm=clip_norm,
            cap=cap,
            short_cap=short_cap,
            residual_scale=scale,
            tail=tail,
            curvature=curvature,
            long_curvature=long_curvature,
            second_moment=matrix(
                "second moment for intervals", settings.moment_share, second, bound, n
            ),
            mean_curvature=shares.number(means, half, trace, short_cap**2 / p, n),
            mean_square=shares.number(means, half, squares, bound / p, n),
            **self.released(-len(parts)),
        )

    def _shrunk(self, noise: float) -> FloatArray:
        """James-Stein estimate: the move from the start, shrunk by the estimated share of noise."""
        away = self.theta - self.start
        square = float(np.sum(np.linalg.solve(self.whitening, away) ** 2))
        return self.start + max(1 - noise / max(square, 1e-300), 0.0) * away


def long_cap(dimension: int, *, sample_size: float, rho: float, longest: float) -> float:
    """Bound R on the length of rows in gradients, the largest that the noise of A₂ allows.

    A larger budget shortens fewer rows; a large enough budget shortens none.
    """
    return white_cap(dimension, sample_size=sample_size, rho=LONG**2 * rho, longest=longest)


def product_edges(scale: float, label_bound: float, *, cap: float, dimension: int) -> FloatArray:
    """Grid of q/√p by factors √2, from half a residual scale up to the largest possible value."""
    lowest = LOWEST * scale
    highest = max(2 * label_bound * cap / np.sqrt(dimension), HIGHEST * scale)
    bins = int(np.ceil(2 * np.log2(highest / lowest)))
    return np.asarray(lowest * 2.0 ** (np.arange(bins + 1) / 2))
