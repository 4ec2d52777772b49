"""A plan as numbers for a file, and as a picture."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from privreg.planning.result import Plan
from privreg.validation import require_instance, sort


def plain(plan: Plan) -> dict[str, Any]:
    """The plan as numbers, text and lists, which JSON can hold."""
    require_instance("plan", plan, Plan)
    return {
        "rho": plan.budget.rho,
        "neighbours": plan.budget.neighbours.value,
        "verdict": plan.verdict,
        "worthwhile": plan.worthwhile,
        "targets": [asdict(each) for each in plan.targets],
        "alternatives": [
            {
                "name": each.name,
                "settings": str(each.method),
                "regret": each.regret,
                "holds": each.holds,
                "predictions": [
                    {**asdict(found), "regime": str(found.regime)} for found in each.predictions
                ],
            }
            for each in plan.alternatives
        ],
    }


def draw(plan: Plan, axes: Any) -> None:
    """Draw the alternatives' excess risks, and that of predicting the mean, on Matplotlib axes."""
    require_instance("plan", plan, Plan)
    if not hasattr(axes, "errorbar"):
        raise ValueError(f"axes must be Matplotlib's, got {sort(axes)}")
    names = [each.name.replace("_", " ") for each in plan.alternatives]
    places = np.arange(len(names))[::-1]
    for place, each in zip(places, plan.alternatives, strict=True):
        for prediction in each.predictions:
            risk, spread = prediction.excess_risk, prediction.excess_risk_std
            if not np.isfinite(risk):
                continue
            axes.errorbar(
                risk,
                place,
                xerr=[[min(spread, 0.9 * risk)], [spread]],
                fmt="o" if prediction.holds else "x",
                color="C0" if each is plan.best else "0.5",
            )
    for problem in plan.problems:
        axes.axvline(problem.null_risk, linestyle=":", color="C3")
    axes.set_yticks(places, names)
    axes.set_xscale("log")
    axes.set_xlabel("excess risk (dotted: predicting the mean; cross: theory does not hold)")
    axes.set_title(f"n = {plan.problems[0].sample_size:,}, rho = {plan.budget.rho:.3g}")
