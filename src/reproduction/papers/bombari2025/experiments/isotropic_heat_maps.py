"""Risk of one-pass DP-GD on isotropic data, over clipping constants and learning rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.schedules import Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.bombari2025 import heat_maps, setting

PLACE = "Figure 4"
REFINEMENTS, OFFSETS = 3, np.linspace(-1, 1, 9)


class Parameters(heat_maps.Grid, setting.Labelled):
    """Figure 4: two sample sizes, two schedules, a grid of settings."""

    dimension: q.Dimension = Field(description="Dimension d.")
    sample_sizes: q.Rising[q.SampleSize] = Field(description="Sample sizes n.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")
    exponents: q.Some[q.Power] = Field(description="Exponents alpha of the schedules.")
    risk_cap: q.Positive = Field(1.0, description="Largest risk compared or drawn.")


AXES = {
    "sample_size": setting.SAMPLE_SIZE,
    "exponent": setting.EXPONENT,
    "clip_constant": setting.CLIP_CONSTANT,
    "initial_rate": setting.INITIAL_RATE,
}
PANEL, MAP = ("sample_size", "exponent"), ("clip_constant", "initial_rate")
ABOVE_CAP = "the deterministic equivalent is above the cap everywhere"


@per(
    *PANEL,
    risk=Quantity("excess risk of the deterministic equivalent", " ".join(MAP)),
    lowest_risk="least excess risk over rates and constants of the grid's range",
    best_product="clipping constant times rate where the risk is least",
)
def predicted(parameters: Parameters, sample_size: int, exponent: float) -> dict:
    """The deterministic equivalent on the grid, and its minimum between the grid's points."""
    risk = _final_risk(parameters, sample_size, exponent, *parameters.settings())
    return {"risk": risk, **_minimum(parameters, sample_size, exponent, risk)}


@per(*PANEL, *MAP, risk="excess risk of the private output")
def run(parameters: Parameters, trial: Trial, sample_size: int, exponent: float) -> np.ndarray:
    """Final excess risk of every setting; settings share a trial's draws."""
    from privreg.algorithms import one_pass_dpgd
    from reproduction.papers.bombari2025 import mechanisms

    constants, rates = parameters.settings()
    schedule = Polynomial(rates.ravel(), exponent)
    mechanism = mechanisms.mechanism(
        parameters.budget, schedule, sample_size, parameters.dimension, constants.ravel()
    )
    risk = one_pass_dpgd.isotropic_risk_path(
        mechanism,
        trial.rng,
        dimension=parameters.dimension,
        target_norm=1.0,
        label_noise_std=parameters.label_noise_std,
    )
    return risk.reshape(rates.shape)


@per(
    *PANEL,
    median_distance=Quantity(
        "median over settings of the absolute log ratio of the mean risk to the deterministic "
        "equivalent, where the latter is below the cap",
        missing=ABOVE_CAP,
    ),
    upper_distance=Quantity("95th percentile of the same absolute log ratio", missing=ABOVE_CAP),
    large_clip_excess=Mean(
        "the log ratio of the risk at the best setting with c above 1 to the best other risk",
        missing=heat_maps.ONE_SIDE,
    ),
    large_rate_excess=Mean(
        "the log ratio of the risk at the best rate above 2 / gamma to the best other risk",
        missing=heat_maps.ONE_SIDE,
    ),
    valley_slope=Mean(
        "the log-log slope of the best initial rate in the clipping constant below 1",
        missing=heat_maps.NO_VALLEY,
    ),
)
def readings(parameters: Parameters, simulation: Dataset, theory: Dataset, **cell: Any) -> dict:
    """Distances to the deterministic equivalent, and the text's quantities of the maps.

    Regions are compared at the settings that the deterministic equivalent finds best in each, so
    that no minimum over noisy runs is its own evidence.
    """
    risk, expected = trials_last(simulation.risk.sel(cell)), theory.risk.sel(cell).values
    apart = np.abs(np.log(risk.mean(axis=-1) / expected))[expected <= parameters.risk_cap]
    regions = parameters.regions(parameters.dimension / cell["sample_size"])
    excess = {
        name: heat_maps.best_in_and_out(risk, expected, region) for name, region in regions.items()
    }
    return excess | {
        "median_distance": np.quantile(apart, 0.5) if apart.size else np.nan,
        "upper_distance": np.quantile(apart, 0.95) if apart.size else np.nan,
        "valley_slope": [parameters.valley_slope(each) for each in np.moveaxis(risk, -1, 0)],
    }


def _about(parameters: Parameters) -> dict:
    return {"risk_cap": parameters.risk_cap, "dimension": parameters.dimension}


theory = stage(AXES, predicted, attributes=_about)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run), readings, attributes=_about)


def _final_risk(
    parameters: Parameters,
    sample_size: int,
    exponent: float,
    clip_constants: np.ndarray,
    rates: np.ndarray,
) -> np.ndarray:
    """Final risk of the deterministic equivalent, at settings of any shape."""
    from reproduction.papers.bombari2025 import equivalent

    schedule = Polynomial(rates.ravel(), exponent)
    at = parameters.dimension / sample_size, parameters.budget.root, clip_constants.ravel()
    found = equivalent.solve(parameters, spectra.isotropic(), schedule, *at, rtol=1e-5)
    return found.final_risk.reshape(rates.shape)


def _minimum(parameters: Parameters, sample_size: int, exponent: float, risk: np.ndarray) -> dict:
    """Least risk, its product and constant, on ever finer grids around the best point."""
    axes = [np.log(each.values()) for each in (parameters.clip_constants, parameters.initial_rates)]
    at = np.unravel_index(np.argmin(risk), risk.shape)
    centre = [axis[place] for axis, place in zip(axes, at, strict=True)]
    width = np.array([axis[1] - axis[0] for axis in axes])
    for _ in range(REFINEMENTS):
        finer = [
            np.clip(middle + reach * OFFSETS, axis[0], axis[-1])
            for middle, reach, axis in zip(centre, width, axes, strict=True)
        ]
        grid = np.meshgrid(*finer, indexing="ij")
        found = _final_risk(parameters, sample_size, exponent, *map(np.exp, grid))
        best = np.argmin(found)
        centre = [each.flat[best] for each in grid]
        width = width / 4
    return {"lowest_risk": found.flat[best], "best_product": np.exp(centre[0] + centre[1])}
