"""Start of private descents: whitening, residual scales, and warm-up steps on a Huber loss."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms import record_sums
from privreg.algorithms.huber_scales import (
    length_cap,
    length_edges,
    residual_scale,
    scale_candidates,
    scale_edges,
    scale_is_hidden,
    white_cap,
)
from privreg.algorithms.records import Records
from privreg.algorithms.split_budget import NoisyValue, SplitBudget
from privreg.algorithms.whitening import Whitening, whiten
from privreg.privacy.assumptions import SECRET_STREAM
from privreg.validation import require_count, require_number

FloatArray = NDArray[np.float64]
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
