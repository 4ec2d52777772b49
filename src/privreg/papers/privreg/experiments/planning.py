"""The regret of plans: their errors against the best of a grid that is chosen on simulations."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import Count, Index, SampleSize, at_most

if TYPE_CHECKING:
    from typing import Any

    import xarray as xr

    from privreg.experiment.trials import Trials
    from privreg.prediction.problem import Problem
    from privreg.privacy.budget import Budget

PLACE = "The regret of plans"
PROBLEM_SEED = 1000
# A target between what the sample allows and what predicting the mean gives.
TARGET_SHARE = 0.3


class Parameters(Strict):
    """Problems are drawn from a list that is fixed."""

    problems: Count = Field(description="Number of problems.")
    targets: Index = Field(description="How many of them a target error is set for.")
    largest_sample: Annotated[SampleSize, Field(ge=2000)] = Field(
        description="Largest number of rows."
    )

    _targets_are_problems = at_most("targets", "problems")


class Case(NamedTuple):
    """A problem with a budget; the plan's settings come last in the list of methods."""

    problem: Problem
    budget: Budget
    methods: tuple[Any, ...]
    target: float
    target_budget: Budget | None
    target_method: Any


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Excess risk of every setting of the grid, of the plan, and of the plan for a target."""
    import xarray as xr

    from privreg.papers.privreg.private_runs import draw, excess_risk, run

    cases = _cases(parameters)
    risk = np.zeros((len(cases), len(cases[0].methods), len(trials)))
    reached = np.zeros((parameters.targets, len(trials)))
    for at, trial in enumerate(trials):
        for index, case in enumerate(cases):
            rows, labels = draw(case.problem, trial.rng)
            for number, method in enumerate(case.methods):
                try:
                    fitted = run(case.problem, method, case.budget, rows, labels, trial.rng)
                    found = float(excess_risk(case.problem, fitted)[0])
                except ValueError:
                    # Iterates that leave double precision.
                    found = 1e6
                risk[index, number, at] = min(found, 1e6)
            if case.target_budget is not None:
                fitted = run(
                    case.problem, case.target_method, case.target_budget, rows, labels, trial.rng
                )
                reached[index, at] = float(excess_risk(case.problem, fitted)[0]) / case.target
    return xr.Dataset(
        {
            "excess_risk": variable(
                ("problem", "method", "trial"), risk, "excess risk; the plan is the last method"
            ),
            "risk_over_target": variable(
                ("goal", "trial"), reached, "excess risk at the budget found over the target"
            ),
        }
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Regrets: the best of the grid is chosen on one half of the trials and judged on the other."""
    import xarray as xr

    risk = simulation.excess_risk.values
    half = risk.shape[2] // 2
    grid, plan = risk[:, :-1], risk[:, -1]
    best = []
    for chosen, judged in (
        (grid[..., :half], grid[..., half:]),
        (grid[..., half:], grid[..., :half]),
    ):
        at = np.argmin(chosen.mean(axis=2), axis=1)
        best.append(judged[np.arange(len(risk)), at].mean(axis=1))
    regret = plan.mean(axis=1) / np.mean(best, axis=0)
    over = simulation.risk_over_target.values
    return xr.Dataset(
        {
            "regret": variable(
                "problem", regret, "excess risk of the plan over that of the grid's best setting"
            ),
            "median_regret": variable((), float(np.median(regret)), "median regret"),
            "worst_regret": variable((), float(np.max(regret)), "largest regret"),
            "risk_over_target": variable(
                "goal",
                over.mean(axis=1),
                "mean excess risk at the budget found over the target",
                standard_error="risk_over_target_standard_error",
            ),
            "risk_over_target_standard_error": variable(
                "goal",
                over.std(axis=1, ddof=1) / np.sqrt(over.shape[1]),
                "standard error of the mean excess risk over the target",
            ),
        },
        coords={"trial": simulation.trial.variable},
    )


