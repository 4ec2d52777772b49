"""Plans, the grids' best settings, and both of them judged on fresh rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.engine.recipe import Axis, Block, Dataset, Estimate, Quantity, Trials, kept, per
from reproduction.engine.summaries import error_of_mean, trials_last

if TYPE_CHECKING:
    from reproduction.studies.regret import Case

# The grid's best comes first; the default is what an estimator takes that is told nothing.
JUDGED = ("best of the grid", "plan", "default")
NEAR = 1.1
GRID_SEED = 7000
AXES = {
    "problem": Axis("problem", lambda cases: [case.name for case in cases]),
    "judged": Axis("whose settings", JUDGED),
}
SUMMARISED = {"problem": Axis("problem", lambda theory: theory.problem.values)}


@per(
    "problem",
    settings=Quantity("settings", "judged"),
    predicted_risk=Quantity(
        "least and largest excess risk that the plan predicts over what is stated", "end"
    ),
    holds="1 where the plan's theory holds",
    null_risk="excess risk of predicting the mean",
)
def plans(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Settings of each case's plan and of its grid's best, as text, and what the plan predicts."""
    return [_plan(case, GRID_SEED, number) for number, case in enumerate(cases)]


@per("problem", excess_risk=Quantity("excess risk of a run", "judged"))
def judged(cases: Sequence[Case], theory: Dataset, trials: Trials) -> Iterator[list[np.ndarray]]:
    """Of each of the judged settings, on the same rows of each trial."""
    from reproduction.studies.regret import risks
    from reproduction.studies.written_methods import from_text

    methods = [[from_text(str(text)) for text in row] for row in theory.settings.values]
    for trial in trials:
        yield [risks(case, row, trial.rng) for case, row in zip(cases, methods, strict=True)]


def regret(name: str, whose: str) -> Block:
    """Ratios of mean errors to the grid's best, with standard errors from the pairs."""
    meaning = f"mean excess risk of the {whose}'s settings over that of the grid's best"

    def ratios(simulation: Dataset) -> dict[str, Any]:
        best, own = (
            trials_last(simulation.excess_risk.sel(judged=each)) for each in (JUDGED[0], whose)
        )
        least = best.mean(axis=1)
        ratio = own.mean(axis=1) / least
        with np.errstate(invalid="ignore"):
            error = error_of_mean(own - ratio[:, None] * best) / least
        worst = np.argmax(ratio)
        return {
            name: (ratio, error),
            f"median_{name}": np.median(ratio),
            f"worst_{name}": (ratio[worst], error[worst]),
            f"near_best_{name}": np.sum(ratio <= NEAR),
        }

    declared: dict[str, Quantity] = {
        name: Estimate(meaning, "problem"),
        f"median_{name}": Quantity(f"median {meaning}"),
        f"worst_{name}": Estimate(f"largest {meaning}"),
        f"near_best_{name}": Quantity(f"problems whose {meaning} is at most {NEAR}"),
    }
    return per(**declared)(ratios)


@per("problem", simulated_risk="mean excess risk of the plan's settings")
def simulated(simulation: Dataset) -> np.ndarray:
    return trials_last(simulation.excess_risk.sel(judged="plan")).mean(axis=1)


REGRETS = (
    regret("regret", "plan"),
    regret("default_regret", "default"),
    simulated,
    kept(plans, names=["predicted_risk", "holds", "null_risk"], artifact="theory"),
)


def _plan(case: Case, *seed: int) -> dict[str, Any]:
    from privreg.methods.private_regression import PrivateRegression
    from privreg.planning.plan import plan_run
    from reproduction.studies.regret import best_of_grid
    from reproduction.studies.written_methods import to_text

    truth, rng = case.truth, np.random.Generator(np.random.SFC64(seed))
    plan = plan_run(case.stated, case.budget, intervals=False)
    default = PrivateRegression.default(
        sample_size=truth.sample_size, dimension=truth.dimension, budget=case.budget
    )
    chosen = plan.best.method if plan.worthwhile else None
    risks = [each.excess_risk for each in plan.best.predictions]
    return {
        "settings": [to_text(each) for each in (best_of_grid(case, rng), chosen, default)],
        "predicted_risk": [min(risks), max(risks)],
        "holds": int(plan.best.holds),
        "null_risk": truth.null_risk,
    }
