"""Noisy SGD at several times together against the joint law of the diffusion."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Mean, Quantity, Trial, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.lin2025.setting import OneNoise, spread_over_trials

PLACE = "Conjecture 3.1, equations (9), (10) and (18)"


class Parameters(OneNoise):
    """The times at which one run is compared with one path of the diffusion."""

    steps: q.Grid[q.Steps] = Field(description="Iterations k, increasing.")

    _steps_have_records = q.at_most("steps", "design.sample_size")


AXES = {
    "step": Axis("iteration k", "steps"),
    "later_step": Axis(
        "the later iteration k of two neighbours", lambda parameters: parameters.steps[1:]
    ),
}


@per(
    conditional_distance=Quantity(
        "squared Mahalanobis distance of an iterate to its law given the iterate before", "step"
    ),
    correlation=Quantity(
        "correlation of an iterate with the one before, relative to the law's", "later_step"
    ),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Squared distance of the iterates to their joint law, and how neighbours in time correlate.

    The linear diffusion is a Gaussian Markov process, so the joint distance is a sum over the times
    of the distance of each state to its law given the one before; the start is known.
    """
    from privreg.algorithms.noisy_sgd import simulate_noisy_sgd

    design, instance = parameters.design, parameters.design.draw(trial.rng)
    law = design.law(instance.problem, parameters.gradient_noise_std)
    iterates = [instance.initial]
    for start, end in pairwise([0, *parameters.steps]):
        part = simulate_noisy_sgd(
            instance.records,
            initial=iterates[-1],
            step_sizes=np.full(end - start, design.step_size),
            gradient_noise_stds=[parameters.gradient_noise_std],
            ridge=design.ridge,
            rng=trial.rng,
        )
        iterates.append(part.iterate[0, 0])
    times = np.asarray(parameters.steps) / design.dimension
    variance = law.variance(times)
    error = np.array([instance.basis.coordinates(each) for each in iterates[1:]]) - law.mean(times)
    past, past_variance = (
        np.vstack([np.zeros_like(values[:1]), values[:-1]]) for values in (error, variance)
    )
    carried = np.array([law.transition(time, start) for start, time in pairwise([0.0, *times])])
    innovation = variance - carried**2 * past_variance
    scale = np.sqrt(variance * past_variance)[1:]
    expected = np.sum((carried * past_variance)[1:] / scale, axis=1)
    return {
        "conditional_distance": np.sum((error - carried * past) ** 2 / innovation, axis=1),
        "correlation": np.sum((error * past)[1:] / scale, axis=1) / expected,
    }


@per(
    joint_distance=Mean(
        "the squared Mahalanobis distance to the joint law, divided by its degrees of freedom"
    ),
    joint_distance_spread=Estimate(
        "standard deviation over trials of the joint distance, relative to its law's"
    ),
    correlation_ratio=Mean(
        "the correlation of an iterate with the one before, relative to the law's", "later_step"
    ),
)
def joint(parameters: Parameters, simulation: Dataset) -> dict:
    """The joint distance has a chi-square law's mean and variance."""
    distance = trials_last(simulation.conditional_distance).sum(axis=0)
    freedom = parameters.design.dimension * len(parameters.steps)
    standardised = (distance - freedom) / np.sqrt(2.0 * freedom)
    return {
        "joint_distance": distance / freedom,
        "joint_distance_spread": spread_over_trials(standardised),
        "correlation_ratio": simulation.correlation,
    }


simulate = stage(AXES, run)
summarise = stage(AXES, joint, step=AXES["step"])
