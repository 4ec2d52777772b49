"""Prefix-sum errors of the mechanisms where records take part once, or in several epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Some, Steps
from reproduction.papers.choquettechoo2024.mechanisms import (
    MECHANISMS,
    Mechanism,
    MechanismName,
    Participation,
    prefix_errors,
    tuned_damping,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr

PLACE = "Section 4, Table 3, Figure 4 and Appendix G"


class Schedule(Strict):
    """How often a record takes part, and how far apart."""

    steps: Steps = Field(description="Steps T.")
    participations: Steps = Field(description="Steps in which a record takes part.")
    separation: Steps = Field(description="Steps between two of them.")

    @model_validator(mode="after")
    def _takes_part_in_time(self) -> Self:
        least = (self.participations - 1) * self.separation + 1
        if self.steps < least:
            raise ValueError(
                f"steps must be at least (participations - 1) * separation + 1 = {least}, "
                f"got {self.steps}"
            )
        return self


class Parameters(Strict):
    """Schedules of the paper's two data sets, and single participation for Table 3."""

    schedules: Some[Schedule] = Field(description="Schedules.")
    mechanisms: Some[MechanismName] = Field(
        default_factory=lambda: list(MECHANISMS), description="Mechanisms."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Mean, largest and last error at a noise multiplier of 1, per coordinate."""
    settings = [Participation(**at.model_dump()) for at in parameters.schedules]
    found = [[prefix_errors(name, at) for name in parameters.mechanisms] for at in settings]
    return error_table(settings, parameters.mechanisms, found)


def error_table(
    settings: list[Participation], names: Sequence[str], found: list[list[Mechanism]]
) -> xr.Dataset:
    """Errors by schedule and mechanism."""
    import xarray as xr

    errors = np.array([[mechanism.errors for mechanism in row] for row in found])
    stretches = [[mechanism.stretches for mechanism in row] for row in found]
    dims = ("schedule", "mechanism")
    best = errors[:, :, 0].min(axis=1)
    return xr.Dataset(
        {
            "mean_error": variable(dims, errors[..., 0], "root mean square error over steps"),
            "largest_error": variable(dims, errors[..., 1], "largest root mean square error"),
            "last_error": variable(dims, errors[..., 2], "root mean square error, last step"),
            "over_best": variable(dims, errors[..., 0] / best[:, None], "mean error over the best"),
            "stretches": variable(
                dims, stretches, "stretches of steps after which the mechanism starts anew"
            ),
            "damping": variable(
                "schedule", [tuned_damping(at) for at in settings], "tuned damping nu"
            ),
        },
        coords={
            **{
                name: variable("schedule", [getattr(at, name) for at in settings], meaning)
                for name, meaning in (
                    ("steps", "steps T"),
                    ("participations", "participations of a record"),
                    ("separation", "steps between two participations"),
                )
            },
            "mechanism": variable("mechanism", list(names), "mechanism"),
        },
    )
