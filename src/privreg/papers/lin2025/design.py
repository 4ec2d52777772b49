"""The simulated regression of lin2025 in four readings of its ambiguous design, and their risk."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from pydantic import Field

from privreg import store
from privreg.config import Strict

if TYPE_CHECKING:
    import xarray as xr

    from privreg.algorithms.noisy_sgd import LinearRecords
    from privreg.theory.hsgd import HomogenizedSGD, RidgeRegression
    from privreg.theory.second_moment import SecondMomentBasis

PLACE = "Section 5, Simulation Setup"

Reading = Literal["centred", "literal", "symmetric", "wide"]
# Mean and standard deviation of a coordinate of the features and of the ground truth at d = 1, and
# the power of 1/d that scales both.
READINGS: dict[Reading, tuple[float, float, float]] = {
    "centred": (0.0, 1.0, 0.5),
    "literal": (0.5, 1.0 / sqrt(12.0), 0.5),
    "symmetric": (0.0, 1.0 / sqrt(3.0), 0.5),
    "wide": (0.0, 1.0, 0.25),
}


class Design(Strict):
    """The set-up that all experiments of the paper share."""

    reading: Reading = Field(
        "centred",
        description="Coordinates uniform with mean 0 and standard deviation d^(-1/2) (centred), on "
        "[0, d^(-1/2)] as printed (literal), on +-d^(-1/2) (symmetric), or with mean 0 and "
        "variance d^(-1/2) (wide).",
    )
    dimension: int = Field(ge=2, description="Dimension d.")
    samples: int = Field(ge=2, description="Records n, one a step.")
    step_size: float = Field(gt=0, description="Discrete step eta; the scaled rate is d eta.")
    ridge: float = Field(ge=0, description="Penalty delta.")
    label_noise: float = Field(
        ge=0, description="Standard deviation of the label noise in units of d^(-1/2)."
    )
    label_clip: float = Field(gt=0, description="The label noise is clipped at this many of them.")

    @property
    def horizon(self) -> float:
        return self.samples / self.dimension

    @property
    def coordinate(self) -> tuple[float, float]:
        """Mean and standard deviation of a coordinate."""
        mean, std, power = READINGS[self.reading]
        return mean / self.dimension**power, std / self.dimension**power

    @property
    def label_noise_variance(self) -> float:
        from privreg.algorithms.noisy_sgd import clipped_normal_variance

        return self.label_noise**2 / self.dimension * clipped_normal_variance(self.label_clip)

    def draw(self, rng: np.random.Generator) -> Instance:
        """Ground truth and start of one repetition."""
        from privreg.algorithms.noisy_sgd import LinearRecords
        from privreg.theory.hsgd import RidgeRegression
        from privreg.theory.second_moment import second_moment_basis

        mean, std = self.coordinate
        half_width = sqrt(3.0) * std
        records = LinearRecords.uniform(
            mean=mean,
            half_width=half_width,
            target=rng.uniform(mean - half_width, mean + half_width, self.dimension),
            label_noise_std=self.label_noise / sqrt(self.dimension),
            label_clip=self.label_clip,
        )
        initial = rng.standard_normal(self.dimension)
        basis = second_moment_basis(records.mean, std=std)
        problem = RidgeRegression(
            basis.eigenvalues,
            basis.coordinates(records.target),
            basis.coordinates(initial),
            label_noise_variance=records.label_noise_variance,
            ridge=self.ridge,
        )
        return Instance(records, initial, basis, problem)

    def law(self, problem: RidgeRegression, noise_std: float) -> HomogenizedSGD:
        """Law of the diffusion on one problem."""
        from privreg.schedules import ConstantRate
        from privreg.theory.hsgd import HomogenizedSGD

        rate = ConstantRate(self.dimension * self.step_size)
        return HomogenizedSGD(problem, rate, noise_std=noise_std, horizon=self.horizon)

    def mean_problem(self) -> RidgeRegression:
        """A problem whose risk is the mean over ground truths and starts, exactly.

        The risk is quadratic in both, so two points a coordinate that have the mean and the
        variance of its law will do.
        """
        from privreg.theory.hsgd import RidgeRegression
        from privreg.theory.second_moment import second_moment_basis

        mean, std = self.coordinate
        basis = second_moment_basis(np.full(self.dimension, mean), std=std)
        sign = np.array([1.0, 1.0, -1.0, -1.0])
        other = np.array([1.0, -1.0, 1.0, -1.0])
        top = sqrt(self.dimension) * mean
        return RidgeRegression(
            np.repeat(basis.eigenvalues[:2], 4),
            np.concatenate([top + std * sign, std * sign]),
            np.concatenate([other, other]),
            label_noise_variance=self.label_noise_variance,
            ridge=self.ridge,
            multiplicities=np.repeat([1.0, self.dimension - 1.0], 4) / 4.0,
        )


class Instance(NamedTuple):
    """One repetition: the law of its records, its start, and its problem in the eigenbasis."""

    records: LinearRecords
    initial: np.ndarray
    basis: SecondMomentBasis
    problem: RidgeRegression


class Parameters(Strict):
    """Section 5: the four readings side by side."""

    design: Design
    noise_stds: list[float] = Field(min_length=1, description="Gradient noise sigma.")


def theory(parameters: Parameters) -> xr.Dataset:
    """What the theory says of the risk in each reading, averaged over ground truths and starts."""
    import xarray as xr

    from privreg.algorithms.noisy_sgd import clipped_normal_variance
    from privreg.schedules import ConstantRate
    from privreg.theory.hsgd import HomogenizedSGD
    from privreg.theory.hsgd_closed_forms import stationary_risk

    readings = list(READINGS)
    rate = parameters.design.dimension * parameters.design.step_size
    shape = (len(readings), len(parameters.noise_stds))
    risk, stationary, spread = np.empty(shape), np.empty(shape), np.empty(shape)
    top, initial, signal, unscaled = np.empty((4, len(readings)))
    for r, reading in enumerate(readings):
        design = parameters.design.model_copy(update={"reading": reading})
        problem = design.mean_problem()
        weights = problem.multiplicities
        top[r] = problem.eigenvalues[0] / problem.eigenvalues[-1]
        initial[r] = problem.risk(problem.initial)
        variance = weights @ (problem.eigenvalues * problem.target**2)
        signal[r] = np.sqrt(variance / design.label_noise_variance)
        slow = HomogenizedSGD(
            problem,
            ConstantRate(design.step_size),
            noise_std=parameters.noise_stds[-1],
            horizon=design.horizon,
        )
        unscaled[r] = slow.risk(design.horizon) / initial[r]
        for s, noise_std in enumerate(parameters.noise_stds):
            law = design.law(problem, noise_std)
            risk[r, s] = law.risk(design.horizon)
            stationary[r, s] = stationary_risk(problem, rate=rate, noise_std=noise_std)
            squares = problem.eigenvalues**2 * law.variance(design.horizon)
            bias = (law.mean(design.horizon) - problem.target) ** 2
            square = weights @ (squares * (0.5 * law.variance(design.horizon) + bias))
            spread[r, s] = np.sqrt(square) / risk[r, s]
    both = ("reading", "noise_std")
    return xr.Dataset(
        {
            "final_risk": store.variable(both, risk, "mean population risk after the last step"),
            "stationary_risk": store.variable(both, stationary, "limit of the population risk"),
            "final_spread": store.variable(
                both, spread, "standard deviation over mean of one run's risk after the last step"
            ),
            "initial_risk": store.variable("reading", initial, "mean population risk of the start"),
            "condition": store.variable(
                "reading", top, "largest eigenvalue of the second moment over the other ones"
            ),
            "signal_to_noise": store.variable(
                "reading", signal, "standard deviation of the label's signal over its noise"
            ),
            "unscaled_descent": store.variable(
                "reading",
                unscaled,
                "final over initial risk if the step were the scaled rate, largest noise",
            ),
            "label_variance_factor": store.variable(
                (),
                clipped_normal_variance(parameters.design.label_clip),
                "variance of the clipped label noise over the nominal one",
            ),
        },
        coords={
            "reading": store.variable("reading", readings, "reading of the design"),
            "noise_std": noise_coordinate(parameters.noise_stds),
        },
    )


def noise_coordinate(noise_stds: list[float]) -> tuple:
    """The coordinate of gradient noise scales."""
    return store.variable("noise_std", noise_stds, "standard deviation sigma of gradient noise")
