"""Start of private descents: whitening, residual scales, and warm-up steps on a Huber loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.algorithms import records as record_sums
from privreg.algorithms.records import Records
from privreg.checks import (
    Uncopied,
    frozen,
    require_array,
    require_count,
    require_instance,
    require_number,
    require_rng,
)
from privreg.privacy.budget import Budget, gaussian_noise_std, gram_sensitivity, sum_sensitivity
from privreg.privacy.release import SECRET_STREAM, Release
from privreg.theory.huber_descent import (
    inverse_root,
    noise_edge,
    shrink_to_identity,
    symmetric_noise,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class NoisyValue:
    """A private statistic and the standard deviation of the noise in it.

    A symmetric matrix has the noise of `symmetric_noise`, everything else independent noise.
    """

    value: FloatArray
    noise_std: float


def require_budget(budget: Budget) -> Budget:
    """A budget of which every share gives noise that double precision can hold."""
    found = require_instance("budget", budget, Budget)
    if not 1e-20 <= found.rho <= 1e20:
        raise ValueError(f"budget must be finite with rho in [1e-20, 1e20], got {found.rho:g}")
    return found


def private_count(count: int, *, budget: Budget, rng: np.random.Generator) -> Release[float]:
    """A number of records under any of the relations, at least 1 so that sums can be divided by it.

    Guarantee
    ---------
    ρ-zCDP: the Gaussian mechanism at sensitivity 1, the change under add-remove. Under replace-one
    the number is the same for both, and under zero-out as well unless blanks are left out of it.
    """
    exact = require_count("count", count, least=0)
    std = float(gaussian_noise_std(sensitivity=1.0, rho=require_budget(budget).rho))
    noise = std * float(require_rng("rng", rng).standard_normal())
    return Release(max(1.0, exact + noise), budget, (SECRET_STREAM,))


@dataclass
class SplitBudget(Uncopied):
    """Gaussian mechanisms that share one budget, and a list of what was spent on what.

    The methods take what the share is spent on, the share, a sum over records, the largest norm of
    a record's part of it, and the number that the sum is divided by.

    Guarantee
    ---------
    What the methods return is together as private as the sum of the shares, if what they are given
    is bounded as they say and depends on the data through it and earlier returns alone.
    """

    budget: Budget
    rng: np.random.Generator
    spent: dict[str, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        require_budget(self.budget)
        require_rng("rng", self.rng)

    def noise_std(self, what: str, share: float, sensitivity: float) -> float:
        part = require_number("share", share, least=1e-12, most=1)
        change = require_number("sensitivity", sensitivity, least=0, most=2e200)
        std = float(gaussian_noise_std(sensitivity=change, rho=part * self.budget.rho))
        self.spent[what] = self.spent.get(what, 0.0) + part
        return std

    def spending(self) -> tuple[tuple[str, Budget], ...]:
        return tuple((what, self.budget.share(min(1.0, x))) for what, x in self.spent.items())

    def histogram(self, what: str, share: float, counts: FloatArray) -> NoisyValue:
        counts = _sum("counts", counts, shape=(None,))
        change = float(gram_sensitivity(1.0, neighbours=self.budget.neighbours))
        std = self.noise_std(what, share, change)
        return NoisyValue(counts + std * self.rng.standard_normal(counts.shape), std)

    def semidefinite(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        total, bound, n = _sum("total", total, shape=(None, None)), _bound(bound), _divisor(n)
        if len(total) != total.shape[1]:
            raise ValueError(f"total must be a square matrix, got shape {total.shape}")
        change = float(gram_sensitivity(bound, neighbours=self.budget.neighbours))
        std = self.noise_std(what, share, change) / n
        noise = symmetric_noise(len(total), noise_std=std, rng=self.rng)
        return NoisyValue((total + total.T) / (2 * n) + noise, std)

    def vector(
        self, what: str, share: float, total: FloatArray, bound: float, n: float
    ) -> NoisyValue:
        total, bound, n = _sum("total", total, shape=(..., None)), _bound(bound), _divisor(n)
        change = float(sum_sensitivity(bound, neighbours=self.budget.neighbours))
        std = self.noise_std(what, share, change) / n
        return NoisyValue(total / n + std * self.rng.standard_normal(total.shape), std)

    def number(self, what: str, share: float, total: float, bound: float, n: float) -> NoisyValue:
        total, bound, n = float(_sum("total", total, shape=())), _bound(bound), _divisor(n)
        std = self.noise_std(what, share, bound) / n
        return NoisyValue(np.asarray(total / n + std * self.rng.standard_normal()), std)


def _sum(name: str, value: Any, *, shape: tuple[Any, ...]) -> FloatArray:
    return require_array(name, value, shape=shape, least=-1e250, most=1e250)


def _bound(value: float) -> float:
    return require_number("bound", value, least=0, most=1e200)


def _divisor(value: float) -> float:
    return require_number("n", value, least=1e-9, most=1e100)


# Least curvature along a direction, over the mean, that steps take it to have; and deviations of
# its noise that an interval adds to what is seen of a thinner one, and takes it to be at least.
THIN, SEEN = 0.2, 0.5


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
    """Inverse of a noisy curvature, shrunk by its known noise and kept within reach of its mean.

    `slope` is that mean under Gaussian residuals, in (0, 1].
    """
    matrix = (curvature.value + curvature.value.T) / 2
    mean = float(np.clip(np.trace(matrix) / len(matrix), 0.25 * slope, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    root = inverse_root(shrunk.matrix, floor=0.3 * mean)
    return root @ root


def shrunk_curvature(curvature: NoisyValue, *, thin: bool = False) -> FloatArray:
    """A noisy curvature of mean near 1, shrunk by its known noise and kept within reach of that.

    With `thin`, directions that are seen to be thinner than a fifth of the mean stay so: steps must
    not be longer than that, intervals along such directions are.
    """
    matrix = curvature.value
    mean = float(np.clip(np.trace(matrix) / len(matrix), 0.25, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    values, vectors = np.linalg.eigh(shrunk.matrix)
    least = np.full(len(values), THIN * mean)
    if thin:
        # The target is a multiple of the identity: the noisy matrix has the same eigenvectors.
        seen = np.einsum("ij,ik,kj->j", vectors, matrix, vectors)
        margin = max(SEEN * curvature.noise_std, 1e-9 * mean)
        least = np.minimum(least, np.maximum(seen, 0.0) + margin)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def raised(curvature: FloatArray, longer: NoisyValue, *, caution: float = 0.0) -> FloatArray:
    r"""A curvature A raised to that of longer rows, A₂, where that is seen to be more.

    .. math::
        v^\top A_2 v - 1.5 s_2 > v^\top A v \quad\text{or}\quad \lambda > 1.05 + s_2\sqrt{2p}

    for eigenvectors v of A, and for those of A₂ with eigenvalue λ. A is raised up to `caution`
    deviations s₂ below what is seen.
    """
    std = longer.noise_std
    edge = 1.05 + noise_edge(len(curvature), noise_std=std)
    first, second = np.linalg.eigh(curvature)[1], np.linalg.eigh(longer.value)
    lifted = np.array(curvature)
    for direction in first.T:
        seen = float(direction @ longer.value @ direction)
        if seen - 1.5 * std > float(direction @ curvature @ direction):
            lifted = _lifted_along(lifted, direction, seen - caution * std)
    for value, direction in zip(second.eigenvalues, second.eigenvectors.T, strict=True):
        if value > edge:
            lifted = _lifted_along(lifted, direction, float(value) - caution * std)
    return lifted


def _lifted_along(matrix: FloatArray, direction: FloatArray, least: float) -> FloatArray:
    missing = least - float(direction @ matrix @ direction)
    lifted: FloatArray = matrix + max(missing, 0.0) * np.outer(direction, direction)
    return lifted


SCALE_BINS = 34
QUANTILE_ABOVE = 0.1
# Noise of a count over the number of records from which a wrong scale often scores best.
HIDDEN = 0.08
# Squared length over p up to which whitened rows are left alone where the budget allows it.
LONGEST = 20.0


def scale_edges(label_bound: float) -> FloatArray:
    """Grid of residual scales, 4 label bounds and 34 factors √2 down from there."""
    return label_bound * 4.0 * 2.0 ** (np.arange(-SCALE_BINS, 1) / 2)


def length_edges(feature_norm: float) -> FloatArray:
    """Grid of row lengths, quarter powers of 2 from below 1/256 to 2 times the declared bound."""
    return feature_norm * 2.0 ** (np.arange(-32, 5) / 4)


def white_cap(dimension: int, *, sample_size: float, rho: float, longest: float = 0.0) -> float:
    """Length at which a whitened row is shortened for a second moment that costs rho.

    It is chosen from public numbers alone: as long as the noise allows, so that few rows are
    shortened, and a little over the typical length otherwise. It grows with the budget up to
    `longest`, the length that bounds allow a row, and up to √(20p) where that is more.
    """
    affordable = 0.2 / sqrt(2 * dimension) * sample_size * sqrt(rho)
    most = max(LONGEST * dimension, longest**2)
    return sqrt(min(max(affordable, 1.2 * dimension + 3), most))


def scale_candidates(edges: FloatArray) -> FloatArray:
    """All that `residual_scale` can find on a grid, increasing; edges as there."""
    return np.asarray(edges[-1] * _normal_masses(tuple((edges / edges[-1]).tolist()))[0])


def residual_scale(counts: FloatArray, edges: FloatArray, *, sample_size: float) -> float:
    r"""Scale of the normal law whose bin probabilities are nearest to a noisy histogram.

    .. math::
        \hat s = \arg\min_s \sum_k \Big(\frac{h_k}n - p_k(s)\Big)^2, \qquad
        p_k(s) = \Pr(|\xi| s \in \text{bin } k),\ \xi \sim N(0, 1)

    The noise of bins that a scale does not reach enters every candidate alike, so that the whole
    grid costs no accuracy; outliers lie in such bins. Edges are the upper ends of all bins but the
    last; the scale is between the second and the last of them.
    """
    candidates, mass = _normal_masses(tuple((edges / edges[-1]).tolist()))
    score = mass @ (counts / sample_size) - 0.5 * np.sum(mass**2, axis=1)
    return float(edges[-1] * candidates[np.argmax(score)])


def scale_is_hidden(*, noise_std: float, sample_size: float) -> bool:
    """Whether the noise of a histogram hides the scale, by public numbers alone.

    The right scale leads a distant one by ‖p - p'‖²/2, about 0.18, through noise of
    ‖p - p'‖ s/n, about 0.6 s/n; among some 17 distant ones the largest draw is near 2 of these,
    and 3.5 leave a margin: s/n of 0.085.
    """
    return noise_std > HIDDEN * sample_size


def length_cap(
    counts: FloatArray, edges: FloatArray, *, noise_std: float, sample_size: float
) -> float:
    """Length that about a tenth of the records exceed, from a noisy histogram.

    Where the noise is more than that tenth, so many may exceed it as the noise cannot hide; the
    largest length where it hides all of them.
    """
    above = np.cumsum(counts[::-1])[::-1]
    # above[k] counts lengths over edges[k - 1]; the last bin is empty by the records' bound.
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
# Growth of the private residual scale beyond which a warm-up step was noise.
EXCURSION = 1.25
# Scale over the label bound where noise hides it: bounds hold four deviations of the label.
UNSEEN_SCALE = 0.25
# Deviations of its noise by which a mean weight is told from 0 and from 1.
DEVIATIONS = 5.0
ASSUMPTIONS = (
    "feature_norm, label_bound and the settings are chosen without looking at the data",
    "noise is drawn in floating point, so that the guarantee is one about real numbers",
    SECRET_STREAM,
)


class StartSettings:
    """Steps and shares of a descent: those of its start, and what is left for its end."""

    clip_width: float
    warm_up_steps: int
    gram_rounds: int
    norm_share: float
    gram_share: float
    scale_share: float
    warm_up_share: float
    end: ClassVar[str]
    may_be_zero: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        require_number("clip_width", self.clip_width, least=1e-3, most=1e3)
        for name, value in vars(self).items():
            if name.endswith(("_steps", "_rounds")):
                require_count(name, value)
            elif name in self.may_be_zero:
                require_number(name, value, least=0, below=1)
            elif name.endswith("_share"):
                require_number(name, value, above=0, below=1)
        if not self.final_share > 0:
            raise ValueError(
                f"norm_share and the other shares must leave something for the {self.end} steps, "
                f"got {1 - self.final_share:g} of the budget before them"
            )

    @property
    def gram_shares(self) -> list[float]:
        """`gram_share` by rounds, as 1, 2, 3, ...: later ones decide, the first only prepare."""
        rounds = self.gram_rounds
        shares = self.gram_share * np.arange(1, rounds + 1) * 2 / (rounds * (rounds + 1))
        return [float(each) for each in shares]

    @property
    def final_share(self) -> float:
        spent = 0.0
        # `sum` rounds otherwise from Python 3.12 on.
        for name, value in vars(self).items():
            spent += value if name.endswith("_share") else 0.0
        return 1.0 - spent


class Coordinates(NamedTuple):
    """W, the last round's second moment and root, and the private mean row of an intercept."""

    whitening: FloatArray
    gram: NoisyValue
    last: Whitening
    centre: NoisyValue | None


