"""Private Huber regression: whitened, clipped full-batch descent with a split budget."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from privreg.algorithms.records import Persons, Records
from privreg.algorithms.samples import Samples
from privreg.algorithms.whitened_descent import (
    ASSUMPTIONS,
    Descent,
    DescentFit,
    SplitBudget,
    StartSettings,
    newton_matrix,
    require_budget,
)
from privreg.privacy.budget import Budget, sum_sensitivity
from privreg.privacy.release import Release
from privreg.theory.huber_descent import averaging_step_sizes

FloatArray = NDArray[np.float64]
MOMENTS, MEANS = "second moments for intervals", "means for intervals"
# Inverse of the noise in a second moment, relative to its mean, from which a sandwich is worth it,
# and variance under Gaussian noise that a wider clip may cost: conventions.
MOMENT_PRICE, WIDENING = 8.0, 1.01
# Best width under exponential errors at any price: a clip that ends where their density jumps.
SKEWED_WIDTH = 1.09


def huber_descent(
    samples: Samples,
    *,
    feature_norm: float,
    label_bound: float,
    budget: Budget,
    settings: HuberSettings,
    rng: np.random.Generator | None,
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

    with z = Wᵀx, u = z min(1, √p/‖z‖), matrices S_t and noise deviations λ_t. Since residuals are
    clipped, the steps descend on a Huber loss, and a row adds a vector of norm at most γ. With one
    clip width for all rows, skewed errors that are independent of the features do not bias the
    slopes. If `settings.common_width` is False, gradients z r, for residuals r, are clipped to γ
    instead. W whitens rows by a private second moment. Noise is then largest along uncertain
    directions, and few steps suffice. Clip and noise are proportional to a private residual scale.
    A warm-up step is undone if the scale after it is hidden by noise or too large. The final K
    steps have equal budgets and sizes 1, 1/2, ..., 1/K. Together they give the average of K Newton
    steps, with the noise of one step that spends all K budgets.

    Rows and labels are bounded as in `Records`. Sums are divided by `sample_size`, which must be
    public or already released (`private_count`); the default is the number of records. With
    `intercept`, the first column must be ones (0 if blank); private means centre the rest.

    Guarantee
    ---------
    Releasing the whole `HuberFit` is ρ-zCDP under the budget's neighbouring relation, if the bounds
    and settings are chosen without looking at the data. Without a generator, this also holds in
    machine arithmetic. With `groups`, neighbours differ in all rows of one person. Proof: the fit
    is a function of `sample_size` and of sums released by `SplitBudget`. The budgets of these sums
    add up to ρ (Bun and Steinke 2016, Lemmas 1.7 and 2.3); `privreg.noise.exact` bounds how far
    neighbours move the sums. One record adds 1 to one count of each histogram. Whitened rows are
    shortened to length R. A record adds a semi-definite matrix of Frobenius norm at most R² to the
    Gram matrix and one of at most γ² to B, the second moment of clipped gradients. It adds a
    derivative of norm at most R² to the curvature A. It adds a vector of length at most γ to a sum
    of gradients and one of at most `feature_norm` to the sum of rows. It adds a number in [0, R²]
    to tr A and one in [0, γ²] to tr B. In a blank record all features, labels and intercept entries
    are 0. Maps of rows are linear, so a blank record adds 0 to every sum and enters no count. A row
    of `WeightedSamples` adds w̃ u ψ(r) to sums of gradients, where ψ is the clip; the norm of this
    term is at most √w̃ γ. Other sums treat it like any row.

    Source: Clipping as Huber's loss: brown2024, section 2.5. Noisy Newton steps with private
    sandwich variances: Avella-Medina, Bradshaw and Loh (2023). The budget's split, the residual
    scales and the averaging of the final steps are ours.
    """
    shares = SplitBudget(budget, rng)
    records = Records(
        samples, feature_norm, label_bound, groups, threads, common_width=settings.common_width
    )
    run = _HuberDescent(shares, settings, records, sample_size, intercept)
    return Release(run.fit(), budget, ASSUMPTIONS)


@dataclass(frozen=True)
class HuberSettings(StartSettings):
    """Settings of `huber_descent`, chosen without the data; `PrivateHuber` documents each field."""

    end: ClassVar[str] = "final"
    may_be_zero: ClassVar[tuple[str, ...]] = ("moment_share",)
    clip_width: float = 1.0
    warm_up_steps: int = 4
    final_steps: int = 3
    gram_rounds: int = 3
    norm_share: float = 0.01
    gram_share: float = 0.10
    scale_share: float = 0.04
    warm_up_share: float = 0.10
    mean_share: float = 0.02
    moment_share: float = 0.10
    common_width: bool = True

    @property
    def steps(self) -> int:
        return self.warm_up_steps + self.final_steps


