"""Private Huber regression (`target="huber"`): settings, search, predicted error and regime."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from math import inf, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.algorithms.huber_descent import HuberSettings, default_settings, huber_descent
from privreg.algorithms.samples import Samples
from privreg.algorithms.whitened_descent import (
    ASSUMPTIONS,
    QUANTILE_ABOVE,
    length_cap,
    length_edges,
    residual_scale,
    scale_edges,
    white_cap,
)
from privreg.checks import frozen
from privreg.inference.population_intervals import (
    CoefficientCovariance,
    CoefficientIntervals,
    LastIterateLaw,
    Target,
    coefficient_covariance,
    last_iterate_law,
    population_intervals,
)
from privreg.kernels import standard_normal
from privreg.methods.clipping import (
    clipped_rows,
    count_nodes,
    finite,
    noise_moments,
    sample_nodes,
    sampling_inflation,
    slopes_at_once,
    squared_scales,
    squared_shift,
)
from privreg.methods.method import Candidates, Declared, Method
from privreg.methods.problem import (
    LABEL_CLIPPED,
    MOST_BIAS,
    WHOLE_LAWS,
    ErrorMoments,
    LabelNoiseLaw,
    Prediction,
    Problem,
    Rows,
    too_few_rows,
)
from privreg.privacy.budget import Budget, Neighbours, gram_sensitivity, sum_sensitivity
from privreg.privacy.release import Release
from privreg.theory.huber_descent import averaging_step_sizes, noise_edge

FloatArray = NDArray[np.float64]
HISTOGRAMS, SEED = 256, 20250711
# Length of a step beyond which, or below whose inverse, a run counts as overshooting.
FARTHEST = 2.0
# Three points and weights of a Gauss rule for the noise of the first matrix's mean.
DEVIATIONS = np.array([0.0, -sqrt(3), sqrt(3)])
DEVIATION_WEIGHTS = np.array([2 / 3, 1 / 6, 1 / 6])


class Whitening:
    """Expected whitening of each group of coordinates, after all private Gram matrices."""

    def __init__(
        self,
        problem: Problem,
        rows: Rows,
        settings: HuberSettings,
        budget: Budget,
        shrink: FloatArray,
    ) -> None:
        n, p = problem.sample_size, problem.dimension
        change = float(gram_sensitivity(1.0, neighbours=budget.neighbours))
        noise = change / sqrt(2 * settings.norm_share * budget.rho)
        likely, caps, chances = _caps(rows.norms * shrink, rows.weights, problem, noise)
        # The first entry has the likely cap and no noise in its mean; the others cover all cases.
        cap = np.concatenate([[likely], np.repeat(caps, len(DEVIATIONS))])
        deviations = np.concatenate([[0.0], np.tile(DEVIATIONS, len(caps))])
        energies = rows.energies * shrink[:, None] ** 2
        squares = np.ones((len(cap), len(rows.eigenvalues)))
        weight, variance, thinness = np.zeros(len(cap)), np.zeros(len(cap)), 0.0
        for number, share in enumerate(settings.gram_shares):
            spent = share * budget.rho
            if number:
                cap = np.full(len(cap), white_cap(p, sample_size=n, rho=spent))
            lengths = energies @ squares.T
            capped = np.minimum(1.0, cap**2 / lengths)
            values = squares * ((rows.weights[:, None] * capped).T @ energies) / rows.multiplicities
            std = cap**2 * change / (n * sqrt(2 * spent))
            centre = values @ rows.multiplicities / p
            edge = std * noise_edge(p, noise_std=1.0)
            if number == 0:
                thinness = float(edge[0] / values[0].min())
                values *= (np.maximum(1 + deviations * _relative(std, centre, p), 0.0))[:, None]
                centre = np.maximum(values @ rows.multiplicities / p, std / sqrt(p))
            hidden = std**2 * p * (p + 1) / 2
            apart = (values - centre[:, None]) ** 2 @ rows.multiplicities
            seen = apart + centre**2 * p * (p + 1) / n
            weight = seen / (seen + hidden)
            # The noisy matrix estimates the weight; below its own spread it is 0 half of the time.
            floor = np.minimum(weight * edge, centre)
            shrunk = centre[:, None] + weight[:, None] * (values - centre[:, None])
            variance = (weight * std / centre) ** 2 * p / 2 + _relative(std, centre, p) ** 2
            squares = squares / np.maximum(shrunk, floor[:, None])
        steps = squares @ (rows.multiplicities * rows.eigenvalues) / p
        lost = (steps[1:] > FARTHEST) | (steps[1:] < 1 / FARTHEST)
        # Squared entries of the diagonal whitening, (groups,).
        self.squares = squares[0]
        # Weight of the noisy matrix in the last shrunk one: 0 where noise hid it.
        self.weight = float(weight[0])
        # Relative variance of the last matrix's noise and of its mean's, summed over a row.
        self.variance = float(variance[0])
        # Probability of steps more than twice too long or too short.
        self.overshooting = float(np.outer(chances, DEVIATION_WEIGHTS).ravel() @ lost)
        # Edge of the first matrix's noise divided by the matrix's smallest eigenvalue.
        self.thinness = thinness

    def gain(self, ratio: float) -> float:
        """Mean of WᵀΣW relative to its value if the Gram matrix were exact; `ratio` is p/n."""
        variance = min(self.variance, 0.15)
        points, weights = sample_nodes(self.weight**2 * ratio, extra_variance=variance)
        return float(weights @ (1 / np.maximum(points, 0.15)))


def _relative(std: FloatArray, centre: FloatArray, dimension: int) -> FloatArray:
    """Noise in a matrix's mean eigenvalue, divided by this mean."""
    return std / (centre * sqrt(dimension))


