"""Theorem 2.7 with its own schedule: the rate (11), and the sample size that (74) demands."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import Axis, Quantity, per, stage
from reproduction.experiment.parameters import Strict

PLACE = "Theorem 2.7, equations (11), (70)-(75)"
STEP_SIZE = 0.25
ROUNDS = 200


class Parameters(Strict):
    """Two directions: both sizes grow together, or the sample size alone."""

    budget: q.StatedBudget = Field(description="zCDP budget.")
    failure: q.Probability = Field(description="beta.")
    steps_factor: q.Positive = Field(
        description="T over log(n rho / p); the paper's c is not stated."
    )
    dimensions: q.SizeAxis = Field(description="Features p at a fixed ratio.")
    samples_per_feature: Annotated[q.SampleSize, Field(ge=3)] = Field(
        description="n / p where both grow."
    )
    dimension: q.Dimension = Field(description="Features p where n grows alone.")
    sample_sizes: q.SizeAxis = Field(description="Sample sizes n where n grows alone.")

    def steps(self, sample_size: np.ndarray, dimension: np.ndarray) -> np.ndarray:
        """T = c log(n rho / p), not rounded."""
        return self.steps_factor * np.log(sample_size * self.budget.rho / dimension)


AXES = {
    "dimension": Axis("features p", "dimensions"),
    "sample_size": Axis("sample size n", "sample_sizes"),
}


@per("sample_size", over_printed_rate="distance over ln^4(n rho / (beta p)) p / n")
def alone(parameters: Parameters) -> np.ndarray:
    """Root mean square distance to the empirical minimiser without clipping, over the rate."""
    sizes = parameters.sample_sizes.values()
    return _over_rates(parameters, sizes, np.full_like(sizes, parameters.dimension))[0]


@per(
    over_printed_rate_fixed_ratio=Quantity(
        "distance over ln^4(n rho / (beta p)) p / n", "dimension"
    ),
    over_derived_rate_fixed_ratio=Quantity(
        "distance over sqrt(T) ln^3.5(n T / beta) p / n, the last term of (82)", "dimension"
    ),
)
def together(parameters: Parameters) -> dict:
    """The same distance over both rates at a fixed ratio."""
    dimensions = parameters.dimensions.values()
    printed, derived = _over_rates(
        parameters, parameters.samples_per_feature * dimensions, dimensions
    )
    return {"over_printed_rate_fixed_ratio": printed, "over_derived_rate_fixed_ratio": derived}


@per(
    least_sample_size=Quantity("least sample size at which (74) holds", "dimension"),
    least_sample_size_slope=("log-log slope in p of that sample size over ln^4(n rho / (beta p))"),
)
def least_sample_size(parameters: Parameters) -> dict:
    dimensions = parameters.dimensions.values()
    least = _least_sample_size(parameters, dimensions)
    logarithm = np.log(least * parameters.budget.rho / (parameters.failure * dimensions))
    slope = np.polyfit(np.log(dimensions), np.log(least / logarithm**4), 1)[0]
    return {"least_sample_size": least, "least_sample_size_slope": slope}


theory = stage(AXES, alone, together, least_sample_size)


def _over_rates(
    parameters: Parameters, sample_size: np.ndarray, dimension: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distance over p / (sqrt(rho) n) and the logarithms of (11), and those of (82).

    Identity covariance, sigma = 1.
    """
    rho, failure = parameters.budget.rho, parameters.failure
    steps = parameters.steps(sample_size, dimension)
    # Equation (73): the constant of Lemma 2.6 at a failure probability of beta / 4.
    clip_norm = 576 * np.log(20 * sample_size * steps / failure) ** 3 * np.sqrt(dimension)
    noise = np.sqrt(2 * steps / rho) * clip_norm / sample_size
    contraction = 1 - STEP_SIZE
    gain = (1 - contraction ** (2 * steps)) / (1 - contraction**2)
    bias = contraction ** (2 * steps) * (1 + dimension / sample_size)
    square = bias + dimension * (STEP_SIZE * noise) ** 2 * gain
    distance = np.sqrt(square) * np.sqrt(rho) * sample_size / dimension
    return (
        distance / np.log(sample_size * rho / (failure * dimension)) ** 4,
        distance / np.sqrt(steps) / np.log(sample_size * steps / failure) ** 3.5,
    )


def _least_sample_size(parameters: Parameters, dimension: np.ndarray) -> np.ndarray:
    """The n that solves (74) with the noise of the whole budget and the constant of Lemma 2.6."""
    rho, failure = parameters.budget.rho, parameters.failure
    size = 1e6 * dimension
    for _ in range(ROUNDS):
        steps = parameters.steps(size, dimension)
        constant = 12 * np.log(20 * size * steps / failure) ** 1.5
        logarithm = np.log(2 * size * steps / failure)
        size = 64 * constant**2 * dimension * STEP_SIZE * np.sqrt(2 * steps / rho * logarithm)
    return size
