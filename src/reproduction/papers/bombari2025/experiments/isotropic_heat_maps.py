"""Risk of one-pass DP-GD on isotropic data, over clipping constants and learning rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipAxis,
    Dimension,
    Positive,
    PositiveDeviation,
    Power,
    Rising,
    SampleSize,
    Some,
    StatedBudget,
    StepSizeAxis,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.schedules import Polynomial
    from reproduction.experiment.trials import Trials

PLACE = "Figure 4"
GRID = ("sample_size", "exponent", "clip_constant", "initial_rate")
PANEL = GRID[:2]


class Parameters(Strict):
    """Figure 4: two sample sizes, two schedules, a grid of settings."""

    dimension: Annotated[Dimension, Field(ge=3)] = Field(description="Dimension d.")
    sample_sizes: Rising[SampleSize] = Field(description="Sample sizes n.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    exponents: Some[Power] = Field(description="Exponents alpha of the schedules.")
    clip_constants: ClipAxis = Field(description="Clipping constants c.")
    initial_rates: StepSizeAxis = Field(description="Initial learning rates.")
    risk_cap: Positive = Field(1.0, description="Risks above it are not told apart.")

    def schedule(self, exponent: float) -> Polynomial:
        """All rates at each clipping constant, the constant running slowest."""
        from privreg.schedules import Polynomial

        return Polynomial(np.tile(self.initial_rates.values(), self.clip_constants.count), exponent)

    def clip_of_each(self) -> np.ndarray:
        return np.repeat(self.clip_constants.values(), self.initial_rates.count)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (
            len(self.sample_sizes),
            len(self.exponents),
            self.clip_constants.count,
            self.initial_rates.count,
        )


def theory(parameters: Parameters) -> xr.Dataset:
    """The deterministic equivalent on the same grid, and its minimum between the grid's points."""
    import xarray as xr

    from privreg import spectra
    from privreg.theory.one_pass_dpgd import deterministic_equivalent

    risk = np.empty(parameters.shape)
    lowest = np.empty((*parameters.shape[:2], 3))
    for s, a in np.ndindex(parameters.shape[:2]):
        gamma = parameters.dimension / parameters.sample_sizes[s]

        def final_risk(
            schedule: Polynomial, clip_constant: np.ndarray, gamma: float = gamma
        ) -> np.ndarray:
            return deterministic_equivalent.solve(
                spectra.isotropic(),
                schedule,
                aspect_ratio=gamma,
                zcdp_root=parameters.budget.root,
                clip_constant=clip_constant,
                label_noise_std=parameters.label_noise_std,
                rtol=1e-5,
            ).final_risk

        exponent = parameters.exponents[a]
        risk[s, a] = final_risk(parameters.schedule(exponent), parameters.clip_of_each()).reshape(
            parameters.shape[2:]
        )
        lowest[s, a] = _minimum(final_risk, exponent, parameters, risk[s, a])
    least = risk.min(axis=(2, 3))
    clip_constants, rates = parameters.clip_constants.values(), parameters.initial_rates.values()
    gammas = parameters.dimension / np.asarray(parameters.sample_sizes)
    above = np.where(clip_constants > 1, 0.0, np.inf)[:, None]
    beyond = np.where(rates > 2 / gammas[:, None], 0.0, np.inf)[:, None, None, :]
    return xr.Dataset(
        {
            "risk": variable(GRID, risk, "excess risk of the deterministic equivalent"),
            "lowest_risk": variable(
                PANEL,
                lowest[..., 0],
                "least excess risk over rates and constants of the grid's range",
            ),
            "best_product": variable(
                PANEL, lowest[..., 1], "clipping constant times rate where the risk is least"
            ),
            "best_clip_constant": variable(
                PANEL, lowest[..., 2], "clipping constant where the risk is least"
            ),
            "large_clip_excess": variable(
                PANEL,
                np.log((risk + above).min(axis=(2, 3)) / least),
                "log ratio of the least risk with c above 1 to the least of all",
            ),
            "large_rate_excess": variable(
                PANEL,
                np.log((risk + beyond).min(axis=(2, 3)) / least),
                "log ratio of the least risk with a rate above 2 / gamma to the least of all",
            ),
            "valley_slope": variable(
                PANEL,
                [[_valley_slope(cell, clip_constants, rates) for cell in row] for row in risk],
                "log-log slope of the best initial rate in the clipping constant below 1",
            ),
        },
        coords=_coordinates(parameters),
        attrs={"risk_cap": parameters.risk_cap, "dimension": parameters.dimension},
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Final excess risk of every setting; settings share a trial's draws."""
    import xarray as xr

    from privreg.algorithms import one_pass_dpgd
    from reproduction.experiment.progress import track

    risk = np.empty((*parameters.shape, len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for s, a in np.ndindex(parameters.shape[:2]):
            mechanism = one_pass_dpgd.Mechanism.from_schedule(
                parameters.schedule(parameters.exponents[a]),
                sample_size=parameters.sample_sizes[s],
                dimension=parameters.dimension,
                budget=parameters.budget,
                clip_constant=parameters.clip_of_each(),
            )
            found = one_pass_dpgd.isotropic_risk_path(
                mechanism,
                trial.rng,
                dimension=parameters.dimension,
                target_norm=1.0,
                label_noise_std=parameters.label_noise_std,
            )
            risk[s, a, :, :, at] = found.reshape(parameters.shape[2:])
    return xr.Dataset(
        {"risk": variable((*GRID, "trial"), risk, "excess risk of the private output")},
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Mean over trials, its distance to the deterministic equivalent, what the text says of it.

    Regions are compared at the settings that the deterministic equivalent finds best in each, so
    that no minimum over noisy runs is its own evidence.
    """
    import xarray as xr

    risk = simulation.risk.values
    expected = theory.risk.values
    clip_constants, rates = simulation["clip_constant"].values, simulation.initial_rate.values
    mean = risk.mean(axis=-1)
    readable = expected <= parameters.risk_cap
    distance = np.abs(np.log(mean / expected))
    shape = parameters.shape[:2]
    excess = {name: np.empty((*shape, risk.shape[-1])) for name in ("clip_constant", "rate")}
    slope = np.empty((*shape, risk.shape[-1]))
    for s, a in np.ndindex(shape):
        gamma = parameters.dimension / parameters.sample_sizes[s]
        regions = {
            "clip_constant": np.broadcast_to(clip_constants[:, None] > 1, expected.shape[2:]),
            "rate": np.broadcast_to(rates > 2 / gamma, expected.shape[2:]),
        }
        for name, region in regions.items():
            inside, outside = (
                risk[s, a].reshape(-1, risk.shape[-1])[
                    np.argmin(np.where(part, expected[s, a], np.inf))
                ]
                for part in (region, ~region)
            )
            excess[name][s, a] = np.log(inside / outside)
        slope[s, a] = [
            _valley_slope(risk[s, a, :, :, trial], clip_constants, rates)
            for trial in range(risk.shape[-1])
        ]
    quantiles = [
        [
            [np.quantile(d[r], q) for d, r in zip(*row, strict=True)]
            for row in zip(distance, readable, strict=True)
        ]
        for q in (0.5, 0.95)
    ]
    return xr.Dataset(
        {
            **mean_and_error("risk", risk, GRID, "the excess risk of the private output"),
            "median_distance": variable(
                PANEL,
                quantiles[0],
                "median over settings of the absolute log ratio of the mean risk to the "
                "deterministic equivalent, where the latter is below the cap",
            ),
            "upper_distance": variable(
                PANEL, quantiles[1], "the same, 95th percentile over settings"
            ),
            **mean_and_error(
                "large_clip_excess",
                excess["clip_constant"],
                PANEL,
                "the log ratio of the risk at the best setting with c above 1 to the best below",
            ),
            **mean_and_error(
                "large_rate_excess",
                excess["rate"],
                PANEL,
                "the log ratio of the risk at the best rate above 2 / gamma to the best below",
            ),
            **mean_and_error(
                "valley_slope",
                slope,
                PANEL,
                "the log-log slope of the best initial rate in the clipping constant below 1",
            ),
        },
        coords=_coordinates(parameters) | {"trial": simulation.trial.variable},
        attrs={"risk_cap": parameters.risk_cap, "dimension": parameters.dimension},
    )


def _minimum(final_risk, exponent: float, parameters: Parameters, risk: np.ndarray):  # type: ignore[no-untyped-def]
    """Least risk, its product and constant, on ever finer grids around the best point."""
    from privreg.schedules import Polynomial

    clip_constants, rates = (
        np.log(parameters.clip_constants.values()),
        np.log(parameters.initial_rates.values()),
    )
    row, column = np.unravel_index(np.argmin(risk), risk.shape)
    centre = np.array([clip_constants[row], rates[column]])
    width = np.array([clip_constants[1] - clip_constants[0], rates[1] - rates[0]])
    offsets = np.linspace(-1, 1, 9)
    best = np.inf
    for _ in range(3):
        clip_constant, rate = np.meshgrid(
            np.clip(centre[0] + width[0] * offsets, clip_constants[0], clip_constants[-1]),
            np.clip(centre[1] + width[1] * offsets, rates[0], rates[-1]),
            indexing="ij",
        )
        found = final_risk(
            Polynomial(np.exp(rate.ravel()), exponent), np.exp(clip_constant.ravel())
        )
        at = np.argmin(found)
        best, centre = found[at], np.array([clip_constant.flat[at], rate.flat[at]])
        width = width / 4
    return best, np.exp(centre.sum()), np.exp(centre[0])


def _valley_slope(risk: np.ndarray, clip_constants: np.ndarray, rates: np.ndarray) -> float:
    """Over the clipping constants below 1 whose best rate lies inside the grid."""
    best = np.argmin(risk[clip_constants < 1], axis=1)
    inside = (best > 0) & (best < len(rates) - 1)
    abscissa, ordinate = (
        np.log(clip_constants[clip_constants < 1][inside]),
        np.log(rates[best[inside]]),
    )
    return float(np.polyfit(abscissa, ordinate, 1)[0])


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "sample_size": variable("sample_size", parameters.sample_sizes, "samples n"),
        "exponent": variable("exponent", parameters.exponents, "schedule exponent alpha"),
        "clip_constant": variable(
            "clip_constant", parameters.clip_constants.values(), "clipping constant c"
        ),
        "initial_rate": variable(
            "initial_rate", parameters.initial_rates.values(), "initial learning rate"
        ),
    }
