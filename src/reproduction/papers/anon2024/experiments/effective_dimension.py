"""How the price of a designed covariance, tr(Σ⁻¹H), follows the effective dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Dimension,
    LogAxis,
    Positive,
    Power,
    SampleSize,
    Some,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Section 4.1, Lemmas B.10 and B.11"


class Parameters(Strict):
    """Infinite power laws for the population, finite ones for public features."""

    decays: Some[Annotated[Power, Field(gt=1)]] = Field(description="Decay exponents r.")
    horizons: LogAxis = Field(description="N times the step size.")
    dimension: Annotated[Dimension, Field(ge=2)] = Field(
        description="Dimension d of the public features."
    )
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Number N of private rows.")
    public_ratios: Some[Count] = Field(description="Public over private rows, M / N.")
    sampled_horizons: Some[Positive] = Field(description="N eta of the samples.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Effective dimensions and exact traces of the population's design."""
    import xarray as xr

    from privreg.theory.shaped_noise.decay import PowerLawDecay, effective_dimension

    horizons = parameters.horizons.values()
    laws = [PowerLawDecay(r) for r in parameters.decays]
    dims = ("decay", "horizon")
    dimension = np.array([effective_dimension(law, horizons) for law in laws])
    trace = np.array([[law.shaped_trace(a) for a in horizons] for law in laws])
    return xr.Dataset(
        {
            "effective_dimension": variable(dims, dimension, "effective dimension"),
            "shaped_trace": variable(dims, trace, "tr((H + I/a)^-1 H), exact"),
            "trace_ratio": variable(dims, trace / dimension, "trace over effective dimension"),
            "smallest_trace_ratio": variable((), np.min(trace / dimension), "smallest ratio"),
            "largest_trace_ratio": variable((), np.max(trace / dimension), "largest ratio"),
        },
        coords={
            "decay": variable("decay", parameters.decays, "decay exponent r"),
            "horizon": variable("horizon", horizons, "N times the step size"),
        },
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """The same traces where Σ comes from public features."""
    import xarray as xr

    from privreg.noise.covariance import PublicCovariance
    from reproduction.experiment.progress import track

    ratios, horizons = parameters.public_ratios, parameters.sampled_horizons
    shape = (len(parameters.decays), len(ratios), len(horizons), len(trials))
    inverse, forward = np.empty(shape), np.empty(shape)
    for at, trial in enumerate(track(trials, total=len(trials), label="public features")):
        normals = trial.rng.standard_normal(
            (max(ratios) * parameters.sample_size, parameters.dimension)
        )
        for i, decay in enumerate(parameters.decays):
            eigenvalues = np.arange(1.0, parameters.dimension + 1) ** -decay
            for j, ratio in enumerate(ratios):
                rows = ratio * parameters.sample_size
                public = PublicCovariance(normals[:rows] * np.sqrt(eigenvalues), ridge=rows)
                for k, horizon in enumerate(horizons):
                    covariance = public.with_ridge(rows / horizon)
                    population = eigenvalues + 1 / horizon
                    inverse[i, j, k, at] = covariance.inverse_trace(eigenvalues) / np.sum(
                        eigenvalues / population
                    )
                    forward[i, j, k, at] = covariance.trace(eigenvalues) / np.sum(
                        eigenvalues * population
                    )
    dims = ("decay", "public_ratio", "sampled_horizon", "trial")
    return xr.Dataset(
        {
            "inverse_ratio": variable(
                dims, inverse, "tr(Sigma^-1 H) with public features over that of the population"
            ),
            "forward_ratio": variable(
                dims, forward, "tr(Sigma H) with public features over that of the population"
            ),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over trials with errors."""
    import xarray as xr

    dims = ("decay", "public_ratio", "sampled_horizon")
    variables: dict[str, tuple] = {}
    for name in ("inverse_ratio", "forward_ratio"):
        description = simulation[name].attrs["long_name"]
        variables |= mean_and_error(name, simulation[name].values, dims, description)
    inverse = simulation.inverse_ratio.values.max(axis=-1)
    bound = np.array(
        [
            [[_over_population(parameters, r, m, a) for a in parameters.sampled_horizons]
             for m in parameters.public_ratios]
            for r in parameters.decays
        ]
    )  # fmt: skip
    variables["inverse_over_bound"] = variable(
        dims, inverse / bound, "largest tr(Sigma^-1 H) of all draws over Lemma B.10 at constant 1"
    )
    return xr.Dataset(
        variables, coords=_coordinates(parameters) | {"trial": simulation.trial.variable}
    )


def _over_population(parameters: Parameters, decay: float, ratio: int, horizon: float) -> float:
    """Lemma B.10's bound with constant 1 over the population's trace."""
    lam = np.arange(1.0, parameters.dimension + 1) ** -decay
    rows = ratio * parameters.sample_size
    ridge = rows / horizon
    tails = np.append(np.cumsum(lam[::-1])[::-1], 0.0)
    place = int(np.argmax(np.append(lam, 0.0) * rows <= ridge + tails))
    bound = place * (ridge + tails[place]) / ridge + rows * tails[place] / ridge
    return float(bound / np.sum(lam / (lam + 1 / horizon)))


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "decay": variable("decay", parameters.decays, "decay exponent r"),
        "public_ratio": variable("public_ratio", parameters.public_ratios, "public rows over N"),
        "sampled_horizon": variable(
            "sampled_horizon", parameters.sampled_horizons, "N times the step size"
        ),
    }
