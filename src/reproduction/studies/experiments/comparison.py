"""Private estimators beside each other on tables that need no download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Probability, Rho, Rising, SampleSize, Some
from reproduction.studies import comparing

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials
    from reproduction.studies.compared_tables import ComparedTable

PLACE = "Peers"


class Parameters(Strict):
    """Tables, budgets and the level of the intervals."""

    tables: Some[Literal["normal", "correlated", "flats", "diabetes"]] = Field(
        description="Tables; diabetes has sizes of its own."
    )
    training_rows: Annotated[SampleSize, Field(ge=500)] = Field(description="Rows that a fit sees.")
    held_out_rows: Annotated[SampleSize, Field(ge=100)] = Field(description="Rows that judge it.")
    rhos: Rising[Rho] = Field(description="zCDP budgets, of replace-one neighbours.")
    level: Probability = Field(description="Nominal coverage.")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Errors, lengths and coverage on freshly drawn or split tables."""
    return comparing.simulate(_tables(parameters), parameters.rhos, parameters.level, trials)


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means with errors."""
    return comparing.summarise(simulation)


def _tables(parameters: Parameters) -> list[ComparedTable]:
    from reproduction.studies.compared_tables import Synthetic, diabetes

    sizes = parameters.training_rows, parameters.held_out_rows
    return [
        diabetes() if name == "diabetes" else Synthetic(name, *sizes) for name in parameters.tables
    ]
