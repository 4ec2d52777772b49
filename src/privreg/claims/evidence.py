"""Where a number lies: a variable of an artifact, at labels of its coordinates."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Field

from privreg.experiment.parameters import Artifact, Name, Strict

Label = bool | int | float | str


def _is_number(value: float) -> float:
    if math.isnan(value):
        raise ValueError("expected a number, found NaN")
    return value


Number = Annotated[float, AfterValidator(_is_number)]


class Evidence(Strict):
    """A variable of an artifact, at labels of its coordinates."""

    artifact: Artifact = Field(description="STAGE/EXPERIMENT, or data/DATASET.")
    variable: Name
    select: dict[Name, Label | tuple[Label, ...]] = Field(
        default_factory=dict, description="Coordinate: one label, or several in this order."
    )
