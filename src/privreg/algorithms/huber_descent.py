"""Private Huber regression: whitened, clipped full-batch descent with a split budget."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from privreg.algorithms import huber_sums
from privreg.algorithms.huber_fit import HuberFit
from privreg.algorithms.huber_scales import (
    length_cap,
    length_edges,
    residual_scale,
    scale_edges,
    scale_is_hidden,
    white_cap,
)
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.records import Persons, Records
from privreg.algorithms.samples import Samples
from privreg.algorithms.split_budget import NoisyValue, SplitBudget, require_budget
from privreg.algorithms.whitening import Whitening, newton_matrix, whiten
from privreg.privacy.assumptions import SECRET_STREAM
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
# Growth of the private residual scale beyond which a warm-up step was noise.
EXCURSION = 1.25
# Scale over the label bound where noise hides it: bounds hold four deviations of the label.
UNSEEN_SCALE = 0.25
MOMENTS, MEANS = "second moments for intervals", "means for intervals"
ASSUMPTIONS = (
    "feature_norm, label_bound and the settings are chosen without looking at the data",
    "noise is drawn in floating point, so that the guarantee is one about real numbers",
    SECRET_STREAM,
)


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

    Parameters
    ----------
    samples : Samples
        Rows (x, y).
    feature_norm : float
        Largest length of a row, in [1e-50, 1e50]; longer ones are shortened with their labels.
    label_bound : float
        Largest absolute label, in [1e-50, 1e50]; larger ones are clipped, and scales are looked for
        below 4 times it.
    budget : Budget
        Budget ρ in [1e-20, 1e20], and its neighbouring relation.
    settings : HuberSettings
        Chosen without looking at the data: `PrivateRegression.default`, or a plan.
    rng : Generator
        Source of the noise.
    groups : array_like, shape (n,), optional
        The person whose row it is: neighbours then differ in all rows of one person, whose summed
        gradient is clipped. Every row is a person of its own by default.
    sample_size : float, optional
        What sums are divided by, at least 1 and at most 1e15: a number of records that is public or
        was released before (`private_count`). By default the number of records, which replace-one
        and zero-out neighbours share; add-remove ones do not, and must be given it.
    intercept : bool
        Whether the first column is one of ones, 0 in a blank record; the others are then centred by
        their private means.
    threads : int
        Threads that read samples which come in parts, such as a file's.

    Returns
    -------
    Release of HuberFit

    Raises
    ------
    ValueError
        If a value is out of range.

    Guarantee
    ---------
    Releasing the whole `HuberFit` is ρ-zCDP under the budget's relation. Proof: it is a function of
    `sample_size` and of Gaussian mechanisms, each of which may depend on the earlier ones' outputs
    and on nothing else of the data, and their budgets add up to ρ (Bun and Steinke 2016, Lemmas 1.7
    and 2.3). A blank record, of a person one whose rows are all blank, has features and label 0,
    and so a first entry of 0 with an intercept, too. Every map of rows here is linear, Wᵀ0 = 0: it
    adds 0 to every sum and is in no count, as if it were absent. What a record adds to a sum is
    bounded whatever its first entry is. One record moves, by the relation (replace-one; add-remove
    and zero-out),

    - a histogram by one count: √2; 1;
    - the Gram matrix, a sum of positive semi-definite matrices of Frobenius norm at most R²: √2 R²,
      as their inner product is not negative; R²; and B likewise with γ² for R²;
    - A like the Gram matrix, and with `groups`, where its terms are not symmetric, 2R²; R²;
    - a sum of clipped gradients: 2γ; γ; and the sum of rows likewise with `feature_norm`;
    - tr A and tr B, sums of numbers in [0, R²] and [0, γ²]: R² and γ².

    Noise on a symmetric matrix is isotropic in the Frobenius norm.

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
    purse: SplitBudget
    settings: HuberSettings
    sample_size: float
    intercept: bool

    def fit(self) -> HuberFit:
        settings, n, p = self.settings, self.sample_size, self.records.samples.dimension
        whitening, gram, last = self._whiten()
        slope = 2 * float(ndtr(settings.clip_width)) - 1
        sizes = averaging_step_sizes(settings.warm_up_steps, settings.final_steps)
        path = _Path(np.zeros(p))
        # Residuals at 0 are labels.
        most = self.records.label_bound
        scale = start = min(self._scale(path.theta, whitening) or UNSEEN_SCALE * most, most)
        for size in sizes[: settings.warm_up_steps]:
            share = settings.warm_up_share / settings.warm_up_steps
            matrix = size / slope * np.eye(p)
            self._step(path, whitening, matrix, scale, "warm-up steps", share)
            found = self._scale(path.theta, whitening)
            if found is None or found > EXCURSION * scale:
                path.take_back()
            else:
                scale = found
        clip_norm = self._clip_norm(scale)
        curvature, second = None, None
        newton = np.eye(p) / slope
        if settings.moment_share > 0:
            curvature = self._curvature(path.theta, whitening, clip_norm)
            newton = newton_matrix(curvature, slope)
        for size in sizes[settings.warm_up_steps :]:
            share = settings.final_share / settings.final_steps
            self._step(path, whitening, size * newton, scale, "final steps", share)
        if settings.moment_share > 0:
            total = huber_sums.second_moment_sum(
                self.records, path.theta, whitening, clip_norm=clip_norm
            )
            second = self.purse.semidefinite(
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
            spending=self.purse.spending(),
        )

    def _whiten(self) -> tuple[FloatArray, NoisyValue, Whitening]:
        settings, purse, records = self.settings, self.purse, self.records
        whitening = self._centring()
        lengths = length_edges(records.feature_norm)
        counts = purse.histogram(
            "centre and length of rows",
            settings.norm_share / (2 if self.intercept else 1),
            huber_sums.length_histogram(records, whitening, lengths),
        )
        cap = length_cap(
            counts.value, lengths, noise_std=counts.noise_std, sample_size=self.sample_size
        )
        for number, share in enumerate(settings.gram_shares):
            cap = self._white_cap(share) if number else cap
            total = huber_sums.gram_sum(records, whitening, cap=cap)
            gram = purse.semidefinite("Gram matrix", share, total, cap**2, self.sample_size)
            last = whiten(gram)
            whitening = _moderate(whitening @ last.root)
        return whitening, gram, last

    def _centring(self) -> FloatArray:
        """Map of rows (1, x) to (1, x - m) with a private mean m; the identity without intercept.

        Rows that are short after it need less noise: those of many rare categories, or of a column
        that lies far from the middle of its bounds.
        """
        centring = np.eye(self.records.samples.dimension)
        if self.intercept:
            mean = self.purse.vector(
                "centre and length of rows",
                self.settings.norm_share / 2,
                huber_sums.row_sum(self.records),
                self.records.feature_norm,
                self.sample_size,
            )
            centring[0, 1:] = -mean.value[1:]
        return centring

    def _white_cap(self, share: float) -> float:
        return white_cap(
            self.records.samples.dimension,
            sample_size=self.sample_size,
            rho=share * self.purse.budget.rho,
        )

    def _clip_norm(self, scale: float) -> float:
        return float(self.settings.clip_width * scale * np.sqrt(self.records.samples.dimension))

    def _scale(self, theta: FloatArray, whitening: FloatArray) -> float | None:
        edges = scale_edges(self.records.label_bound)
        share = self.settings.scale_share / (self.settings.warm_up_steps + 1)
        counts = huber_sums.residual_histogram(self.records, theta, whitening, edges)
        noisy = self.purse.histogram("residual scales", share, counts)
        if scale_is_hidden(noise_std=noisy.noise_std, sample_size=self.sample_size):
            return None
        return residual_scale(noisy.value, edges, sample_size=self.sample_size)

    def _step(
        self,
        path: _Path,
        whitening: FloatArray,
        matrix: FloatArray,
        scale: float,
        what: str,
        share: float,
    ) -> None:
        clip_norm = self._clip_norm(scale)
        total = huber_sums.gradient_sum(self.records, path.theta, whitening, clip_norm=clip_norm)
        gradient = self.purse.vector(what, share, total, clip_norm, self.sample_size)
        path.theta = _moderate(path.theta + whitening @ (matrix @ gradient.value))
        path.iterates.append(path.theta)
        path.matrices.append(matrix)
        path.noise_stds.append(gradient.noise_std)

    def _curvature(self, theta: FloatArray, whitening: FloatArray, clip_norm: float) -> NoisyValue:
        share = self.settings.moment_share / 2
        cap = self._white_cap(share)
        total = huber_sums.curvature_sum(
            self.records, theta, whitening, clip_norm=clip_norm, cap=cap
        )
        release = self.purse.semidefinite if self.records.groups is None else self.purse.vector
        return release(MOMENTS, share, total, cap**2, self.sample_size)

    def _means(
        self, theta: FloatArray, whitening: FloatArray, clip_norm: float
    ) -> tuple[NoisyValue, NoisyValue]:
        p, share = len(theta), self.settings.mean_share / 2
        affordable = 0.02 * self.sample_size * np.sqrt(2 * share * self.purse.budget.rho)
        cap = float(np.sqrt(p * np.clip(affordable, 1.5, 20)))
        curvature, square = huber_sums.traces(
            self.records, theta, whitening, clip_norm=clip_norm, cap=cap
        )
        return (
            self.purse.number(MEANS, share, curvature / p, cap**2 / p, self.sample_size),
            self.purse.number(MEANS, share, square / p, clip_norm**2 / p, self.sample_size),
        )


@dataclass
class _Path:
    theta: FloatArray
    iterates: list[FloatArray] = field(default_factory=list)
    matrices: list[FloatArray] = field(default_factory=list)
    noise_stds: list[float] = field(default_factory=list)

    def take_back(self) -> None:
        """Undo the last step: one of size 0, as far as the law of the iterates goes."""
        start = np.zeros_like(self.theta)
        self.iterates[-1] = self.iterates[-2] if len(self.iterates) > 1 else start
        self.matrices[-1] = 0 * self.matrices[-1]
        self.theta = self.iterates[-1]


def _moderate(released: FloatArray) -> FloatArray:
    """Private values with which sums over rows can go on; refusing them tells nothing more."""
    largest = float(np.max(np.abs(released)))
    if not largest <= huber_sums.LARGEST:
        raise ValueError(
            "budget must leave iterates and their scales below 1e+90 between these bounds, "
            f"got {largest:g}"
        )
    return released
