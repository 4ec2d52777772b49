"""The regret of plans: their errors against the best of a grid that is chosen on simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Dataset, Trials, kept, means, per, stage
from reproduction.studies import plan_stages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reproduction.studies.regret import Case

PLACE = "The regret of plans"
# A target between what the sample allows and what predicting the mean gives.
TARGET_SHARE = 0.3


class Parameters(Strict):
    """Problems are drawn from a list that is fixed; scikit-learn's diabetes comes after them."""

    problems: q.Count = Field(description="Number of synthetic problems.")
    targets: q.Index = Field(description="How many of them a target error is set for.")
    largest_sample: Annotated[q.SampleSize, Field(ge=2000)] = Field(
        description="Largest number of rows."
    )
    diabetes_budgets: q.Some[q.Rho] = Field(description="zCDP budgets for the table of 442 rows.")

    _targets_are_problems = q.at_most("targets", "problems")


def cases(parameters: Parameters) -> tuple[Case, ...]:
    """The synthetic problems, and the diabetes table at each budget."""
    from sklearn.datasets import load_diabetes

    from reproduction.studies.plan_cases import synthetic_case, table_case

    table = load_diabetes()
    size = len(table.target)
    return (
        *(
            synthetic_case(number, parameters.largest_sample)
            for number in range(parameters.problems)
        ),
        *(
            table_case("diabetes", table.data, table.target, sample_size=size, rho=rho)
            for rho in parameters.diabetes_budgets
        ),
    )


@per(
    "goal",
    target_risk="excess risk to be met",
    target_budget="least zCDP budget found",
    target_settings="settings at that budget",
)
def goals(parameters: Parameters, cases: tuple[Case, ...]) -> list[dict[str, Any]]:
    """The least budgets that targets need."""
    from privreg.planning.least_budget import least_budget
    from reproduction.studies.written_methods import to_text

    methods, found = ["huber", "full_batch", "one_pass_harmonic"], []
    for case in cases[: parameters.targets]:
        truth = case.truth
        # Half-way, in the logarithm, from least squares to a share of the signal.
        least = truth.label_noise_std**2 * truth.dimension / (2 * truth.sample_size)
        target = float(np.sqrt(2 * least * TARGET_SHARE * truth.null_risk))
        goal = least_budget(truth, target_risk=target, methods=methods)
        found.append(
            {
                "target_risk": target,
                "target_budget": goal.budget.rho,
                "target_settings": to_text(goal.best.method),
            }
        )
    return found


@per("goal", risk_over_target="excess risk at the budget found over the target")
def reached(cases: tuple[Case, ...], theory: Dataset, trials: Trials) -> Iterator[np.ndarray]:
    """Of the settings for each target."""
    from dataclasses import replace

    from privreg.privacy.budget import Budget
    from reproduction.studies.regret import risks
    from reproduction.studies.written_methods import from_text

    at_budget = [
        replace(case, budget=Budget.zcdp(float(budget)))
        for case, budget in zip(cases, theory.target_budget.values, strict=False)
    ]
    methods = [from_text(str(text)) for text in theory.target_settings.values]
    for trial in trials:
        found = [
            risks(case, [method], trial.rng)[0]
            for case, method in zip(at_budget, methods, strict=True)
        ]
        yield found / theory.target_risk.values


theory = stage(plan_stages.AXES, plan_stages.plans, goals, shared={"cases": cases})
simulate = stage(plan_stages.AXES, plan_stages.judged, reached, shared={"cases": cases})
summarise = stage(
    plan_stages.SUMMARISED,
    *plan_stages.REGRETS,
    means(reached),
    kept(goals, names=["target_risk"], artifact="theory"),
)
