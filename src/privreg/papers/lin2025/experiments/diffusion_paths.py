"""Sample paths of the nonlinear diffusion against its mean risk in closed equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    Count,
    Deviation,
    Dimension,
    NonNegative,
    Positive,
    PositiveDeviation,
    Steps,
    StepSize,
    at_most,
)
from privreg.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials

PLACE = "Equation (1), Theorem 4.2"


class Parameters(Strict):
    """Euler-Maruyama paths; a trial is a batch of them."""

    dimension: Annotated[Dimension, Field(ge=2)] = Field(description="Dimension d.")
    horizon: Positive = Field(description="Last time.")
    rate: StepSize = Field(description="Scaled rate gamma.")
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    ridge: NonNegative = Field(description="Penalty delta.")
    scaled_label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")
    paths: Annotated[Count, Field(ge=2)] = Field(description="Paths a trial.")
    steps: Steps = Field(description="Time steps.")
    times: Count = Field(description="Times at which the risk is compared.")

    _times_are_steps = at_most("times", "steps")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Mean risk of each batch over the risk that the theory gives, with one half and full steps."""
    import xarray as xr

    from privreg.schedules import ConstantRate
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

    d = parameters.dimension
    grid = (np.arange(d) + 0.5) / d
    problem = RidgeRegression(
        0.2 + 1.6 * grid,
        np.cos(6.0 * grid) / np.sqrt(d),
        np.ones(d) / np.sqrt(d),
        label_noise_std=parameters.scaled_label_noise_std,
        ridge=parameters.ridge,
    )
    law = HomogenisedSGD(
        problem,
        ConstantRate(parameters.rate),
        gradient_noise_std=parameters.gradient_noise_std,
        horizon=parameters.horizon,
    )
    stops = parameters.steps * np.arange(1, parameters.times + 1) // parameters.times
    times = stops * parameters.horizon / parameters.steps
    width = parameters.horizon / parameters.steps
    ratio = np.empty((parameters.times, len(trials)))
    for at, trial in enumerate(trials):
        fine = np.tile(problem.initial, (parameters.paths, 1))
        coarse = fine.copy()
        pending = np.zeros_like(fine)
        for step in range(1, parameters.steps + 1):
            halves = trial.rng.standard_normal((2, *fine.shape)) * np.sqrt(width / 2.0)
            for noise in halves:
                _advance(fine, noise, problem, parameters, width / 2.0)
            pending = halves.sum(axis=0)
            _advance(coarse, pending, problem, parameters, width)
            hit = np.flatnonzero(stops == step)
            if hit.size:
                # The two step lengths share their noise, so the leading error in the step cancels.
                mean = 2.0 * problem.risk(fine).mean() - problem.risk(coarse).mean()
                ratio[hit, at] = mean / law.risk(times[hit])
    return xr.Dataset(
        {"ratio": variable(("time", "trial"), ratio, "mean risk of the paths over the theory")},
        coords={"time": variable("time", times, "time t = k / d")},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean over batches."""
    import xarray as xr

    return xr.Dataset(
        mean_and_error(
            "ratio", simulation.ratio.values, ("time",), "the paths' mean risk over the theory"
        ),
        coords={"time": simulation.time.variable, "trial": simulation.trial.variable},
    )


def _advance(state, noise, problem, parameters: Parameters, width: float) -> None:  # type: ignore[no-untyped-def]
    """One Euler-Maruyama step of all paths in place."""
    rate = parameters.rate
    spread = (
        2.0 * problem.risk(state)[:, None] * problem.eigenvalues + parameters.gradient_noise_std**2
    )
    drift = problem.curvatures * state - problem.eigenvalues * problem.target
    state += -rate * width * drift + rate * np.sqrt(spread / parameters.dimension) * noise
