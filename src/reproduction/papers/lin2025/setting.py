"""The simulated regression of lin2025, which all its experiments share, in four readings."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from privreg.schedules import ConstantRate
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
from privreg.theory.noisy_sgd.renyi_loss import Record
from privreg.theory.noisy_sgd.worst_pairs import candidate_records
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis
from reproduction.engine.summaries import jackknife, standard_deviation

if TYPE_CHECKING:
    from privreg.algorithms.noisy_sgd import LinearRecords
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

Reading = Literal["centred", "literal", "symmetric", "wide"]
# Mean and deviation of a coordinate of features and ground truth at d = 1, and their power of 1/d.
READINGS: dict[Reading, tuple[float, float, float]] = {
    "centred": (0.0, 1.0, 0.5),
    "literal": (0.5, 1.0 / sqrt(12.0), 0.5),
    "symmetric": (0.0, 1.0 / sqrt(3.0), 0.5),
    "wide": (0.0, 1.0, 0.25),
}

NO_GUARANTEE = "none: an approximation by a conjecture, over observed pairs"
# Beyond an order of its own each pair of laws has an infinite divergence.
BOTH_INFINITE = "both losses are infinite at this order"
NOISE = Axis("standard deviation sigma of gradient noise", "gradient_noise_stds")


class Design(Strict):
    """The set-up that all experiments of the paper share."""

    reading: Reading = Field(
        "centred",
        description="Coordinates uniform with mean 0 and standard deviation d^(-1/2) (centred), on "
        "[0, d^(-1/2)] as printed (literal), on +-d^(-1/2) (symmetric), or with mean 0 and "
        "variance d^(-1/2) (wide).",
    )
    dimension: q.Plural[q.Dimension] = Field(description="Dimension d.")
    sample_size: q.Plural[q.Count] = Field(description="Records n, one a step.")
    step_size: q.StepSize = Field(description="Discrete step eta; the scaled rate is d eta.")
    ridge: q.NonNegative = Field(description="Penalty delta.")
    scaled_label_noise_std: q.Deviation = Field(
        description="Standard deviation of the label noise in units of d^(-1/2)."
    )
    label_noise_clip: Annotated[q.Positive, Field(ge=1, le=10)] = Field(
        description="The label noise is clipped at this many standard deviations."
    )

    _steps_are_stable = q.at_most(
        "step_size",
        "2 / (ridge + mean squared norm of the features)",
        lambda self: 2 / (self.ridge + self.dimension * sum(part**2 for part in self.coordinate)),
    )

    @property
    def ordered_pairs(self) -> int:
        """Pairs of different records, in either order."""
        return self.sample_size * (self.sample_size - 1)

    @property
    def horizon(self) -> float:
        return self.sample_size / self.dimension

    @property
    def coordinate(self) -> tuple[float, float]:
        """Mean and standard deviation of a coordinate."""
        mean, std, power = READINGS[self.reading]
        return mean / self.dimension**power, std / self.dimension**power

    @property
    def label_noise_std(self) -> float:
        """Standard deviation of a label's noise after it is clipped."""
        from privreg.algorithms.noisy_sgd import clipped_normal_variance

        share = clipped_normal_variance(self.label_noise_clip)
        return self.scaled_label_noise_std * sqrt(share / self.dimension)

    def draw(self, rng: np.random.Generator) -> Instance:
        """Ground truth and start of one repetition."""
        from privreg.algorithms.noisy_sgd import LinearRecords

        mean, std = self.coordinate
        half_width = sqrt(3.0) * std
        records = LinearRecords.uniform(
            mean=mean,
            half_width=half_width,
            target=rng.uniform(mean - half_width, mean + half_width, self.dimension),
            label_noise_std=self.scaled_label_noise_std / sqrt(self.dimension),
            label_noise_clip=self.label_noise_clip,
        )
        initial = rng.standard_normal(self.dimension)
        basis = second_moment_basis(records.mean, std=std)
        problem = RidgeRegression(
            basis.eigenvalues,
            basis.coordinates(records.target),
            basis.coordinates(initial),
            label_noise_std=records.clipped_label_noise_std,
            ridge=self.ridge,
        )
        return Instance(records, initial, basis, problem)

    def law(
        self, problem: RidgeRegression, gradient_noise_std: float, rate: float | None = None
    ) -> HomogenisedSGD:
        """Law of the diffusion on one problem."""
        schedule = ConstantRate(rate or self.dimension * self.step_size)
        return HomogenisedSGD(
            problem, schedule, gradient_noise_std=gradient_noise_std, horizon=self.horizon
        )

    def mean_problem(self) -> RidgeRegression:
        """A problem whose risk is the mean over ground truths and starts, exactly.

        The risk is quadratic in both: two points with a coordinate's mean and variance are enough.
        """
        mean, std = self.coordinate
        basis = second_moment_basis(np.full(self.dimension, mean), std=std)
        sign = np.array([1.0, 1.0, -1.0, -1.0])
        other = np.array([1.0, -1.0, 1.0, -1.0])
        top = sqrt(self.dimension) * mean
        return RidgeRegression(
            np.repeat(basis.eigenvalues[:2], 4),
            np.concatenate([top + std * sign, std * sign]),
            np.concatenate([other, other]),
            label_noise_std=self.label_noise_std,
            ridge=self.ridge,
            multiplicities=np.repeat([1.0, self.dimension - 1.0], 4) / 4.0,
        )