def _caps(
    lengths: FloatArray, weights: FloatArray, problem: Problem, noise: float
) -> tuple[float, FloatArray, FloatArray]:
    """Cap of the first round with a noiseless histogram; caps with noise; their probabilities."""
    n = problem.sample_size
    edges = length_edges(problem.feature_norm)
    bins = np.searchsorted(edges, lengths, side="left")
    counts = n * np.bincount(bins, weights, len(edges) + 1).astype(float)
    likely = length_cap(counts, edges, noise_std=noise, sample_size=n)
    # `length_cap` for many histograms at once.
    above = np.cumsum((counts + noise * _noises(len(counts)))[:, ::-1], axis=1)[:, ::-1]
    threshold = np.maximum(QUANTILE_ABOVE * n, 2 * noise * np.sqrt(np.arange(len(counts), 0, -1)))
    over = above > threshold
    last = np.where(over.any(axis=1), len(counts) - 1 - over[:, ::-1].argmax(axis=1), len(edges))
    found, numbers = np.unique(np.minimum(last, len(edges) - 1), return_counts=True)
    return likely, edges[found], numbers / HISTOGRAMS


@lru_cache(maxsize=4)
def _noises(bins: int) -> FloatArray:
    rng = np.random.Generator(np.random.SFC64(SEED))
    return frozen(standard_normal(rng, (HISTOGRAMS, bins)))


HISTOGRAM_ROWS, MIXTURE_ROWS = 256, 32
# Share of the records in the fullest bin of a residual histogram.
TALLEST_BIN = 0.27


@dataclass(frozen=True, eq=False)
class Outcome:
    """Moments of the error, and numbers that show whether the moments are reliable."""

    moments: ErrorMoments
    unclipped: float  # share of whole gradients in the final steps
    scale_noise: float  # noise of the residual histogram's largest count / the count
    excursion: float  # largest residual variance on the way / the variance at the start
    arrival: float  # residual variance before the final steps / label noise variance
    # Squared error of a whitened coordinate there, after shrinkage / label noise variance.
    arrived: FloatArray
    distance: float  # largest effect of a row / reach of warm-up steps at the label noise's scale
    label_bias: float  # bound on the excess risk from labels beyond the declared bound
    whitening: Whitening


