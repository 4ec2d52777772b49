"""Error, bias and variance of DP-GD over clipping thresholds, and the share clipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipAxis,
    ClipConstant,
    Count,
    Dimension,
    Rising,
    SampleSize,
    StatedBudget,
    Steps,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Figures 4 and 7, section 4.1 and Appendix B"


class Parameters(Strict):
    """Figures 4 and 7: data sets of one size, several numbers of steps, a grid of thresholds."""

    dimension: Dimension = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(
        description="Sample size n; the paper does not state it."
    )
    budget: StatedBudget = Field(description="zCDP budget.")
    steps: Rising[Steps] = Field(description="Numbers of gradient steps T.")
    step_size: StepSize = Field(description="eta; the paper does not state it.")
    clip_norms: ClipAxis = Field(description="Thresholds gamma.")
    runs: Annotated[Count, Field(ge=2)] = Field(
        description="Runs on each data set, to tell bias from variance."
    )
    clip_constant: ClipConstant = Field(5.0, description="gamma / sqrt(p) of the paper's setting.")

    _more_rows_than_columns = more_than("sample_size", "dimension")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Squared bias and variance over the runs on each data set, about its minimiser."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.algorithms.ols import ols
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    standard = parameters.clip_constant * np.sqrt(parameters.dimension)
    grid = parameters.clip_norms.values()
    clip_norm = np.sort(np.append(grid, standard))
    shape = (len(trials), len(parameters.steps), len(clip_norm))
    error, bias, variance, share = (np.empty(shape) for _ in range(4))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        data, _ = draw(parameters.sample_size, parameters.dimension, trial.rng)
        minimiser = ols(data).coefficients
        for row, steps in enumerate(parameters.steps):
            run = full_batch_dpgd(
                data,
                clip_norm=clip_norm,
                step_size=parameters.step_size,
                gradient_noise_std=full_batch_noise_std(
                    clip_norm=clip_norm,
                    rho=parameters.budget.rho,
                    sample_size=data.sample_size,
                    gradients=steps,
                ),
                steps=steps,
                times=[steps],
                runs=parameters.runs,
                rng=trial.rng,
                screening=False,
            )
            gap = run.iterates[:, :, 0] - minimiser
            error[at, row] = np.mean(np.sum(gap**2, axis=-1), axis=-1)
            variance[at, row] = np.sum(gap.var(axis=1, ddof=1), axis=-1)
            # The mean of finitely many runs is off by their variance over their number.
            bias[at, row] = (
                np.sum(gap.mean(axis=1) ** 2, axis=-1) - variance[at, row] / parameters.runs
            )
            share[at, row] = run.clipped_fraction.non_private.mean(axis=(1, 2))
    dims = ("trial", "steps", "clip_norm")
    return xr.Dataset(
        {
            "squared_error": variable(
                dims, error, "mean squared distance to the empirical minimiser"
            ),
            "squared_bias": variable(
                dims, bias, "squared bias about the empirical minimiser, an unbiased estimate"
            ),
            "variance": variable(dims, variance, "variance of the runs on one data set"),
            "clipped_fraction": variable(dims, share, "share of gradients clipped, not private"),
        },
        coords={
            "steps": variable("steps", parameters.steps, "gradient steps T"),
            "clip_norm": variable("clip_norm", clip_norm, "clipping threshold gamma"),
        },
        attrs={"standard_clip_norm": standard, "sample_size": parameters.sample_size},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over data sets; the best threshold, what it clips and what half clipping costs."""
    import xarray as xr

    standard = int(
        np.argmin(np.abs(simulation["clip_norm"].values - simulation.standard_clip_norm))
    )
    variables: dict[str, tuple] = {}
    for name in ("squared_error", "squared_bias", "variance", "clipped_fraction"):
        array = simulation[name]
        variables |= mean_and_error(
            name, np.moveaxis(array.values, 0, -1), _names(array), array.attrs["long_name"]
        )
    square, share = simulation.squared_error.values, simulation.clipped_fraction.values
    best = square.mean(axis=0).argmin(axis=-1)
    rows = np.arange(len(best))
    at_best, at_standard = square[:, rows, best], square[:, :, standard]
    half = np.array(
        [
            [np.exp(np.interp(-0.5, -s, np.log(e))) for s, e in zip(*pair, strict=True)]
            for pair in zip(share, square, strict=True)
        ]
    )
    quantities = {
        "best_clip_norm": (None, "threshold of least mean squared error"),
        "clipped_at_best": (share[:, rows, best], "share clipped at the best threshold"),
        "best_squared_error": (at_best, "squared error at the best threshold"),
        "standard_squared_error": (at_standard, "squared error at the paper's threshold"),
        "half_clipped_log_ratio": (
            np.log(half / at_best) / 2,
            "log ratio of the error with half of the gradients clipped to the least",
        ),
        "half_clipped_over_standard": (
            np.log(half / at_standard) / 2,
            "log ratio of the error with half of the gradients clipped to that at 5 sqrt(p)",
        ),
    }
    for name, (values, meaning) in quantities.items():
        if values is None:
            variables[name] = variable("steps", simulation["clip_norm"].values[best], meaning)
        else:
            variables |= mean_and_error(name, values.T, ("steps",), meaning)
    return xr.Dataset(
        variables,
        coords={name: simulation[name].variable for name in ("steps", "clip_norm", "trial")},
    )


def _names(array: xr.DataArray) -> list[str]:
    """Dimensions without the trials."""
    return [str(name) for name in array.dims if name != "trial"]
