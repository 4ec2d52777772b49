"""Risk of one-pass DP-GD along its path, against the deterministic equivalent."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg import spectra
from privreg.models import LinearModel
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import loglog_slope, standard_deviation
from reproduction.papers.bombari2025 import setting

PLACE = "Figure 1, Theorem 1 and Proposition 4.4"
TIME, TIMES = "time k / n", np.linspace(0.0, 1.0, 1001)


class Parameters(setting.OneRate):
    """Figure 1: two spectra and two schedules at three dimensions."""

    dimensions: q.Grid[q.Dimension] = Field(description="Dimensions d, each with n = d / gamma.")
    exponents: q.Some[q.Power] = Field(description="Exponents alpha of the schedule.")
    spectra: setting.Spectra

    @property
    def times(self) -> np.ndarray:
        """Times k / n of the largest dimension."""
        finest = self.sample_size(self.dimensions[-1])
        return np.arange(finest) / finest

    @property
    def shown(self) -> np.ndarray:
        """Indices of the times that figures show."""
        count = len(self.times)
        return np.linspace(0, count - 1, min(TIMES.size, count)).astype(int)


AXES = {
    "spectrum": setting.SPECTRUM,
    "exponent": setting.EXPONENT,
    "dimension": Axis("dimension d", "dimensions"),
    "time": Axis(TIME, TIMES),
}
GRID = tuple(AXES)[:3]


@per(
    *GRID[:2],
    risk=Quantity("excess risk of the deterministic equivalent", "time"),
    final_risk="excess risk of the private output, with the output noise",
)
def limit(parameters: Parameters, spectrum: str, exponent: float) -> dict:
    """The deterministic equivalent of a limit spectrum."""
    from reproduction.papers.bombari2025 import equivalent

    limits = {"isotropic": spectra.isotropic(), "uniform": spectra.uniform()}
    solution = equivalent.path(parameters, limits[spectrum], exponent, TIMES)
    return {"risk": solution.risk, "final_risk": solution.final_risk}


@per(
    *GRID,
    risk_at_dimension=Quantity(
        "excess risk of the deterministic equivalent of the finite spectrum", "time"
    ),
)
def finite(parameters: Parameters, spectrum: str, exponent: float, dimension: int) -> np.ndarray:
    """The deterministic equivalent of as many eigenvalues as there are dimensions."""
    from reproduction.papers.bombari2025 import equivalent

    finite_spectrum = setting.finite_spectrum(spectrum, dimension)
    return equivalent.path(parameters, finite_spectrum, exponent, TIMES).risk


@per(
    *GRID,
    risk=Quantity("excess risk of the current iterate", "time"),
    final_risk="excess risk of the private output",
)
def run(
    parameters: Parameters, trial: Trial, spectrum: str, exponent: float, dimension: int
) -> dict:
    """Excess risk after every step, on the finest time grid."""
    from privreg.algorithms import one_pass_dpgd
    from reproduction.papers.bombari2025 import mechanisms

    sample_size, finest = parameters.sample_size(dimension), len(parameters.times)
    mechanism = mechanisms.mechanism(
        parameters.budget,
        parameters.schedule(exponent),
        sample_size,
        dimension,
        parameters.clip_constant,
    )
    model = LinearModel.even_target(
        setting.eigenvalues(spectrum, dimension), label_noise_std=parameters.label_noise_std
    )
    every = np.arange(sample_size + 1)
    risk = one_pass_dpgd.risk_path(mechanism, model, trial.rng, record=every)[0]
    return {"risk": risk[np.arange(finest) * sample_size // finest], "final_risk": risk[-1]}


@per(
    *GRID,
    risk_mean=Quantity("mean excess risk over trials", "time"),
    risk_spread=Quantity("standard deviation of the excess risk over trials", "time"),
    gap_of_mean="largest distance of the mean over trials to the deterministic equivalent",
    largest_growth="largest excess risk of any run before t = 1, divided by that of the start",
)
def paths(parameters: Parameters, simulation: Dataset, theory: Dataset) -> dict:
    """Distances to the deterministic equivalent, and means at the times that figures show."""
    risk, curve = _paths(parameters, simulation, theory)
    mean = risk.mean(axis=-2)
    return {
        "risk_mean": mean[..., parameters.shown],
        "risk_spread": standard_deviation(risk, axis=-2)[..., parameters.shown],
        "gap_of_mean": np.abs(mean - curve).max(axis=-1),
        "largest_growth": (risk.max(axis=-1) / risk[..., 0]).max(axis=-1),
    }


@per(
    *GRID[:2],
    gap_slope=Estimate("log-log slope of the mean gap against the dimension"),
    gap_of_mean_slope="log-log slope of the mean risk's gap in the dimension",
    worst_gap_slope="log-log slope of the largest gap of any run in the dimension",
    final_gap_slope=Estimate(
        "log-log slope of the mean distance of the output's risk to its prediction"
    ),
    worst_final_gap_slope="log-log slope of the largest distance of a risk to its prediction",
)
def slopes(parameters: Parameters, simulation: Dataset, theory: Dataset) -> dict:
    """Rates at which risks approach the deterministic equivalent; outputs R(1) and their noise."""
    risk, curve = _paths(parameters, simulation, theory)
    gaps = np.abs(risk - curve[..., None, :]).max(axis=-1)
    noise = theory.final_risk - theory.risk.isel(time=-1)
    expected = theory.risk_at_dimension.isel(time=-1) + noise
    found = simulation.final_risk.transpose(*GRID, "trial").values
    final_gaps = np.abs(found - expected.transpose(*GRID).values[..., None])
    logs = np.log(parameters.dimensions)
    weights = (logs - np.mean(logs)) / np.sum((logs - np.mean(logs)) ** 2)
    return {
        "gap_slope": loglog_slope(parameters.dimensions, gaps),
        "gap_of_mean_slope": np.log(np.abs(risk.mean(axis=-2) - curve).max(axis=-1)) @ weights,
        "worst_gap_slope": np.log(gaps.max(axis=-1)) @ weights,
        "final_gap_slope": loglog_slope(parameters.dimensions, final_gaps),
        "worst_final_gap_slope": np.log(final_gaps.max(axis=-1)) @ weights,
    }


theory = stage(AXES, limit, finite)
simulate = stage(AXES, run, time=Axis(TIME, "times"))
summarise = stage(
    AXES,
    means(run, "final_risk", spread=["final_risk"]),
    paths,
    slopes,
    time=Axis(TIME, lambda parameters: parameters.times[parameters.shown]),
)


def _paths(
    parameters: Parameters, simulation: Dataset, theory: Dataset
) -> tuple[np.ndarray, np.ndarray]:
    """Risks (*grid, trial, time), and the deterministic equivalent (*grid, time)."""
    return simulation.risk.transpose(*GRID, "trial", "time").values, np.apply_along_axis(
        lambda values: np.interp(parameters.times, theory.time.values, values),
        -1,
        theory.risk_at_dimension.values,
    )