def default_settings(*, sample_size: int, dimension: int, budget: Budget) -> HuberSettings:
    r"""Default settings, from the budget and the public numbers of records and features.

    The clip minimises a coefficient's variance from sampling and privacy under Gaussian errors, in
    units of the sampling variance of least squares:

    .. math::
        w = \arg\min_w \frac{\mathbb E\min(\xi^2, w^2) + \kappa w^2}{\Pr(|\xi| \le w)^2},
        \qquad \kappa = \frac{\Delta^2 p}{2 n\rho_{\text{final}}},\ \xi \sim N(0, 1)

    with Δ = 2 under replace-one and 1 under the other relations. A clip narrower than 1.09, the
    best width for skewed errors, is widened toward 1.09, as far as the variance under Gaussian
    errors grows by at most 1 %. The gain under exponential errors is ten times as large. If noise
    would hide A and B of `huber_descent`, their share goes to the Gram matrix and the final steps.
    """
    n, p, rho = sample_size, dimension, require_budget(budget).rho
    settings = HuberSettings()
    if n * np.sqrt(settings.moment_share / 2 * rho) < MOMENT_PRICE * (1.2 * p + 3):
        settings = HuberSettings(gram_share=0.16, moment_share=0.0)
    change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
    price = change**2 * p / (2 * n * rho * settings.final_share)
    return replace(settings, clip_width=best_clip_width(price))


def best_clip_width(privacy_price: float) -> float:
    """Clip width w of `default_settings` for κ = `privacy_price`, from 0.25 to 2.5."""
    width = np.geomspace(0.25, 2.5, 200)
    inside = 2 * ndtr(width) - 1
    density = np.exp(-(width**2) / 2) / np.sqrt(2 * np.pi)
    clipped_square = inside - 2 * width * density + width**2 * (1 - inside)
    variance = (clipped_square + privacy_price * width**2) / inside**2
    best = int(np.argmin(variance))
    widest = float(width[np.flatnonzero(variance <= WIDENING * variance[best])[-1]])
    return max(float(width[best]), min(widest, SKEWED_WIDTH))


@dataclass(frozen=True, kw_only=True)
class HuberFit(DescentFit):
    """Released values of `huber_descent`: iterates, and the statistics that intervals need."""

    initial_scale: float  # residual scale at the start; bounds the distance to the solution
    last_root: FloatArray  # W is the whitening before the last round times this matrix
    gram_weight: float  # weight of `gram` in its shrinkage toward the identity
    symmetric: bool  # True if A is symmetric; False if records have several rows


class _HuberDescent(Descent):
    settings: HuberSettings

    def fit(self) -> HuberFit:
        settings, n, p, shares = self.settings, self.n, self.p, self.shares
        last = self.whiten()
        slope = 2 * float(ndtr(settings.clip_width)) - 1
        initial_scale, scale = self.warm_up(slope)
        clip_norm = self.clip_norm(scale)
        curvature, second = None, None
        newton = np.eye(p) / slope
        if settings.moment_share > 0:
            share = settings.moment_share / 2
            cap = self.white_cap(share)
            total = self.at().curvature_sum(clip_norm=clip_norm, cap=cap)
            release = shares.semidefinite if self.records.groups is None else shares.matrix
            curvature = release(MOMENTS, share, total, cap**2, n)
            newton = newton_matrix(curvature, slope)
        sizes = averaging_step_sizes(settings.warm_up_steps, settings.final_steps)
        for size in sizes[settings.warm_up_steps :]:
            share = settings.final_share / settings.final_steps
            total = self.at().gradient_sum(clip_norm=clip_norm)
            self.step(size * newton, shares.vector("final steps", share, total, clip_norm, n))
        if settings.moment_share > 0:
            total = self.at().second_moment_sum(clip_norm=clip_norm)
            share = settings.moment_share / 2
            second = shares.semidefinite(MOMENTS, share, total, clip_norm**2, n)
        share = settings.mean_share / 2
        affordable = 0.02 * n * np.sqrt(2 * share * shares.budget.rho)
        cap = float(np.sqrt(p * np.clip(affordable, 1.5, 20)))
        mean_curvature, mean_square = self.at().traces(clip_norm=clip_norm, cap=cap)
        return HuberFit(
            clip_norm=clip_norm,
            residual_scale=scale,
            initial_scale=initial_scale,
            last_root=last.root,
            gram_weight=last.weight,
            curvature=curvature,
            second_moment=second,
            mean_curvature=shares.number(MEANS, share, mean_curvature, cap**2 / p, n),
            mean_square=shares.number(MEANS, share, mean_square, clip_norm**2 / p, n),
            symmetric=self.records.groups is None,
            **self.released(),
        )