class OneNoise(Strict):
    """The design at one noise scale."""

    design: Design
    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")


class Searched(Strict):
    """The search for the pair of records that loses most."""

    design: Design
    order: q.RenyiOrder = Field(description="Rényi order alpha.")
    pairs: q.Count = Field(description="Pairs that are tried: those with the largest proxy.")
    candidates: q.Count = Field(description="Records that each criterion adds to the search.")

    _pairs_are_there = q.at_most("pairs", "design.ordered_pairs")
    _candidates_are_records = q.at_most("candidates", "design.sample_size")


class FromStart(Searched):
    """Search settings, and the assumptions on the start."""

    drawn_start: q.Flag = Field(
        False,
        description="The start's law N(0, I) counts as noise; equation (10) has a known start.",
    )

    def law(self, problem: RidgeRegression, gradient_noise_std: float) -> HomogenisedSGD:
        """Law of the diffusion on one problem."""
        law = self.design.law(problem, gradient_noise_std)
        if not self.drawn_start:
            return law
        return DrawnStart(
            problem, law.schedule, gradient_noise_std=gradient_noise_std, horizon=law.horizon
        )


class Scaled(Strict):
    """A problem in scaled time t = k / d."""

    horizon: Annotated[q.Positive, Field(ge=1, le=1e6)] = Field(description="Last time.")
    rate: q.StepSize = Field(description="Scaled rate gamma at time 0.")
    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    ridge: q.NonNegative = Field(description="Penalty delta.")
    scaled_label_noise_std: q.Deviation = Field(description="Standard deviation of label noise.")

    # No eigenvalue of the features' second moment is more than 2.
    _rate_is_stable = q.at_most("rate", "2 / (ridge + 2)", lambda self: 2 / (self.ridge + 2))

    def spread_problem(
        self, dimension: int, lowest: float = 0.2, highest: float = 1.8
    ) -> RidgeRegression:
        """Eigenvalues spread evenly, ground truth and start of bounded norm."""
        grid = (np.arange(dimension) + 0.5) / dimension
        return RidgeRegression(
            lowest + (highest - lowest) * grid,
            np.cos(6.0 * grid) / np.sqrt(dimension),
            np.ones(dimension) / np.sqrt(dimension),
            label_noise_std=self.scaled_label_noise_std,
            ridge=self.ridge,
        )

    def law(self, problem: RidgeRegression) -> HomogenisedSGD:
        """Law of the diffusion at a constant rate."""
        rate = ConstantRate(self.rate)
        return HomogenisedSGD(
            problem, rate, gradient_noise_std=self.gradient_noise_std, horizon=self.horizon
        )


