"""The best method and settings for a budget, over all problems that are thought possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from privreg.methods import registry
from privreg.methods.method import Method
from privreg.methods.predictions import predict_over
from privreg.planning.result import Alternative, Plan
from privreg.planning.search import search
from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction
from privreg.privacy.budget import Budget
from privreg.validation import require_choice, require_flag, require_instance, short

Objective = Literal["excess_risk", "parameter_error", "interval_length"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
# A method this many times worse than another one in a stated case is not searched in the others.
FAR = 2.5


def plan_run(
    problems: Problem | Sequence[Problem],
    budget: Budget,
    *,
    methods: Iterable[str] | None = None,
    objective: Objective = "excess_risk",
    intervals: bool = True,
) -> Plan:
    """Best method and settings for a budget.

    Settings are searched on predictions, for each problem by itself and for all of them together;
    of all that were found, each method's alternative is the one of least regret: the largest ratio
    over the problems of its objective to the least that any alternative has there. Problems whose
    noise differs stand for all noise between them: the regret is also over each of them with every
    other combination of the laws and misfits that are stated.

    Parameters
    ----------
    problems : Problem or sequence of Problem
        What is known; several, as `Problem.over` makes them, where signal and noise are known up to
        a range.
    budget : Budget
        What the run may cost, and the neighbouring relation.
    methods : iterable of str, optional
        Names under which methods list their candidates (`Method.searched`); all by default.
    objective : {"excess_risk", "parameter_error", "interval_length"}
        What is to be small.
    intervals : bool
        Whether the fit must spend what its intervals need.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        A name that is no method's, or a budget that none of the methods takes.

    Examples
    --------
    >>> problem = Problem(10_000, np.ones(10), signal=1.0, label_noise_std=1.0)
    >>> plan = plan_run(problem, Budget.zcdp(0.125), methods=["huber", "adassp"])
    >>> plan.best.name, plan.worthwhile
    ('huber', True)
    """
    stated: Any = (problems,) if isinstance(problems, Problem) else problems
    if not isinstance(stated, Sequence) or not stated:
        raise ValueError(f"problems must have at least one entry of a list, got {short(problems)}")
    stated = tuple(stated)
    for problem in stated:
        require_instance("problems", problem, Problem)
    require_instance("budget", budget, Budget)
    require_choice("objective", objective, OBJECTIVES)
    require_flag("intervals", intervals)
    names = names_of(methods)
    known = _Known(budget, tuple(dict.fromkeys(problem.misfit for problem in stated)))
    candidates = _candidates(stated, known, names, objective=objective, intervals=intervals)
    if not candidates:
        raise ValueError(
            f"budget must be for neighbours that {', '.join(names)} take, "
            f"got {budget.neighbours.value!r}"
        )
    predictions = [
        known.predictions(problem, [method for _, method in candidates])
        for problem in _corners(stated)
    ]
    values = np.array([[getattr(each, objective) for each in row] for row in predictions])
    held = np.array([[each.holds for each in row] for row in predictions])
    trusted = np.where(held, values, np.inf).min(axis=1)
    least = np.where(np.isfinite(trusted), trusted, values.min(axis=1))
    with np.errstate(invalid="ignore"):
        regret = np.nan_to_num((values / least[:, None]).max(axis=0), nan=np.inf)
    predictions, held = predictions[: len(stated)], held[: len(stated)]
    order = sorted(
        range(len(candidates)), key=lambda at: (not held[:, at].all(), float(regret[at]))
    )
    chosen: dict[str, Alternative] = {}
    for at in order:
        name, method = candidates[at]
        chosen.setdefault(
            name,
            Alternative(name, method, tuple(row[at] for row in predictions), float(regret[at])),
        )
    alternatives = tuple(chosen.values())
    best = alternatives[0]
    worthwhile = best.holds and any(each.beats_the_mean for each in best.predictions)
    return Plan(stated, budget, alternatives, worthwhile, _verdict(stated, budget, best))


@dataclass
class _Known:
    """Predictions of one plan: settings are followed once for all problems that they see alike."""

    budget: Budget
    misfits: tuple[float, ...]
    found: dict[tuple[Any, ...], Prediction] = field(default_factory=dict)

    def predictions(self, problem: Problem, methods: Sequence[Method]) -> list[Prediction]:
        """Of settings for a problem with one of the misfits."""
        parts = asdict(replace(problem, misfit=0.0)).values()
        seen = tuple(each.tobytes() if isinstance(each, np.ndarray) else each for each in parts)
        new = list(
            dict.fromkeys(
                each for each in methods if (seen, problem.misfit, each) not in self.found
            )
        )
        over = predict_over(problem, new, self.budget, misfits=self.misfits)
        for misfit, predictions in zip(self.misfits, over, strict=True):
            for method, found in zip(new, predictions, strict=True):
                self.found[seen, misfit, method] = found
        return [self.found[seen, problem.misfit, method] for method in methods]


def _corners(stated: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems, then each with the noises that combine what others state of law and misfit."""
    laws = dict.fromkeys(problem.label_noise_law for problem in stated)
    misfits = dict.fromkeys(problem.misfit for problem in stated)
    known = {(problem.label_noise_law, problem.misfit) for problem in stated}
    return stated + tuple(
        replace(problem, label_noise_law=law, misfit=misfit)
        for law, misfit in product(laws, misfits)
        if (law, misfit) not in known
        for problem in stated
    )


