"""Ranges of settings that several recipes sweep."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.config import Strict


class LogAxis(Strict):
    """Log-spaced settings."""

    low: float = Field(gt=0, description="Smallest value.")
    high: float = Field(gt=0, description="Largest value.")
    count: int = Field(ge=2, description="Number of values.")

    def values(self) -> np.ndarray:
        return np.geomspace(self.low, self.high, self.count)
