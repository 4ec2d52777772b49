"""The regret of plans on tables that come with scikit-learn, of which a range is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import stage
from reproduction.studies import plan_stages

if TYPE_CHECKING:
    from reproduction.studies.regret import Case

PLACE = "The regret of plans"


class Parameters(Strict):
    """All rows of a table are the population, of which as many are drawn with replacement."""

    breast_cancer: bool = Field(description="Whether the class of the breast cancer table is one.")
    diabetes_columns: q.Some[Literal["bmi", "bp", "s5"]] = Field(
        description="Features of the diabetes table that take the labels' place in turn."
    )
    budgets: q.Some[q.Rho] = Field(description="zCDP budgets, of replace-one neighbours.")


def cases(parameters: Parameters) -> tuple[Case, ...]:
    """Each table at each budget."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    from reproduction.studies.plan_cases import column_as_labels, table_case

    found = []
    if parameters.breast_cancer:
        table = load_breast_cancer()
        found.append(("breast cancer", table.data, table.target.astype(float)))
    table = load_diabetes()
    found += [
        (
            f"diabetes {column}",
            *column_as_labels(table.data, table.target, table.feature_names.index(column)),
        )
        for column in parameters.diabetes_columns
    ]
    return tuple(
        table_case(name, features, labels, sample_size=len(labels), rho=rho)
        for name, features, labels in found
        for rho in parameters.budgets
    )


theory = stage(plan_stages.AXES, plan_stages.plans, shared={"cases": cases})
simulate = stage(plan_stages.AXES, plan_stages.judged, shared={"cases": cases})
summarise = stage(plan_stages.SUMMARISED, *plan_stages.REGRETS)
