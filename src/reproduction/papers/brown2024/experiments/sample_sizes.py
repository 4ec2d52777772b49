"""Error due to privacy against error due to sampling as the sample size grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Dimension,
    Rising,
    SampleSize,
    StatedBudget,
    Steps,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import loglog_slope, mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Figures 2 and 8, section 4.1, Theorem 1.2"
CURVE_POINTS = 201
# Data of more numbers than this are drawn anew at each pass.
HELD_NUMBERS = 1 << 24
KINDS = ("whole", "noise_alone")


class Parameters(Strict):
    """Figures 2 and 8: one dimension, growing sample sizes."""

    dimension: Dimension = Field(description="Features p.")
    sample_sizes: Annotated[Rising[SampleSize], Field(min_length=2)] = Field(
        description="Sample sizes n."
    )
    budget: StatedBudget = Field(description="zCDP budget.")
    steps: Rising[Steps] = Field(
        description="Numbers of gradient steps T, each with its own noise."
    )
    step_size: StepSize = Field(description="eta; the paper's experiments do not state it.")
    clip_constant: ClipConstant = Field(description="gamma / sqrt(p).")

    _more_rows_than_columns = more_than("sample_sizes", "dimension")

    def gradient_noise_std(self, size: int) -> np.ndarray:
        from privreg.algorithms.full_batch_dpgd import full_batch_noise_std

        return full_batch_noise_std(
            clip_norm=self.clip_constant * np.sqrt(self.dimension),
            rho=self.budget.rho,
            sample_size=size,
            gradients=self.steps,
        )


def theory(parameters: Parameters) -> xr.Dataset:
    """Mean squared errors at an identity covariance, and where the two are equal."""
    import xarray as xr

    from reproduction.papers.brown2024.size_crossings import (
        law_crossing,
        privacy_square,
        sampling_square,
    )

    size = np.geomspace(parameters.sample_sizes[0], 2 * parameters.sample_sizes[-1], CURVE_POINTS)
    privacy, noise = (privacy_square(parameters, size, bias) for bias in (True, False))
    crossing = [
        law_crossing(parameters, bias, np.zeros(len(parameters.steps))) for bias in (True, False)
    ]
    return xr.Dataset(
        {
            "privacy_rms": variable(
                ("steps", "sample_size"),
                np.sqrt(privacy),
                "root mean square distance of DP-GD to the empirical minimiser",
            ),
            "noise_rms": variable(
                ("steps", "sample_size"), np.sqrt(noise), "the same without the bias of the start"
            ),
            "sampling_rms": variable(
                "sample_size",
                np.sqrt(sampling_square(parameters, size)),
                "root mean square distance of least squares to the population parameter",
            ),
            "crossing": variable(
                ("kind", "steps"), crossing, "sample size at which the two errors are equal"
            ),
        },
        coords={
            "kind": variable("kind", list(KINDS), "privacy error, whole or noise alone"),
            "steps": variable("steps", parameters.steps, "gradient steps T"),
            "sample_size": variable("sample_size", size, "sample size n"),
        },
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Distances in each trial, with the exact expectations given its data."""
    import xarray as xr

    from reproduction.experiment.progress import track

    shape = (len(trials), len(parameters.steps), len(parameters.sample_sizes))
    names = ("privacy", "noise", "law", "clipped")
    found = {name: np.empty(shape) for name in names}
    sampling = np.empty((len(trials), len(parameters.sample_sizes)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for column, size in enumerate(parameters.sample_sizes):
            one = _trial(parameters, size, trial.rng)
            sampling[at, column] = one["sampling"]
            for name in names:
                found[name][at, :, column] = one[name]
    dims = ("trial", "steps", "sample_size")
    return xr.Dataset(
        {
            "privacy_error": variable(
                dims, found["privacy"], "distance of DP-GD to the empirical minimiser"
            ),
            "noise_error": variable(
                dims, found["noise"], "distance of DP-GD to its mean in the unclipped law"
            ),
            "law_squared_error": variable(
                dims,
                found["law"],
                "exact mean squared distance of unclipped DP-GD to the minimiser",
            ),
            "clipped_fraction": variable(
                dims, found["clipped"], "share of gradients clipped, not private"
            ),
            "sampling_error": variable(
                ("trial", "sample_size"),
                sampling,
                "distance of least squares to the population parameter",
            ),
        },
        coords={
            "steps": variable("steps", parameters.steps, "gradient steps T"),
            "sample_size": variable("sample_size", parameters.sample_sizes, "sample size n"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over trials, log-log slopes in n, and the simulated crossings."""
    import xarray as xr

    from reproduction.papers.brown2024.size_crossings import simulated_crossings

    variables: dict[str, tuple] = {}
    for name in ("privacy_error", "noise_error", "sampling_error", "clipped_fraction"):
        array = simulation[name]
        dims = [str(dim) for dim in array.dims[1:]]
        values = np.moveaxis(array.values, 0, -1)
        variables |= mean_and_error(name, values, dims, array.attrs["long_name"])
        if name == "clipped_fraction":
            continue
        slope, slope_error = loglog_slope(parameters.sample_sizes, values)
        error = f"{name}_slope_standard_error"
        variables[f"{name}_slope"] = variable(
            dims[:-1], slope, "log-log slope in n", standard_error=error
        )
        variables[error] = variable(dims[:-1], slope_error, "standard error of the slope")
    ratio = np.moveaxis((simulation.privacy_error**2 / simulation.law_squared_error).values, 0, -1)
    variables |= mean_and_error(
        "law_ratio",
        ratio,
        ("steps", "sample_size"),
        "squared distance of DP-GD to the empirical minimiser over its exact expectation",
    )
    crossing, crossing_error = simulated_crossings(parameters, simulation)
    variables["crossing"] = variable(
        ("kind", "steps"),
        crossing,
        "sample size at which the simulated root mean square errors are equal",
        standard_error="crossing_standard_error",
    )
    variables["crossing_standard_error"] = variable(
        ("kind", "steps"), crossing_error, "jackknife standard error of the crossing"
    )
    coordinates = {name: simulation[name].variable for name in ("steps", "sample_size", "trial")}
    return xr.Dataset(
        variables,
        coords=coordinates
        | {"kind": variable("kind", list(KINDS), "privacy error, whole or noise alone")},
    )


def _trial(
    parameters: Parameters, size: int, rng: np.random.Generator
) -> dict[str, np.ndarray | float]:
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
    from privreg.algorithms.samples import GaussianSamples, Samples, moments
    from privreg.algorithms.screening import screen
    from privreg.theory.full_batch_dpgd.law import gradient_descent_law
    from reproduction.papers.brown2024.synthetic_data import LABEL_NOISE_STD, draw, unit_vector

    p, longest = parameters.dimension, max(parameters.steps)
    data: Samples
    if size * p <= HELD_NUMBERS:
        data, target = draw(size, p, rng)
    else:
        target = unit_vector(p, rng)
        seed = np.random.SeedSequence(int(rng.integers(1 << 62)))
        data = GaussianSamples(size, target, LABEL_NOISE_STD, seed)
    clip_norm = parameters.clip_constant * np.sqrt(p)
    noise = parameters.gradient_noise_std(size)
    screened = screen(
        data,
        clip_norm=float(clip_norm),
        step_size=parameters.step_size,
        gradient_noise_std=float(noise.max()),
        steps=longest,
        lanes=len(noise),
        start=np.zeros(p),
    )
    gram, moment = moments(data) if screened is None else screened.moments()
    run = full_batch_dpgd(
        data,
        clip_norm=clip_norm,
        step_size=parameters.step_size,
        gradient_noise_std=noise,
        steps=longest,
        times=sorted(parameters.steps),
        rng=rng,
        screening=False if screened is None else screened,
    )
    found: dict[str, np.ndarray | float] = {
        name: np.empty(len(noise)) for name in ("privacy", "noise", "law", "clipped")
    }
    for at, steps in enumerate(parameters.steps):
        law = gradient_descent_law(
            gram,
            moment,
            sample_size=size,
            step_size=parameters.step_size,
            gradient_noise_std=float(noise[at]),
        )
        last = run.iterates[at, 0, np.searchsorted(run.times, steps)]
        values = {
            "privacy": np.linalg.norm(last - law.minimiser),
            "noise": np.linalg.norm(last - law.mean(steps)),
            "law": law.expected_squared_error(steps),
            "clipped": run.clipped_fraction.non_private[at, 0, :steps].mean(),
        }
        for name, value in values.items():
            np.asarray(found[name])[at] = value
        found["sampling"] = float(np.linalg.norm(law.minimiser - target))
    return found
