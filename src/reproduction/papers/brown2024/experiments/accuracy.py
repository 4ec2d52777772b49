"""Theorem 2.7 before its asymptotics: bound on the privacy error, and its fall in the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    ClipNorm,
    Count,
    Dimension,
    Probability,
    SampleSize,
    Some,
    StatedBudget,
    Steps,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Theorem 2.7, equations (70)-(80); section 2.5"


class Parameters(Strict):
    """One size of data and a range of budgets; a small data set for the Huber correspondence."""

    dimension: Dimension = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Sample size n.")
    budgets: Annotated[Some[StatedBudget], Field(min_length=2)] = Field(description="Budgets.")
    steps: Steps = Field(description="Gradient steps T.")
    step_size: StepSize = Field(description="eta.")
    clip_constant: ClipConstant = Field(description="gamma / sqrt(p).")
    failure: Probability = Field(description="beta.")
    runs: Count = Field(description="Runs on each data set.")
    huber_sample_size: Annotated[SampleSize, Field(ge=10)] = Field(
        description="Sample size of the Huber correspondence."
    )
    huber_clip_norm: ClipNorm = Field(description="Threshold gamma of the Huber correspondence.")
    huber_steps: Annotated[Steps, Field(ge=10)] = Field(
        description="Noiseless steps towards the Huber minimiser."
    )

    _more_rows_than_columns = more_than("sample_size", "dimension")

    @property
    def rhos(self) -> list[float]:
        return [budget.rho for budget in self.budgets]


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Privacy errors with their bounds, and the distances of the Huber correspondence."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.algorithms.ols import ols
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    p, eta = parameters.dimension, parameters.step_size
    clip_norm = parameters.clip_constant * np.sqrt(p)
    noise = full_batch_noise_std(
        clip_norm=clip_norm,
        rho=parameters.rhos,
        sample_size=parameters.sample_size,
        gradients=parameters.steps,
    )
    shape = (len(trials), len(noise), parameters.runs)
    error, bound = np.empty(shape), np.empty(shape[:2])
    gradient_gap, minimiser_gap = (np.empty(len(trials)) for _ in range(2))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        data, _ = draw(parameters.sample_size, p, trial.rng)
        minimiser = ols(data).coefficients
        run = full_batch_dpgd(
            data,
            clip_norm=clip_norm,
            step_size=eta,
            gradient_noise_std=noise,
            steps=parameters.steps,
            times=[parameters.steps],
            runs=parameters.runs,
            rng=trial.rng,
        )
        error[at] = np.linalg.norm(run.iterates[:, :, 0] - minimiser, axis=-1)
        bound[at] = (7 / 8) ** parameters.steps * np.linalg.norm(minimiser) + eta * noise * np.sqrt(
            32 * p * np.log(4 / parameters.failure)
        )
        gradient_gap[at], minimiser_gap[at] = _huber(parameters, trial.rng)
    return xr.Dataset(
        {
            "error": variable(
                ("trial", "rho", "run"), error, "distance of DP-GD to the empirical minimiser"
            ),
            "bound": variable(("trial", "rho"), bound, "the proof's bound on that distance"),
            "gradient_gap": variable(
                "trial", gradient_gap, "largest gap of a clipped gradient to Huber's"
            ),
            "minimiser_gap": variable(
                "trial", minimiser_gap, "distance of noiseless clipped descent to Huber's minimiser"
            ),
        },
        coords={"rho": variable("rho", parameters.rhos, "zCDP budget")},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Share of runs within the bound, how loose it is, and the slope in the budget."""
    import xarray as xr

    error = simulation.error.values
    bound = simulation.bound.values[..., None]
    mean = np.log(error.mean(axis=2)).T
    logs = np.log(np.asarray(parameters.rhos))
    weights = (logs - logs.mean()) / np.sum((logs - logs.mean()) ** 2)
    by_budget = ("rho",)
    variables: dict[str, tuple] = {}
    quantities: tuple[tuple[str, np.ndarray, tuple[str, ...], str], ...] = (
        ("error", error.mean(axis=2).T, by_budget, "the distance to the empirical minimiser"),
        (
            "within_bound",
            (error <= bound).mean(axis=2).T,
            by_budget,
            "the share of runs within the bound",
        ),
        ("bound_ratio", (bound / error).mean(axis=2).T, by_budget, "the bound over the distance"),
        ("budget_slope", weights @ mean, (), "the log-log slope of the distance in the budget"),
    )
    for name, values, dims, meaning in quantities:
        variables |= mean_and_error(name, values, dims, meaning)
    for name in ("gradient_gap", "minimiser_gap"):
        variables[name] = variable(
            (), simulation[name].values.max(), f"largest over trials: {name.replace('_', ' ')}"
        )
    return xr.Dataset(
        variables, coords={name: simulation[name].variable for name in ("rho", "trial")}
    )


def _huber(parameters: Parameters, rng: np.random.Generator) -> tuple[float, float]:
    """Gaps of clipped gradients to Huber losses' and of descent to their minimiser."""
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
    from reproduction.papers.brown2024.clipped_loss import clipped_minimiser
    from reproduction.papers.brown2024.synthetic_data import draw

    clip_norm = parameters.huber_clip_norm
    data, _ = draw(parameters.huber_sample_size, parameters.dimension, rng)
    x, y = data.features, data.labels
    width = clip_norm / data.norms
    theta = rng.standard_normal(parameters.dimension)
    residual = y - x @ theta
    gradients = -x * residual[:, None]
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    by_clipping = gradients * np.minimum(1, clip_norm / lengths)
    # Huber's loss is quadratic within the width and linear beyond it: exact derivatives.
    slope = np.where(np.abs(residual) <= width, residual, width * np.sign(residual))
    gap = np.abs(by_clipping + x * slope[:, None]).max()

    found = clipped_minimiser(data, clip_norm=clip_norm)
    descent = full_batch_dpgd(
        data,
        clip_norm=clip_norm,
        step_size=parameters.step_size,
        gradient_noise_std=0.0,
        steps=parameters.huber_steps,
        times=[parameters.huber_steps],
        rng=rng,
        screening=False,
    ).iterates[0, 0]
    return float(gap), float(np.linalg.norm(descent - found))
