"""Private Huber regression: whitened, clipped full-batch descent with a split budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from privreg.algorithms import huber_sums
from privreg.algorithms.huber_scales import length_cap, residual_scale, scale_edges
from privreg.algorithms.huber_settings import HuberSettings
from privreg.algorithms.huber_sums import Records
from privreg.algorithms.samples import Samples
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.theory.huber_descent.known_noise import (
    inverse_root,
    noise_edge,
    shrink_to_identity,
    symmetric_noise,
)
from privreg.theory.huber_descent.last_iterate import averaging_step_sizes
from privreg.validation import require_count, require_instance, require_number

FloatArray = NDArray[np.float64]
MOMENTS, MEANS = "second moments for intervals", "means for intervals"
ASSUMPTIONS = (
    "feature_norm, label_bound and the settings are chosen without looking at the data",
    "noise is drawn in floating point, so that the guarantee is one about real numbers",
)


@dataclass(frozen=True)
class NoisyValue:
    """A private statistic and the standard deviation of the noise in it.

    Attributes
    ----------
    value : ndarray
        A symmetric matrix has the noise of `symmetric_noise`, everything else independent noise.
    noise_std : float
    """

    value: FloatArray
    noise_std: float


@dataclass(frozen=True)
class HuberFit:
    r"""Everything that `huber_descent` releases: the iterates and what their law needs.

    Attributes
    ----------
    iterates : ndarray, shape (T, p)
        θ_1..θ_T in the units of the rows.
    whitening : ndarray, shape (p, p)
        W: descent runs on z = Wᵀx, whose second moment is near the identity.
    step_matrices : ndarray, shape (T, p, p)
        S_t, in whitened coordinates φ = W⁻¹θ.
    gradient_noise_stds : ndarray, shape (T,)
        λ_t of the mean clipped gradient in whitened coordinates.
    clip_norm : float
        γ of the final steps.
    residual_scale : float
        The scale at the start of the final steps; w times √p times it is γ.
    start_scale : float
        The residual scale at the start, which bounds how far it may have been away.
    gram : NoisyValue
        Second moment of the rows (p, p) in the coordinates of the last round, from which
        `last_root` took it to those of W.
    last_root : ndarray, shape (p, p)
        What the last round multiplied W by.
    gram_weight : float
        How much of the last round's deviation from the identity was kept, in [0, 1].
    curvature, second_moment : NoisyValue or None
        Mean derivative A and mean square B of the clipped gradient, (p, p) in whitened
        coordinates; None where the settings spend nothing on them.
    mean_curvature, mean_square : NoisyValue
        tr(A)/p and tr(B)/p at the last iterate.
    sample_size : float
        What sums were divided by.
    symmetric : bool
        Whether `curvature` is symmetric: not where a record has several rows.
    settings : HuberSettings
    spending : tuple of (str, Budget)
        What was spent on what; the sum is the whole budget.
    """

    iterates: FloatArray
    whitening: FloatArray
    step_matrices: FloatArray
    gradient_noise_stds: FloatArray
    clip_norm: float
    residual_scale: float
    start_scale: float
    gram: NoisyValue
    last_root: FloatArray
    gram_weight: float
    curvature: NoisyValue | None
    second_moment: NoisyValue | None
    mean_curvature: NoisyValue
    mean_square: NoisyValue
    sample_size: float
    symmetric: bool
    settings: HuberSettings
    spending: tuple[tuple[str, Budget], ...]

    @property
    def parameters(self) -> FloatArray:
        """θ_T, shape (p,)."""
        return self.iterates[-1]


def huber_descent(
    samples: Samples,
    *,
    feature_norm: float,
    label_bound: float,
    budget: Budget,
    settings: HuberSettings,
    rng: np.random.Generator,
    groups: ArrayLike | None = None,
    sample_size: float | None = None,
    intercept: bool = False,
) -> Release[HuberFit]:
    r"""Linear regression under zCDP by noisy Newton steps on a Huber loss, with private scales.

    .. math::
        \theta_t = \theta_{t-1} + W S_t\Big(\frac1n\sum_i \mathrm{CLIP}_\gamma
        \big(\mathbf z_i(y_i - \mathbf x_i^\top\theta_{t-1})\big) + \lambda_t\zeta_t\Big),
        \qquad \mathbf z_i = W^\top\mathbf x_i,\ \zeta_t \sim N(0, I_p)

    Clipping the gradient of a row to γ is clipping its residual to ±γ/‖z‖: the steps descend on a
    sum of Huber losses. W whitens by a private second moment, so that the noise lies in the
    directions in which the coefficients are uncertain anyway, and few steps suffice. The final K
    steps, of equal budgets and sizes 1, 1/2, ..., 1/K, leave the average of K Newton steps, with
    the noise of one that had the budget of all.

    Parameters
    ----------
    samples : Samples
        Rows (x, y).
    feature_norm : float
        Largest length of a row, in [1e-50, 1e50]; longer ones are shortened with their labels.
    label_bound : float
        Largest absolute label; larger ones are clipped, and scales are looked for below 4 times it.
    budget : Budget
        Budget ρ, finite, and its neighbouring relation.
    settings : HuberSettings
        Chosen without looking at the data: `default_settings`, or a plan.
    rng : Generator
        Source of the noise.
    groups : array_like, shape (n,), optional
        The person whose row it is: neighbours then differ in all rows of one person, whose summed
        gradient is clipped. Every row is a person of its own by default.
    sample_size : float, optional
        What sums are divided by, at least 1: a number of records that is public or was released
        before (`private_count`). By default the number of records, which replace-one and zero-out
        neighbours share; add-remove ones do not, and must be given it.
    intercept : bool
        Whether the first column is one of ones; the others are then centred by their private means.

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
    Gaussian mechanisms, each of which may depend on the earlier ones' outputs and on nothing else
    of the data, and their budgets add up to ρ (Bun and Steinke 2016, Lemmas 1.7 and 2.3). One
    record moves, by the relation (replace-one; add-remove and zero-out),

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
    require_instance("budget", budget, Budget)
    require_instance("settings", settings, HuberSettings)
    require_instance("rng", rng, np.random.Generator)
    if not np.isfinite(budget.rho):
        raise ValueError("budget must be finite, got an infinite rho")
    records = Records(samples, feature_norm, label_bound, groups)
    if sample_size is None and budget.neighbours is Neighbours.ADD_REMOVE:
        raise ValueError("sample_size must be given under add-remove, which does not share it")
    count = records.count if sample_size is None else sample_size
    count = require_number("sample_size", count, least=1)
    run = _Run(records, _Purse(budget, rng), settings, count, bool(intercept))
    return Release(run.fit(), budget, ASSUMPTIONS)


