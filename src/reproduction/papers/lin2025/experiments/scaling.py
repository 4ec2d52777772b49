"""Convergence of noisy SGD's risk to the theory as d grows, in the mean and in one run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.diffusion import RidgeRegression, mean_risk
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trials, means, per, stage
from reproduction.engine.summaries import loglog_slope, trials_last
from reproduction.papers.lin2025.setting import Scaled

PLACE = "Theorems 3.1 and 4.1, Corollary 4.1, Lemma A.4"


class Parameters(Scaled):
    """Dimensions at a fixed ratio of records, rate and noise; eigenvalues spread evenly."""

    dimensions: q.Grid[q.Dimension] = Field(description="Dimensions d.")
    lowest: q.NonNegative = Field(description="Smallest eigenvalue of the second moment.")
    highest: Annotated[q.Positive, Field(le=2)] = Field(description="Largest eigenvalue.")

    _has_a_spread = q.more_than("highest", "lowest")

    def problem(self, dimension: int) -> RidgeRegression:
        return self.spread_problem(dimension, self.lowest, self.highest)

    def steps(self, dimension: int) -> int:
        return round(self.horizon * dimension)

    def step_sizes(self, dimension: int) -> np.ndarray:
        return np.full(self.steps(dimension), self.rate / dimension)

    def risk(self, dimension: int) -> np.ndarray:
        """Mean risk of the diffusion at the start and after each step."""
        times = np.arange(self.steps(dimension) + 1) / dimension
        return self.law(self.problem(dimension)).risk(times)


DIMENSION = Axis("dimension d", "dimensions")
AXES = {"dimension": DIMENSION}


@per(
    mean_gap=Quantity("largest distance of the exact mean risk to the theory", "dimension"),
    mean_gap_slope="log-log slope of that distance in d",
)
def mean(parameters: Parameters) -> dict:
    """Distance of the exact mean risk of the discrete algorithm to the theory."""
    gaps = []
    for dimension in parameters.dimensions:
        problem, sizes = parameters.problem(dimension), parameters.step_sizes(dimension)
        risk = mean_risk(problem, sizes, gradient_noise_std=parameters.gradient_noise_std)
        gaps.append(np.abs(risk - parameters.risk(dimension)).max())
    slope = np.polyfit(np.log(parameters.dimensions), np.log(gaps), 1)[0]
    return {"mean_gap": gaps, "mean_gap_slope": slope}


@per(
    "dimension",
    gap="largest distance of one run's risk to the theory",
    martingale="largest value of the gradient noise's quadratic martingale",
)
def run(parameters: Parameters, trials: Trials, dimension: int) -> Iterator[dict]:
    from privreg.algorithms.noisy_sgd import LinearRecords, simulate_noisy_sgd

    problem, sizes = parameters.problem(dimension), parameters.step_sizes(dimension)
    limit = parameters.risk(dimension)
    records = LinearRecords(
        "gaussian",
        np.zeros(dimension),
        np.sqrt(problem.eigenvalues),
        problem.target,
        parameters.scaled_label_noise_std,
    )
    scale = 0.5 * (parameters.rate * parameters.gradient_noise_std / dimension) ** 2
    for trial in trials:
        runs = simulate_noisy_sgd(
            records,
            initial=problem.initial,
            step_sizes=sizes,
            gradient_noise_stds=[parameters.gradient_noise_std],
            ridge=parameters.ridge,
            rng=trial.rng,
        )
        energy = trial.rng.chisquare(dimension, sizes.size) - dimension
        yield {
            "gap": np.abs(runs.risk.non_private[0, 0] - limit).max(),
            "martingale": np.abs(scale * np.cumsum(energy)).max(),
        }


@per(
    gap_slope=Estimate("log-log slope in d of the mean gap"),
    martingale_slope=Estimate("log-log slope in d of the mean martingale"),
)
def slopes(parameters: Parameters, simulation: Dataset) -> dict:
    return {
        f"{name}_slope": loglog_slope(parameters.dimensions, trials_last(simulation[name]))
        for name in ("gap", "martingale")
    }


theory = stage(AXES, mean)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run), slopes)
