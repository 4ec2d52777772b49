"""The least budget whose best run meets a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp, log

from privreg.planning.plan import Objective, Plan, names_of, plan_run
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.validation import require_number

# Predictions agree with simulations to 10 %: the target is met with that to spare.
MARGIN = 1.1
# Where the search starts, and where it ends that finds no budget too small, or large enough.
SMALLEST, LARGEST = 1e-7, 1e3
LEAST, MOST = 1e-12, 1e9
WIDER = log(1e3)
TOLERANCE, NEAR = 0.03, 1.5


def least_budget(
    problems: Problem | Sequence[Problem],
    *,
    target_risk: float | None = None,
    target_length: float | None = None,
    neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    methods: Iterable[str] | None = None,
) -> Plan:
    """The plan of least zCDP budget that meets a target for every stated problem.

    The prediction is to be below the target by 10 %, its stated accuracy. The budget is found to
    3 %; the error of the best plan falls as the budget grows. Budgets between 1e-12 and 1e9 are
    searched.

    Parameters
    ----------
    problems : Problem or sequence of Problem
        What is known, as for `plan_run`.
    target_risk : float, optional
        Largest mean excess risk, more than 0. One of the targets is given.
    target_length : float, optional
        Largest length of a 95 % interval, more than 0.
    neighbours : Neighbours
        Of the budget.
    methods : iterable of str, optional
        Names of methods, as for `plan_run`.

    Returns
    -------
    Plan
        Its `budget` is the answer; where the least one that is searched meets the target, the
        verdict says so.

    Raises
    ------
    ValueError
        If no budget meets the target: the sample itself is too small.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> plan = least_budget(problem, target_risk=0.002, methods=["huber"])
    >>> 0.001 < plan.budget.rho < 0.005
    True
    """
    if (target_risk is None) == (target_length is None):
        found = "none" if target_risk is None else "both"
        raise ValueError(
            f"target_risk: one of target_risk and target_length must be given, got {found}"
        )
    name = "target_risk" if target_length is None else "target_length"
    stated = target_risk if target_length is None else target_length
    target = require_number(name, stated, above=0) / MARGIN
    objective: Objective = "excess_risk" if target_length is None else "interval_length"
    names = every = names_of(methods)
    relation = Neighbours(neighbours)

    def plan_at(logarithm: float) -> Plan:
        return plan_run(
            problems,
            Budget.zcdp(exp(logarithm), neighbours=relation),
            methods=names,
            objective=objective,
        )

    def met(plan: Plan) -> bool:
        return plan.best.holds and all(
            getattr(each, objective) <= target for each in plan.best.predictions
        )

    low, high = log(SMALLEST), log(LARGEST)
    best = plan_at(high)
    while not met(best) and high < log(MOST):
        low, high = high, min(high + WIDER, log(MOST))
        best = plan_at(high)
    if not best.best.holds:
        raise ValueError(
            f"methods must hold one whose error can be predicted at a budget of {exp(high):g}, "
            f"got {', '.join(names)}"
        )
    if not met(best):
        least = max(getattr(each, objective) for each in best.best.predictions)
        raise ValueError(
            f"{name} must be more than {MARGIN * least:.3g}, what these rows allow at any budget, "
            f"got {stated:g}"
        )
    tried = low > log(SMALLEST)
    while high - low > TOLERANCE:
        middle = (low + high) / 2
        plan = plan_at(middle)
        if met(plan):
            high, best = middle, plan
        else:
            low, tried = middle, True
        if high - low < NEAR:
            # So near the answer a method that is far behind does not overtake.
            near = [each.name for each in plan.alternatives if each.regret < 1.5]
            names = near or names
        if high - low <= TOLERANCE and not tried:
            # All budgets met the target, and the answer is below them.
            low, names, tried = log(LEAST), every, True
            if met(plan := plan_at(low)):
                words = f"The least budget that is searched, {LEAST:g}, meets the target. "
                return replace(plan, verdict=words + plan.verdict)
    return best
