"""Theorem 2.7 with its own schedule: the rate (11), and the sample size that (74) demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Dimension,
    Positive,
    Probability,
    SampleSize,
    SizeAxis,
    StatedBudget,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Theorem 2.7, equations (11), (70)-(75)"
STEP_SIZE = 0.25
ROUNDS = 200


class Parameters(Strict):
    """Two directions: both sizes grow together, or the sample size alone."""

    budget: StatedBudget = Field(description="zCDP budget.")
    failure: Probability = Field(description="beta.")
    steps_factor: Positive = Field(
        description="T over log(n rho / p); the paper's c is not stated."
    )
    dimensions: SizeAxis = Field(description="Features p at a fixed ratio.")
    samples_per_feature: Annotated[SampleSize, Field(ge=3)] = Field(
        description="n / p where both grow."
    )
    dimension: Dimension = Field(description="Features p where n grows alone.")
    sample_sizes: SizeAxis = Field(description="Sample sizes n where n grows alone.")

    def steps(self, sample_size: np.ndarray, dimension: np.ndarray) -> np.ndarray:
        """T = c log(n rho / p), not rounded."""
        return self.steps_factor * np.log(sample_size * self.budget.rho / dimension)


def theory(parameters: Parameters) -> xr.Dataset:
    """Root mean square distances to the empirical minimiser without clipping, over the rates."""
    import xarray as xr

    dimensions = parameters.dimensions.values()
    sizes = parameters.sample_sizes.values()
    together = _distance(parameters, parameters.samples_per_feature * dimensions, dimensions)
    alone = _distance(parameters, sizes, np.full_like(sizes, parameters.dimension))
    least = _least_sample_size(parameters, dimensions)
    logarithm = np.log(least * parameters.budget.rho / (parameters.failure * dimensions))
    return xr.Dataset(
        {
            "over_printed_rate_fixed_ratio": variable(
                "dimension", together["printed"], "distance over ln^4(n rho / (beta p)) p / n"
            ),
            "over_printed_rate": variable(
                "sample_size", alone["printed"], "distance over ln^4(n rho / (beta p)) p / n"
            ),
            "over_derived_rate_fixed_ratio": variable(
                "dimension",
                together["derived"],
                "distance over sqrt(T) ln^3.5(n T / beta) p / n, the last term of (82)",
            ),
            "least_sample_size": variable(
                "dimension", least, "least sample size at which (74) holds"
            ),
            "least_sample_size_slope": variable(
                (),
                np.polyfit(np.log(dimensions), np.log(least / logarithm**4), 1)[0],
                "log-log slope in p of that sample size over ln^4(n rho / (beta p))",
            ),
        },
        coords={
            "dimension": variable("dimension", dimensions, "features p"),
            "sample_size": variable("sample_size", sizes, "sample size n"),
        },
    )


def _distance(
    parameters: Parameters, sample_size: np.ndarray, dimension: np.ndarray
) -> dict[str, np.ndarray]:
    """Distances over p / (sqrt(rho) n) and a power of logarithms; identity covariance, sigma 1."""
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
    return {
        "printed": distance / np.log(sample_size * rho / (failure * dimension)) ** 4,
        "derived": distance / np.sqrt(steps) / np.log(sample_size * steps / failure) ** 3.5,
    }


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
