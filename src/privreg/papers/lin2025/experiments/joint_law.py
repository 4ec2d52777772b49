"""Noisy SGD at several times together against the joint law of the diffusion."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import PositiveDeviation, Rising, Steps
from privreg.experiment.summaries import jackknife, mean_and_error
from privreg.papers.lin2025.setting import Design

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials

PLACE = "Conjecture 3.1, equations (9), (10) and (18)"


class Parameters(Strict):
    """The times at which one run is compared with one path of the diffusion."""

    design: Design
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    steps: Annotated[Rising[Steps], Field(min_length=2)] = Field(
        description="Iterations k, increasing."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not all(0 < low < high for low, high in pairwise(self.steps)):
            raise ValueError(f"steps must increase from 1 or more, got {self.steps}")
        if self.steps[-1] > self.design.sample_size:
            raise ValueError(
                f"steps must be at most sample_size {self.design.sample_size}, got {self.steps[-1]}"
            )
        return self


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Squared distance of the iterates to their joint law, and how neighbours in time correlate.

    The linear diffusion is a Gaussian Markov process, so the joint distance is a sum over the times
    of the distance of each state to its law given the one before.
    """
    import xarray as xr

    from privreg.algorithms.noisy_sgd import simulate_noisy_sgd
    from privreg.experiment.progress import track

    design = parameters.design
    times = np.asarray(parameters.steps) / design.dimension
    distance = np.empty((times.size, len(trials)))
    correlation = np.empty((times.size - 1, len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        instance = design.draw(trial.rng)
        law = design.law(instance.problem, parameters.gradient_noise_std)
        mean, variance = law.mean(times), law.variance(times)
        iterate, done = instance.initial, 0
        past = np.zeros(design.dimension)
        for j, step in enumerate(parameters.steps):
            iterate = simulate_noisy_sgd(
                instance.records,
                initial=iterate,
                step_sizes=np.full(step - done, design.step_size),
                gradient_noise_stds=[parameters.gradient_noise_std],
                ridge=design.ridge,
                rng=trial.rng,
            ).iterate[0, 0]
            error = instance.basis.coordinates(iterate) - mean[j]
            if j == 0:
                distance[j, at] = np.sum(error**2 / variance[j])
            else:
                carried = law.transition(times[j], times[j - 1])
                innovation = variance[j] - carried**2 * variance[j - 1]
                distance[j, at] = np.sum((error - carried * past) ** 2 / innovation)
                scale = np.sqrt(variance[j] * variance[j - 1])
                expected = np.sum(carried * variance[j - 1] / scale)
                correlation[j - 1, at] = np.sum(error * past / scale) / expected
            past, done = error, step
    return xr.Dataset(
        {
            "conditional_distance": variable(
                ("step", "trial"),
                distance,
                "squared Mahalanobis distance of an iterate to its law given the one before",
            ),
            "correlation": variable(
                ("later_step", "trial"),
                correlation,
                "correlation of an iterate with the one before over that of the law",
            ),
        },
        coords=_coordinates(parameters),
        attrs={"dimension": design.dimension},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean and spread of the joint distance over runs, and mean correlations."""
    import xarray as xr

    joint = simulation.conditional_distance.values.sum(axis=0)
    freedom = parameters.design.dimension * len(parameters.steps)
    standardised = (joint - freedom) / np.sqrt(2.0 * freedom)
    spread, spread_error = jackknife(lambda kept: standardised[kept].std(ddof=1), joint.size)
    return xr.Dataset(
        {
            **mean_and_error(
                "joint_distance",
                joint / freedom,
                (),
                "the squared Mahalanobis distance to the joint law, over its degrees of freedom",
            ),
            "joint_distance_spread": variable(
                (),
                spread,
                "standard deviation over trials of the joint distance over that of its law",
                standard_error="joint_distance_spread_standard_error",
            ),
            "joint_distance_spread_standard_error": variable(
                (), spread_error, "standard error of the spread of the joint distance"
            ),
            **mean_and_error(
                "correlation_ratio",
                simulation.correlation.values,
                ("later_step",),
                "the correlation of an iterate with the one before over that of the law",
            ),
        },
        coords=_coordinates(parameters) | {"trial": simulation.trial.variable},
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "step": variable("step", parameters.steps, "iteration k"),
        "later_step": variable(
            "later_step", parameters.steps[1:], "the later iteration k of two neighbours"
        ),
    }
