"""Parameters and an axis that the recipes of brown2024 share."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis

# Up to where descent is stable on more rows than columns of whitened features.
StepSize = Annotated[q.StepSize, Field(ge=1e-3, le=0.5)]


class OneSize(Strict):
    """Tables of one size and the step size; the paper's experiments state neither n nor eta."""

    dimension: q.Dimension = Field(description="Features p.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Sample size n.")
    step_size: StepSize = Field(description="eta.")

    _more_rows_than_columns = q.more_than("sample_size", "dimension")


class OneThreshold(OneSize):
    """Tables of one size, clipped at one multiple of sqrt(p)."""

    clip_constant: q.ClipConstant = Field(description="gamma / sqrt(p).")

    @property
    def clip_norm(self) -> float:
        """gamma."""
        return self.clip_constant * np.sqrt(self.dimension)


def rhos(parameters: Any) -> list[float]:
    """Each budget's rho."""
    return [budget.rho for budget in parameters.budgets]


RHO = Axis("zCDP budget", rhos)