# What is not finite has diverged.
@np.errstate(all="ignore")
def follow(problem: Problem, rows: Rows, settings: HuberSettings, budget: Budget) -> Outcome:
    """Compute the expected course of one fit, step by step."""
    n, p, sigma = problem.sample_size, problem.dimension, problem.label_noise_std
    shrink = np.minimum(1.0, problem.feature_norm / rows.norms)
    whitening = Whitening(problem, rows, settings, budget, shrink)
    white = rows.energies * shrink[:, None] ** 2 * whitening.squares
    whitened = dataclasses.replace(rows, energies=rows.energies * whitening.squares)
    lengths = np.sqrt(white.sum(axis=1))
    signal = rows.squared_signal / whitening.squares
    # How a gradient is bounded: by its residual's clip alone, or by the row's length as well.
    leverage = np.ones_like(lengths)
    if settings.common_width:
        leverage = np.minimum(1.0, sqrt(p) / lengths)
        lengths = np.full_like(lengths, sqrt(p))
    ratio = p / n
    slope = 2 * float(ndtr(settings.clip_width)) - 1
    sizes = averaging_step_sizes(settings.warm_up_steps, settings.final_steps)
    typical = _typical(lengths / sqrt(p) * shrink, rows.weights, problem.label_noise_law)
    nodes, weights = _nodes(problem, rows, settings, budget, whitening, slope)
    bias = np.ones((len(signal), nodes.shape[-1]))
    private, sampling = np.zeros_like(bias), np.zeros(len(signal))
    warm_up = settings.warm_up_share / settings.warm_up_steps
    final = settings.final_share / settings.final_steps
    change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
    factors = leverage * shrink**2
    of_rows, slopes = clipped_rows(problem, whitened), np.empty((3, len(signal)))
    drift, curvature, _ = slopes
    scale, last, path = 0.0, 0.0, []
    for step, size in enumerate(sizes):
        late = step >= settings.warm_up_steps
        squared_bias, variance = (bias**2 @ weights) * signal, private @ weights
        total = sigma**2 + whitened.quadratic(finite(squared_bias + variance))
        path.append(float(rows.weights @ total))
        if step == settings.warm_up_steps:
            moved, noisy = (1 - bias) @ weights, private @ weights
            length = float(rows.total(moved**2 * signal + noisy))
            kept = max(1 - p * last**2 / length, 0.0)
            arrived = (1 - kept * moved) ** 2 * signal + kept**2 * noisy
        if step <= settings.warm_up_steps:
            # The sample's own residuals are smaller than those of new rows.
            inner = np.maximum(total - sigma**2 * min(ratio, 0.5), 0.0)
            share = sigma**2 / path[-1] if problem.label_noise_law != "gaussian" else 1.0
            unit_scale = _unit_scale(typical, round(min(share, 1.0), 3), problem.label_noise_law)
            scale = unit_scale * sqrt(float(rows.weights @ inner))
        clip = settings.clip_width * scale * sqrt(p)
        widths = clip / lengths / shrink
        unclipped = slopes_at_once(of_rows, widths, factors, squared_bias, variance, slopes)
        if step <= settings.warm_up_steps:
            square = noise_moments(widths, label_noise_std=sigma, law=problem.label_noise_law)[1]
            source = whitened.per_coordinate(factors**2 * square)
        noise = change * clip / (n * sqrt(2 * (final if late else warm_up) * budget.rho))
        newton = late and settings.moment_share > 0
        mean = float(curvature @ rows.multiplicities / p)
        matrix = size / (np.clip(mean, 0.25 * slope, 1.5) if newton else slope)
        step_nodes = matrix * (nodes[1] if newton else np.ones_like(nodes[1]))
        contraction = 1 - step_nodes * curvature[:, None] * nodes[0]
        bias *= 1 - step_nodes * drift[:, None] * nodes[0]
        private = contraction**2 * private + (step_nodes * noise) ** 2
        last = float(matrix * noise)
        sampling = (1 - matrix * curvature) * sampling + matrix * np.sqrt(source / n)
    energy = private @ weights
    inflation = 1.0  # nothing is derived for one-hot features
    if problem.feature_law != "one_hot":
        (inflation,) = sampling_inflation(
            (clip / lengths)[None],
            rows.weights,
            ratio=ratio,
            label_noise_std=sigma,
            law=problem.label_noise_law,
            other_variance=float(rows.weights @ (white @ energy)),
        ).tolist()
    back = whitening.squares
    covered = 1 - bias @ weights
    moved = squared_shift(problem, rows, widths[None], leverage=factors, covered=covered)
    moments = ErrorMoments(
        ((bias**2 @ weights) * signal * back)[None],
        (back * (inflation * sampling**2 + whitening.gain(ratio) * energy))[None],
        moved,
        # Most labels may be equal, and the private scale next to 0.
        float(problem.label_noise_law.startswith(WHOLE_LAWS)),
    )
    # Clipped labels have other slopes. Two bounds: no gradient is clipped, or errors are infinite
    # and only rows whose own effect comes within a clip of the label's bound matter.
    most = inf if problem.label_noise_law.startswith("binary") else problem.label_bound
    quiet = of_rows._replace(variances=np.full(1, 1e-12 * sigma**2), chances=np.ones(1))
    kept, still = np.zeros_like(signal), np.zeros_like(signal)
    for each, bound in ((of_rows, np.full_like(widths, most)), (quiet, most - widths)):
        slopes_at_once(each, np.maximum(bound, 0.0), factors, signal, still, slopes)
        kept = np.maximum(kept, slopes[0])
    pulled = kept / whitened.per_coordinate(factors) - 1
    unit_clip = settings.clip_width * _unit_scale(typical, 1.0, problem.label_noise_law) * sqrt(p)
    reach = settings.warm_up_steps * unit_clip * sigma * leverage / (slope * lengths)
    histogram = float(gram_sensitivity(1.0, neighbours=budget.neighbours)) / sqrt(
        2 * settings.scale_share / (settings.warm_up_steps + 1) * budget.rho
    )
    return Outcome(
        moments,
        unclipped=unclipped,
        scale_noise=histogram / (TALLEST_BIN * n),
        excursion=max(path) / path[0],
        arrival=path[settings.warm_up_steps] / sigma**2,
        arrived=arrived / sigma**2,
        distance=float((np.sqrt(rows.quadratic(rows.squared_signal)) / reach).max()),
        label_bias=float(rows.total(rows.eigenvalues * pulled**2 * rows.squared_signal)) / 2,
        whitening=whitening,
    )


