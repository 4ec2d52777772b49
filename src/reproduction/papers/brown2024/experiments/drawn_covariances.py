"""Exact coverage by batch means over data sets that are drawn anew, each with its covariance."""

from __future__ import annotations

from reproduction.engine.recipe import Dataset, Quantity, Trial, means, per, stage
from reproduction.papers.brown2024.experiments.coverage import AXES, Parameters
from reproduction.papers.brown2024.setting import draw, law_of

PLACE = "Figure 10"


@per(
    exact_coverage=Quantity(
        "exact coverage of the minimiser by batch means, without clipping, averaged over features",
        "gradients",
    )
)
def run(parameters: Parameters, trial: Trial) -> list[float]:
    """Exact law without clipping on one data set; nothing is simulated."""
    size, dimension = parameters.sample_size, parameters.dimension
    data, _ = draw(size, dimension, trial.rng, anisotropic=parameters.anisotropic)
    law = law_of(data, parameters.step_size)
    made = (parameters.quality(law, "batch_means", count) for count in parameters.gradients)
    return [each.coverage.mean() for each in made]


@per("gradients", least_coverage="least exact coverage over the data sets")
def least_coverage(simulation: Dataset, gradients: int) -> float:
    return simulation.exact_coverage.sel(gradients=gradients).values.min()


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), least_coverage)
