"""Prefix-sum errors of the mechanisms if records take part once or in several epochs."""

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
)

PLACE = "Section 4, Table 3, Figure 4 and Appendix G"


class Parameters(Strict):
    """Schedules of the paper's two data sets, and single participation for Table 3."""

    schedules: q.Some[Participation] = Field(description="Schedules.")


def _numbers(meaning: str, name: str) -> Axis:
    """Labels of the schedules by one of their numbers."""

    def labels(parameters: Any) -> list[int]:
        return [getattr(at, name) for at in parameters.schedules]

    return Axis(meaning, labels, along="schedule")


AXES = {
    "steps": _numbers("steps T", "steps"),
    "participations": _numbers("participations of a record", "participations"),
    "separation": _numbers("steps between two participations", "separation"),
    "mechanism": Axis("mechanism", MECHANISMS),
}


def mechanisms(parameters: Any) -> list[list[Mechanism]]:
    """All mechanisms for each schedule; only the dense optimum keeps its matrices.

    The dense optimum needs the most memory and is computed last.
    """
    return [
        [
            found if name == "multi_epoch" else found._replace(matrices=None)
            for name in MECHANISMS
            for found in [prefix_errors(name, at)]
        ]
        for at in parameters.schedules
    ]


@per(
    "schedule",
    "mechanism",
    mean_error="root mean square error over steps",
    largest_error="largest root mean square error",
    over_best="mean error divided by the least",
    stretches="stretches of steps after which the mechanism starts anew",
)
def errors(mechanisms: list[list[Mechanism]]) -> dict:
    """Errors at a noise multiplier of 1, per coordinate."""
    mean = np.array([[each.errors.mean for each in row] for row in mechanisms])
    return {
        "mean_error": mean,
        "largest_error": [[each.errors.largest for each in row] for row in mechanisms],
        "over_best": mean / mean.min(axis=1, keepdims=True),
        "stretches": [[each.stretches for each in row] for row in mechanisms],
    }


theory = stage(AXES, errors, shared={"mechanisms": mechanisms})