def _nodes(
    problem: Problem,
    rows: Rows,
    settings: HuberSettings,
    budget: Budget,
    whitening: Whitening,
    slope: float,
) -> tuple[FloatArray, FloatArray]:
    """Relative curvature and Newton matrix, shape (2, groups or 1, nodes), and weights."""
    n, p = problem.sample_size, problem.dimension
    ratio = p / n
    if problem.feature_law == "one_hot":
        counts, weights = count_nodes(rows.eigenvalues, n)
        return np.array([counts, np.ones_like(counts)]), weights
    left = ratio * ((1 - whitening.weight) ** 2 + 1 / slope - 1) + whitening.variance
    known, newton_noise = 0.0, 0.0
    if settings.moment_share > 0:
        spent = settings.moment_share / 2 * budget.rho
        cap = white_cap(p, sample_size=n, rho=spent)
        change = float(gram_sensitivity(1.0, neighbours=budget.neighbours))
        std = cap**2 * change / (n * sqrt(2 * spent))
        seen = slope**2 * p * left
        known = seen / (seen + std**2 * p * (p + 1) / 2)
        newton_noise = (known * std / slope) ** 2 * p / 2
    first, first_weights = sample_nodes(0.0, extra_variance=min((1 - known) ** 2 * left, 0.2))
    second, second_weights = sample_nodes(0.0, extra_variance=min(newton_noise, 0.1))
    curvature, newton = np.meshgrid(np.maximum(first, 0.05), 1 / np.maximum(second, 0.2))
    weights = np.outer(second_weights, first_weights).ravel()
    return np.array([curvature.ravel(), newton.ravel()])[:, None], weights


def _typical(lengths: FloatArray, weights: FloatArray, law: LabelNoiseLaw) -> tuple[float, ...]:
    """Row lengths at equally spaced probabilities."""
    count = HISTOGRAM_ROWS if law == "gaussian" else MIXTURE_ROWS
    order = np.argsort(lengths, kind="stable")
    mass = np.cumsum(weights[order])
    levels = (np.arange(count) + 0.5) / count
    chosen = lengths[order][np.minimum(np.searchsorted(mass, levels), len(mass) - 1)]
    return tuple(np.round(chosen, 6).tolist())


@lru_cache(maxsize=1024)
def _unit_scale(lengths: tuple[float, ...], noise_share: float, law: LabelNoiseLaw) -> float:
    """`residual_scale` of residuals of variance 1; `noise_share` of it is from label noise."""
    squares, weights = squared_scales(law)
    stds = np.sqrt(1 - noise_share + noise_share * squares)[:, None] * np.array(lengths)
    edges = scale_edges(4.0)
    below = 2 * ndtr(edges / np.maximum(stds, 1e-12)[..., None]) - 1
    below = weights @ below.mean(axis=1)
    return residual_scale(np.diff(below, prepend=0.0, append=1.0), edges, sample_size=1.0)


