"""Regret of plans on a real table, planned for a stated range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Dataset, stage
from reproduction.studies.experiments import planning

if TYPE_CHECKING:
    from reproduction.studies.regret import Case

PLACE = planning.PLACE

# All tables and their stand-ins have at least this many features.
Column = Annotated[int, Field(ge=0, le=7, strict=True)]
Digit = Annotated[int, Field(ge=0, le=9, strict=True)]


class Parameters(Strict):
    """A table as a population, from which samples are drawn with replacement."""

    dataset: Literal["mnist", "mnist_digits", "california_housing"] = Field(description="Table.")
    columns: q.Some[Column] | None = Field(
        default=None,
        description="Indices of features to use as labels in turn; none for the table's labels.",
    )
    pairs: q.Some[tuple[Digit, Digit]] | None = Field(
        default=None, description="Pairs of digits to tell apart; none for all labels."
    )
    components: q.Dimension = Field(
        description="Largest number of features; if there are more, principal components."
    )
    # With fewer rows the settings could not be told apart.
    sample_size: Annotated[q.SampleSize, Field(ge=100)] = Field(description="Rows drawn.")
    budgets: q.Some[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")

    # A pixel may have the same value in all images.
    _only_housing_has_columns = q.must(
        "columns must be left out of tables other than california_housing",
        lambda self: not self.columns or self.dataset == "california_housing",
    )
    _only_digits_have_pairs = q.must(
        "pairs must be left out of tables other than mnist_digits",
        lambda self: not self.pairs or self.dataset == "mnist_digits",
    )


def cases(parameters: Parameters, data: Dataset) -> tuple[Case, ...]:
    """One case for each choice of the labels and each budget."""
    from reproduction.engine.artifacts import from_dataset
    from reproduction.studies.regret import column_as_labels, leading_components, table_case

    table = from_dataset(data)
    labels, name = table.labels, parameters.dataset
    every = np.ones(len(labels), dtype=bool)
    chosen: list[tuple[str, Any, Any, int | None]] = [(name, every, labels, None)]
    if parameters.pairs:
        chosen = [
            (f"digits {one} and {two}", np.isin(labels, (one, two)), labels == one, None)
            for one, two in parameters.pairs
        ]
    elif parameters.columns:
        chosen = [
            (f"{name} {table.feature_names[column]}", every, labels, column)
            for column in parameters.columns
        ]
    found = []
    # One choice at a time, since all digits as floating-point numbers take half a gigabyte.
    for each, rows, target, column in chosen:
        own = np.asarray(table.features[rows], dtype=np.float64) / table.feature_scale
        label = np.asarray(target[rows], dtype=np.float64)
        if column is not None:
            own, label = column_as_labels(own, label, column)
        own = leading_components(own, parameters.components)
        found += [
            table_case(each, own, label, sample_size=parameters.sample_size, rho=rho)
            for rho in parameters.budgets
        ]
    return tuple(found)


theory = stage(planning.AXES, planning.plans, shared={"cases": cases}, released="diagnostic")
simulate = stage(planning.AXES, planning.judged, shared={"cases": cases}, released="diagnostic")
summarise = stage(planning.SUMMARISED, planning.regrets, released="diagnostic")
