"""The regret of plans on a real table, of which a range is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Dataset, stage
from reproduction.studies import plan_stages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reproduction.studies.regret import Case

PLACE = "The regret of plans"


# Every table, and every stand-in for one, has as many features.
Column = Annotated[int, Field(ge=0, le=7, strict=True)]
Digit = Annotated[int, Field(ge=0, le=9, strict=True)]


class Parameters(Strict):
    """All rows of a table are the population, of which a sample is drawn with replacement."""

    dataset: Literal["mnist", "mnist_digits", "california_housing"] = Field(description="Table.")
    columns: q.Some[Column] | None = Field(
        default=None,
        description="Places of features that take the labels' place in turn; none for the labels.",
    )
    pairs: q.Some[tuple[Digit, Digit]] | None = Field(
        default=None, description="Digits that are told from each other; none for all labels."
    )
    components: q.Dimension = Field(
        description="Features at most: beyond, the table's first principal components."
    )
    # Of fewer no setting can be told from another.
    sample_size: Annotated[q.SampleSize, Field(ge=100)] = Field(description="Rows drawn.")
    budgets: q.Some[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")

    @model_validator(mode="after")
    def _the_table_has_them(self) -> Self:
        if self.columns and self.dataset != "california_housing":
            # A pixel may be the same in all images.
            raise ValueError("columns must be left out of tables other than california_housing")
        if self.pairs and self.dataset != "mnist_digits":
            raise ValueError("pairs must be left out of tables other than mnist_digits")
        if any(one == other for one, other in self.pairs or ()):
            raise ValueError("pairs must be of two digits each")
        return self


def cases(parameters: Parameters, data: Dataset) -> tuple[Case, ...]:
    """Each choice of the labels at each budget."""
    from reproduction.engine.artifacts import from_dataset
    from reproduction.studies.plan_cases import column_as_labels, leading_components, table_case

    table = from_dataset(data)
    features, labels, name = table.features, table.labels, parameters.dataset
    # A choice at a time: all of the digits as floating-point numbers are half a gigabyte.
    chosen: Iterator[tuple[str, Any, Any, int | None]]
    if parameters.pairs:
        chosen = ((f"digits {one} and {two}", np.isin(labels, (one, two)), labels == one, None)
                  for one, two in parameters.pairs)  # fmt: skip
    else:
        every = np.ones(len(labels), dtype=bool)
        chosen = ((name if column is None else f"{name} {table.feature_names[column]}", every,
                   labels, column) for column in parameters.columns or (None,))  # fmt: skip
    found = []
    for each, rows, target, column in chosen:
        own = np.asarray(features[rows], dtype=np.float64) / table.feature_scale
        label = np.asarray(target[rows], dtype=np.float64)
        if column is not None:
            own, label = column_as_labels(own, label, column)
        own = leading_components(own, parameters.components)
        found += [
            table_case(each, own, label, sample_size=parameters.sample_size, rho=rho)
            for rho in parameters.budgets
        ]
    return tuple(found)


theory = stage(plan_stages.AXES, plan_stages.plans, shared={"cases": cases}, released="diagnostic")
simulate = stage(
    plan_stages.AXES, plan_stages.judged, shared={"cases": cases}, released="diagnostic"
)
summarise = stage(plan_stages.SUMMARISED, *plan_stages.REGRETS, released="diagnostic")
