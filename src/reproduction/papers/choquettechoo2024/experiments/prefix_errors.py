"""Prefix-sum errors of the mechanisms where records take part once, or in several epochs."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, per, stage
from reproduction.papers.choquettechoo2024.mechanisms import (
    MECHANISMS,
    Mechanism,
    Participation,
    prefix_errors,
    tuned_damping,
)

PLACE = "Section 4, Table 3, Figure 4 and Appendix G"


class Schedule(Strict):
    """How often a record takes part, and how far apart."""

    steps: q.Steps = Field(description="Steps T.")
    participations: q.Steps = Field(description="Steps in which a record takes part.")
    separation: q.Steps = Field(description="Steps between two of them.")

    _takes_part_in_time = q.at_least(
        "steps",
        "(participations - 1) * separation + 1",
        lambda self: (self.participations - 1) * self.separation + 1,
    )


class Parameters(Strict):
    """Schedules of the paper's two data sets, and single participation for Table 3."""

    schedules: q.Some[Schedule] = Field(description="Schedules.")

    @property
    def settings(self) -> list[Participation]:
        return [Participation(**schedule.model_dump()) for schedule in self.schedules]


def schedule_axis(meaning: str, name: str) -> Axis:
    """Labels of the schedules by one of their numbers."""
    return Axis(meaning, lambda parameters: _each(parameters, name), along="schedule")


AXES = {
    "steps": schedule_axis("steps T", "steps"),
    "participations": schedule_axis("participations of a record", "participations"),
    "separation": schedule_axis("steps between two participations", "separation"),
    "mechanism": Axis("mechanism", MECHANISMS),
}


def mechanisms(parameters: Any) -> list[list[Mechanism]]:
    """All mechanisms for each schedule; matrices of the dense optimum alone, the others are large.

    The dense optimum, which needs the most memory itself, is found last.
    """
    return [
        [
            found if name == "multi_epoch" else found._replace(matrices=None)
            for name in MECHANISMS
            for found in [prefix_errors(name, at)]
        ]
        for at in parameters.settings
    ]


@per(
    "schedule",
    "mechanism",
    mean_error="root mean square error over steps",
    largest_error="largest root mean square error",
    over_best="mean error over the best",
    stretches="stretches of steps after which the mechanism starts anew",
)
def errors(mechanisms: list[list[Mechanism]]) -> dict:
    """At a noise multiplier of 1, per coordinate."""
    found = np.array([[mechanism.errors for mechanism in row] for row in mechanisms])
    mean, largest, _ = np.moveaxis(found, -1, 0)
    return {
        "mean_error": mean,
        "largest_error": largest,
        "over_best": mean / mean.min(axis=1, keepdims=True),
        "stretches": [[mechanism.stretches for mechanism in row] for row in mechanisms],
    }


@per("schedule", damping="tuned damping nu")
def dampings(parameters: Any) -> list[float]:
    return [tuned_damping(at) for at in parameters.settings]


theory = stage(AXES, errors, dampings, shared={"mechanisms": mechanisms})


def _each(parameters: Any, name: str) -> list[int]:
    return [getattr(at, name) for at in parameters.settings]
