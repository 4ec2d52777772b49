"""Regret of plans on scikit-learn's tables, planned for a stated range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import stage
from reproduction.studies.experiments import planning

if TYPE_CHECKING:
    from reproduction.studies.regret import Case

PLACE = planning.PLACE


class Parameters(Strict):
    """Tables as populations, each drawn with replacement to its own size."""

    breast_cancer: bool = Field(description="Whether the breast cancer table is used.")
    diabetes_columns: q.Some[Literal["bmi", "bp", "s5"]] = Field(
        description="Features of the diabetes table that serve as labels in turn."
    )
    budgets: q.Some[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")


def cases(parameters: Parameters) -> tuple[Case, ...]:
    """One case for each table and budget."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    from reproduction.studies.regret import column_as_labels, table_case

    found = {}
    if parameters.breast_cancer:
        table = load_breast_cancer()
        found["breast cancer"] = table.data, table.target.astype(float)
    table = load_diabetes()
    for column in parameters.diabetes_columns:
        place = table.feature_names.index(column)
        found[f"diabetes {column}"] = column_as_labels(table.data, table.target, place)
    return tuple(
        table_case(name, features, labels, sample_size=len(labels), rho=rho)
        for name, (features, labels) in found.items()
        for rho in parameters.budgets
    )


theory = stage(planning.AXES, planning.plans, shared={"cases": cases})
simulate = stage(planning.AXES, planning.judged, shared={"cases": cases})
summarise = stage(planning.SUMMARISED, planning.regrets)
