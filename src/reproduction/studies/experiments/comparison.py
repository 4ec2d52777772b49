"""Private estimators beside each other on tables that need no download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, stage
from reproduction.studies import comparing

if TYPE_CHECKING:
    from reproduction.studies.compared_tables import ComparedTable

PLACE = "Peers"


class Parameters(comparing.Compared):
    """Tables that are drawn anew or split anew."""

    tables: q.Some[Literal["normal", "correlated", "flats", "diabetes"]] = Field(
        description="Tables; diabetes has sizes of its own."
    )
    training_rows: Annotated[q.SampleSize, Field(ge=500)] = Field(
        description="Rows that a fit sees."
    )
    held_out_rows: Annotated[q.SampleSize, Field(ge=100)] = Field(description="Rows that judge it.")


def tables(parameters: Parameters) -> dict[str, ComparedTable]:
    from reproduction.studies.compared_tables import Synthetic, diabetes

    sizes = parameters.training_rows, parameters.held_out_rows
    return {
        name: diabetes() if name == "diabetes" else Synthetic(name, *sizes)
        for name in parameters.tables
    }


AXES = comparing.AXES | {"table": Axis("table", "tables")}
simulate = stage(AXES, comparing.run, shared={"tables": tables})
summarise = stage(AXES, *comparing.SUMMARY)
