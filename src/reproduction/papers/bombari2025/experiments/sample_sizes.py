"""Risk of DP-GD against the number of samples, for schedules tuned on the theory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import error_of_mean, standard_deviation, trials_last
from reproduction.papers.bombari2025 import setting

if TYPE_CHECKING:
    from privreg.algorithms.one_pass_dpgd import Mechanism
    from privreg.privacy.budget import Budget
    from privreg.schedules import Harmonic, Polynomial

PLACE = "Figure 7"


class Parameters(setting.Spectra, setting.Schedules, setting.Clipped):
    """Figure 7: two spectra, polynomial schedules and the harmonic one, a range of sample sizes."""

    dimension: Annotated[q.Dimension, Field(ge=3)] = Field(description="Dimension d.")
    sample_sizes: q.Grid[q.SampleSize] = Field(description="Sample sizes n, increasing.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")


AXES = {
    "spectrum": setting.SPECTRUM,
    "schedule": setting.SCHEDULE,
    "sample_size": setting.SAMPLE_SIZE,
    "samples_per_dimension": Axis(
        "samples n / d",
        lambda parameters: np.asarray(parameters.sample_sizes) / parameters.dimension,
        along="sample_size",
    ),
}
GRID, CURVES = ("spectrum", "schedule", "sample_size"), "schedule sample_size"
HARMONIC_EXCESS = "log ratio of the harmonic schedule's risk to the best polynomial schedule's"
LARGEST_STEP = "largest log ratio of the risk at one sample size to that at the one before"


@per(
    *GRID,
    risk="excess risk of the private output by the deterministic equivalent",
    amplitude="initial rate of a polynomial schedule, numerator of the harmonic one",
    offset="offset of the harmonic schedule, 0 for the others",
)
def tuned(parameters: Parameters, spectrum: str, schedule: str, sample_size: int) -> dict:
    from privreg.theory.one_pass_dpgd import rate_search

    problem = parameters.problem(parameters.dimension / sample_size, parameters.budget.root)
    covariance = setting.finite_spectrum(spectrum, parameters.dimension)
    if schedule == setting.HARMONIC:
        best = rate_search.harmonic(covariance, **problem)
    else:
        exponent = parameters.exponent(schedule)
        best = rate_search.polynomial(covariance, exponent=exponent, **problem)
    return {
        "risk": best.final_risk,
        "amplitude": np.asarray(best.schedule.amplitude).item(),
        "offset": getattr(best.schedule, "offset", 0.0),
    }


@per(
    "spectrum",
    ratio=Quantity("excess risk over that of the first schedule", CURVES),
    harmonic_excess=Quantity(HARMONIC_EXCESS, "sample_size"),
    largest_step=Quantity(LARGEST_STEP, "schedule"),
)
def expected(earlier: Dataset, spectrum: str) -> dict:
    """What the text says, of the deterministic equivalent, which has no sampling error."""
    risk = earlier.risk.sel(spectrum=spectrum).values
    readings = _readings(risk, risk, np.ones((*risk.shape, 2)))
    return {"ratio": risk / risk[:1], **{name: value for name, (value, _) in readings.items()}}


@per(*GRID, risk="excess risk of the private output")
def run(
    parameters: Parameters, trial: Trial, theory: Dataset, spectrum: str, sample_size: int
) -> list[float]:
    """Final excess risk of each schedule with the chosen hyper-parameters, on shared draws."""
    from privreg.algorithms import one_pass_dpgd
    from privreg.models import LinearModel

    chosen = theory.sel(spectrum=spectrum, sample_size=sample_size)
    mechanisms = [
        _mechanism(
            _schedule(parameters, schedule, chosen.sel(schedule=schedule)),
            sample_size,
            parameters.dimension,
            parameters.budget,
            parameters.clip_constant,
        )
        for schedule in parameters.schedules
    ]
    noise = {"label_noise_std": parameters.label_noise_std}
    if spectrum == "isotropic":
        found = one_pass_dpgd.isotropic_risk_paths_together(
            mechanisms, trial.rng, dimension=parameters.dimension, target_norm=1.0, **noise
        )
    else:
        model = LinearModel.even_target(
            setting.eigenvalues(spectrum, parameters.dimension), **noise
        )
        found = one_pass_dpgd.risk_paths_together(mechanisms, model, trial.rng)
    return [risk.item() for risk in found]


@per(
    "spectrum",
    ratio=Estimate("mean risk over the first schedule's", CURVES),
    ratio_spread=Quantity(
        "standard deviation over trials of the risk over the first schedule's mean", CURVES
    ),
    prediction_distance=Estimate(
        "log ratio of the mean risk to the deterministic equivalent", CURVES
    ),
    harmonic_excess=Estimate(HARMONIC_EXCESS, "sample_size"),
    largest_step=Estimate(LARGEST_STEP, "schedule"),
)
def compared(simulation: Dataset, theory: Dataset, spectrum: str) -> dict:
    """Ratios to output perturbation, distances to the prediction, what the text says."""
    risk = trials_last(simulation.risk.sel(spectrum=spectrum).transpose(*GRID[1:], "trial"))
    predicted = theory.risk.sel(spectrum=spectrum).values
    mean = risk.mean(axis=-1)
    relative = risk / mean[..., None]
    ratio = mean / mean[:1]
    return {
        "ratio": (ratio, ratio * error_of_mean(relative - relative[:1])),
        "ratio_spread": standard_deviation(risk / mean[:1, :, None]),
        "prediction_distance": (np.log(mean / predicted), error_of_mean(relative)),
        **_readings(mean, predicted, relative),
    }


theory = stage(AXES, tuned, expected)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run, spread=["risk"]), compared)


@cache
def _mechanism(
    schedule: Polynomial | Harmonic,
    sample_size: int,
    dimension: int,
    budget: Budget,
    clip_constant: float,
) -> Mechanism:
    """Made once for all trials: the noise of 10⁶ steps takes a third of the time of a run."""
    from privreg.algorithms.one_pass_dpgd import Mechanism

    return Mechanism.from_schedule(
        schedule,
        sample_size=sample_size,
        dimension=dimension,
        budget=budget,
        clip_constant=clip_constant,
    )


def _schedule(parameters: Parameters, schedule: str, chosen: Dataset) -> Polynomial | Harmonic:
    from privreg.schedules import Harmonic, Polynomial

    amplitude = float(chosen.amplitude)
    if schedule == setting.HARMONIC:
        return Harmonic(amplitude, float(chosen.offset))
    return Polynomial(amplitude, parameters.exponent(schedule))


def _readings(
    risk: np.ndarray, predicted: np.ndarray, relative: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """What the text says of the curves (schedules, sizes), with its standard errors.

    The prediction says which polynomial schedule is the best, so that no noisy minimum does.
    `relative` holds each trial's risk over the mean, shape (schedules, sizes, trials): the
    schedules of a trial share draws, and the sizes do not.
    """
    best = np.argmin(predicted[:-1], axis=0)[None]
    polynomial = np.take_along_axis(risk[:-1], best, 0)[0]
    of_polynomial = np.take_along_axis(relative[:-1], best[..., None], 0)[0]
    steps = np.log(risk[:, 1:] / risk[:, :-1])
    worst = np.argmax(steps, axis=-1)[:, None]
    error = error_of_mean(relative)
    step_noise = np.hypot(error[:, 1:], error[:, :-1])
    return {
        "harmonic_excess": (
            np.log(risk[-1] / polynomial),
            error_of_mean(relative[-1] - of_polynomial),
        ),
        "largest_step": (
            np.take_along_axis(steps, worst, -1)[:, 0],
            np.take_along_axis(step_noise, worst, -1)[:, 0],
        ),
    }
