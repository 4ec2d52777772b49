"""Best settings of one method for one problem, searched on predictions and beyond grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from privreg.methods import registry
from privreg.methods.method import Method
from privreg.prediction.predicted_error import Prediction
from privreg.prediction.problem import Problem
from privreg.prediction.rows import rows_of
from privreg.privacy.budget import Budget

Objective = Callable[[Prediction], float]
SEARCH_ROWS = 192
# A doubtful prediction counts for more than any that holds, and still tells which way is down.
DOUBT = 1e6
WIDER, WORTH = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0), 1.1
# A step beyond a grid is worth a gain of a hundredth; no grid is left by more than so many.
GAIN, MOST_STEPS = 0.99, 40
Point = TypeVar("Point")


def search(
    name: str,
    problem: Problem,
    budget: Budget,
    *,
    objective: Objective,
    intervals: bool,
    goals: Sequence[tuple[Problem, float]] = (),
) -> Method | None:
    """Settings of least predicted objective, or None where the method does not take the budget.

    Goals are problems with the least objective known of each: the largest ratio to it is minimised.
    """
    method = registry.searched()[name]
    if budget.neighbours not in method.relations:
        return None
    wanted = [
        (each, least, rows_of(each, count=SEARCH_ROWS)) for each, least in goals or [(problem, 1.0)]
    ]

    known: dict[Any, float] = {}

    def values(settings: Sequence[Any]) -> list[float]:
        # Moves come back to settings that others have tried.
        new = [each for each in dict.fromkeys(settings) if each not in known]
        worst = np.zeros(len(new))
        for each, least, rows in wanted:
            found = method.predictions(new, each, budget, rows=rows)
            doubts = [1.0 if prediction.holds else DOUBT for prediction in found]
            ratios = np.array([objective(prediction) for prediction in found]) / least
            worst = np.maximum(worst, np.nan_to_num(ratios * doubts, nan=np.inf))
        known.update(zip(new, worst.tolist(), strict=True))
        return [known[each] for each in settings]

    (candidates,) = (
        each
        for each in method.candidates(problem, budget, intervals=intervals)
        if each.name == name
    )
    return _widened(candidates.best(values), candidates.clip, values)


def _widened(best: Any, clip: str | None, values: Callable[..., list[float]]) -> Any:
    """The widest clip that costs little where errors are as stated.

    Where they are skewed in a way that depends on the features, a clip moves what is estimated; no
    statement of the problem says so, and a wide one is moved less.
    """
    if clip is None:
        return best
    wider = [replace(best, **{clip: factor * getattr(best, clip)}) for factor in WIDER]
    found = values([best, *wider])
    affordable = [
        each for each, value in zip(wider, found[1:], strict=True) if value <= WORTH * found[0]
    ]
    return affordable[-1] if affordable else best


def beyond(
    best: Point,
    least: float,
    *,
    further: Callable[[Point], Point | None],
    value: Callable[[Point], float],
) -> tuple[Point, float]:
    """The best on the way out of a grid, and its value.

    The way ends where a step gains less than a hundredth: beyond the best, or near a limit.
    """
    for _ in range(MOST_STEPS):
        point = further(best)
        if point is None or not (found := value(point)) < GAIN * least:
            break
        best, least = point, found
    return best, least


def next_on(ladder: Sequence[float], value: float) -> float | None:
    """The next value outwards, of one at or beyond an end of a ladder; None of one inside.

    A ladder of whole numbers goes on by their difference, another one by their ratio.
    """
    for end, inner in ((ladder[0], ladder[1]), (ladder[-1], ladder[-2])):
        if (value - end) * (end - inner) >= 0:
            return value + end - inner if isinstance(end, int) else value * end / inner
    return None
