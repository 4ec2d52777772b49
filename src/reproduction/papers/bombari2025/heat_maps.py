"""Statistics that the text reads off the heat-maps over clipping constants and initial rates."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict

ONE_SIDE = "all settings lie on one side"
NO_VALLEY = "fewer than two constants below 1 have their best rate inside the grid"


class Grid(Strict):
    """A grid of settings."""

    clip_constants: q.ClipAxis = Field(description="Clipping constants c.")
    initial_rates: q.StepSizeAxis = Field(description="Initial learning rates.")

    def settings(self) -> tuple[np.ndarray, np.ndarray]:
        """Constant and rate of each setting, shape (constants, rates) each."""
        constants, rates = self.clip_constants.values(), self.initial_rates.values()
        return np.meshgrid(constants, rates, indexing="ij")

    def regions(self, gamma: float) -> dict[str, np.ndarray]:
        """Settings with a constant above 1, or a rate above 2 / gamma, shape (constants, rates)."""
        constants, rates = self.settings()
        return {"large_clip_excess": constants > 1, "large_rate_excess": rates > 2 / gamma}

    def valley_slope(self, values: np.ndarray, fewest: int = 2) -> float:
        """Log-log slope of the best rate against the constant, for `values` (constants, rates).

        It uses constants below 1 with a best rate inside the grid; NaN if fewer than `fewest`.
        """
        constants, rates = self.clip_constants.values(), self.initial_rates.values()
        best = np.argmin(values[constants < 1], axis=1)
        inside = (best > 0) & (best < len(rates) - 1)
        if inside.sum() < fewest:
            return np.nan
        abscissa, ordinate = np.log(constants[constants < 1][inside]), np.log(rates[best[inside]])
        return float(np.polyfit(abscissa, ordinate, 1)[0])


def best_in_and_out(values: np.ndarray, scores: np.ndarray, region: np.ndarray) -> np.ndarray:
    """Log ratio of values at the least score inside a region to values at the least score outside.

    Values have the shape (constants, rates, ...); NaN where all settings lie on one side.
    """
    every = values.reshape(scores.size, *values.shape[2:])
    if region.all() or not region.any():
        return np.full(every.shape[1:], np.nan)
    inside, outside = (
        every[np.argmin(np.where(part, scores, np.inf))] for part in (region, ~region)
    )
    return np.log(inside / outside)
