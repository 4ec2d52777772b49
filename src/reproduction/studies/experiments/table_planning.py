"""The regret of plans on a real table, of which a range is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import stage
from reproduction.experiment.parameters import Strict
from reproduction.studies import plan_stages

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.studies.regret import Case

PLACE = "The regret of plans"


class Parameters(Strict):
    """All rows of a table are the population, of which a sample is drawn with replacement."""

    dataset: Literal["mnist", "california_housing"] = Field(description="Table.")
    components: q.Dimension = Field(
        description="Features at most: beyond, the table's first principal components."
    )
    sample_size: q.SampleSize = Field(description="Rows drawn.")
    budgets: q.Some[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")


def cases(parameters: Parameters, data: xr.Dataset) -> tuple[Case, ...]:
    """The table at each budget."""
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


theory = stage(plan_stages.AXES, plan_stages.plans, shared={"cases": cases}, released="diagnostic")
simulate = stage(
    plan_stages.AXES, plan_stages.judged, shared={"cases": cases}, released="diagnostic"
)
summarise = stage(plan_stages.SUMMARISED, *plan_stages.REGRETS, released="diagnostic")
