"""Private estimators beside each other on a real table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Probability, Rho, Rising
from reproduction.studies import comparing

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Peers"


class Parameters(Strict):
    """A table, budgets and the level of the intervals."""

    dataset: Literal["mnist", "california_housing"] = Field(description="The real table.")
    rhos: Rising[Rho] = Field(description="zCDP budgets, of replace-one neighbours.")
    level: Probability = Field(description="Nominal coverage.")


def simulate(parameters: Parameters, trials: Trials, data: xr.Dataset) -> xr.Dataset:
    """Errors and lengths on four fifths of the rows, or on all but the official test rows."""
    from reproduction.experiment.tables import from_dataset
    from reproduction.studies.compared_tables import real_table

    table = real_table(from_dataset(data))
    return comparing.simulate(
        [table], parameters.rhos, parameters.level, trials, release="diagnostic"
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means with errors."""
    return comparing.summarise(simulation, release="diagnostic")
