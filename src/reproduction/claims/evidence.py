"""Where a number lies: a variable of an artifact, at labels of its coordinates."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from reproduction.engine.parameters import Artifact, Name, Strict

INFINITIES = ("Infinity", "-Infinity")
Label = bool | int | float | str


def _is_number(value: float) -> float:
    if math.isnan(value):
        raise ValueError("must be a number, got NaN")
    return value


def _no_truth_value(value: Any) -> Any:
    # JSON has no infinity of its own: a case that is handed to a job has it as text.
    if isinstance(value, bool) or (isinstance(value, str) and value not in INFINITIES):
        raise ValueError(f"must be a number, got {value!r:.60}")
    return value


# An infinite divergence is a legal value.
Number = Annotated[float, BeforeValidator(_no_truth_value), AfterValidator(_is_number)]


class Evidence(Strict):
    """A variable of an artifact, at labels of its coordinates."""

    artifact: Artifact = Field(description="STAGE/EXPERIMENT, or data/DATASET.")
    variable: Name
    select: dict[Name, Label | tuple[Label, ...]] = Field(
        default_factory=dict, description="Coordinate: one label, or several in this order."
    )
