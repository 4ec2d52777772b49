"""Predictions for settings of any methods together."""

from __future__ import annotations

from collections.abc import Sequence

from privreg.methods.method import Method, require_method
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.prediction.rows import Rows, rows_of
from privreg.privacy.budget import Budget
from privreg.validation import require_array, require_instance, short


def predict_over(
    problem: Problem,
    methods: Sequence[Method],
    budget: Budget,
    *,
    misfits: Sequence[float],
    rows: Rows | None = None,
) -> list[list[Prediction]]:
    """For each misfit, predictions for settings of any methods in their order.

    Settings of one method are followed together, and once for all misfits.
    """
    require_instance("problem", problem, Problem)
    if not isinstance(methods, (list, tuple)):
        raise ValueError(f"methods must be a list of methods, got {short(methods)}")
    for each in methods:
        require_method("methods", each)
    require_instance("budget", budget, Budget)
    rows = rows_of(problem) if rows is None else rows
    misfits = require_array("misfits", misfits, shape=(None,), least=0, most=1).tolist()
    found: list[dict[int, Prediction]] = [{} for _ in misfits]
    kinds: dict[type[Method], None] = dict.fromkeys(map(type, methods))
    for kind in kinds:
        places = [at for at, method in enumerate(methods) if type(method) is kind]
        settings = [methods[at] for at in places]
        predicted = kind.predictions_over(settings, problem, budget, misfits=misfits, rows=rows)
        for each, own in zip(found, predicted, strict=True):
            each.update(zip(places, own, strict=True))
    return [[each[at] for at in range(len(methods))] for each in found]
