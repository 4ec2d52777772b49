"""Risk of DP-GD against the number of samples, for schedules tuned on the theory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Dimension,
    PositiveDeviation,
    Power,
    Rising,
    SampleSize,
    Some,
    StatedBudget,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.schedules import Schedule
    from reproduction.experiment.trials import Trials

PLACE = "Figure 7"
HARMONIC = "harmonic"
GRID = ("spectrum", "schedule", "sample_size")


class Parameters(Strict):
    """Figure 7: two spectra, polynomial schedules and the harmonic one, a range of sample sizes."""

    dimension: Annotated[Dimension, Field(ge=3)] = Field(description="Dimension d.")
    sample_sizes: Annotated[Rising[SampleSize], Field(min_length=2)] = Field(
        description="Sample sizes n, increasing."
    )
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    exponents: Some[Power] = Field(description="Exponents alpha, 0 the first.")
    spectra: Some[Literal["isotropic", "uniform"]] = Field(
        description="Identity, or diagonal with eigenvalues uniform on [0, 2]."
    )

    @model_validator(mode="after")
    def _begins_with_a_constant_rate(self) -> Self:
        if self.exponents[0] != 0:
            raise ValueError(
                f"exponents must begin with 0, the others are over it, got {self.exponents[0]}"
            )
        return self

    @property
    def schedules(self) -> list[str]:
        return [f"alpha={exponent:g}" for exponent in self.exponents] + [HARMONIC]

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.spectra), len(self.schedules), len(self.sample_sizes)

    def eigenvalues(self, spectrum: str) -> np.ndarray:
        from privreg import spectra

        if spectrum == "isotropic":
            return np.ones(self.dimension)
        return spectra.uniform_midpoints(self.dimension)


def theory(parameters: Parameters) -> xr.Dataset:
    """Best hyper-parameters of each schedule on the deterministic equivalent, and the risk."""
    import xarray as xr

    from privreg import spectra
    from privreg.schedules import Harmonic
    from privreg.theory.one_pass_dpgd import rate_search
    from reproduction.experiment.progress import track

    found = np.full((3, *parameters.shape), np.nan)
    cells = list(np.ndindex(parameters.shape))
    for s, a, n in track(cells, total=len(cells), label="schedule search"):
        problem = {
            "aspect_ratio": parameters.dimension / parameters.sample_sizes[n],
            "zcdp_root": parameters.budget.root,
            "clip_constant": parameters.clip_constant,
            "label_noise_std": parameters.label_noise_std,
        }
        spectrum = spectra.explicit(parameters.eigenvalues(parameters.spectra[s]))
        best = (
            rate_search.polynomial(spectrum, exponent=parameters.exponents[a], **problem)
            if a < len(parameters.exponents)
            else rate_search.harmonic(spectrum, **problem)
        )
        offset = best.schedule.offset if isinstance(best.schedule, Harmonic) else 0.0
        found[:, s, a, n] = best.final_risk, np.asarray(best.schedule.amplitude).item(), offset
    return xr.Dataset(
        {
            "risk": variable(
                GRID, found[0], "excess risk of the private output by the deterministic equivalent"
            ),
            "ratio": variable(
                GRID, found[0] / found[0][:, :1], "excess risk over that of the first schedule"
            ),
            "amplitude": variable(
                GRID,
                found[1],
                "initial rate of a polynomial schedule, numerator of the harmonic one",
            ),
            "offset": variable(GRID, found[2], "offset of the harmonic schedule, 0 for the others"),
            **_readings(found[0], found[0]),
        },
        coords=_coordinates(parameters),
    )


def simulate(parameters: Parameters, trials: Trials, theory: xr.Dataset) -> xr.Dataset:
    """Final excess risk with the chosen hyper-parameters, each run on draws of its own."""
    import xarray as xr

    from privreg.algorithms import one_pass_dpgd
    from privreg.models import LinearModel
    from reproduction.experiment.progress import track

    risk = np.empty((*parameters.shape, len(trials)))
    models = [
        LinearModel.even_target(
            parameters.eigenvalues(name), label_noise_std=parameters.label_noise_std
        )
        for name in parameters.spectra
    ]
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for s, a, n in np.ndindex(parameters.shape):
            mechanism = one_pass_dpgd.Mechanism.from_schedule(
                _schedule(parameters, theory, (s, a, n)),
                sample_size=parameters.sample_sizes[n],
                dimension=parameters.dimension,
                budget=parameters.budget,
                clip_constant=parameters.clip_constant,
            )
            if parameters.spectra[s] == "isotropic":
                found = one_pass_dpgd.isotropic_risk_path(
                    mechanism,
                    trial.rng,
                    dimension=parameters.dimension,
                    target_norm=1.0,
                    label_noise_std=parameters.label_noise_std,
                )
            else:
                found = one_pass_dpgd.risk_path(mechanism, models[s], trial.rng)
            risk[s, a, n, at] = found.item()
    return xr.Dataset(
        {"risk": variable((*GRID, "trial"), risk, "excess risk of the private output")},
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Means and spreads over trials, ratios to output perturbation, distance to the prediction."""
    import xarray as xr

    risk = simulation.risk.values
    mean = risk.mean(axis=-1)
    relative = risk.std(axis=-1, ddof=1) / np.sqrt(risk.shape[-1]) / mean
    # Runs share no draws, so the errors of a ratio's two means are independent; the first
    # schedule's ratio to itself is exactly 1.
    ratio = mean / mean[:, :1]
    ratio_relative = np.hypot(relative, relative[:, :1])
    ratio_relative[:, 0] = 0.0
    return xr.Dataset(
        {
            **mean_and_error("risk", risk, GRID, "the excess risk of the private output"),
            "risk_spread": variable(
                GRID,
                risk.std(axis=-1, ddof=1),
                "standard deviation over trials of the excess risk of the private output",
            ),
            **_with_error(
                "ratio", ratio, ratio * ratio_relative, GRID, "mean risk over the first schedule's"
            ),
            "ratio_spread": variable(
                GRID,
                (risk / mean[:, :1, :, None]).std(axis=-1, ddof=1),
                "standard deviation over trials of the risk over the first schedule's mean",
            ),
            **_with_error(
                "prediction_distance",
                np.log(mean / theory.risk.values),
                relative,
                GRID,
                "log ratio of the mean risk to the deterministic equivalent",
            ),
            **_readings(mean, theory.risk.values, relative),
        },
        coords=_coordinates(parameters) | {"trial": simulation.trial.variable},
    )