@lru_cache(maxsize=2)
def _cases(parameters: Parameters) -> tuple[Case, ...]:
    from privreg.planning.least_budget import least_budget
    from privreg.planning.plan import plan_run

    found = []
    for number in range(parameters.problems):
        problem, budget = _problem(number, parameters.largest_sample)
        planned = plan_run(problem, budget, intervals=False).best.method
        target, goal = 0.0, None
        if number < parameters.targets:
            # Half-way, in the logarithm, from least squares to a share of the signal.
            least = problem.label_noise_std**2 * problem.dimension / (2 * problem.sample_size)
            target = float(np.sqrt(2 * least * TARGET_SHARE * problem.null_risk))
            goal = least_budget(
                problem, target_risk=target, methods=["huber", "full_batch", "one_pass_harmonic"]
            )
        found.append(
            Case(
                problem,
                budget,
                (*_grid(problem, budget), planned),
                target,
                goal.budget if goal else None,
                goal.best.method if goal else None,
            )
        )
    return tuple(found)


def _problem(number: int, largest_sample: int) -> tuple[Problem, Budget]:
    from privreg.prediction.problem import FEATURE_LAWS, Problem
    from privreg.privacy.budget import Budget

    rng = np.random.Generator(np.random.SFC64(PROBLEM_SEED + number))
    n = round(float(np.exp(rng.uniform(np.log(1500), np.log(largest_sample)))))
    p = int(rng.choice([3, 5, 10, 20, 40]))
    law = FEATURE_LAWS[number % 4]
    price = 10 ** rng.uniform(-1, 1.3)
    noise, norm = float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([0.5, 1.0, 2.0]))
    values = np.geomspace(float(rng.choice([1.0, 0.3, 0.05])), 1.0, p)
    if law == "one_hot":
        values = np.sqrt(values)
        values, norm = values / values.sum(), norm * np.sqrt(p)
    else:
        values *= p / values.sum()
    problem = Problem(n, values, signal=norm, label_noise_std=noise, feature_law=law)
    return problem, Budget.zcdp(max(2 * p / (n * price), 2e-4))


def _grid(problem: Problem, budget: Budget) -> list[Any]:
    """A hundred and six settings, in units of the truth."""
    from privreg.algorithms.huber_settings import HuberSettings
    from privreg.prediction.methods import AdaSSP, CorrelatedNoise, FullBatch, OnePass
    from privreg.schedules import Harmonic, Polynomial

    n, p, noise = problem.sample_size, problem.dimension, problem.label_noise_std
    largest, mean = float(problem.eigenvalues.max()), float(problem.eigenvalues.mean())
    unit = noise * float(np.sqrt(problem.eigenvalues.sum()))
    natural = max(1.0, 1 / budget.root) * p / n
    first = HuberSettings(moment_share=0.0)
    return [
        *(
            FullBatch(steps, size / largest, clip * unit)
            for steps, size, clip in product((4, 10, 25), (0.4, 0.8, 1.4), (0.5, 1.0, 2.0, 4.0))
        ),
        *(
            OnePass(Harmonic(rate / mean, offset * natural), clip * noise * np.sqrt(mean))
            for rate, offset, clip in product(
                (1.0, 1.6, 2.5, 5.0), (0.5, 2.0, 8.0), (0.4, 0.8, 1.6)
            )
        ),
        *(
            OnePass(Polynomial(rate / mean, 0.5), clip * noise * np.sqrt(mean))
            for rate, clip in product((2.0, 4.0, 8.0), (0.4, 0.8, 1.6))
        ),
        *(
            replace(
                first,
                clip_width=width,
                gram_share=gram,
                scale_share=scale,
                warm_up_steps=steps,
                warm_up_share=share,
            )
            for width, (gram, scale), (steps, share) in product(
                (0.5, 0.9, 1.4, 2.0), ((0.05, 0.03), (0.15, 0.1)), ((2, 0.1), (4, 0.15))
            )
        ),
        *(
            CorrelatedNoise(max(1, n // steps), size / largest, 1.2 * unit, damping)
            for steps, size, damping in product((20, 60), (0.1, 0.3), (1.0, 0.05))
        ),
        AdaSSP(),
    ]
