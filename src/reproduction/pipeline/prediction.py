"""What a job is predicted to take, from what was measured; jobs beyond the limit are refused.

A simulation's time grows with its trials. Where parameters differ from the measured ones, it grows
with the arithmetic of one trial that the recipe's parameters state as `work`, in a unit of their
own, and memory with the numbers that they state as `held`. Of other stages, time is taken to grow
with the product of all sizes among the parameters, and of the steps that follow from real ones
where they state these as `derived_steps`: a guess, which never falls below the measured time, and
is said to be a guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from pydantic import BaseModel

from reproduction.engine.parameters import ConfigError
from reproduction.pipeline.config import Config, Experiment
from reproduction.pipeline.registry import Recipe

# Starting a process and importing what it needs, in seconds; the rest of a job grows with its work.
START = 1.2
# Arrays with a number for each derived step that a job is taken to have at once.
HELD_A_STEP = 8


class Plan(Protocol):
    """What is looked at, of a plan."""

    config: Config

    def recipe(self, paper: str, name: str) -> Recipe: ...

    def experiment(self, paper: str, name: str) -> Experiment: ...


@dataclass(frozen=True)
class Cost:
    """Core seconds of a stage's jobs together, their number, and the largest one's memory."""

    seconds: float
    memory_mb: float
    jobs: int = 1
    trials: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    known: bool = True

    @property
    def longest(self) -> float:
        """Seconds of the longest job, if the trials are split evenly."""
        return self.seconds / self.jobs


# What a job asks for that was not measured.
UNMEASURED = Cost(seconds=300.0, memory_mb=1000.0, known=False)


def read_costs(path: Path) -> dict[str, Cost]:
    """What was measured, by `stage/paper/experiment`."""
    return {key: Cost(**values) for key, values in json.loads(path.read_text()).items()}


def stages(plan: Plan) -> Iterator[str]:
    """Each `stage/paper/experiment` that makes an artifact."""
    for paper, block in plan.config.blocks.items():
        for name in block.experiments:
            recipe = plan.recipe(paper, name)
            for stage, function in (
                ("theory", "theory"),
                ("simulation", "simulate"),
                ("intervals", "intervals"),
            ):
                if recipe.has(function):
                    yield f"{stage}/{paper}/{name}"


def predicted(key: str, plan: Plan, measured: Mapping[str, Cost]) -> Cost:
    """The cost of `stage/paper/experiment` under a plan, scaled from the measured one."""
    stage, paper, name = key.split("/")
    if key not in measured:
        return UNMEASURED
    experiment = plan.experiment(paper, name)
    return _scaled(stage, plan.recipe(paper, name), name, experiment, measured[key])


def require_affordable(plan: Plan, measured: Mapping[str, Cost]) -> None:
    """Refuse experiments with a job that is predicted beyond `config.largest_job`.

    Raises
    ------
    ConfigError
        One line: what to change, its value, what is predicted, and the limit's own key.
    """
    limits = plan.config.largest_job
    for key in stages(plan):
        cost = predicted(key, plan, measured)
        for limit, unit, scale, words in (
            ("hours", "longest", 3600.0, "hours"),
            ("memory_gb", "memory_mb", 1024.0, "GB"),
        ):
            found, most = getattr(cost, unit) / scale, getattr(limits, limit)
            if found > most:
                _, paper, name = key.split("/")
                raise ConfigError(
                    f"{paper}.experiments.{name}.{_cause(key, plan, measured[key], unit)}; "
                    f"a job is predicted to take {found:.3g} {words}, "
                    f"config.largest_job.{limit} allows {most:g}"
                )


def _scaled(stage: str, recipe: Recipe, name: str, experiment: Experiment, measured: Cost) -> Cost:
    same = experiment.parameters == measured.parameters
    growth, more, stated = (
        (1.0, 0.0, True) if same else _growth(stage, recipe, name, experiment, measured)
    )
    memory = measured.memory_mb + 8 * more / 2**20
    if measured.trials is None:
        return Cost(measured.seconds * growth, memory, known=same)
    trials = experiment.trials or 1
    each = max(measured.seconds - START * measured.jobs, 0.0) / measured.trials
    return Cost(
        seconds=START * experiment.shards + each * growth * trials,
        memory_mb=memory,
        jobs=experiment.shards,
        trials=trials,
        known=same or stated,
    )


def _growth(
    stage: str, recipe: Recipe, name: str, experiment: Experiment, measured: Cost
) -> tuple[float, float, bool]:
    """Factor of the time, numbers held beyond the measured ones, whether the recipe states both."""
    now = recipe.parameters(experiment.parameters, name)
    try:
        before = recipe.parameters(measured.parameters, name)
    except ConfigError:
        # Measured before its parameters had today's names.
        return 1.0, 0.0, False
    more = max(0.0, _held(now) - _held(before))
    if stage == "simulation" and hasattr(now, "work"):
        return _stated(now, "work") / _stated(before, "work"), more, True
    return max(1.0, _sizes(now) / _sizes(before)), more, False


def _stated(parameters: Any, word: str, default: float = 0.0) -> float:
    try:
        # A step size of 1e-300 takes more steps than there are numbers.
        with np.errstate(all="ignore"):
            return float(getattr(parameters, word, default))
    except (OverflowError, ZeroDivisionError):
        return inf


def _held(parameters: Any) -> float:
    return _stated(parameters, "held") + HELD_A_STEP * _stated(parameters, "derived_steps")


def _sizes(parameters: Any) -> float:
    return _size(parameters) * max(_stated(parameters, "derived_steps", 1.0), 1e-300)


def _size(value: Any) -> float:
    """The product of all whole numbers in a value; what a list holds adds up."""
    if isinstance(value, BaseModel):
        return prod(_size(getattr(value, name)) for name in type(value).model_fields)
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(max(value, 1)) if whole else 1.0


def _cause(key: str, plan: Plan, measured: Cost, unit: str) -> str:
    """What, put back alone to where it was measured, lowers the prediction most."""
    stage, paper, name = key.split("/")
    recipe, experiment = plan.recipe(paper, name), plan.experiment(paper, name)
    found = {}
    for each, before in measured.parameters.items():
        now = experiment.parameters.get(each)
        if now == before:
            continue
        back: dict[str, Any] = {"parameters": {**experiment.parameters, each: before}}
        try:
            cost = _scaled(stage, recipe, name, experiment.model_copy(update=back), measured)
        except ConfigError:
            continue
        found[f"parameters.{each} must be nearer to {_short(before)}, got {_short(now)}"] = cost
    if measured.trials is not None:
        back = {"trials": measured.trials}
        cost = _scaled(stage, recipe, name, experiment.model_copy(update=back), measured)
        words = f"trials must be fewer, or in more shards, got {experiment.trials}"
        found[f"{words} in {experiment.shards}"] = cost
    return min(found, key=lambda words: getattr(found[words], unit), default=f"{stage} is too long")


def _short(value: Any) -> str:
    written = json.dumps(value)
    return written if len(written) < 80 else f"{written[:77]}..."