# Derived in `in_regime`.
MOST_SCALE_NOISE, MOST_WHITENING_NOISE, MOST_THINNESS = 0.1, 0.2, 8.0
MOST_OVERSHOT, MOST_EXCURSION, MOST_ARRIVAL = 0.1, 1.3, 1.8
# Shares for the Gram matrix and for scales where the budget is small.
CAREFUL = ((0.1, 0.1), (0.2, 0.15), (0.3, 0.2))
WARM_UPS = (2, 0.04), (2, 0.1), (3, 0.06), (4, 0.1), (4, 0.2), (6, 0.15), (6, 0.3)
MOVES: tuple[tuple[dict[str, Any], ...], ...] = (
    tuple({"clip_width": width} for width in np.geomspace(0.35, 3.0, 10).round(3).tolist()),
    tuple({"gram_share": share} for share in (0.02, 0.05, 0.1, 0.18, 0.3)),
    tuple({"warm_up_steps": steps, "warm_up_share": share} for steps, share in WARM_UPS),
    tuple({"norm_share": share} for share in (0.01, 0.03, 0.08)),
    ({"gram_rounds": 1}, {"gram_rounds": 2}, {"gram_rounds": 3}),
    ({"final_steps": 2}, {"final_steps": 3}, {"final_steps": 5}),
    ({"common_width": False},),
    tuple({"scale_share": share} for share in (0.02, 0.04, 0.08, 0.15, 0.25)),
)


