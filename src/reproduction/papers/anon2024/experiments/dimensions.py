"""Excess risk as the dimension grows past the number of rows: it stops changing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Deviation,
    Epsilon,
    Power,
    Probability,
    Rising,
    SampleSize,
    StepSizeAxis,
)
from reproduction.experiment.summaries import jackknife
from reproduction.papers.anon2024.setting import Problem

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Corollaries 4.3 and 4.5, no dependence on d; the paper runs no experiment"
ARMS = ("non-private", "tree, identity", "tree, population")
DIMS = ("arm", "ratio", "step_size")


class Parameters(Strict):
    """Dimensions in units of the number of rows; the first coordinates are the same in all."""

    decay: Annotated[Power, Field(gt=1)] = Field(description="Decay exponent r.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Number N of rows.")
    ratios: Annotated[Rising[Count], Field(min_length=2)] = Field(description="d / N, increasing.")
    label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")
    epsilon: Epsilon = Field(description="epsilon, replace-one.")
    delta: Probability = Field(description="delta.")
    step_sizes: StepSizeAxis = Field(description="Step sizes to choose from.")

    def problem(self, ratio: int) -> Problem:
        return Problem(
            decay=self.decay,
            dimension=ratio * self.sample_size,
            sample_size=self.sample_size,
            label_noise_std=self.label_noise_std,
        )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Excess risks; a trial's normals for the first coordinates are shared by all dimensions."""
    import xarray as xr

    from privreg.algorithms.shaped_accounting import shaped_noise_multiplier
    from privreg.algorithms.shaped_settings import run_settings
    from privreg.noise.correlations import TreeCorrelation
    from privreg.privacy.budget import Budget
    from reproduction.experiment.progress import track

    size, steps = parameters.sample_size, parameters.step_sizes.values()
    multiplier = shaped_noise_multiplier(
        Budget.approximate(parameters.epsilon, parameters.delta),
        correlation=TreeCorrelation(),
        steps=size - 1,
    )
    largest = max(parameters.ratios) * size
    risk = np.empty((len(ARMS), len(parameters.ratios), len(steps), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label="dimensions")):
        normals = trial.rng.standard_normal((size, largest))
        label_noise = parameters.label_noise_std * trial.rng.standard_normal(size)
        noise = TreeCorrelation().stream(largest, steps=size - 1, rng=trial.rng).draw(size - 1)
        for j, ratio in enumerate(parameters.ratios):
            problem = parameters.problem(ratio)
            model, d = problem.model, problem.dimension
            features = normals[:, :d] * np.sqrt(problem.eigenvalues)
            shapes = [problem.shape(s, eta) for s in ("identity", "population") for eta in steps]
            clips = np.array([problem.clip_norm(shape) for shape in shapes])
            scale = (multiplier * clips)[:, None] * np.sqrt(shapes)
            norms = np.sqrt(features**2 @ (1 / np.array(shapes)).T).T
            averages, _ = run_settings(
                features,
                features @ model.target + label_noise,
                inverse_norms=np.concatenate([norms[: len(steps)], norms]),
                noise=noise[:, :d],
                noise_scale=np.concatenate([np.zeros((len(steps), d)), scale]),
                step_size=np.tile(steps, len(ARMS)),
                clip_norm=np.concatenate([np.full(len(steps), np.inf), clips]),
            )
            risk[:, j, :, at] = problem.excess_risk(averages).reshape(len(ARMS), -1)
    return xr.Dataset(
        {"risk": variable((*DIMS, "trial"), risk, "excess risk of the average iterate")},
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Tuned risks, and their ratio to those of the smallest dimension."""
    import xarray as xr

    risk = simulation.risk.values

    def tuned(places: np.ndarray) -> np.ndarray:
        return risk[..., places].mean(axis=-1).min(axis=-1)

    def relative(places: np.ndarray) -> np.ndarray:
        best = tuned(places)
        return best / best[:, :1]

    variables: dict[str, tuple] = {}
    for name, statistic, description in (
        ("tuned", tuned, "least mean excess risk over step sizes"),
        ("relative", relative, "tuned excess risk over that of the smallest dimension"),
    ):
        value, error = jackknife(statistic, risk.shape[-1])
        spread = f"{name}_standard_error"
        variables[name] = variable(DIMS[:2], value, description, standard_error=spread)
        variables[spread] = variable(DIMS[:2], error, "its jackknife standard error")
    return xr.Dataset(
        variables, coords=_coordinates(parameters) | {"trial": simulation.trial.variable}
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "arm": variable("arm", list(ARMS), "correlation and shape"),
        "ratio": variable("ratio", parameters.ratios, "dimension over number of rows"),
        "step_size": variable("step_size", parameters.step_sizes.values(), "step size"),
    }
