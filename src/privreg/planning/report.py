"""A plan as a text table and as a picture."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from privreg.schedules import Harmonic, Polynomial

if TYPE_CHECKING:
    from privreg.planning.plan import Plan


def table(plan: Plan) -> str:
    """The alternatives as lines of text, the best first.

    Parameters
    ----------
    plan : Plan
    """
    header = ("method", "excess risk", "± run", "interval", "regret", "theory", "settings")
    lines = [
        (
            each.name,
            f"{each.worst.excess_risk:.3g}",
            f"{each.worst.excess_risk_std:.2g}",
            f"{each.worst.interval_length:.3g}",
            f"{each.regret:.2f}",
            str(each.worst.regime),
            settings_text(each.method),
        )
        for each in plan.alternatives
    ]
    widths = [max(len(line[at]) for line in [header, *lines]) for at in range(len(header))]
    rows = [
        "  ".join(
            text.ljust(width) if at in (0, 5, 6) else text.rjust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in [header, *lines]
    ]
    null = max(problem.null_risk for problem in plan.problems)
    return "\n".join([*rows, "", f"Predicting the mean: {null:.3g}. {plan.verdict}"])


def settings_text(method: Any) -> str:
    """Settings as one line: names and numbers of three digits."""
    parts = []
    for each in fields(method):
        if not each.init:
            continue
        value = getattr(method, each.name)
        if isinstance(value, Harmonic):
            parts.append(f"rate {float(np.asarray(value.numerator)):.3g}/(t + {value.offset:.3g})")
        elif isinstance(value, Polynomial):
            rate = float(np.asarray(value.initial))
            parts.append(f"rate {rate:.3g}·(1 - t)^{value.exponent:g}")
        else:
            parts.append(f"{each.name.replace('_', ' ')} {value:.3g}")
    return ", ".join(parts)


def draw(plan: Plan, axes: Any) -> None:
    """Draw the alternatives' excess risks, and that of predicting the mean, on Matplotlib axes.

    Parameters
    ----------
    plan : Plan
    axes : matplotlib.axes.Axes
        Of the caller, so that this library needs no Matplotlib.
    """
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
