"""Share of gradients clipped over dimensions and clipping thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipAxis,
    ClipConstant,
    Dimension,
    Probability,
    Rising,
    SampleSize,
    Some,
    StatedBudget,
    Steps,
    StepSize,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Figure 3, section 4.1"


class Parameters(Strict):
    """Figure 3: thresholds on a grid that all dimensions share, and multiples of sqrt(p)."""

    dimensions: Annotated[Rising[Dimension], Field(min_length=2)] = Field(description="Features p.")
    samples_per_feature: Annotated[SampleSize, Field(ge=3)] = Field(
        description="n / p; the paper does not state it."
    )
    budget: StatedBudget = Field(description="zCDP budget.")
    steps: Steps = Field(description="Gradient steps T; the paper does not state it.")
    step_size: StepSize = Field(description="eta; the paper does not state it.")
    clip_norms: ClipAxis = Field(description="Thresholds gamma.")
    clip_constants: Some[ClipConstant] = Field(description="Values of gamma / sqrt(p).")
    contour: Probability = Field(0.1, description="Share whose threshold is located.")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Share of gradients clipped in the whole of one run, for every dimension and threshold."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    grid = parameters.clip_norms.values()
    factors = np.asarray(parameters.clip_constants)
    shape = (len(trials), len(parameters.dimensions))
    share = np.empty((*shape, len(grid) + len(factors)))
    any_clip = np.empty((*shape, len(factors)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for row, dimension in enumerate(parameters.dimensions):
            count = dimension * parameters.samples_per_feature
            data, _ = draw(count, dimension, trial.rng)
            clip_norm = np.concatenate([grid, factors * np.sqrt(dimension)])
            run = full_batch_dpgd(
                data,
                clip_norm=clip_norm,
                step_size=parameters.step_size,
                gradient_noise_std=full_batch_noise_std(
                    clip_norm=clip_norm,
                    rho=parameters.budget.rho,
                    sample_size=count,
                    gradients=parameters.steps,
                ),
                steps=parameters.steps,
                times=[parameters.steps],
                rng=trial.rng,
                screening=False,
            )
            share[at, row] = run.clipped_fraction.non_private[:, 0].mean(axis=-1)
            any_clip[at, row] = share[at, row, len(grid) :] > 0
    dims = ("trial", "dimension")
    return xr.Dataset(
        {
            "clipped_fraction": variable(
                (*dims, "clip_norm"),
                share[..., : len(grid)],
                "share of gradients clipped, not private",
            ),
            "clipped_fraction_at_factor": variable(
                (*dims, "clip_constant"),
                share[..., len(grid) :],
                "share of gradients clipped, not private",
            ),
            "any_clip": variable(
                (*dims, "clip_constant"), any_clip, "whether any gradient was clipped, not private"
            ),
        },
        coords={
            "dimension": variable("dimension", parameters.dimensions, "features p"),
            "clip_norm": variable("clip_norm", grid, "clipping threshold gamma"),
            "clip_constant": variable("clip_constant", factors, "threshold over sqrt(p)"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over trials, and how the threshold of one share grows with the dimension."""
    import xarray as xr

    variables: dict[str, tuple] = {}
    for name in ("clipped_fraction", "clipped_fraction_at_factor", "any_clip"):
        array = simulation[name]
        variables |= mean_and_error(
            name, np.moveaxis(array.values, 0, -1), _names(array), array.attrs["long_name"]
        )
    share = simulation.clipped_fraction.values
    logs = np.log(simulation["clip_norm"].values)
    threshold = np.array(
        [[np.interp(-parameters.contour, -row, logs) for row in trial] for trial in share]
    )
    axis = np.log(np.asarray(parameters.dimensions, dtype=float))
    slopes = threshold @ ((axis - axis.mean()) / np.sum((axis - axis.mean()) ** 2))
    variables |= mean_and_error(
        "contour", threshold.T, ("dimension",), "log of the threshold that clips one share"
    )
    variables |= mean_and_error(
        "contour_slope", slopes, (), "log-log slope of that threshold in the dimension"
    )
    return xr.Dataset(
        variables,
        coords={
            name: simulation[name].variable
            for name in ("dimension", "clip_norm", "clip_constant", "trial")
        },
        attrs={"contour": parameters.contour},
    )


def _names(array: xr.DataArray) -> list[str]:
    """Dimensions without the trials."""
    return [str(name) for name in array.dims if name != "trial"]
