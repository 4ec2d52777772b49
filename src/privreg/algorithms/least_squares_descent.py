"""Private least squares: whitened descent whose clip follows the tail of what it sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from privreg.algorithms import least_squares_sums
from privreg.algorithms.huber_scales import white_cap
from privreg.algorithms.least_squares_fit import LeastSquaresFit
from privreg.algorithms.least_squares_settings import LeastSquaresSettings
from privreg.algorithms.product_tail import ProductTail
from privreg.algorithms.records import Persons, Records
from privreg.algorithms.samples import Samples
from privreg.algorithms.split_budget import NoisyValue, SplitBudget, require_budget
from privreg.algorithms.warm_up import ASSUMPTIONS, Path, Start
from privreg.algorithms.whitening import raised, shrunk_curvature
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import shared_sample_size, sum_sensitivity
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.validation import (
    require_count,
    require_flag,
    require_instance,
    require_number,
    require_rng,
)

FloatArray = NDArray[np.float64]
# Caps of long rows are so much more generous than those of short ones at the same noise.
LONG = 4.0
# Where the histogram of products starts and ends at least, in residual scales.
LOWEST, HIGHEST = 0.5, 8.0
TAIL_ASSUMPTION = (
    "intervals take the tail of residuals times row lengths to go on as where the noise lets it "
    "be seen, no heavier than a power law"
)


def least_squares_descent(
    samples: Samples,
    *,
    feature_norm: float,
    label_bound: float,
    budget: Budget,
    settings: LeastSquaresSettings,
    rng: np.random.Generator,
    groups: ArrayLike | Persons | None = None,
    sample_size: float | None = None,
    intercept: bool = False,
    threads: int = 1,
) -> Release[LeastSquaresFit]:
    r"""Linear regression under zCDP by three noisy Newton steps with a clip chosen from the tail.

    .. math::
        \theta_k = \theta_{k-1} + a_k W S\Big(\frac1n\sum_i g_i\min(1, C/q_i)
        + \lambda_k\zeta_k\Big), \qquad g_i = \min(1, R^2/\|z_i\|^2)\,z_i r_i,\quad q_i = \|g_i\|

    with z = Wᵀx and residuals r at θ_{k-1}. Arguments and start are those of `huber_descent`, with
    warm-up steps on a Huber loss; C comes from a private histogram of q and balances the bias that
    a clip leaves against the noise that it costs. Where no product is clipped and no row longer
    than R, the steps end at least squares, whatever the law of the errors is.

    Guarantee
    ---------
    Releasing the whole `LeastSquaresFit` is √(2ρ)-Gaussian DP, and so ρ-zCDP, under the budget's
    relation, if the bounds and the settings are chosen without looking at the data. With `groups`
    neighbours differ in all rows of one person. Proof: the fit is a function of `sample_size` and
    of Gaussian mechanisms, each of which may depend on the earlier ones' outputs and on nothing
    else of the data; their shares of ρ are fixed beforehand and add up to it (Dong, Roth and Su
    2022, Corollary 3.3: adaptive composition of μ_i-Gaussian DP is √Σμ_i²-Gaussian DP). The start
    is that of `huber_descent`, and so are the bounds. One record moves, by the relation
    (replace-one; add-remove and zero-out),

    - the histogram of products by one count: √2; 1;
    - A₁, A₂ and B, sums of positive semi-definite matrices of Frobenius norms at most R₁², R² and
      C²: √2 times that; that;
    - a sum of clipped gradients: 2C; C;
    - tr A₁ and tr B, sums of numbers in [0, R₁²] and [0, C²]: R₁² and C².

    A record that is a person has one q, the length of its summed gradient, and one weight
    min(1, R²/Σ‖z‖²) for all of its rows. A blank record adds 0 to every sum and is in no count.
    `WeightedSamples` are rows like others, one of weight 0 is blank.

    Source
    ------
    Bias-aware intervals: Armstrong and Kolesár (2018). Clip from a private histogram, products and
    steps: ours.
    """
    require_budget(budget)
    require_instance("settings", settings, LeastSquaresSettings)
    require_rng("rng", rng)
    require_flag("intercept", intercept)
    records = Records(
        samples,
        feature_norm,
        label_bound,
        groups,
        threads=require_count("threads", threads),
        common_width=True,
        clips_weighted=True,
    )
    count = shared_sample_size(sample_size, records=records.count, neighbours=budget.neighbours)
    run = _Run(records, SplitBudget(budget, rng), settings, count, bool(intercept))
    return Release(run.fit(), budget, (*ASSUMPTIONS, TAIL_ASSUMPTION))


@dataclass
class _Run:
    """One fit: the order in which the data are asked, and with what share."""

    records: Records
    shares: SplitBudget
    settings: LeastSquaresSettings
    sample_size: float
    intercept: bool

    def fit(self) -> LeastSquaresFit:
        settings, n, p = self.settings, self.sample_size, self.records.samples.dimension
        begin = Start(self.records, self.shares, settings, n, self.intercept)
        whitening, gram, _, centre = begin.whiten()
        slope = 2 * float(ndtr(settings.clip_width)) - 1
        path = Path(np.zeros(p))
        scale = begin.warm_up(path, whitening, slope).end
        start, start_variance = path.theta, _variance(path)
        short_cap = begin.white_cap(settings.curvature_share)
        cap = long_cap(
            p,
            sample_size=n,
            rho=settings.long_share * self.shares.budget.rho,
            longest=self.records.feature_norm * float(np.linalg.norm(whitening, 2)),
        )
        cap = max(cap, short_cap)
        tail = self._tail(start, whitening, scale, cap)
        clip_norm = tail.best_width(noise=self._unit_noise(settings.final_share)) * np.sqrt(p)
        caps = {"clip_norm": float(clip_norm), "cap": cap}
        first = least_squares_sums.first_sums(
            self.records, start, whitening, **caps, short_cap=short_cap
        )
        curvature = self.shares.semidefinite(
            "curvature", settings.curvature_share, first.short, short_cap**2, n
        )
        long_curvature = self.shares.semidefinite(
            "curvature of long rows", settings.long_share, first.long, cap**2, n
        )
        newton = np.asarray(
            np.linalg.inv(raised(shrunk_curvature(curvature), long_curvature)), dtype=np.float64
        )
        total = first.gradient
        for number, (size, share) in enumerate(
            zip(settings.wide_sizes, settings.wide_shares, strict=True)
        ):
            if number:
                total = least_squares_sums.product_gradient_sum(
                    self.records, path.theta, whitening, **caps
                )
            gradient = self.shares.vector("wide steps", share, total, caps["clip_norm"], n)
            path.step(whitening, size * newton, gradient)
        second, mean_curvature, mean_square = self._last(path.theta, whitening, short_cap, caps)
        return LeastSquaresFit(
            iterates=np.array(path.iterates),
            start=start,
            start_variance=start_variance,
            whitening=whitening,
            step_matrices=np.array(path.matrices[settings.warm_up_steps :]),
            gradient_noise_stds=np.array(path.noise_stds[settings.warm_up_steps :]),
            clip_norm=caps["clip_norm"],
            cap=cap,
            short_cap=short_cap,
            residual_scale=scale,
            tail=tail,
            gram=gram,
            centre=centre,
            curvature=curvature,
            long_curvature=long_curvature,
            second_moment=second,
            mean_curvature=mean_curvature,
            mean_square=mean_square,
            sample_size=n,
            settings=settings,
            spending=self.shares.spending(),
        )

    def _tail(
        self, theta: FloatArray, whitening: FloatArray, scale: float, cap: float
    ) -> ProductTail:
        edges = product_edges(scale, self.records.label_bound, cap=cap, dimension=len(theta))
        counts = least_squares_sums.product_histogram(
            self.records, theta, whitening, edges, cap=cap
        )
        noisy = self.shares.histogram("tail of products", self.settings.tail_share, counts)
        return ProductTail(edges, noisy, self.sample_size)

    def _unit_noise(self, share: float) -> float:
        """Noise of a coordinate of the mean gradient at the clip √p."""
        budget = self.shares.budget
        change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
        root = np.sqrt(self.records.samples.dimension)
        std = gaussian_noise_std(sensitivity=change * root, rho=share * budget.rho)
        return float(std) / self.sample_size

    def _last(
        self,
        theta: FloatArray,
        whitening: FloatArray,
        short_cap: float,
        caps: dict[str, float],
    ) -> tuple[NoisyValue, NoisyValue, NoisyValue]:
        settings, n, p, shares = self.settings, self.sample_size, len(theta), self.shares
        found = least_squares_sums.last_sums(
            self.records, theta, whitening, **caps, short_cap=short_cap
        )
        square, half = caps["clip_norm"] ** 2, settings.mean_share / 2
        what = "means for intervals"
        return (
            shares.semidefinite(
                "second moment for intervals", settings.moment_share, found.second_moment, square, n
            ),
            shares.number(what, half, found.curvature / p, short_cap**2 / p, n),
            shares.number(what, half, found.square / p, square / p, n),
        )


def long_cap(dimension: int, *, sample_size: float, rho: float, longest: float) -> float:
    """Length R at which a row is shortened in gradients.

    It is as long as the noise of the curvature of long rows, of budget ρ, allows, up to the longest
    row within the bounds: a larger budget shortens fewer rows, and in the end none.
    """
    spent = LONG**2 * require_number("rho", rho, above=0, most=1e98)
    most = min(require_number("longest", longest, least=0), 1e100)
    return white_cap(dimension, sample_size=sample_size, rho=spent, longest=most)


def product_edges(scale: float, label_bound: float, *, cap: float, dimension: int) -> FloatArray:
    """Grid of q/√p, factors √2 from half a residual scale to what labels and rows allow."""
    limits = {"least": 1e-90, "most": 1e90}
    scale = require_number("scale", scale, **limits)
    label_bound = require_number("label_bound", label_bound, **limits)
    cap = require_number("cap", cap, **limits)
    dimension = require_count("dimension", dimension)
    lowest = LOWEST * scale
    highest = max(2 * label_bound * cap / np.sqrt(dimension), HIGHEST * scale)
    bins = int(np.ceil(2 * np.log2(highest / lowest)))
    return np.asarray(lowest * 2.0 ** (np.arange(bins + 1) / 2))


def _variance(path: Path) -> float:
    """Of the private noise of the last step that was kept, a coordinate's."""
    kept = [
        (float(matrix[0, 0]) * std) ** 2
        for matrix, std in zip(path.matrices, path.noise_stds, strict=True)
        if np.any(matrix)
    ]
    return kept[-1] if kept else 0.0
