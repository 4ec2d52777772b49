"""Risk of one-pass DP-GD along its path, against the deterministic equivalent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    Deviation,
    Dimension,
    Power,
    Rising,
    Some,
    StatedBudget,
    StepSize,
)
from privreg.experiment.summaries import loglog_slope, mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials

PLACE = "Figure 1, Theorem 1 and Proposition 4.4"
CURVE_POINTS = 1001


class Parameters(Strict):
    """Figure 1: two spectra and two schedules at three dimensions."""

    dimensions: Annotated[Rising[Dimension], Field(min_length=2)] = Field(
        description="Dimensions d, each with n = d / gamma."
    )
    aspect_ratio: AspectRatio = Field(description="gamma = d / n.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    label_noise_std: Deviation = Field(description="Standard deviation zeta of the label noise.")
    initial_rate: StepSize = Field(description="Initial learning rate.")
    exponents: Some[Power] = Field(description="Exponents alpha of the schedule.")
    spectra: Some[Literal["isotropic", "uniform"]] = Field(
        description="Identity, or diagonal with eigenvalues uniform on [0, 2]."
    )

    def sample_size(self, dimension: int) -> int:
        return round(dimension / self.aspect_ratio)

    @property
    def work(self) -> float:
        """Arithmetic of a trial: a row of d numbers a step, or a few where the law is isotropic."""
        row = {"isotropic": 30.0, "uniform": 0.0}
        return len(self.exponents) * sum(
            self.sample_size(dimension) * (row[spectrum] or dimension)
            for spectrum in self.spectra
            for dimension in self.dimensions
        )

    @property
    def held(self) -> float:
        """Numbers of a trial in memory: the risk after every step of every setting."""
        settings = len(self.spectra) * len(self.exponents) * len(self.dimensions)
        return settings * max(map(self.sample_size, self.dimensions))


def theory(parameters: Parameters) -> xr.Dataset:
    """Deterministic equivalent of each spectrum and schedule, limit and finite dimensions."""
    import xarray as xr

    from privreg import spectra
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import deterministic_equivalent

    times = np.linspace(0.0, 1.0, CURVE_POINTS)
    limits = {"isotropic": spectra.isotropic(), "uniform": spectra.uniform()}

    def solve(spectrum: spectra.Spectrum, exponent: float) -> deterministic_equivalent.Solution:
        return deterministic_equivalent.solve(
            spectrum,
            Polynomial(parameters.initial_rate, exponent),
            aspect_ratio=parameters.aspect_ratio,
            zcdp_root=parameters.budget.root,
            clip_constant=parameters.clip_constant,
            label_noise_std=parameters.label_noise_std,
            times=times,
        )

    limit = [[solve(limits[name], a) for a in parameters.exponents] for name in parameters.spectra]
    finite = [
        [
            [
                solve(spectra.explicit(_eigenvalues(name, dimension)), exponent)
                for dimension in parameters.dimensions
            ]
            for exponent in parameters.exponents
        ]
        for name in parameters.spectra
    ]
    grid = ("spectrum", "exponent")
    return xr.Dataset(
        {
            "risk": variable(
                (*grid, "time"),
                [[solution.risk for solution in row] for row in limit],
                "excess risk of the deterministic equivalent",
            ),
            "final_risk": variable(
                grid,
                [[solution.final_risk for solution in row] for row in limit],
                "excess risk of the private output, with the output noise",
            ),
            "risk_at_dimension": variable(
                (*grid, "dimension", "time"),
                [[[solution.risk for solution in row] for row in block] for block in finite],
                "excess risk of the deterministic equivalent of the finite spectrum",
            ),
        },
        coords=_coordinates(parameters) | {"time": variable("time", times, "time k / n")},
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Excess risk after every step, on the finest time grid, for each trial."""
    import xarray as xr

    from privreg.algorithms import one_pass_dpgd
    from privreg.experiment.progress import track
    from privreg.models import LinearModel
    from privreg.schedules import Polynomial

    finest = max(parameters.sample_size(dimension) for dimension in parameters.dimensions)
    shape = (len(parameters.spectra), len(parameters.exponents), len(parameters.dimensions))
    path = np.empty((*shape, len(trials), finest))
    final = np.empty((*shape, len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for s, a, d in np.ndindex(shape):
            dimension = parameters.dimensions[d]
            sample_size = parameters.sample_size(dimension)
            mechanism = one_pass_dpgd.Mechanism.from_schedule(
                Polynomial(parameters.initial_rate, parameters.exponents[a]),
                sample_size=sample_size,
                dimension=dimension,
                budget=parameters.budget,
                clip_constant=parameters.clip_constant,
            )
            model = LinearModel.even_target(
                _eigenvalues(parameters.spectra[s], dimension),
                label_noise_std=parameters.label_noise_std,
            )
            risk = one_pass_dpgd.risk_path(
                mechanism, model, trial.rng, record=np.arange(sample_size + 1)
            )[0]
            path[s, a, d, at] = risk[np.arange(finest) * sample_size // finest]
            final[s, a, d, at] = risk[-1]
    dims = ("spectrum", "exponent", "dimension", "trial")
    times = np.arange(finest) / finest
    return xr.Dataset(
        {
            "risk": variable((*dims, "time"), path, "excess risk of the current iterate"),
            "final_risk": variable(dims, final, "excess risk of the private output"),
        },
        coords=_coordinates(parameters) | {"time": variable("time", times, "time k / n")},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Means and spreads over trials, and the largest gap to the deterministic equivalent."""
    import xarray as xr

    risk = simulation.risk.values
    times = simulation.time.values
    grid = ("spectrum", "exponent", "dimension")
    curve = np.apply_along_axis(
        lambda values: np.interp(times, theory.time.values, values),
        -1,
        theory.risk_at_dimension.values,
    )
    gap = np.abs(risk - curve[..., None, :]).max(axis=-1)
    mean_gap = np.abs(risk.mean(axis=-2) - curve).max(axis=-1)
    slope, slope_error = loglog_slope(np.asarray(parameters.dimensions), gap)
    shown = np.linspace(0, len(times) - 1, min(CURVE_POINTS, len(times))).astype(int)
    slope_name = "gap_slope_standard_error"
    return xr.Dataset(
        {
            "risk_mean": variable(
                (*grid, "time"), risk.mean(axis=-2)[..., shown], "mean excess risk over trials"
            ),
            "risk_spread": variable(
                (*grid, "time"),
                risk.std(axis=-2, ddof=1)[..., shown],
                "standard deviation of the excess risk over trials",
            ),
            **mean_and_error(
                "final_risk", simulation.final_risk.values, grid, "the excess risk of the output"
            ),
            "final_risk_spread": variable(
                grid,
                simulation.final_risk.values.std(axis=-1, ddof=1),
                "standard deviation over trials of the excess risk of the output",
            ),
            **mean_and_error(
                "gap",
                gap,
                grid,
                "the largest distance to the deterministic equivalent before t = 1",
            ),
            "gap_of_mean": variable(
                grid,
                mean_gap,
                "largest distance of the mean over trials to the deterministic equivalent",
            ),
            "largest_growth": variable(
                grid,
                (risk.max(axis=-1) / risk[..., 0]).max(axis=-1),
                "largest excess risk of any run before t = 1, over that of the start",
            ),
            "gap_slope": variable(
                grid[:2],
                slope,
                "log-log slope of the mean gap in the dimension",
                standard_error=slope_name,
            ),
            slope_name: variable(grid[:2], slope_error, "standard error of the slope of the gap"),
        },
        coords=_coordinates(parameters)
        | {
            "time": variable("time", times[shown], "time k / n"),
            "trial": simulation.trial.variable,
        },
    )


def _eigenvalues(name: str, dimension: int) -> np.ndarray:
    from privreg import spectra

    return np.ones(dimension) if name == "isotropic" else spectra.uniform_midpoints(dimension)


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "spectrum": variable("spectrum", parameters.spectra, "covariance spectrum"),
        "exponent": variable("exponent", parameters.exponents, "schedule exponent alpha"),
        "dimension": variable("dimension", parameters.dimensions, "dimension d"),
    }
