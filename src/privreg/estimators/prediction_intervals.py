"""What a fit says of labels at given rows: their mean, and a new observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.estimators.frames import data_frame
from privreg.inference.population_intervals import CoefficientIntervals

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PredictionIntervals:
    """Mean predictions, and intervals for new observations, at rows.

    Attributes
    ----------
    mean : CoefficientIntervals
        For β_0 + xᵀβ.
    lower, upper : ndarray, shape (n,)
        Ends for a new observation, within the label's declared bounds. Their middle is the robust
        fit that the histogram of residuals was taken about, and not the mean.
    reason : str
        Why they are the label's bounds themselves; empty where they are not.
    """

    mean: CoefficientIntervals
    lower: FloatArray
    upper: FloatArray
    reason: str = ""

    @property
    def columns(self) -> dict[str, list[float]]:
        """Columns by statsmodels' names: mean, mean_se, mean_ci_lower and on to obs_ci_upper."""
        columns = {
            "mean": self.mean.centre,
            "mean_se": self.mean.standard_error,
            "mean_ci_lower": self.mean.lower,
            "mean_ci_upper": self.mean.upper,
            "obs_ci_lower": self.lower,
            "obs_ci_upper": self.upper,
        }
        return {name: values.tolist() for name, values in columns.items()}

    def to_frame(self) -> Any:
        """The columns as a pandas DataFrame."""
        return data_frame(self.columns)
