"""How fast noisy SGD's risk, in the mean and in one run, approaches the theory as d grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    Deviation,
    Dimension,
    NonNegative,
    Positive,
    PositiveDeviation,
    Rising,
    StepSize,
    more_than,
)
from privreg.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

PLACE = "Theorems 3.1 and 4.1, Corollary 4.1, Lemma A.4"


class Parameters(Strict):
    """Dimensions at a fixed ratio of records, rate and noise; eigenvalues spread evenly."""

    dimensions: Annotated[Rising[Dimension], Field(min_length=2)] = Field(
        description="Dimensions d."
    )
    horizon: Positive = Field(description="Records over dimension, n / d.")
    rate: StepSize = Field(description="Scaled rate gamma.")
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    ridge: NonNegative = Field(description="Penalty delta.")
    scaled_label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")
    lowest: NonNegative = Field(description="Smallest eigenvalue of the second moment.")
    highest: Positive = Field(description="Largest eigenvalue of the second moment.")

    _has_a_spread = more_than("highest", "lowest")

    def problem(self, dimension: int) -> RidgeRegression:
        from privreg.theory.noisy_sgd.diffusion import RidgeRegression

        grid = (np.arange(dimension) + 0.5) / dimension
        return RidgeRegression(
            self.lowest + (self.highest - self.lowest) * grid,
            np.cos(6.0 * grid) / np.sqrt(dimension),
            np.ones(dimension) / np.sqrt(dimension),
            label_noise_std=self.scaled_label_noise_std,
            ridge=self.ridge,
        )

    def law(self, problem: RidgeRegression) -> HomogenisedSGD:
        from privreg.schedules import ConstantRate
        from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD

        rate = ConstantRate(self.rate)
        return HomogenisedSGD(
            problem, rate, gradient_noise_std=self.gradient_noise_std, horizon=self.horizon
        )

    def steps(self, dimension: int) -> int:
        return round(self.horizon * dimension)

    @property
    def derived_steps(self) -> float:
        """Steps for each dimension."""
        return self.horizon


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest distance of the exact mean risk of the discrete algorithm to the theory."""
    import xarray as xr

    from privreg.theory.noisy_sgd.discrete_moments import mean_risk

    gap = np.empty(len(parameters.dimensions))
    for at, dimension in enumerate(parameters.dimensions):
        problem = parameters.problem(dimension)
        steps = parameters.steps(dimension)
        sizes = np.full(steps, parameters.rate / dimension)
        discrete = mean_risk(problem, sizes, gradient_noise_std=parameters.gradient_noise_std)
        limit = parameters.law(problem).risk(np.arange(steps + 1) / dimension)
        gap[at] = np.abs(discrete - limit).max()
    slope = np.polyfit(np.log(parameters.dimensions), np.log(gap), 1)[0]
    return xr.Dataset(
        {
            "mean_gap": variable(
                "dimension", gap, "largest distance of the exact mean risk to the theory"
            ),
            "mean_gap_slope": variable((), slope, "log-log slope of that distance in d"),
        },
        coords=_coordinates(parameters),
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Largest distance of one run to the theory, and of the noise's martingale from 0."""
    import xarray as xr

    from privreg.algorithms.noisy_sgd import LinearRecords, simulate_noisy_sgd
    from privreg.experiment.progress import track

    shape = (len(parameters.dimensions), len(trials))
    gap, martingale = np.empty(shape), np.empty(shape)
    for d, dimension in enumerate(parameters.dimensions):
        problem = parameters.problem(dimension)
        steps = parameters.steps(dimension)
        limit = parameters.law(problem).risk(np.arange(steps + 1) / dimension)
        records = LinearRecords(
            "gaussian",
            np.zeros(dimension),
            np.sqrt(problem.eigenvalues),
            problem.target,
            parameters.scaled_label_noise_std,
        )
        scale = 0.5 * (parameters.rate * parameters.gradient_noise_std / dimension) ** 2
        for at, trial in enumerate(track(trials, total=len(trials), label=f"d = {dimension}")):
            runs = simulate_noisy_sgd(
                records,
                initial=problem.initial,
                step_sizes=np.full(steps, parameters.rate / dimension),
                gradient_noise_stds=[parameters.gradient_noise_std],
                ridge=parameters.ridge,
                rng=trial.rng,
            )
            gap[d, at] = np.abs(runs.risk.non_private[0, 0] - limit).max()
            energy = trial.rng.chisquare(dimension, steps) - dimension
            martingale[d, at] = np.abs(scale * np.cumsum(energy)).max()
    dims = ("dimension", "trial")
    return xr.Dataset(
        {
            "gap": variable(dims, gap, "largest distance of one run's risk to the theory"),
            "martingale": variable(
                dims, martingale, "largest value of the gradient noise's quadratic martingale"
            ),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over trials and their log-log slopes in the dimension."""
    import xarray as xr

    abscissa = np.log(parameters.dimensions)
    centred = abscissa - abscissa.mean()
    weights = centred / np.sum(centred**2)
    variables: dict[str, tuple] = {}
    for name in ("gap", "martingale"):
        values = simulation[name].values
        description = simulation[name].attrs["long_name"]
        variables |= mean_and_error(name, values, ("dimension",), description)
        mean, error = variables[name][1], variables[f"{name}_standard_error"][1]
        slope, slope_error = f"{name}_slope", f"{name}_slope_standard_error"
        variables[slope] = variable(
            (), np.log(mean) @ weights, f"log-log slope in d: {description}",
            standard_error=slope_error,
        )  # fmt: skip
        variables[slope_error] = variable(
            (), np.sqrt(weights**2 @ (error / mean) ** 2), "standard error of the slope"
        )
    return xr.Dataset(
        variables, coords=_coordinates(parameters) | {"trial": simulation.trial.variable}
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {"dimension": variable("dimension", parameters.dimensions, "dimension d")}