def private_count(count: int, *, budget: Budget, rng: np.random.Generator) -> Release[float]:
    """A number of records, at least 1, under any of the relations.

    Guarantee
    ---------
    The Gaussian mechanism at sensitivity 1: the number spends the whole budget.
    """
    exact = require_count("count", count)
    std = float(gaussian_noise_std(sensitivity=1.0, rho=budget.rho))
    return Release(max(1.0, exact + std * float(rng.standard_normal())), budget)


@dataclass
class _Purse:
    """Hands out Gaussian noise and writes down what each share of the budget was spent on."""

    budget: Budget
    rng: np.random.Generator
    spent: dict[str, float] = field(default_factory=dict)

    @property
    def replaces(self) -> bool:
        return self.budget.neighbours is Neighbours.REPLACE_ONE

    def noise_std(self, what: str, share: float, sensitivity: float) -> float:
        self.spent[what] = self.spent.get(what, 0.0) + share
        return float(gaussian_noise_std(sensitivity=sensitivity, rho=share * self.budget.rho))

    def spending(self) -> tuple[tuple[str, Budget], ...]:
        return tuple((what, self.budget.share(min(1.0, x))) for what, x in self.spent.items())

    def histogram(self, what: str, share: float, counts: FloatArray) -> NoisyValue:
        std = self.noise_std(what, share, np.sqrt(2.0) if self.replaces else 1.0)
        return NoisyValue(counts + std * self.rng.standard_normal(counts.shape), std)

    def semidefinite(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        std = self.noise_std(what, share, bound * (np.sqrt(2.0) if self.replaces else 1.0)) / n
        noise = symmetric_noise(len(total), noise_std=std, rng=self.rng)
        return NoisyValue((total + total.T) / (2 * n) + noise, std)

    def vector(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        std = self.noise_std(what, share, bound * (2.0 if self.replaces else 1.0)) / n
        return NoisyValue(total / n + std * self.rng.standard_normal(total.shape), std)

    def number(self, what: str, share: float, total: float, bound: float, n: float) -> NoisyValue:
        std = self.noise_std(what, share, bound) / n
        return NoisyValue(np.asarray(total / n + std * self.rng.standard_normal()), std)


@dataclass
class _Run:
    """One fit: the order in which the data are asked, and with what share."""

    records: Records
    purse: _Purse
    settings: HuberSettings
    sample_size: float
    intercept: bool

    def fit(self) -> HuberFit:
        settings, n, p = self.settings, self.sample_size, self.records.samples.dimension
        whitening, gram, last = self._whiten()
        slope = 2 * float(ndtr(settings.clip_width)) - 1
        sizes = averaging_step_sizes(settings.warm_up_steps, settings.final_steps)
        path = _Path(np.zeros(p))
        scales = []
        for size in sizes[: settings.warm_up_steps]:
            scales.append(self._scale(path.theta, whitening))
            share = settings.warm_up_share / settings.warm_up_steps
            matrix = size / slope * np.eye(p)
            self._step(path, whitening, matrix, scales[-1], "warm-up steps", share)
        scales.append(self._scale(path.theta, whitening))
        clip_norm = self._clip_norm(scales[-1])
        curvature, second = None, None
        newton = np.eye(p) / slope
        if settings.moment_share > 0:
            curvature = self._curvature(path.theta, whitening, clip_norm)
            newton = newton_matrix(curvature, slope)
        for size in sizes[settings.warm_up_steps :]:
            share = settings.final_share / settings.final_steps
            self._step(path, whitening, size * newton, scales[-1], "final steps", share)
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
            residual_scale=scales[-1],
            start_scale=scales[0],
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
        lengths = records.feature_norm * 2.0 ** (np.arange(-32, 5) / 4)
        counts = purse.histogram(
            "centre and length of rows",
            settings.norm_share / (2 if self.intercept else 1),
            huber_sums.length_histogram(records, whitening, lengths),
        )
        cap = length_cap(
            counts.value, lengths, noise_std=counts.noise_std, sample_size=self.sample_size
        )
        rounds = settings.gram_rounds
        # Later rounds decide, the first ones only prepare.
        shares = settings.gram_share * np.arange(1, rounds + 1) * 2 / (rounds * (rounds + 1))
        for number, share in enumerate(shares.tolist()):
            cap = self._white_cap(share) if number else cap
            total = huber_sums.gram_sum(records, whitening, cap=cap)
            gram = purse.semidefinite("Gram matrix", share, total, cap**2, self.sample_size)
            last = whiten(gram)
            whitening = whitening @ last.root
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
        """Length at which a whitened record is shortened for its second moment.

        It is chosen from public numbers alone: as long as the noise allows, so that few records are
        shortened, and a little over the typical length otherwise.
        """
        p = self.records.samples.dimension
        affordable = (
            0.2 / np.sqrt(2 * p) * self.sample_size * np.sqrt(share * self.purse.budget.rho)
        )
        return float(np.sqrt(np.clip(affordable, 1.2 * p + 3, 20 * p)))

    def _clip_norm(self, scale: float) -> float:
        return float(self.settings.clip_width * scale * np.sqrt(self.records.samples.dimension))

    def _scale(self, theta: FloatArray, whitening: FloatArray) -> float:
        edges = scale_edges(self.records.label_bound)
        share = self.settings.scale_share / (self.settings.warm_up_steps + 1)
        counts = huber_sums.residual_histogram(self.records, theta, whitening, edges)
        noisy = self.purse.histogram("residual scales", share, counts)
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
        path.theta = path.theta + whitening @ (matrix @ gradient.value)
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


class Whitening(NamedTuple):
    """Inverse root of a second moment, and the weight that its noisy deviation was given."""

    root: FloatArray
    weight: float


def whiten(gram: NoisyValue) -> Whitening:
    """Inverse root of a noisy second moment, shrunk by its known noise and floored at its edge."""
    p = len(gram.value)
    shrunk = shrink_to_identity(gram.value, noise_std=gram.noise_std)
    centre = max(float(np.trace(gram.value)) / p, gram.noise_std / np.sqrt(p))
    # Shrinkage leaves a share of the noise; below its edge an eigenvalue is noise.
    floor = max(shrunk.weight * noise_edge(p, noise_std=gram.noise_std), 1e-9 * centre)
    floor = min(floor, centre) if shrunk.weight else centre
    return Whitening(inverse_root(shrunk.matrix, floor=floor), shrunk.weight)


def newton_matrix(curvature: NoisyValue, slope: float) -> FloatArray:
    """Inverse of a noisy curvature, shrunk by its known noise and kept within reach of its mean."""
    p = len(curvature.value)
    matrix = (curvature.value + curvature.value.T) / 2
    mean = float(np.clip(np.trace(matrix) / p, 0.25 * slope, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    root = inverse_root(shrunk.matrix, floor=0.3 * mean)
    return root @ root
