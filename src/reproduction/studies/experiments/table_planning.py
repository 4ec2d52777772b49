"""The regret of plans on a real table, of which a range is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Dimension, Rho, SampleSize, Some

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials
    from reproduction.studies.regret import Case

PLACE = "The regret of plans"


class Parameters(Strict):
    """All rows of a table are the population, of which a sample is drawn with replacement."""

    dataset: Literal["mnist", "california_housing"] = Field(description="Table.")
    components: Dimension = Field(
        description="Features at most: beyond, the table's first principal components."
    )
    sample_size: SampleSize = Field(description="Rows drawn.")
    budgets: Some[Rho] = Field(description="zCDP budgets, of replace-one neighbours.")


def theory(parameters: Parameters, data: xr.Dataset) -> xr.Dataset:
    """The plans and the grids' best settings."""
    from reproduction.studies.plan_stages import planned

    return planned(_cases(parameters, data), release="diagnostic")


def simulate(
    parameters: Parameters, trials: Trials, theory: xr.Dataset, data: xr.Dataset
) -> xr.Dataset:
    """Excess risk of the judged settings."""
    from reproduction.studies.plan_stages import judged

    return judged(_cases(parameters, data), trials, theory, release="diagnostic")


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Regrets."""
    from reproduction.studies.plan_stages import regrets

    return regrets(simulation, theory, release="diagnostic")


def _cases(parameters: Parameters, data: xr.Dataset) -> tuple[Case, ...]:
    from reproduction.experiment.tables import from_dataset
    from reproduction.studies.plan_cases import table_case

    table = from_dataset(data)
    features = np.asarray(table.features, dtype=np.float64) / table.feature_scale
    if features.shape[1] > parameters.components:
        centred = features - features.mean(axis=0)
        _, vectors = np.linalg.eigh(centred.T @ centred)
        features = centred @ vectors[:, : -parameters.components - 1 : -1]
    return tuple(
        table_case(
            parameters.dataset, features, table.labels, sample_size=parameters.sample_size, rho=rho
        )
        for rho in parameters.budgets
    )