class Scales(NamedTuple):
    """Residual scales before the first step and after the warm-up."""

    start: float
    end: float


@dataclass
class Path:
    """Iterates θ_t, step matrices and noise so far."""

    theta: FloatArray
    iterates: list[FloatArray] = field(default_factory=list)
    matrices: list[FloatArray] = field(default_factory=list)
    noise_stds: list[float] = field(default_factory=list)

    def step(self, whitening: FloatArray, matrix: FloatArray, gradient: NoisyValue) -> None:
        """One step θ ← θ + W S (gradient)."""
        self.theta = moderate(self.theta + whitening @ (matrix @ gradient.value))
        self.iterates.append(self.theta)
        self.matrices.append(matrix)
        self.noise_stds.append(gradient.noise_std)

    def take_back(self) -> None:
        """Undo the last step: one of size 0, as far as the law of the iterates goes."""
        start = np.zeros_like(self.theta)
        self.iterates[-1] = self.iterates[-2] if len(self.iterates) > 1 else start
        self.matrices[-1] = 0 * self.matrices[-1]
        self.theta = self.iterates[-1]


class SumsAt(NamedTuple):
    """Gradient sums (clips, p) at an iterate, of every clip that a residual scale may ask for."""

    theta: FloatArray
    clip_norms: FloatArray
    gradients: FloatArray