def names_of(methods: Any) -> list[str]:
    """Names of methods."""
    known = registry.searched()
    if methods is None:
        return list(known)
    listable = isinstance(methods, Iterable) and not isinstance(methods, (str, bytes))
    names: list[Any] = list(methods) if listable else [None]
    if not all(isinstance(each, str) and get_close_matches(each, known) for each in names):
        listed = ", ".join(known)
        raise ValueError(f"methods must be a list of names, {listed}, got {short(methods)}")
    if not names:
        raise ValueError("methods must name at least one, got none")
    for name in names:
        require_choice("methods", name, known)
    return names


def _candidates(
    problems: tuple[Problem, ...],
    known: _Known,
    names: list[str],
    *,
    objective: Objective,
    intervals: bool,
) -> list[tuple[str, Any]]:
    """Settings of every method for each problem, and for all of them together."""
    budget = known.budget

    def value(found: Prediction) -> float:
        return float(getattr(found, objective))

    def alone_for(problem: Problem, names: Iterable[str]) -> list[tuple[str, Any]]:
        found = [
            (name, search(name, problem, budget, objective=value, intervals=intervals))
            for name in names
        ]
        return [(name, method) for name, method in found if method is not None]

    # The hardest case first: what is far behind there is no candidate for the least regret.
    hardest, *others = sorted(problems, key=_hardness, reverse=True)
    alone = alone_for(hardest, names)
    if not others or not alone:
        return alone
    near = _near(alone, known.predictions(hardest, [each for _, each in alone]), value)
    for problem in others:
        alone.extend(alone_for(problem, near))
    goals = []
    for problem in problems:
        predictions = known.predictions(problem, [method for _, method in alone])
        trusted = [value(each) for each in predictions if each.holds]
        goals.append((problem, min(trusted or [value(each) for each in predictions])))
    # Settings are sized by a problem in the middle of the range.
    noises = [problem.label_noise_std for problem in problems]
    middle = sorted(problems, key=lambda each: each.null_risk)[len(problems) // 2]
    middle = replace(middle, label_noise_std=float(np.exp(np.mean(np.log(noises)))))
    return alone + [
        (
            name,
            search(name, middle, budget, objective=value, intervals=intervals, goals=goals),
        )
        for name in near
    ]


def _hardness(problem: Problem) -> tuple[float, bool, float]:
    return problem.misfit, problem.label_noise_law != "gaussian", problem.label_noise_std


def _near(
    alone: list[tuple[str, Any]], found: list[Prediction], value: Callable[[Prediction], float]
) -> list[str]:
    """Methods within a factor of the best one's objective, each at its own best settings."""
    trusted = [value(each) for each in found if each.holds]
    most = FAR * min(trusted or map(value, found), default=np.inf)
    return [name for (name, _), each in zip(alone, found, strict=True) if value(each) <= most]


def _verdict(problems: tuple[Problem, ...], budget: Budget, best: Alternative) -> str:
    sizes = sorted({problem.sample_size for problem in problems})
    rows = " to ".join(
        f"{size:,}" for size in (sizes if len(sizes) == 1 else sizes[:: len(sizes) - 1])
    )
    beats = [each.beats_the_mean for each in best.predictions]
    start = f"At n = {rows} and rho = {budget.rho:.3g}"
    if not best.holds:
        return f"{start} no method's error can be predicted: {best.worst.reason}."
    if not any(beats):
        return f"{start} the fit will not be better than predicting the mean."
    share = max(each.excess_risk / each.null_risk for each in best.predictions)
    if not all(beats):
        return (
            f"{start} the fit may be worse than predicting the mean: in the worst stated case its "
            f"excess risk is {share:.2g} times the mean's."
        )
    return f"{start} the fit leaves at most {share:.1%} of what predicting the mean misses."
