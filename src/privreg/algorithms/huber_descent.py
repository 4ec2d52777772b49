"""Private Huber regression: whitened, clipped full-batch descent with a split budget."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from privreg.algorithms import huber_sums
from privreg.algorithms.huber_fit import HuberFit
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.records import Persons, Records
from privreg.algorithms.samples import Samples
from privreg.algorithms.split_budget import NoisyValue, SplitBudget, require_budget
from privreg.algorithms.warm_up import ASSUMPTIONS, Path, Start
from privreg.algorithms.whitening import newton_matrix
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import shared_sample_size
from privreg.privacy.release import Release
from privreg.theory.huber_descent.last_iterate import averaging_step_sizes
from privreg.validation import (
    require_count,
    require_flag,
    require_instance,
    require_rng,
)

FloatArray = NDArray[np.float64]
MOMENTS, MEANS = "second moments for intervals", "means for intervals"


def huber_descent(
    samples: Samples,
    *,
    feature_norm: float,
    label_bound: float,
    budget: Budget,
    settings: HuberSettings,
    rng: np.random.Generator,
    groups: ArrayLike | Persons | None = None,
    sample_size: float | None = None,
    intercept: bool = False,
    threads: int = 1,
) -> Release[HuberFit]:
    r"""Linear regression under zCDP by noisy Newton steps on a Huber loss, with private scales.

    .. math::
        \theta_t = \theta_{t-1} + W S_t\Big(\frac1n\sum_i u_i\,
        \mathrm{clip}\big(y_i - \mathbf x_i^\top\theta_{t-1},\ \pm\gamma/\sqrt p\big)
        + \lambda_t\zeta_t\Big), \qquad \zeta_t \sim N(0, I_p)

    with z = Wᵀx, u = z min(1, √p/‖z‖). Residuals that are clipped make the steps descend on a Huber
    loss; a row adds a vector of norm at most γ. One width for all rows leaves slopes their target
    where errors are skewed but independent of the features; `settings.common_width` False clips
    gradients z r to γ instead. W whitens by a private second moment, so that the noise lies in the
    directions in which the coefficients are uncertain anyway, and few steps suffice. A warm-up step
    after which the private residual scale is larger, or hidden by its noise, is taken back: clip
    and noise grow with that scale, so that one step of noise would beget the next. The final K
    steps, of equal budgets and sizes 1, 1/2, ..., 1/K, leave the average of K Newton steps, with
    the noise of one that had the budget of all.

    Rows and labels are bounded as `Records` says. Sums are divided by `sample_size`, which is
    public or was released before (`private_count`), or else by the number of records, where
    neighbours share it. With an intercept the first column is one of ones, 0 in a blank record, and
    the others are centred by their private means.

    Guarantee
    ---------
    Releasing the whole `HuberFit` is ρ-zCDP under the budget's relation, if the bounds and the
    settings are chosen without looking at the data. With `groups` neighbours differ in all rows of
    one person. Proof: the fit is a function of `sample_size` and of Gaussian mechanisms, each of
    which may depend on the earlier ones' outputs and on nothing else of the data, and their budgets
    add up to ρ (Bun and Steinke 2016, Lemmas 1.7 and 2.3). A blank record, of a person
    one whose rows are all blank, has features and label 0, and so a first entry of 0 with an
    intercept, too. Every map of rows here is linear, Wᵀ0 = 0: it adds 0 to every sum and is in no
    count, as if it were absent. What a record adds to a sum is bounded whatever its first entry is.
    One record moves, by the relation (replace-one; add-remove and zero-out),

    - a histogram by one count: √2; 1;
    - the Gram matrix, a sum of positive semi-definite matrices of Frobenius norm at most R²: √2 R²,
      as their inner product is not negative; R²; and B likewise with γ² for R²;
    - A like the Gram matrix, and with `groups`, where its terms are not symmetric, 2R²; R²;
    - a sum of clipped gradients: 2γ; γ; and the sum of rows likewise with `feature_norm`;
    - tr A and tr B, sums of numbers in [0, R²] and [0, γ²]: R² and γ².

    Noise on a symmetric matrix is isotropic in the Frobenius norm. A row of `WeightedSamples` adds
    w̃ u ψ(r), of norm at most √w̃ γ, and all other sums take it as they take any row.

    Source
    ------
    Clipping as Huber's loss: brown2024, section 2.5. Noisy Newton steps with private sandwich
    variances: Avella-Medina, Bradshaw and Loh (2023). The split, the scales and the averaging of
    the final steps: ours.
    """
    require_budget(budget)
    require_instance("settings", settings, HuberSettings)
    require_rng("rng", rng)
    require_flag("intercept", intercept)
    records = Records(
        samples,
        feature_norm,
        label_bound,
        groups,
        threads=require_count("threads", threads),
        common_width=settings.common_width,
    )
    count = shared_sample_size(sample_size, records=records.count, neighbours=budget.neighbours)
    run = _Run(records, SplitBudget(budget, rng), settings, count, bool(intercept))
    return Release(run.fit(), budget, ASSUMPTIONS)


@dataclass
class _Run:
    """One fit: the order in which the data are asked, and with what share."""

    records: Records
    shares: SplitBudget
    settings: HuberSettings
    sample_size: float
    intercept: bool

    def __post_init__(self) -> None:
        self.start = Start(
            self.records, self.shares, self.settings, self.sample_size, self.intercept
        )

    def fit(self) -> HuberFit:
        settings, n, p = self.settings, self.sample_size, self.records.samples.dimension
        whitening, gram, last, centre = self.start.whiten()
        slope = 2 * float(ndtr(settings.clip_width)) - 1
        sizes = averaging_step_sizes(settings.warm_up_steps, settings.final_steps)
        path = Path(np.zeros(p))
        start, scale = self.start.warm_up(path, whitening, slope)
        clip_norm = self.start.clip_norm(scale)
        curvature, second = None, None
        newton = np.eye(p) / slope
        if settings.moment_share > 0:
            curvature = self._curvature(path.theta, whitening, clip_norm)
            newton = newton_matrix(curvature, slope)
        for size in sizes[settings.warm_up_steps :]:
            share = settings.final_share / settings.final_steps
            self.start.huber_step(path, whitening, size * newton, scale, "final steps", share)
        if settings.moment_share > 0:
            total = huber_sums.second_moment_sum(
                self.records, path.theta, whitening, clip_norm=clip_norm
            )
            second = self.shares.semidefinite(
                MOMENTS, settings.moment_share / 2, total, clip_norm**2, n
            )
        mean_curvature, mean_square = self._means(path.theta, whitening, clip_norm)
        return HuberFit(
            iterates=np.array(path.iterates),
            whitening=whitening,
            step_matrices=np.array(path.matrices),
            gradient_noise_stds=np.array(path.noise_stds),
            clip_norm=clip_norm,
            residual_scale=scale,
            start_scale=start,
            gram=gram,
            last_root=last.root,
            gram_weight=last.weight,
            curvature=curvature,
            second_moment=second,
            mean_curvature=mean_curvature,
            mean_square=mean_square,
            sample_size=n,
            symmetric=self.records.groups is None,
            settings=settings,
            spending=self.shares.spending(),
            centre=centre,
        )

    def _curvature(self, theta: FloatArray, whitening: FloatArray, clip_norm: float) -> NoisyValue:
        share = self.settings.moment_share / 2
        cap = self.start.white_cap(share)
        total = huber_sums.curvature_sum(
            self.records, theta, whitening, clip_norm=clip_norm, cap=cap
        )
        release = self.shares.semidefinite if self.records.groups is None else self.shares.vector
        return release(MOMENTS, share, total, cap**2, self.sample_size)

    def _means(
        self, theta: FloatArray, whitening: FloatArray, clip_norm: float
    ) -> tuple[NoisyValue, NoisyValue]:
        p, share = len(theta), self.settings.mean_share / 2
        affordable = 0.02 * self.sample_size * np.sqrt(2 * share * self.shares.budget.rho)
        cap = float(np.sqrt(p * np.clip(affordable, 1.5, 20)))
        curvature, square = huber_sums.traces(
            self.records, theta, whitening, clip_norm=clip_norm, cap=cap
        )
        return (
            self.shares.number(MEANS, share, curvature / p, cap**2 / p, self.sample_size),
            self.shares.number(MEANS, share, square / p, clip_norm**2 / p, self.sample_size),
        )
