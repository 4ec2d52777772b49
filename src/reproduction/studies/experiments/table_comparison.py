"""Comparison of private estimators on a real table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from reproduction.engine.recipe import Axis, Dataset, stage
from reproduction.studies.experiments import comparison

if TYPE_CHECKING:
    from reproduction.studies.compared_tables import ComparedTable

PLACE = comparison.PLACE


class Parameters(comparison.Compared):
    """A table; fits use four fifths of its rows, or all but the official test rows."""

    dataset: Literal["mnist", "california_housing"] = Field(description="The real table.")


def tables(data: Dataset) -> dict[str, ComparedTable]:
    from reproduction.engine.artifacts import from_dataset
    from reproduction.studies.compared_tables import real_table

    table = real_table(from_dataset(data))
    return {table.name: table}


simulate = stage(
    comparison.AXES,
    comparison.run,
    shared={"tables": tables},
    released="diagnostic",
    table=Axis("table", lambda tables: [*tables]),
)
summarise = stage(
    comparison.AXES,
    *comparison.SUMMARY,
    released="diagnostic",
    table=Axis("table", lambda simulation: simulation.table.values),
)
