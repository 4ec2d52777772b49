"""The regret of plans: their errors against the best of a grid that is chosen on simulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Index, Rho, SampleSize, Some, at_most

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials
    from reproduction.studies.regret import Case

PLACE = "The regret of plans"
# A target between what the sample allows and what predicting the mean gives.
TARGET_SHARE = 0.3


class Parameters(Strict):
    """Problems are drawn from a list that is fixed; scikit-learn's diabetes comes after them."""

    problems: Count = Field(description="Number of synthetic problems.")
    targets: Index = Field(description="How many of them a target error is set for.")
    largest_sample: Annotated[SampleSize, Field(ge=2000)] = Field(
        description="Largest number of rows."
    )
    diabetes_budgets: Some[Rho] = Field(description="zCDP budgets for the table of 442 rows.")

    _targets_are_problems = at_most("targets", "problems")


def theory(parameters: Parameters) -> xr.Dataset:
    """The plans, the grids' best settings, and the least budgets that targets need."""
    from privreg.planning.least_budget import least_budget
    from reproduction.studies.plan_stages import planned
    from reproduction.studies.written_methods import to_text

    cases = _cases(parameters)
    found = planned(cases)
    targets, budgets, settings = [], [], []
    for case in cases[: parameters.targets]:
        truth = case.truth
        # Half-way, in the logarithm, from least squares to a share of the signal.
        least = truth.label_noise_std**2 * truth.dimension / (2 * truth.sample_size)
        targets.append(float(np.sqrt(2 * least * TARGET_SHARE * truth.null_risk)))
        goal = least_budget(
            truth,
            target_risk=targets[-1],
            methods=["huber", "full_batch", "one_pass_harmonic"],
        )
        budgets.append(goal.budget.rho)
        settings.append(to_text(goal.best.method))
    return found.assign(
        target_risk=variable("goal", targets, "excess risk to be met"),
        target_budget=variable("goal", budgets, "least zCDP budget found"),
        target_settings=variable("goal", settings, "settings at that budget"),
    )


def simulate(parameters: Parameters, trials: Trials, theory: xr.Dataset) -> xr.Dataset:
    """Excess risk of the judged settings, and of the settings for a target."""
    from dataclasses import replace

    from privreg.privacy.budget import Budget
    from reproduction.studies.plan_stages import judged
    from reproduction.studies.regret import risks
    from reproduction.studies.written_methods import from_text

    cases = _cases(parameters)
    found = judged(cases, trials, theory)
    reached = np.zeros((parameters.targets, len(trials)))
    for at, trial in enumerate(trials):
        for goal in range(parameters.targets):
            budget = Budget.zcdp(float(theory.target_budget.values[goal]))
            case = replace(cases[goal], budget=budget)
            method = from_text(str(theory.target_settings.values[goal]))
            (risk,) = risks(case, [method], trial.rng)
            reached[goal, at] = risk / theory.target_risk.values[goal]
    return found.assign(
        risk_over_target=variable(
            ("goal", "trial"), reached, "excess risk at the budget found over the target"
        )
    )


def summarise(parameters: Parameters, simulation: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Regrets, and whether targets were met."""
    from reproduction.studies.plan_stages import regrets

    over = simulation.risk_over_target.transpose("goal", "trial").values
    return regrets(simulation, theory).assign(
        risk_over_target=variable(
            "goal",
            over.mean(axis=1),
            "mean excess risk at the budget found over the target",
            standard_error="risk_over_target_standard_error",
        ),
        risk_over_target_standard_error=variable(
            "goal",
            over.std(axis=1, ddof=1) / np.sqrt(over.shape[1]),
            "standard error of the mean excess risk over the target",
        ),
    )


def _cases(parameters: Parameters) -> tuple[Case, ...]:
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
