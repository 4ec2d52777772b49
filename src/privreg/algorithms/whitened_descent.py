"""Common parts of private descents: splitting the budget, the start, and released values.

The start consists of whitening, residual scales, and warm-up steps on a Huber loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.algorithms.records import Point, Records, gram_sum, length_histogram, row_sum
from privreg.checks import (
    MOST,
    Uncopied,
    frozen,
    require_count,
    require_fields,
    require_flag,
    require_instance,
    require_number,
    require_rng,
)
from privreg.kernels import plain_sum
from privreg.noise.exact import UNITS, integer_noise_std, rounded_normals
from privreg.privacy.budget import Budget, gram_sensitivity, shared_sample_size, sum_sensitivity
from privreg.privacy.release import SECRET_STREAM, TIMES, TRUSTED, Release
from privreg.theory.huber_descent import (
    inverse_root,
    noise_edge,
    shrink_to_identity,
    symmetric_noise,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyValue:
    """Private statistic and the standard deviation of its noise.

    A symmetric matrix has noise E (`symmetric_noise`): uᵀEu has deviation `noise_std` for each unit
    vector u, and off-diagonal entries have 1/√2 of it. Other statistics have independent noise.
    """

    value: FloatArray
    noise_std: float

    def pooled(self, other: NoisyValue) -> NoisyValue:
        """Mean of two noisy matrices, weighted by the inverse variances of their noise."""
        weight = self.noise_std**2 / (self.noise_std**2 + other.noise_std**2)
        mean = self.value + weight * (other.value - self.value)
        return NoisyValue(mean, self.noise_std * sqrt(1 - weight))


# A share of a budget may be smaller than any budget; shares, rounded, may add up to more than 1.
LEAST_RHO, SLACK = 1e-20, 1 - Fraction(1, 1 << 40)


def require_budget(budget: Budget) -> Budget:
    """Check that each share of a budget gives noise within double precision."""
    require_instance("budget", budget, Budget)
    if not LEAST_RHO <= budget.rho <= MOST:
        raise ValueError(f"budget must be finite with rho in [1e-20, 1e12], got {budget.rho:g}")
    return budget


def private_count(count: int, *, budget: Budget, rng: np.random.Generator | None) -> Release[float]:
    """Private number of records, at least 1, under any neighbouring relation.

    Guarantee
    ---------
    The number is ρ-zCDP by the Gaussian mechanism: add-remove changes it by 1. It is equal for
    replace-one neighbours, and for zero-out neighbours if blanks are counted.
    """
    shares = SplitBudget(budget, rng)
    found = shares.number("number of records", 1.0, count * UNITS, 1.0, 1.0)
    return Release(max(1.0, float(found.value)), budget, shares.assumptions)


@dataclass
class SplitBudget(Uncopied):
    """Gaussian mechanisms that share one budget; the share spent on each purpose is recorded.

    The methods take a purpose, its share, and a sum over records in whole numbers. Most also take
    the `bound` on a record's norm, and the divisor `n` of the sum. In whole units the bound is 2²⁰
    for vectors and numbers, and 2⁴⁰ for matrices. Without a generator, noise is exact and comes
    from the operating system's secure bits (`privreg.noise.exact`).

    Guarantee
    ---------
    All returned values together cost the sum of the shares, if the given sums are bounded as
    stated. Arguments may depend on the data only through those sums and earlier returned values.
    """

    budget: Budget
    rng: np.random.Generator | None
    spent: dict[str, float] = field(init=False, default_factory=dict)
    # Squared sensitivity over the terms' bound: of a sum of vectors (4 or 1, by the relation), and
    # of a sum of semi-definite matrices or counts (2 or 1).
    moves: int = field(init=False)
    turns: int = field(init=False)
    rho: Fraction = field(init=False)

    def __post_init__(self) -> None:
        self.rho = Fraction(require_budget(self.budget).rho) * SLACK
        if self.rng is not None:
            require_rng("rng", self.rng)
        relation = self.budget.neighbours
        self.moves = round(float(sum_sensitivity(1.0, neighbours=relation)) ** 2)
        self.turns = round(float(gram_sensitivity(1.0, neighbours=relation)) ** 2)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about the machine and the noise."""
        return (TIMES, TRUSTED) if self.rng is None else (SECRET_STREAM,)

    def noise_std(self, what: str, share: float, square: int) -> int:
        """Spend a share ρ of the budget; return the least whole number s with `square` ≤ 2ρs²."""
        self._require_process()
        if not 0 < share <= 1:
            raise ValueError(f"share must be in (0, 1], got {share:g}")
        self.spent[what] = self.spent.get(what, 0.0) + share
        return integer_noise_std(square_sensitivity=square, rho=Fraction(share) * self.rho)

    def spending(self) -> tuple[tuple[str, Budget], ...]:
        rho, neighbours = self.budget.rho, self.budget.neighbours
        return tuple(
            (what, Budget(min(1.0, x) * rho, neighbours)) for what, x in self.spent.items()
        )

    def histogram(
        self, what: str, share: float, counts: Any, square: int | None = None
    ) -> NoisyValue:
        """Noisy counts; `square` is the squared sensitivity, by default that of one-hot counts."""
        square = (self.turns if square is None else square) * UNITS**2
        return self.gaussian_mechanism(what, share, np.asarray(counts) * UNITS, square, 1.0)

    def semidefinite(
        self, what: str, share: float, total: Any, bound: float, n: float
    ) -> NoisyValue:
        # Entries off the diagonal count twice in the Frobenius norm.
        std, size = self.noise_std(what, share, self.turns * UNITS**4), len(total)
        if self.rng is None:
            rest = isqrt((std * std + 1) // 2 - 1) + 1
            noise, above = np.diag(rounded_normals(size, std=std)), np.triu_indices(size, 1)
            noise[above] = noise.T[above] = rounded_normals(len(above[0]), std=rest)
        else:
            noise = np.rint(symmetric_noise(size, noise_std=float(std), rng=self.rng))
        unit = bound / UNITS**2 / n
        return NoisyValue(unit * (total + noise).astype(np.float64), unit * std)

    def vector(self, what: str, share: float, total: Any, bound: float, n: float) -> NoisyValue:
        return self.gaussian_mechanism(what, share, total, self.moves * UNITS**2, bound / n)

    def number(self, what: str, share: float, total: Any, bound: float, n: float) -> NoisyValue:
        return self.gaussian_mechanism(what, share, np.asarray(total), UNITS**2, bound / n)

    def matrix(self, what: str, share: float, total: Any, bound: float, n: float) -> NoisyValue:
        """Noisy sum of asymmetric matrices; its sensitivity allows for rows rounded by a unit."""
        reach = UNITS**2 + (isqrt(len(total)) + 1) * UNITS
        return self.gaussian_mechanism(what, share, total, self.moves * reach**2, bound / UNITS / n)

    def gaussian_mechanism(
        self, what: str, share: float, total: Any, square: int, size: float
    ) -> NoisyValue:
        """Noisy sum with squared sensitivity `square` in whole units; `size` is 2²⁰ whole units."""
        std, unit = self.noise_std(what, share, square), size / UNITS
        if self.rng is None:
            noise = rounded_normals(total.shape, std=std)
        else:
            noise = np.rint(std * self.rng.standard_normal(total.shape))
        return NoisyValue(unit * np.asarray(total + noise, dtype=np.float64), unit * std)


# Least curvature that steps assume, over the mean, and the noise deviations that intervals add to a
# thinner direction's. Chosen on tables with thin directions, among .08 to .3 and 0 to 1.
THIN, SEEN = 0.2, 0.5


class Whitening(NamedTuple):
    """Inverse square root of a shrunk second moment, and the weight of the noisy one in it."""

    root: FloatArray
    weight: float


def whiten(gram: NoisyValue) -> Whitening:
    """Shrink a noisy second moment, raise small eigenvalues, and return its inverse square root."""
    p = len(gram.value)
    shrunk = shrink_to_identity(gram.value, noise_std=gram.noise_std)
    centre = max(float(np.trace(gram.value)) / p, gram.noise_std / np.sqrt(p))
    # Shrinkage leaves a share of the noise; below its edge an eigenvalue is noise.
    floor = max(shrunk.weight * noise_edge(p, noise_std=gram.noise_std), 1e-9 * centre)
    floor = min(floor, centre) if shrunk.weight else centre
    return Whitening(inverse_root(shrunk.matrix, floor=floor), shrunk.weight)


def newton_matrix(curvature: NoisyValue, slope: float) -> FloatArray:
    """Shrink a noisy curvature by its known noise, raise small eigenvalues, and invert it.

    `slope` in (0, 1] is the curvature's mean eigenvalue under Gaussian residuals.
    """
    matrix = (curvature.value + curvature.value.T) / 2
    mean = float(np.clip(np.trace(matrix) / len(matrix), 0.25 * slope, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    root = inverse_root(shrunk.matrix, floor=0.3 * mean)
    return root @ root


def shrunk_curvature(curvature: NoisyValue, *, thin: bool = False) -> FloatArray:
    """Noisy curvature of mean eigenvalue near 1, shrunk by its noise, small eigenvalues raised.

    Eigenvalues are at least the mean times `noise_edge`, limited to [1/5, 1]: noise must not make
    steps long. With `thin`, visibly smaller eigenvalues stay small, and intervals get longer.
    """
    matrix = curvature.value
    mean = float(np.clip(np.trace(matrix) / len(matrix), 0.5, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    values, vectors = np.linalg.eigh(shrunk.matrix)
    edge = noise_edge(len(values), noise_std=curvature.noise_std)
    least = np.full(len(values), float(np.clip(edge, THIN, 1.0)) * mean)
    if thin:
        # The target is a multiple of the identity: the noisy matrix has the same eigenvectors.
        seen = np.einsum("ij,ik,kj->j", vectors, matrix, vectors)
        margin = max(SEEN * curvature.noise_std, 1e-9 * mean)
        least = np.minimum(least, np.maximum(seen, 0.0) + margin)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def raised(curvature: FloatArray, longer: NoisyValue, *, caution: float = 0.0) -> FloatArray:
    r"""Curvature A, raised where the curvature A₂ of longer rows is visibly larger.

    .. math::
        v^\top A_2 v - 1.5 s_2 > v^\top A v \quad\text{or}\quad \lambda > 1.05 + s_2\sqrt{2p}

    for eigenvectors v of A, or eigenvectors of A₂ with eigenvalue λ. Along these, A is raised to
    the value of A₂ minus `caution` times s₂, the noise deviation of A₂.
    """
    std = longer.noise_std
    edge = 1.05 + noise_edge(len(curvature), noise_std=std)
    longer_along = [(float(v @ longer.value @ v), v) for v in np.linalg.eigh(curvature)[1].T]
    seen = [(x, v) for x, v in longer_along if x - 1.5 * std > float(v @ curvature @ v)]
    values, vectors = np.linalg.eigh(longer.value)
    seen += [(float(x), v) for x, v in zip(values, vectors.T, strict=True) if x > edge]
    lifted = np.array(curvature)
    for value, direction in seen:
        missing = value - caution * std - float(direction @ lifted @ direction)
        lifted = lifted + max(missing, 0.0) * np.outer(direction, direction)
    return lifted


# Conventions: factors √2 from 4 to 3e-5 label bounds; the share of rows the first cap shortens.
SCALE_BINS, QUANTILE_ABOVE = 34, 0.1
# Noise of a count per record from which a wrong scale often scores best (`scale_is_hidden`).
HIDDEN = 0.08
# Squared length over p up to which whitened rows are left alone where the budget allows it, and the
# edge of the noise of their second moment that is allowed: conventions.
LONGEST, EDGE = 20.0, 0.2


def scale_edges(label_bound: float) -> FloatArray:
    """Grid of residual scales: from 4 label bounds down, 34 times by a factor √2."""
    return label_bound * 4.0 * 2.0 ** (np.arange(-SCALE_BINS, 1) / 2)


def length_edges(feature_norm: float) -> FloatArray:
    """Grid of row lengths by factors 2^(1/4), from 1/256 of the declared bound to twice it."""
    return feature_norm * 2.0 ** (np.arange(-32, 5) / 4)


def white_cap(dimension: int, *, sample_size: float, rho: float, longest: float = 0.0) -> float:
    """Length to which whitened rows are shortened for a second moment at budget rho.

    The length depends on public numbers alone. It is as large as noise allows (`noise_edge` at most
    `EDGE`), so that few rows are shortened. It is at least a little over the typical length √p. It
    grows with the budget up to the larger of √(20p) and `longest`, a row's largest length.
    """
    affordable = EDGE / sqrt(2 * dimension) * sample_size * sqrt(rho)
    most = max(LONGEST * dimension, longest**2)
    return sqrt(min(max(affordable, 1.2 * dimension + 3), most))


def residual_scale(counts: FloatArray, edges: FloatArray, *, sample_size: float) -> float:
    r"""Scale of the normal law with bin probabilities nearest to a noisy histogram.

    .. math::
        \hat s = \arg\min_s \sum_k \Big(\frac{h_k}n - p_k(s)\Big)^2, \qquad
        p_k(s) = \Pr(|\xi| s \in \text{bin } k),\ \xi \sim N(0, 1)

    Bins that no candidate reaches add the same amount to all candidates' sums, so they cost no
    accuracy; outliers lie in such bins. `edges` are the upper ends of all bins but the last. The
    scale is between the second edge and the last.
    """
    candidates, mass = _normal_masses(tuple((edges / edges[-1]).tolist()))
    score = mass @ (counts / sample_size) - 0.5 * np.sum(mass**2, axis=1)
    return float(edges[-1] * candidates[np.argmax(score)])


def scale_is_hidden(*, noise_std: float, sample_size: float) -> bool:
    """True if the noise of a histogram hides the scale; depends on public numbers alone.

    Let p and p' be the bins' probabilities at the right scale and at a distant one. Half the sum of
    squares of `residual_scale` is lower at the right scale by ‖p - p'‖²/2, about 0.18. Noise s in
    each count of n records moves this gap by ‖p - p'‖ s/n, about 0.6 s/n. The largest of about 17
    such moves is near 2 deviations. A gap of 3.5 deviations needs s/n of at most 0.085.
    """
    return noise_std > HIDDEN * sample_size


def length_cap(
    counts: FloatArray, edges: FloatArray, *, noise_std: float, sample_size: float
) -> float:
    """Length that about a tenth of the records exceed, from a noisy histogram.

    If the noise is larger than a tenth of the records, the number above the cap must exceed the
    noise instead. If no cap satisfies this, the cap is the last edge.
    """
    above = np.cumsum(counts[::-1])[::-1]
    # above[k] counts lengths over edges[k - 1]; the last bin is empty of single rows.
    noise = 2 * noise_std * np.sqrt(np.arange(len(counts), 0, -1))
    found = np.flatnonzero(above > np.maximum(QUANTILE_ABOVE * sample_size, noise))
    # Nothing seen: too long a cap costs noise, too short a one would stretch the rows for good.
    return float(edges[min(int(found[-1]), len(edges) - 1)] if found.size else edges[-1])


@lru_cache(maxsize=4)
def _normal_masses(edges: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Candidate scales, and the probabilities of the bins under each."""
    grid = np.array(edges)
    candidates = np.geomspace(grid[1], grid[-1], 8 * len(grid))
    below = 2 * ndtr(grid / candidates[:, None]) - 1
    return frozen(candidates), frozen(np.diff(below, axis=1, prepend=0.0, append=1.0))


# Entries of parameters and whitenings up to which their products with all rows stay numbers.
LARGEST = 1e90
# Growth of the private residual scale beyond which a warm-up step was noise: 2.8 deviations of a
# scale, 9 % where counts are at their noisiest within the regime of `PrivateHuber`.
EXCURSION = 1.25
# Scale over the label bound where noise hides it, as if bounds held four deviations of the label,
# and deviations of its noise by which a mean weight is told from 0 and from 1: conventions.
UNSEEN_SCALE, DEVIATIONS = 0.25, 5.0
ASSUMPTIONS = (
    "feature_norm, label_bound and the settings are chosen without looking at the data",
    TIMES,
    TRUSTED,
)


class StartSettings:
    """Steps and budget shares of a descent. The final steps get the rest of the budget."""

    clip_width: float
    warm_up_steps: int
    gram_rounds: int
    norm_share: float
    gram_share: float
    scale_share: float
    warm_up_share: float
    label_share: float = 0.0
    end: ClassVar[str]
    may_be_zero: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for name in vars(self):
            check: Callable[..., Any] = require_flag if name == "common_width" else require_count
            if name.endswith("_share"):
                end: Any = {"least" if name in self.may_be_zero else "above": 0}
                check = partial(require_number, below=1, **end)
            elif name == "clip_width":
                check = partial(require_number, least=1e-3, most=1e3)
            require_fields(self, **{name: check})
        if not self.final_share > 0:
            raise ValueError(
                f"norm_share and the other shares must leave a part of the budget for the "
                f"{self.end} steps, got shares that add up to {1 - self.final_share:g}"
            )

    @property
    def gram_shares(self) -> list[float]:
        """Parts of `gram_share` by round, as 1 : 2 : 3 : ...; the first rounds only prepare."""
        rounds = self.gram_rounds
        shares = self.gram_share * np.arange(1, rounds + 1) * 2 / (rounds * (rounds + 1))
        return [float(each) for each in shares]

    @property
    def final_share(self) -> float:
        return 1.0 - plain_sum(x for name, x in vars(self).items() if name.endswith("_share"))


@dataclass(frozen=True, kw_only=True)
class DescentFit:
    """Statistics that every descent releases. The second moment of z = Wᵀx is near the identity."""

    iterates: FloatArray  # (T, p), θ_1..θ_T in the units of the rows
    whitening: FloatArray  # W, (p, p)
    # S_t in coordinates φ = W⁻¹θ, and noise deviations λ_t of the mean clipped gradient; for least
    # squares, those of the wide steps alone.
    step_matrices: FloatArray
    gradient_noise_stds: FloatArray
    clip_norm: float  # of the last steps
    residual_scale: float  # after the warm-up
    gram: NoisyValue  # second moment (p, p) of the rows in the coordinates of the last round
    curvature: NoisyValue | None  # A or A₁, mean derivative of clipped gradients, (p, p)
    second_moment: NoisyValue | None  # B, mean of ggᵀ for clipped gradients g, (p, p)
    mean_curvature: NoisyValue  # tr(A)/p and tr(B)/p at the last iterate
    mean_square: NoisyValue
    sample_size: float  # divisor of the sums
    settings: Any
    spending: tuple[tuple[str, Budget], ...]  # by purpose; the sum is the whole
    centre: NoisyValue | None = None  # mean row (p,), if there is an intercept

    @property
    def parameters(self) -> FloatArray:
        """θ_T, shape (p,)."""
        return self.iterates[-1]


class Descent:
    """One fit: its state, and the order and budget shares of its queries.

    With an intercept, the start releases the sum of the rows. With `label_share`, each row first
    gets its label appended, scaled to the bound 2 `feature_norm`; the row's norm is then at most √5
    `feature_norm`. The fit also releases a histogram of row lengths, and histograms of residuals at
    the start and after each warm-up step. It releases Gram matrices of rows shortened to length R
    and sums of gradients clipped to γ.
    """

    settings: StartSettings

    def __init__(
        self,
        shares: SplitBudget,
        settings: StartSettings,
        records: Records,
        sample_size: float | None,
        intercept: bool,
    ) -> None:
        self.shares, self.settings, self.records = shares, settings, records
        self.intercept, self.p = intercept, records.samples.dimension
        self.n = shared_sample_size(
            sample_size, records=records.count, neighbours=shares.budget.neighbours
        )
        self.whitening, self.start = np.eye(self.p), np.zeros(self.p)
        self.theta = self.start
        self.iterates: list[FloatArray] = []
        self.matrices: list[FloatArray] = []
        self.noise_stds: list[float] = []

    def whiten(self) -> Whitening:
        """Compute W from private second moments, each in the coordinates of the round before."""
        records, settings = self.records, self.settings
        share = settings.norm_share + settings.label_share
        norm_share = settings.norm_share / 2 if self.intercept else share
        self.centre = self._centre(share - norm_share) if self.intercept else None
        lengths = length_edges(records.feature_norm)
        total = length_histogram(records, self.whitening, lengths)
        counts = self.shares.histogram("centre and length of rows", norm_share, total)
        cap = length_cap(counts.value, lengths, noise_std=counts.noise_std, sample_size=self.n)
        for number, share in enumerate(settings.gram_shares):
            cap = self.white_cap(share) if number else cap
            total = gram_sum(records, self.whitening, cap=cap)
            self.gram = self.shares.semidefinite("Gram matrix", share, total, cap**2, self.n)
            last = whiten(self.gram)
            self.whitening = moderate(self.whitening @ last.root)
        return last

    def _centre(self, share: float) -> NoisyValue:
        """Private mean m: W maps (1, x) to (1, x - m), and the start is the mean of the labels."""
        longest, most, unit = self.records.feature_norm, self.records.label_bound, 0.0
        if self.settings.label_share:
            longest, unit = sqrt(5) * longest, most / (2 * longest)
        total = row_sum(self.records, longest=longest, label_unit=unit)
        mean = self.shares.vector("centre and length of rows", share, total, longest, self.n)
        if self.records.weighted:
            mean = _weighted_mean(mean)
        if unit:
            self.start[0] = np.clip(unit * mean.value[-1], -most, most)
        self.whitening[0, 1:] = -mean.value[1 : self.p]
        return NoisyValue(mean.value[: self.p], mean.noise_std)

    def warm_up(self, slope: float) -> tuple[float, float]:
        """Make full-length steps with a narrow clip; steps that were mostly noise are undone.

        `slope` is the share of unclipped gradients under Gaussian residuals. Returns the residual
        scales before the first step and after the last.
        """
        settings, most = self.settings, self.records.label_bound
        share = settings.warm_up_share / settings.warm_up_steps
        # Residuals at the start are labels, less their centre.
        scale = initial = min(self._scale() or UNSEEN_SCALE * most, most)
        for _ in range(settings.warm_up_steps):
            clip_norm = self.clip_norm(scale)
            total = self.at().gradient_sum(clip_norm=clip_norm)
            gradient = self.shares.vector("warm-up steps", share, total, clip_norm, self.n)
            self.step(1.0 / slope * np.eye(self.p), gradient)
            found = self._scale()
            if found is None or found > EXCURSION * scale:
                # One of size 0, as far as the law of the iterates goes.
                self.theta = self.iterates[-2] if len(self.iterates) > 1 else self.start
                self.iterates[-1], self.matrices[-1] = self.theta, 0 * self.matrices[-1]
            else:
                scale = found
        return initial, scale

    def released(self, first: int = 0) -> dict[str, Any]:
        """Values of a `DescentFit`; matrices and noise are those of the steps from `first` on."""
        return {
            "iterates": np.array(self.iterates),
            "whitening": self.whitening,
            "step_matrices": np.array(self.matrices[first:]),
            "gradient_noise_stds": np.array(self.noise_stds[first:]),
            "gram": self.gram,
            "sample_size": self.n,
            "settings": self.settings,
            "spending": self.shares.spending(),
            "centre": self.centre,
        }

    def at(self, cap: float | None = None) -> Point:
        """The last iterate as the point at which gradients and curvatures are summed."""
        return Point(self.records, self.theta, self.whitening, cap)

    def step(self, matrix: FloatArray, gradient: NoisyValue) -> None:
        """Make the step θ ← θ + W S g for S = `matrix` and the noisy gradient g."""
        self.theta = moderate(self.theta + self.whitening @ (matrix @ gradient.value))
        self.iterates.append(self.theta)
        self.matrices.append(matrix)
        self.noise_stds.append(gradient.noise_std)

    def white_cap(self, share: float) -> float:
        """Length from the function `white_cap` at a share of the budget."""
        return white_cap(self.p, sample_size=self.n, rho=share * self.shares.budget.rho)

    def clip_norm(self, scale: float) -> float:
        """Clip γ of gradients at a residual scale."""
        return float(self.settings.clip_width * scale * np.sqrt(self.p))

    def _scale(self) -> float | None:
        """Private scale of the residuals; None if noise hides it."""
        edges = scale_edges(self.records.label_bound)
        counts = self.at().gradient_length_histogram(edges)
        share = self.settings.scale_share / (self.settings.warm_up_steps + 1)
        noisy = self.shares.histogram("residual scales", share, counts)
        if scale_is_hidden(noise_std=noisy.noise_std, sample_size=self.n):
            return None
        return residual_scale(noisy.value, edges, sample_size=self.n)


def _weighted_mean(mean: NoisyValue) -> NoisyValue:
    """Mean weight, then the weighted mean row, from a noisy mean of w(1, x).

    If noise hides whether the mean weight is less than 1, it is taken as 1. Otherwise, if noise
    hides whether the mean weight exceeds 0, the mean row is 0, the middle of the bounds. The noise
    of the quotient is bounded from above, for a mean in [-1, 1].
    """
    weight, rest, std = float(mean.value[0]), mean.value[1:], mean.noise_std
    if weight > 1 - DEVIATIONS * std:
        return mean
    if weight < DEVIATIONS * std:
        return NoisyValue(np.append(weight, 0 * rest), std)
    return NoisyValue(np.append(weight, rest / weight), np.sqrt(2) * std / weight)


def moderate(released: FloatArray) -> FloatArray:
    """Check that released values are not so large that sums over rows overflow."""
    largest = float(np.max(np.abs(released)))
    if not largest <= LARGEST:
        raise ValueError(
            "budget must be larger at these bounds: iterates and residual scales must be below "
            f"1e+90, got {largest:g}"
        )
    return released