class SecondMomentBasis(NamedTuple):
    """Eigenvalues of Σ, shape (d,), and the reflection that takes vectors to its eigenbasis.

    `normal`, shape (d,), is the unit normal of the reflecting hyperplane; zero for the identity.
    """

    eigenvalues: NDArray[np.float64]
    normal: NDArray[np.float64]

    def coordinates(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Vectors in the eigenbasis, (..., d) -> (..., d); its own inverse, at a cost of O(d)."""
        values = np.asarray(vectors, dtype=np.float64)
        return values - 2.0 * (values @ self.normal)[..., None] * self.normal


def second_moment_basis(mean: np.ndarray, *, std: float) -> SecondMomentBasis:
    r"""Eigenbasis of the second moment of features with a mean and equal deviations, a reflection.

    .. math::
        \Sigma = \mathbb E[aa^\top] = s^2I + \mu\mu^\top,\qquad
        H = I - 2nn^\top,\quad H\mu = \|\mu\|e_1,\qquad
        H\Sigma H = s^2I + \|\mu\|^2e_1e_1^\top

    The paper takes Σ as diagonal, which its own uniform design is not.
    """
    square = float(mean @ mean)
    eigenvalues = np.full(mean.size, std * std)
    eigenvalues[0] += square
    length = sqrt(square)
    normal = mean.copy()
    normal[0] -= length
    gap = sqrt(normal @ normal)
    # Along the first axis already, within rounding: nothing to reflect.
    if gap <= 1e-14 * length:
        return SecondMomentBasis(eigenvalues, np.zeros(mean.size))
    return SecondMomentBasis(eigenvalues, normal / gap)


class Instance(NamedTuple):
    """One repetition: the law of its records, its start, and its problem in the eigenbasis."""

    records: LinearRecords
    initial: np.ndarray
    basis: SecondMomentBasis
    problem: RidgeRegression


class Records(NamedTuple):
    """Features, one row a record in the eigenbasis, and labels."""

    rows: np.ndarray
    labels: np.ndarray

    @classmethod
    def draw(cls, instance: Instance, count: int, rng: np.random.Generator) -> Records:
        rows, labels = instance.records.sample(count, rng)
        return cls(instance.basis.coordinates(rows), labels)

    def candidates(self, law: HomogenisedSGD, count: int) -> np.ndarray:
        """Indices of the records to search: the largest gradients at five times, and norms."""
        references = law.mean(np.linspace(0.0, 1.0, 5) ** 2 * law.horizon)
        return candidate_records(self.rows, self.labels, references, count=count)

    def search(self, law: HomogenisedSGD, held: np.ndarray | slice = slice(None)) -> PairSearch:
        """A search over all pairs of some records."""
        from privreg.theory.noisy_sgd.worst_pairs import PairSearch

        return PairSearch(law, self.rows[held], self.labels[held])


class DrawnStart(HomogenisedSGD):
    """Equation (10) for a start that is drawn from N(0, I) and never shown.

    Its mean starts at 0 and its variance at 1, where (10) has x_0 and 0. The risk in the
    diffusion's noise is still the risk for the problem's start, on which it hardly depends.
    """

    def mean(self, time: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(-np.expm1(-self._exponent(time)) * self.problem.minimiser)

    def variance(self, time: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(super().variance(time) + np.exp(-2.0 * self._exponent(time)))

    def _exponent(self, time: ArrayLike) -> NDArray[np.float64]:
        integral = self.schedule.integral(self.checked(time))
        return np.asarray(integral[..., None] * self.problem.curvatures)


def each_record(rows: np.ndarray, labels: np.ndarray) -> list[Record]:
    return [Record(row, float(label)) for row, label in zip(rows, labels, strict=True)]


def spread_over_trials(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation over trials, (..., trial) -> (...), with its standard error."""
    return jackknife(lambda kept: standard_deviation(values[..., kept]), values.shape[-1])


def about(parameters: Any, guarantee: str = NO_GUARANTEE) -> dict[str, Any]:
    """Global attributes of losses at one order."""
    return {"guarantee": guarantee, "order": parameters.order}