def _readings(
    risk: np.ndarray, predicted: np.ndarray, relative: np.ndarray | None = None
) -> dict[str, tuple]:
    """What the text says of the curves; `relative` are the standard errors of the log risks.

    The prediction says which polynomial schedule is the best, so that no noisy minimum does.
    """
    error = np.zeros_like(risk) if relative is None else relative
    best = np.argmin(predicted[:, :-1], axis=1)[:, None]
    polynomial, noise = (np.take_along_axis(x[:, :-1], best, 1)[:, 0] for x in (risk, error))
    steps = np.log(risk[..., 1:] / risk[..., :-1])
    worst = np.argmax(steps, axis=-1)[..., None]
    step_noise = np.hypot(error[..., 1:], error[..., :-1])
    readings = {
        **_with_error(
            "harmonic_excess",
            np.log(risk[:, -1] / polynomial),
            np.hypot(error[:, -1], noise),
            ("spectrum", "sample_size"),
            "log ratio of the harmonic schedule's risk to the best polynomial schedule's",
        ),
        **_with_error(
            "largest_step",
            np.take_along_axis(steps, worst, -1)[..., 0],
            np.take_along_axis(step_noise, worst, -1)[..., 0],
            ("spectrum", "schedule"),
            "largest log ratio of the risk at one sample size to that at the one before",
        ),
    }
    if relative is not None:
        return readings
    # The deterministic equivalent has no sampling error.
    return {
        name: variable(found[0], found[1], found[2]["long_name"])
        for name, found in readings.items()
        if not name.endswith("_standard_error")
    }


def _with_error(
    name: str, values: np.ndarray, error: np.ndarray, dims: tuple[str, ...], meaning: str
) -> dict[str, tuple]:
    linked = f"{name}_standard_error"
    return {
        name: variable(dims, values, meaning, standard_error=linked),
        linked: variable(dims, error, f"standard error of the {meaning}"),
    }


def _schedule(parameters: Parameters, theory: xr.Dataset, at: tuple[int, int, int]) -> Schedule:
    from privreg.schedules import Harmonic, Polynomial

    amplitude = float(theory.amplitude.values[at])
    if at[1] < len(parameters.exponents):
        return Polynomial(amplitude, parameters.exponents[at[1]])
    return Harmonic(amplitude, float(theory.offset.values[at]))


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "spectrum": variable("spectrum", parameters.spectra, "covariance spectrum"),
        "schedule": variable("schedule", parameters.schedules, "schedule of the rate"),
        "sample_size": variable("sample_size", parameters.sample_sizes, "samples n"),
        "samples_per_dimension": variable(
            "sample_size",
            np.asarray(parameters.sample_sizes) / parameters.dimension,
            "samples n / d",
        ),
    }
