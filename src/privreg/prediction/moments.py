"""Second moments of the error of a run, and the prediction that they make."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privreg.prediction.problem import Problem
from privreg.prediction.result import Prediction, Regime
from privreg.prediction.rows import Rows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorMoments:
    """Error of a coordinate of each group of eigenvalues, (settings, groups) each."""

    squared_bias: FloatArray
    variance: FloatArray  # over data and private noise
    shift: FloatArray | float = 0.0  # of the squared bias at a misfit of 1, by `squared_shift`

    def predictions(self, problem: Problem, rows: Rows) -> list[Prediction]:
        """A prediction for each setting; what is not finite has diverged."""
        with np.errstate(over="ignore", invalid="ignore"):
            # No misfit takes nothing of a shift, not even of an infinite one.
            shift = problem.misfit**2 * self.shift if problem.misfit else 0.0
            squared_bias = self.squared_bias + shift
            energy = squared_bias + self.variance
            risk = rows.total(rows.eigenvalues * energy) / 2
            spread = rows.total(
                rows.eigenvalues**2 * (self.variance**2 / 2 + squared_bias * self.variance)
            )
            error = rows.total(energy)
            # An interval about a biased estimate misses θ* by its bias as well.
            length = 2 * ndtri(0.975) * np.sqrt(error / problem.dimension)
        found = []
        for at in range(len(risk)):
            settled = np.isfinite(risk[at]) and risk[at] < 1e6 * (
                problem.null_risk + problem.label_noise_std**2
            )
            found.append(
                Prediction(
                    excess_risk=float(risk[at]),
                    excess_risk_std=float(np.sqrt(spread[at])),
                    parameter_error=float(error[at]),
                    interval_length=float(length[at]),
                    null_risk=problem.null_risk,
                    regime=Regime.EXTENDED,
                    reason="",
                )
                if settled
                else _diverged(problem)
            )
        return found


def _diverged(problem: Problem) -> Prediction:
    return Prediction(
        *(np.inf,) * 4,
        null_risk=problem.null_risk,
        regime=Regime.OUTSIDE,
        reason="the run diverges: the step size is too large for the features' scale",
    )
