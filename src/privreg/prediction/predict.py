"""The error that a private run will have, from its settings alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from privreg.algorithms.huber_settings import HuberSettings
from privreg.prediction import correlated_noise, full_batch, huber, one_pass, regimes
from privreg.prediction import sufficient_statistics as statistics
from privreg.prediction.methods import (
    AdaSSP,
    CorrelatedNoise,
    FullBatch,
    OnePass,
    require_methods,
)
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.prediction.rows import Rows, rows_of
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.validation import require_instance

Method = HuberSettings | FullBatch | OnePass | CorrelatedNoise | AdaSSP


def predict_risk(problem: Problem, method: Method, budget: Budget) -> Prediction:
    """Excess risk, parameter error and interval length of one private run, without running it.

    Parameters
    ----------
    problem : Problem
        Sizes, scales and the features' law.
    method : HuberSettings, FullBatch, OnePass, CorrelatedNoise or AdaSSP
        The method with its settings.
    budget : Budget
        What the run may cost, and the neighbouring relation. One-pass DP-GD takes replace-one
        alone, correlated noise replace-one or zero-out.

    Returns
    -------
    Prediction
        With the spread over runs and the regime; `Prediction.holds` is false, with a reason, where
        the theory is known to fail.

    Raises
    ------
    ValueError
        A value out of range, a budget whose relation the method does not keep.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> method = FullBatch(steps=20, step_size=0.5, clip_norm=8.0)
    >>> found = predict_risk(problem, method, Budget.zcdp(0.5))
    >>> round(found.excess_risk, 5), str(found.regime)
    (0.00059, 'extended')

    Source
    ------
    brown2024, Lemma 2.3 (full-batch descent); bombari2025, equations (4.7)-(4.8) (one pass);
    choquettechoo2024, Section 2.3 (correlated noise); the terms for clipping, finite samples and
    AdaSSP are derived in `privreg.prediction`.
    """
    if type(method) not in _PREDICTORS:
        names = ", ".join(kind.__name__ for kind in _PREDICTORS)
        raise ValueError(f"method must be {names}, got {type(method).__name__}")
    return predict_many(problem, [method], budget)[0]


def predict_many(
    problem: Problem, methods: Sequence[Any], budget: Budget, *, rows: Rows | None = None
) -> list[Prediction]:
    """`predict_risk` for many settings, in their order; those of one kind are followed together.

    Parameters
    ----------
    problem : Problem
    methods : sequence
        Settings of any kind; empty for none.
    budget : Budget
    rows : Rows, optional
        Those of the problem, where a search takes fewer than `rows_of` does by itself.
    """
    require_instance("problem", problem, Problem)
    require_instance("budget", budget, Budget)
    if isinstance(methods, (list, tuple)) and not methods:
        return []
    methods = require_methods(methods, *_PREDICTORS)
    rows = rows_of(problem) if rows is None else require_instance("rows", rows, Rows)
    found: dict[int, Prediction] = {}
    for kind, predict in _PREDICTORS.items():
        places = [at for at, method in enumerate(methods) if type(method) is kind]
        if not places:
            continue
        chosen = [methods[at] for at in places]
        found.update(zip(places, predict(problem, rows, chosen, budget), strict=True))
    return [found[at] for at in range(len(methods))]


def _full_batch(
    problem: Problem, rows: Rows, methods: Sequence[FullBatch], budget: Budget
) -> list[Prediction]:
    moments, unclipped, reach = full_batch.follow(problem, rows, methods, budget)
    found = moments.predictions(problem, rows)
    return [
        regimes.full_batch(problem, prediction, unclipped=float(share), reach=float(step))
        for prediction, share, step in zip(found, unclipped, reach, strict=True)
    ]


def _huber(
    problem: Problem, rows: Rows, methods: Sequence[HuberSettings], budget: Budget
) -> list[Prediction]:
    found = []
    for method in methods:
        outcome = huber.follow(problem, rows, method, budget)
        (prediction,) = outcome.moments.predictions(problem, rows)
        found.append(regimes.huber(problem, prediction, outcome))
    return found


def _one_pass(
    problem: Problem, rows: Rows, methods: Sequence[OnePass], budget: Budget
) -> list[Prediction]:
    _require_neighbours(budget, {Neighbours.REPLACE_ONE}, "one pass")
    found = one_pass.follow(problem, rows, methods, budget).predictions(problem, rows)
    return [
        regimes.one_pass(problem, rows, method, prediction)
        for method, prediction in zip(methods, found, strict=True)
    ]


def _correlated(
    problem: Problem, rows: Rows, methods: Sequence[CorrelatedNoise], budget: Budget
) -> list[Prediction]:
    allowed = {Neighbours.REPLACE_ONE, Neighbours.ZERO_OUT}
    _require_neighbours(budget, allowed, "correlated noise")
    found = []
    for method in methods:
        moments = correlated_noise.follow(problem, rows, method, budget)
        (prediction,) = moments.predictions(problem, rows)
        found.append(regimes.correlated(problem, method, prediction))
    return found


def _adassp(
    problem: Problem, rows: Rows, methods: Sequence[AdaSSP], budget: Budget
) -> list[Prediction]:
    found = []
    for method in methods:
        (prediction,) = statistics.follow(problem, rows, method, budget).predictions(problem, rows)
        found.append(regimes.adassp(problem, prediction))
    return found


def _require_neighbours(budget: Budget, allowed: set[Neighbours], name: str) -> None:
    if budget.neighbours not in allowed:
        names = " or ".join(sorted(repr(each.value) for each in allowed))
        raise ValueError(
            f"budget must be for {names} neighbours with {name}, got {budget.neighbours.value!r}"
        )


_PREDICTORS: dict[type, Callable[..., list[Prediction]]] = {
    HuberSettings: _huber,
    FullBatch: _full_batch,
    OnePass: _one_pass,
    CorrelatedNoise: _correlated,
    AdaSSP: _adassp,
}
