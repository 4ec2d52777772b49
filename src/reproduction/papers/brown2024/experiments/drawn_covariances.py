"""Exact coverage by batch means over data sets that are drawn anew, each with its covariance."""

from __future__ import annotations

import numpy as np

from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, means, per, stage
from reproduction.papers.brown2024.experiments import coverage

PLACE = "Figure 10"


class Parameters(coverage.Parameters):
    """The setting of Figure 10; nothing is run, since the law without clipping is exact."""


AXES = {"gradients": Axis("total number of gradients N", "gradients")}


@per(
    exact_coverage=Quantity(
        "exact coverage of the empirical minimiser by batch means, without clipping, averaged over "
        "features",
        "gradients",
    )
)
def run(parameters: Parameters, trial: Trial) -> list[float]:
    """On one data set."""
    from privreg.algorithms.samples import moments
    from privreg.inference.quality import interval_quality
    from privreg.theory.full_batch_dpgd.law import gradient_descent_law
    from reproduction.papers.brown2024.synthetic_data import draw

    size = parameters.sample_size
    data, _ = draw(size, parameters.dimension, trial.rng, anisotropic=parameters.anisotropic)
    gram, moment = moments(data)
    found = []
    for gradients in parameters.gradients:
        law = gradient_descent_law(
            gram,
            moment,
            sample_size=size,
            step_size=parameters.step_size,
            gradient_noise_std=parameters.gradient_noise_std(gradients),
        )
        quality = interval_quality(
            law,
            gradients=gradients,
            construction="batch_means",
            replicates=parameters.replicates,
            burn_in=parameters.burn_in,
            level=parameters.level,
        )
        found.append(float(quality.coverage.mean()))
    return found


@per(
    "gradients",
    least_coverage="least exact coverage over the data sets",
    largest_coverage="largest exact coverage over the data sets",
)
def extremes(simulation: Dataset, gradients: int) -> dict[str, float]:
    values = simulation.exact_coverage.sel(gradients=gradients).values
    return {"least_coverage": np.min(values), "largest_coverage": np.max(values)}


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), extremes)
