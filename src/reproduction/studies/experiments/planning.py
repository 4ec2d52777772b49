"""Regret of plans: their errors relative to the best of a grid, which is chosen by simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Estimate,
    Quantity,
    Trials,
    kept,
    means,
    per,
    stage,
)
from reproduction.engine.summaries import error_of_mean, trials_last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reproduction.studies.regret import Case

PLACE = "The regret of plans"
# Targets lie between the error without privacy and that of predicting the mean.
TARGET_SHARE = 0.3
JUDGED = ("best of the grid", "plan")
NEAR = 1.1
GRID_SEED = 7000
REGRET = "mean excess risk of the plan's settings divided by that of the grid's best"
AXES = {
    "problem": Axis("problem", lambda cases: [case.name for case in cases]),
    "judged": Axis("whose settings", JUDGED),
}
SUMMARISED = {"problem": Axis("problem", lambda theory: theory.problem.values)}


class Parameters(Strict):
    """Problems come from a fixed list, with scikit-learn's diabetes after them."""

    problems: q.Count = Field(description="Number of synthetic problems.")
    targets: q.Index = Field(description="Number of problems with a target error.")
    largest_sample: Annotated[q.SampleSize, Field(ge=2000)] = Field(
        description="Largest number of rows."
    )
    diabetes_budgets: q.Some[q.Rho] = Field(description="zCDP budgets for the table of 442 rows.")

    _targets_are_problems = q.at_most("targets", "problems")


def cases(parameters: Parameters) -> tuple[Case, ...]:
    """The synthetic problems, and the diabetes table at each budget."""
    from sklearn.datasets import load_diabetes

    from reproduction.studies.regret import synthetic_case, table_case

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


@per("problem", settings=Quantity("settings", "judged"))
def plans(cases: tuple[Case, ...]) -> list[list[str]]:
    """For each case, the settings of the plan and the best ones of the grid, as text."""
    from privreg.planning import plan_run
    from reproduction.studies.regret import best_of_grid
    from reproduction.studies.written_methods import to_text

    found = []
    for number, case in enumerate(cases):
        plan = plan_run(case.stated, case.budget, intervals=False)
        rng = np.random.Generator(np.random.SFC64((GRID_SEED, number)))
        chosen = plan.best.method if plan.worthwhile else None
        found.append([to_text(best_of_grid(case, rng)), to_text(chosen)])
    return found


@per(
    "goal",
    target_risk="excess risk to be met",
    target_budget="least zCDP budget found",
    target_settings="settings at that budget",
)
def goals(parameters: Parameters, cases: tuple[Case, ...]) -> list[dict[str, Any]]:
    """The least budgets that meet the targets."""
    from privreg.planning import least_budget
    from reproduction.studies.written_methods import to_text

    methods, found = ["huber", "full_batch", "one_pass_harmonic"], []
    for case in cases[: parameters.targets]:
        truth = case.truth
        # The geometric mean of the error of least squares and a share of the signal.
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


@per("problem", excess_risk=Quantity("excess risk of a run", "judged"))
def judged(cases: tuple[Case, ...], theory: Dataset, trials: Trials) -> Iterator[list[np.ndarray]]:
    """Risks of the plan's settings and of the grid's best ones on the same rows in each trial."""
    from reproduction.studies.regret import risks
    from reproduction.studies.written_methods import from_text

    methods = [[from_text(str(text)) for text in row] for row in theory.settings.values]
    for trial in trials:
        yield [risks(case, row, trial.rng) for case, row in zip(cases, methods, strict=True)]


@per("goal", risk_over_target="excess risk at the budget found divided by the target")
def reached(cases: tuple[Case, ...], theory: Dataset, trials: Trials) -> Iterator[np.ndarray]:
    """Risks of the settings found for each target, relative to the target."""
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


@per(
    regret=Estimate(REGRET, "problem"),
    median_regret=f"median {REGRET}",
    worst_regret=Estimate(f"largest {REGRET}"),
    near_best_regret=f"problems whose {REGRET} is at most {NEAR}",
)
def regrets(simulation: Dataset) -> dict[str, Any]:
    """Ratios of mean errors to those of the grid's best setting, with paired standard errors."""
    best, plan = (trials_last(simulation.excess_risk.sel(judged=each)) for each in JUDGED)
    least = best.mean(axis=1)
    ratio = plan.mean(axis=1) / least
    with np.errstate(invalid="ignore"):
        error = error_of_mean(plan - ratio[:, None] * best) / least
    worst = np.argmax(ratio)
    return {
        "regret": (ratio, error),
        "median_regret": np.median(ratio),
        "worst_regret": (ratio[worst], error[worst]),
        "near_best_regret": np.sum(ratio <= NEAR),
    }


theory = stage(AXES, plans, goals, shared={"cases": cases})
simulate = stage(AXES, judged, reached, shared={"cases": cases})
summarise = stage(
    SUMMARISED, regrets, means(reached), kept(goals, names=["target_risk"], artifact="theory")
)