class WhitenedDescent(Method):
    """Base class of noisy descents on whitened rows (or persons); the fields are the settings."""

    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    takes_groups: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    has_intervals: ClassVar[bool] = True
    gaussian_dp: ClassVar[bool] = True
    is_exact: ClassVar[bool] = True
    _descent: ClassVar[Callable[..., Release[Any]]]
    _intervals: ClassVar[Callable[..., CoefficientIntervals]]
    _law: ClassVar[Callable[..., LastIterateLaw]]

    @classmethod
    @abstractmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings that depend only on the budget and the numbers of records and coefficients."""

    @classmethod
    def from_numbers(cls, values: Mapping[str, float], problem: Problem, budget: Budget) -> Self:
        """Create settings from names and numbers; omitted settings are those of `default`."""
        start: Any = cls.default(
            sample_size=problem.sample_size, dimension=problem.dimension, budget=budget
        )
        return cls(**{**asdict(start), **cls._numbers(values, needed=[])})

    def intervals(self, fit: Any, **asked: Any) -> CoefficientIntervals:
        """Intervals from the released values, at no further privacy cost."""
        return self._intervals(fit, **asked)

    def covariance(
        self, fit: Any, *, target: Target, functionals: FloatArray
    ) -> CoefficientCovariance:
        """Covariance from standard errors of the intervals and correlations of the last iterate."""
        offset = np.zeros(len(functionals))
        intervals = self.intervals(
            fit, level=0.95, target=target, functionals=functionals, offset=offset
        )
        return coefficient_covariance(intervals, self._law(fit), functionals @ fit.whitening)

    def _moved(self, choices: Sequence[Mapping[str, Any]]) -> list[Self]:
        """These settings with each change, or without it if its shares leave no budget."""
        found = []
        for changes in choices:
            try:
                found.append(replace(self, **changes))  # type: ignore[type-var]
            except ValueError:
                found.append(self)
        return found

    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[Any], Any]:
        bounds = declared.require_bounds(self.name)

        def fit(rng: np.random.Generator | None) -> Any:
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
class PrivateHuber(HuberSettings, WhitenedDescent):
    """Private Huber regression with settings (steps, clip, budget shares) chosen without the data.

    Parameters
    ----------
    clip_width : float
        Clip width in units of the residual scale, in [1e-3, 1e3]. Values near 1 suit a run in which
        privacy noise dominates; wider clips suit runs in which sampling error dominates.
    warm_up_steps : int
        Number of full-length steps; after each, the residual scale is estimated again.
    final_steps : int
        Number K of averaged steps; step k has size 1/k. These steps get the rest of the budget ρ.
    gram_rounds : int
        Number of private estimates of the Gram matrix. Each whitens the rows for the next, which
        reduces noise in directions of small variance.
    norm_share, gram_share, scale_share, warm_up_share, mean_share : float
        Shares of ρ, in (0, 1): for row lengths, the Gram matrix, residual scales, warm-up steps,
        and traces of A and B (below). With an intercept, half of `norm_share` is for the mean row.
    moment_share : float
        Share of ρ, in [0, 1), for the curvature A and the second moment B of clipped gradients. If
        it is 0, intervals assume that errors are independent of the features.
    common_width : bool
        Let γ bound a row's gradient, z be the whitened row and p the number of coefficients. If
        True, residuals are clipped to γ/√p, and rows z are shortened to √p. If False, a row's
        residual is clipped to γ/‖z‖. Neither rule applies to records of several rows.

    Guarantee
    ---------
    Releasing the whole fit spends the budget, as for `huber_descent` with the declared bounds.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> budget = Budget.zcdp(0.5)
    >>> method = PrivateHuber.default(sample_size=10_000, dimension=10, budget=budget)
    >>> method.predict(problem, budget).holds
    True

    Source
    ------
    brown2024, section 2.5 (clipping as Huber's loss).
    """

    name: ClassVar[str] = "huber"
    assumptions: ClassVar[tuple[str, ...]] = ASSUMPTIONS
    _descent = staticmethod(huber_descent)
    _intervals = staticmethod(population_intervals)
    _law = staticmethod(last_iterate_law)

    @classmethod
    def default(cls, *, sample_size: int, dimension: int, budget: Budget) -> Self:
        """Settings that depend only on the budget and the numbers of records and coefficients."""
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
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        followed = [follow(problem, rows, method, budget) for method in settings]
        return lambda each: [
            in_regime(each, outcome.moments.predictions(each, rows)[0], outcome)
            for outcome in followed
        ]


def in_regime(problem: Problem, found: Prediction, outcome: Outcome) -> Prediction:
    r"""Mark a prediction with the regime of private Huber regression or of a fit started by it.

    - A warm-up step is undone if the private residual scale has grown by a quarter. If the relative
      noise in the histogram's counts is `MOST_SCALE_NOISE`, the scale's standard deviation is 9 %,
      and noise alone undoes 0.5 % of the steps. Twice this noise undoes 11 %.
    - Noise of relative variance v, summed over a row, spreads a Gram matrix's eigenvalues over
      1 ± 2√v (Wigner). The lowest is 0.11 at v = `MOST_WHITENING_NOISE`, and 0 at v = 1/4. Above
      a quarter of `MOST_WHITENING_NOISE`, a warning says that predictions are less accurate.
    - Runs that overshoot end near predicting the mean. `MOST_OVERSHOT` limits their part of the
      mean error to 10 %, the accuracy of predictions.
    - If the residual variance grows by the factor `MOST_EXCURSION`, the scale grows by 14 %. With
      10 % of noise, it may grow by a quarter; this undoes a step, which expected values ignore.
    - A step moves a category's effect by at most clip / slope. One far category need not raise the
      residual scale, a quantile. Steps at the label noise's scale must then cover its effect.
    - The final steps keep their first clip and Newton matrix. If the residual variance then falls
      by the factor `MOST_ARRIVAL`, the unclipped share of gradients at a clip of one scale rises
      from 0.68 to 0.82, and the Newton matrix is a fifth too large.
    - Clipped labels may add half of the 10 % that predictions promise (`MOST_BIAS`).
    - Thinness is the noise edge of the first matrix divided by its smallest eigenvalue. Above
      `MOST_THINNESS`, a warning says that simulated errors were up to 1.5 times the predicted ones.
    Source: Derived as above; docs/prediction.md has the simulations.
    """
    if not np.isfinite(found.excess_risk):
        return found.with_doubt("too few rows or too small a budget for the descent to converge")
    few = too_few_rows(problem, outcome.unclipped)
    if few is not None or not found.holds:
        return found.with_doubt(few or found.reason)
    far = outcome.distance > 1 or np.abs(problem.signal).max() > 3 * problem.label_std
    if problem.feature_law == "one_hot" and far:
        return found.with_doubt("a category's effect exceeds the clip norm from the start")
    if outcome.label_bias > MOST_BIAS * found.excess_risk:
        return found.with_doubt(LABEL_CLIPPED)
    if outcome.scale_noise > MOST_SCALE_NOISE:
        return found.with_doubt("the budget is too small for a private residual scale")
    if (
        outcome.whitening.variance > MOST_WHITENING_NOISE
        or outcome.whitening.overshooting * problem.null_risk > MOST_OVERSHOT * found.excess_risk
    ):
        return found.with_doubt("the budget is too small for a private Gram matrix")
    if outcome.excursion > MOST_EXCURSION or outcome.arrival > MOST_ARRIVAL:
        # The clip follows the residuals, and noise the clip: means say little about such runs.
        return found.with_doubt("the noise of the warm-up steps dominates the descent")
    marked = found.expanded(outcome.unclipped)
    whitening, warnings = outcome.whitening, []
    if whitening.variance > MOST_WHITENING_NOISE / 4:
        warnings.append("the Gram matrix is noisy: the predicted error may be off by half")
    if whitening.thinness > MOST_THINNESS:
        thin = "noise hides directions of small variance: the error may be 1.5 times that predicted"
        warnings.append(thin)
    return replace(marked, warnings=tuple(warnings))