@dataclass
class Start:
    """The start of a fit: the order in which the data are asked, and with what share."""

    records: Records
    shares: SplitBudget
    settings: StartSettings
    sample_size: float
    intercept: bool
    _at: SumsAt | None = None

    def whiten(self) -> Coordinates:
        """W from a few rounds of a private second moment, each in the last one's coordinates."""
        settings, shares, records = self.settings, self.shares, self.records
        whitening, centre = self._centring()
        lengths = length_edges(records.feature_norm)
        counts = shares.histogram(
            "centre and length of rows",
            settings.norm_share / (2 if self.intercept else 1),
            record_sums.length_histogram(records, whitening, lengths),
        )
        cap = length_cap(
            counts.value, lengths, noise_std=counts.noise_std, sample_size=self.sample_size
        )
        for number, share in enumerate(settings.gram_shares):
            cap = self.white_cap(share) if number else cap
            total = record_sums.gram_sum(records, whitening, cap=cap)
            gram = shares.semidefinite("Gram matrix", share, total, cap**2, self.sample_size)
            last = whiten(gram)
            whitening = moderate(whitening @ last.root)
        return Coordinates(whitening, gram, last, centre)

    def warm_up(self, path: Path, whitening: FloatArray, slope: float) -> Scales:
        """Steps at full length with a narrow clip; those that were noise are taken back.

        `slope` is the share of whole gradients under Gaussian residuals.
        """
        settings, p = self.settings, len(path.theta)
        # Residuals at 0 are labels.
        most = self.records.label_bound
        scale = start = min(self._scale(path.theta, whitening) or UNSEEN_SCALE * most, most)
        for _ in range(settings.warm_up_steps):
            share = settings.warm_up_share / settings.warm_up_steps
            self.huber_step(path, whitening, 1.0 / slope * np.eye(p), scale, "warm-up steps", share)
            found = self._scale(path.theta, whitening)
            if found is None or found > EXCURSION * scale:
                path.take_back()
            else:
                scale = found
        return Scales(start, scale)

    def huber_step(
        self,
        path: Path,
        whitening: FloatArray,
        matrix: FloatArray,
        scale: float,
        what: str,
        share: float,
    ) -> None:
        """One step on the Huber loss whose clip is `clip_width` scales."""
        clip_norm = self.clip_norm(scale)
        total = self._gradient_sum(path.theta, whitening, clip_norm)
        path.step(
            whitening, matrix, self.shares.vector(what, share, total, clip_norm, self.sample_size)
        )

    def white_cap(self, share: float) -> float:
        """Length at which whitened rows are shortened for a second moment of this share."""
        return white_cap(
            self.records.samples.dimension,
            sample_size=self.sample_size,
            rho=share * self.shares.budget.rho,
        )

    def clip_norm(self, scale: float) -> float:
        """γ at a residual scale."""
        return float(self.settings.clip_width * scale * np.sqrt(self.records.samples.dimension))

    def _centring(self) -> tuple[FloatArray, NoisyValue | None]:
        """Map of rows (1, x) to (1, x - m) with a private mean m; the identity without intercept.

        Rows that are short after it need less noise: those of many rare categories, or of a column
        that lies far from the middle of its bounds.
        """
        centring = np.eye(self.records.samples.dimension)
        if not self.intercept:
            return centring, None
        mean = self.shares.vector(
            "centre and length of rows",
            self.settings.norm_share / 2,
            record_sums.row_sum(self.records),
            self.records.feature_norm,
            self.sample_size,
        )
        if self.records.weighted:
            mean = _weighted_mean(mean)
        centring[0, 1:] = -mean.value[1:]
        return centring, mean

    def _gradient_sum(
        self, theta: FloatArray, whitening: FloatArray, clip_norm: float
    ) -> FloatArray:
        at = self._at
        if at is not None and at.theta is theta:
            (place,) = np.nonzero(at.clip_norms == clip_norm)
            if place.size:
                return at.gradients[place[0]]
        return record_sums.gradient_sum(self.records, theta, whitening, clip_norm=clip_norm)

    def _scale(self, theta: FloatArray, whitening: FloatArray) -> float | None:
        edges = scale_edges(self.records.label_bound)
        share = self.settings.scale_share / (self.settings.warm_up_steps + 1)
        noisy = self.shares.histogram(
            "residual scales", share, self._residuals(theta, whitening, edges)
        )
        if scale_is_hidden(noise_std=noisy.noise_std, sample_size=self.sample_size):
            return None
        return residual_scale(noisy.value, edges, sample_size=self.sample_size)

    def _residuals(self, theta: FloatArray, whitening: FloatArray, edges: FloatArray) -> FloatArray:
        if self.records.held:
            return record_sums.residual_histogram(self.records, theta, whitening, edges)
        # To read the rows takes longer than to sum them for every clip that the next step may have.
        clips = np.array([self.clip_norm(scale) for scale in scale_candidates(edges)])
        found = record_sums.residual_sums(self.records, theta, whitening, edges, clip_norms=clips)
        self._at = SumsAt(theta, clips, found.gradients)
        return found.counts


def _weighted_mean(mean: NoisyValue) -> NoisyValue:
    """Mean row by weight after the mean weight, from a mean of w(1, x).

    Where noise does not tell the mean weight from 1 it is taken for 1, and where it does not tell
    it from 0 either, the former goes first; a weight of about 0 leaves the middle of the bounds.
    The noise of the quotient is bounded from above, for a mean in [-1, 1].
    """
    weight, hidden = float(mean.value[0]), DEVIATIONS * mean.noise_std
    if weight > 1 - hidden:
        return mean
    if weight < hidden:
        return NoisyValue(np.append(weight, 0 * mean.value[1:]), mean.noise_std)
    return NoisyValue(
        np.append(weight, mean.value[1:] / weight), np.sqrt(2) * mean.noise_std / weight
    )


def moderate(released: FloatArray) -> FloatArray:
    """Private values with which sums over rows can go on; refusing them tells nothing more."""
    largest = float(np.max(np.abs(released)))
    if not largest <= LARGEST:
        raise ValueError(
            "budget must leave iterates and their scales below 1e+90 between these bounds, "
            f"got {largest:g}"
        )
    return released
