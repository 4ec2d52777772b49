"""Best settings of one method for one problem, searched on its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from privreg.algorithms.huber_settings import HuberSettings, default_settings
from privreg.prediction.methods import AdaSSP, CorrelatedNoise, FullBatch, OnePass
from privreg.prediction.predict import predict_many
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.prediction.rows import rows_of
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.schedules import Harmonic, Polynomial
from privreg.validation import require_callable, require_choice, require_flag, require_instance

Objective = Callable[[Prediction], float]
SEARCH_ROWS = 192
# A doubtful prediction counts for more than any that holds, and still tells which way is down.
DOUBT = 1e6
WIDER, WORTH = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0), 1.1
CAREFUL = ((0.1, 0.1), (0.2, 0.15), (0.3, 0.2))


def search(
    name: str,
    problem: Problem,
    budget: Budget,
    *,
    objective: Objective,
    intervals: bool,
    goals: Sequence[tuple[Problem, float]] = (),
) -> Any | None:
    """Settings of least predicted objective, or None where the method does not take the budget.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    problem : Problem
        What settings are sized by, and predicted for unless there are goals.
    budget : Budget
    objective : callable
        From a prediction to what is minimised.
    intervals : bool
        Whether the fit must release what its intervals need.
    goals : sequence of (Problem, float)
        Problems with the least objective known of each: the largest ratio to it is minimised; empty
        for the problem alone.
    """
    require_choice("name", name, METHODS)
    require_instance("problem", problem, Problem)
    require_instance("budget", budget, Budget)
    require_callable("objective", objective)
    require_flag("intervals", intervals)
    _require_goals(goals)
    searcher, relations = METHODS[name]
    if budget.neighbours not in relations:
        return None
    wanted = [
        (each, least, rows_of(each, count=SEARCH_ROWS)) for each, least in goals or [(problem, 1.0)]
    ]

    def values(methods: Sequence[Any]) -> list[float]:
        worst = np.zeros(len(methods))
        for each, least, rows in wanted:
            found = predict_many(each, methods, budget, rows=rows)
            doubts = [1.0 if prediction.holds else DOUBT for prediction in found]
            ratios = np.array([objective(prediction) for prediction in found]) / least
            worst = np.maximum(worst, np.nan_to_num(ratios * doubts, nan=np.inf))
        return [float(value) for value in worst]

    return _widened(searcher(problem, budget, values, intervals), values)


def _require_goals(goals: Sequence[tuple[Problem, float]]) -> None:
    if not isinstance(goals, (list, tuple)):
        raise ValueError(f"goals must be a list of pairs, got {goals!r}")
    for goal in goals:
        if not isinstance(goal, tuple) or len(goal) != 2 or not isinstance(goal[0], Problem):
            raise ValueError(f"goals must be pairs of a Problem and a number, got {goal!r}")


def _widened(best: Any, values: Callable[..., list[float]]) -> Any:
    """The widest clip that costs little where errors are as stated.

    Where they are skewed in a way that depends on the features, a clip moves what is estimated; no
    statement of the problem says so, and a wide one is moved less.
    """
    names = {HuberSettings: "clip_width", OnePass: "clip_constant"}
    name = names.get(type(best), "clip_norm")
    if not hasattr(best, name):
        return best
    wider = [replace(best, **{name: factor * getattr(best, name)}) for factor in WIDER]
    found = values([best, *wider])
    affordable = [
        each for each, value in zip(wider, found[1:], strict=True) if value <= WORTH * found[0]
    ]
    return affordable[-1] if affordable else best


def _huber(
    problem: Problem, budget: Budget, values: Callable[..., list[float]], intervals: bool
) -> HuberSettings:
    best = default_settings(
        sample_size=problem.sample_size, dimension=problem.dimension, budget=budget
    )
    if not intervals:
        best = replace(best, moment_share=0.0)
    moves: tuple[tuple[dict[str, Any], ...], ...] = (
        tuple({"clip_width": width} for width in np.geomspace(0.35, 3.0, 10).round(3).tolist()),
        tuple({"gram_share": share} for share in (0.02, 0.05, 0.1, 0.18, 0.3)),
        tuple(
            {"warm_up_steps": steps, "warm_up_share": share}
            for steps, share in (
                (2, 0.04),
                (2, 0.1),
                (3, 0.06),
                (4, 0.1),
                (4, 0.2),
                (6, 0.15),
                (6, 0.3),
            )
        ),
        tuple({"norm_share": share} for share in (0.01, 0.03, 0.08)),
        ({"gram_rounds": 1}, {"gram_rounds": 2}, {"gram_rounds": 3}),
        ({"final_steps": 2}, {"final_steps": 3}, {"final_steps": 5}),
        ({"common_width": False},),
        tuple({"scale_share": share} for share in (0.02, 0.04, 0.08, 0.15, 0.25)),
    )
    # Where the budget is small, so much must go to scales that single moves do not get there.
    careful: dict[str, Any] = {
        "warm_up_steps": 2,
        "warm_up_share": 0.2,
        "moment_share": 0.0,
        "gram_rounds": 1,
    }
    starts = [best, *(replace(best, gram_share=g, scale_share=s, **careful) for g, s in CAREFUL)]
    best = starts[int(np.argmin(values(starts)))]
    for _ in range(2):
        for choices in moves:
            candidates = [best, *(_with(best, choice) for choice in choices)]
            best = candidates[int(np.argmin(values(candidates)))]
    return best


def _with(settings: HuberSettings, changes: dict[str, Any]) -> HuberSettings:
    try:
        return replace(settings, **changes)
    except ValueError:
        # Shares that leave nothing for the final steps.
        return settings


def _full_batch(
    problem: Problem, budget: Budget, values: Callable[..., list[float]], intervals: bool
) -> FullBatch:
    length = float(np.sqrt(problem.eigenvalues.sum()))
    unit = problem.label_noise_std * length
    largest = float(problem.eigenvalues.max())

    def settings(point: Sequence[float]) -> FullBatch:
        steps, size, clip = np.exp(point)
        return FullBatch(max(1, round(float(steps))), float(size) / largest, float(clip) * unit)

    grids = (np.log([4, 9, 20, 45]), np.log([0.4, 0.8, 1.5]), np.log([0.35, 0.8, 1.8, 4]))
    return _zoomed(settings, grids, values, zooms=5)


def _one_pass(shape: Callable[[float, float], Any], offsets: Sequence[float]) -> Callable[..., Any]:
    def searcher(
        problem: Problem, budget: Budget, values: Callable[..., list[float]], intervals: bool
    ) -> OnePass:
        n, p = problem.sample_size, problem.dimension
        mean = float(problem.eigenvalues.mean())
        ratio = p / n
        natural = max(ratio, ratio / budget.root)
        unit = problem.label_noise_std * np.sqrt(mean)

        def settings(point: Sequence[float]) -> OnePass:
            rate, clip, offset = np.exp(point)
            # The amplitude gives the rate at the start, in units of the inverse eigenvalue.
            return OnePass(shape(float(rate) / mean, float(offset) * natural), float(clip) * unit)

        grids = (
            np.log(np.geomspace(0.7, 12, 6)),
            np.log([0.2, 0.5, 1.2, 3]),
            np.log(np.asarray(offsets)),
        )
        return _zoomed(settings, grids, values, zooms=4)

    return searcher


def _correlated(
    problem: Problem, budget: Budget, values: Callable[..., list[float]], intervals: bool
) -> CorrelatedNoise:
    n = problem.sample_size
    unit = problem.label_noise_std * float(np.sqrt(problem.eigenvalues.sum()))
    smallest, largest = float(problem.eigenvalues.min()), float(problem.eigenvalues.max())

    def settings(point: Sequence[float]) -> CorrelatedNoise:
        steps, size, clip, damping = np.exp(point)
        return CorrelatedNoise(
            max(1, round(n / float(steps))),
            float(size) / largest,
            float(clip) * unit,
            float(min(1.0, damping * size * smallest / largest)),
        )

    grids = (
        np.log([25.0, 120.0]),
        np.log([0.03, 0.1, 0.3]),
        np.log([0.5, 1.5]),
        np.log([1.0, 1e6]),
    )
    return _zoomed(settings, grids, values, zooms=1)


def _adassp(
    problem: Problem, budget: Budget, values: Callable[..., list[float]], intervals: bool
) -> AdaSSP:
    return AdaSSP()


def _zoomed(
    settings: Callable[[Any], Any],
    grids: Iterable[Any],
    values: Callable[..., list[float]],
    *,
    zooms: int,
) -> Any:
    """The best of a product of grids, then of ever smaller crosses about it."""
    axes = [np.asarray(grid, dtype=float) for grid in grids]
    widths = [np.max(np.diff(axis)) if axis.size > 1 else 0.0 for axis in axes]
    points = list(product(*axes))
    found = values([settings(point) for point in points])
    best, least = np.array(points[int(np.argmin(found))]), min(found)
    for _ in range(zooms):
        widths = [width / 2 for width in widths]
        moved = [
            best + sign * width * np.eye(len(axes))[axis]
            for axis, width in enumerate(widths)
            if width > 0
            for sign in (-1, 1)
        ]
        found = values([settings(point) for point in moved])
        if min(found) < least:
            best, least = moved[int(np.argmin(found))], min(found)
    return settings(best)


REPLACE = {Neighbours.REPLACE_ONE}
# One schedule, one name: they differ in how the noise is spread over the steps.
METHODS: dict[str, tuple[Callable[..., Any], set[Neighbours]]] = {
    "huber": (_huber, set(Neighbours)),
    "full_batch": (_full_batch, set(Neighbours)),
    "one_pass_harmonic": (
        _one_pass(Harmonic, (1.0, 4.0, 20.0)),
        REPLACE,
    ),
    "one_pass_constant": (_one_pass(lambda rate, _: Polynomial(rate, 0.0), (1.0,)), REPLACE),
    "one_pass_root": (_one_pass(lambda rate, _: Polynomial(rate, 0.5), (1.0,)), REPLACE),
    "one_pass_linear": (_one_pass(lambda rate, _: Polynomial(rate, 1.0), (1.0,)), REPLACE),
    "correlated_noise": (_correlated, {Neighbours.REPLACE_ONE, Neighbours.ZERO_OUT}),
    "adassp": (_adassp, set(Neighbours)),
}
