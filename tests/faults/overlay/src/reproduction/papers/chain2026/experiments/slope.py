"""Slope of the label in one feature, from all rows and from a few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine.artifacts import variable
from reproduction.engine.parameters import Strict
from reproduction.engine.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.engine.trials import Trials

PLACE = "everywhere"


class Parameters(Strict):
    """A table and a number of rows."""

    dataset: str = Field(description="Table.")
    rows: int = Field(ge=2, description="Rows of a trial.")


def theory(parameters: Parameters, data: xr.Dataset) -> xr.Dataset:
    """Slope from all rows."""
    import xarray as xr

    return xr.Dataset({"slope": variable((), _slope(data.features, data.label), "slope")})


def simulate(parameters: Parameters, trials: Trials, data: xr.Dataset) -> xr.Dataset:
    """Slope from some rows a trial."""
    import xarray as xr

    found = []
    for trial in trials:
        rows = trial.rng.permutation(data.sizes["row"])[: parameters.rows]
        found.append(_slope(data.features[rows], data.label[rows]))
    return xr.Dataset({"slope": variable("trial", found, "slope")})


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean over trials."""
    import xarray as xr

    return xr.Dataset(mean_and_error("slope", simulation.slope.values, [], "the slope"))


def intervals(parameters: Parameters, theory: xr.Dataset, simulation: xr.Dataset) -> xr.Dataset:
    """Bias in standard errors."""
    import xarray as xr

    bias = (simulation.slope - theory.slope) / simulation.slope_standard_error
    return xr.Dataset({"bias": variable((), bias, "bias in standard errors")})


def _slope(features: xr.DataArray, labels: xr.DataArray) -> float:
    first, second = features.values[:, 0].astype(float), labels.values
    return float(np.cov(first, second)[0, 1] / first.var(ddof=1))
