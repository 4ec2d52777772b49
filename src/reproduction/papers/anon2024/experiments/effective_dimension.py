"""How the price of a designed covariance, tr(Σ⁻¹H), follows the effective dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import Axis, Quantity, means, per, stage
from reproduction.experiment.parameters import Strict
from reproduction.papers.anon2024 import setting

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trial

PLACE = "Section 4.1, Lemmas B.10 and B.11"


# N eta, up to which ten million coordinates are followed.
Horizon = Annotated[q.Real, Field(ge=1e-3, le=1e6)]


class Horizons(q.LogAxis):
    """Log-spaced horizons."""

    low: Horizon = Field(description="Smallest horizon.")
    high: Horizon = Field(description="Largest horizon, more than the smallest.")


class Parameters(Strict):
    """Infinite power laws for the population, finite ones for public features."""

    decays: setting.Decays = Field(description="Decay exponents r.")
    horizons: Horizons = Field(description="N times the step size.")
    dimension: Annotated[q.Dimension, Field(ge=2)] = Field(
        description="Dimension d of the public features."
    )
    sample_size: Annotated[q.SampleSize, Field(ge=2)] = Field(
        description="Number N of private rows."
    )
    public_ratios: q.Some[q.Count] = Field(description="Public over private rows, M / N.")
    sampled_horizons: q.Some[Horizon] = Field(description="N eta of the samples.")


AXES = {
    "decay": setting.AXES["decay"],
    "horizon": Axis("N times the step size", "horizons"),
    "public_ratio": Axis("public rows over N", "public_ratios"),
    "sampled_horizon": Axis("N times the step size", "sampled_horizons"),
}
SAMPLED = ("decay", "public_ratio", "sampled_horizon")


@per(
    effective_dimension=Quantity("effective dimension", "decay horizon"),
    shaped_trace=Quantity("tr((H + I/a)^-1 H), exact", "decay horizon"),
    trace_ratio=Quantity("trace over effective dimension", "decay horizon"),
    smallest_trace_ratio="smallest ratio",
    largest_trace_ratio="largest ratio",
)
def traces(parameters: Parameters) -> dict:
    """Effective dimensions and exact traces of the population's design."""
    from privreg.theory.shaped_noise.decay import PowerLawDecay, effective_dimension

    horizons = parameters.horizons.values()
    laws = [PowerLawDecay(r) for r in parameters.decays]
    dimension = np.array([effective_dimension(law, horizons) for law in laws])
    trace = np.array([[law.shaped_trace(a) for a in horizons] for law in laws])
    ratio = trace / dimension
    return {
        "effective_dimension": dimension,
        "shaped_trace": trace,
        "trace_ratio": ratio,
        "smallest_trace_ratio": ratio.min(),
        "largest_trace_ratio": ratio.max(),
    }


@per(
    *SAMPLED,
    inverse_ratio="tr(Sigma^-1 H) with public features over that of the population",
    forward_ratio="tr(Sigma H) with public features over that of the population",
)
def run(parameters: Parameters, trial: Trial) -> list:
    """The same traces where Σ comes from public features."""
    most = max(parameters.public_ratios) * parameters.sample_size
    normals = trial.rng.standard_normal((most, parameters.dimension))
    return [
        [
            _ratios(parameters, decay, normals[: ratio * parameters.sample_size])
            for ratio in parameters.public_ratios
        ]
        for decay in parameters.decays
    ]


@per(
    *SAMPLED,
    inverse_over_bound="largest tr(Sigma^-1 H) of all draws over Lemma B.10 at constant 1",
)
def over_bound(
    parameters: Parameters,
    simulation: xr.Dataset,
    decay: float,
    public_ratio: int,
    sampled_horizon: float,
) -> float:
    cell = {"decay": decay, "public_ratio": public_ratio, "sampled_horizon": sampled_horizon}
    # The bound, as the ratios are, over the population's trace.
    lam = setting.power_law(parameters.dimension, decay)
    rows = public_ratio * parameters.sample_size
    ridge = rows / sampled_horizon
    tails = np.append(np.cumsum(lam[::-1])[::-1], 0.0)
    place = int(np.argmax(np.append(lam, 0.0) * rows <= ridge + tails))
    bound = place * (ridge + tails[place]) / ridge + rows * tails[place] / ridge
    over_population = bound / np.sum(lam / (lam + 1 / sampled_horizon))
    return simulation.inverse_ratio.sel(cell).values.max() / over_population


theory = stage(AXES, traces)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run), over_bound)


def _ratios(parameters: Parameters, decay: float, normals: np.ndarray) -> list[dict]:
    """For each horizon, of one table of public features."""
    from privreg.noise.covariance import PublicCovariance

    lam, rows = setting.power_law(parameters.dimension, decay), len(normals)
    public = PublicCovariance(normals * np.sqrt(lam), ridge=rows)
    found = []
    for horizon in parameters.sampled_horizons:
        covariance, population = public.with_ridge(rows / horizon), lam + 1 / horizon
        inverse, forward = covariance.inverse_trace(lam), covariance.trace(lam)
        found.append(
            {
                "inverse_ratio": inverse / np.sum(lam / population),
                "forward_ratio": forward / np.sum(lam * population),
            }
        )
    return found
