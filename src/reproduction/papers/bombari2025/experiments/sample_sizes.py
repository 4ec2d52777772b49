"""Risk of DP-GD against the number of samples, for schedules tuned on the theory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from privreg.models import LinearModel
from privreg.schedules import Harmonic, Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import error_of_mean, standard_deviation, trials_last
from reproduction.papers.bombari2025 import setting

if TYPE_CHECKING:
    from privreg.algorithms.one_pass_dpgd import Mechanism

PLACE = "Figure 7"


class Parameters(setting.Schedules, setting.Clipped):
    """Figure 7: two spectra, polynomial schedules and the harmonic one, a range of sample sizes."""

    spectra: setting.Spectra
    dimension: q.Dimension = Field(description="Dimension d.")
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


@per(
    *GRID,
    risk="excess risk of the private output by the deterministic equivalent",
    amplitude="initial rate of a polynomial schedule, numerator of the harmonic one",
    offset="offset of the harmonic schedule, 0 for the others",
)
def tuned(parameters: Parameters, spectrum: str, schedule: str, sample_size: int) -> dict:
    from reproduction.papers.bombari2025 import equivalent

    covariance = setting.finite_spectrum(spectrum, parameters.dimension)
    at = parameters.dimension / sample_size, parameters.budget.root
    best = equivalent.tuned(parameters, covariance, parameters.shapes[schedule], *at)
    return {
        "risk": best.final_risk,
        "amplitude": np.asarray(best.schedule.amplitude).item(),
        "offset": getattr(best.schedule, "offset", 0.0),
    }


@per(
    "spectrum",
    ratio=Quantity("excess risk divided by the first schedule's", CURVES),
    harmonic_excess=Quantity(HARMONIC_EXCESS, "sample_size"),
)
def expected(earlier: Dataset, spectrum: str) -> dict:
    """Quantities of the text for the deterministic equivalent, without sampling error."""
    risk = earlier.risk.sel(spectrum=spectrum).values
    return {"ratio": risk / risk[:1], "harmonic_excess": np.log(risk[-1] / risk[:-1].min(axis=0))}


@per(*GRID, risk="excess risk of the private output")
def run(
    parameters: Parameters, trial: Trial, theory: Dataset, spectrum: str, sample_size: int
) -> list[float]:
    """Final excess risk of each schedule with the chosen hyper-parameters, on shared draws."""
    from privreg.algorithms import one_pass_dpgd

    chosen = theory.sel(spectrum=spectrum, sample_size=sample_size)
    mechanisms = [
        _mechanism(
            parameters.budget,
            _schedule(shape, chosen.sel(schedule=schedule)),
            sample_size,
            parameters.dimension,
            parameters.clip_constant,
        )
        for schedule, shape in parameters.shapes.items()
    ]
    noise = {"label_noise_std": parameters.label_noise_std}
    if spectrum == "isotropic":
        found = one_pass_dpgd.isotropic_risk_paths_together(
            mechanisms, trial.rng, dimension=parameters.dimension, target_norm=1.0, **noise
        )
    else:
        eigenvalues = setting.eigenvalues(spectrum, parameters.dimension)
        model = LinearModel.even_target(eigenvalues, **noise)
        found = one_pass_dpgd.risk_paths_together(mechanisms, model, trial.rng)
    return [risk.item() for risk in found]


@per(
    "spectrum",
    ratio=Estimate("mean risk divided by the first schedule's", CURVES),
    ratio_spread=Quantity(
        "standard deviation over trials of the risk divided by the first schedule's mean", CURVES
    ),
    prediction_distance=Estimate(
        "log ratio of the mean risk to the deterministic equivalent", CURVES
    ),
    harmonic_excess=Estimate(HARMONIC_EXCESS, "sample_size"),
    largest_step=Estimate(
        "largest log ratio of the risk at one sample size to that at the size before", "schedule"
    ),
)
def compared(simulation: Dataset, theory: Dataset, spectrum: str) -> dict:
    """Ratios to output perturbation, distances to the prediction, quantities of the text.

    The prediction says which polynomial schedule is the best, so that no noisy minimum does. The
    schedules of a trial share draws, and the sizes do not.
    """
    risk = trials_last(simulation.risk.sel(spectrum=spectrum).transpose(*GRID[1:], "trial"))
    predicted = theory.risk.sel(spectrum=spectrum).values
    mean = risk.mean(axis=-1)
    relative = risk / mean[..., None]
    ratio, error = mean / mean[:1], error_of_mean(relative)
    best = np.argmin(predicted[:-1], axis=0)[None]
    polynomial = np.take_along_axis(mean[:-1], best, 0)[0]
    of_polynomial = np.take_along_axis(relative[:-1], best[..., None], 0)[0]
    steps, step_error = np.log(mean[:, 1:] / mean[:, :-1]), np.hypot(error[:, 1:], error[:, :-1])
    worst = np.argmax(steps, axis=-1)[:, None]
    return {
        "ratio": (ratio, ratio * error_of_mean(relative - relative[:1])),
        "ratio_spread": standard_deviation(risk / mean[:1, :, None]),
        "prediction_distance": (np.log(mean / predicted), error),
        "harmonic_excess": (
            np.log(mean[-1] / polynomial),
            error_of_mean(relative[-1] - of_polynomial),
        ),
        "largest_step": [np.take_along_axis(each, worst, -1)[:, 0] for each in (steps, step_error)],
    }


theory = stage(AXES, tuned, expected)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run, spread=["risk"]), compared)


@cache
def _mechanism(*setting: Any) -> Mechanism:
    """Made once for all trials: the noise of 10⁶ steps takes a third of the time of a run."""
    from reproduction.papers.bombari2025 import mechanisms

    return mechanisms.mechanism(*setting)


def _schedule(shape: float | str, chosen: Dataset) -> Polynomial | Harmonic:
    amplitude = float(chosen.amplitude)
    if isinstance(shape, str):
        return Harmonic(amplitude, float(chosen.offset))
    return Polynomial(amplitude, shape)
