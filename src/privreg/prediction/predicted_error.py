"""Predicted error of a private run, and how far the theory behind it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows
from privreg.validation import require_instance

FloatArray = NDArray[np.float64]
# Derived in `too_few_rows`.
MOST_RATIO, MOST_RATIO_WHOLE = 0.15, 0.11


class Regime(StrEnum):
    """Extent to which the theory behind a prediction holds for the problem and settings."""

    PROVEN = "proven"
    """Inside the assumptions of a theorem or an exact law, up to a stated expansion."""
    EXTENDED = "extended"
    """Outside of what is proved, where simulations agreed to 10 %."""
    OUTSIDE = "outside"
    """A setting in which the theory is known to fail, with numbers not to be relied on."""


@dataclass(frozen=True)
class Prediction:
    """Error of a private run that has not happened.

    Attributes
    ----------
    excess_risk : float
        Mean over data and private noise of half the squared prediction error over the best one's;
        square of a label. `inf` where the run diverges.
    excess_risk_std : float
        Its standard deviation over runs.
    parameter_error : float
        Mean squared distance of the coefficients to θ*, square of a coefficient.
    interval_length : float
        Root mean square over coefficients of the length of a 95 % interval for θ*_j that knows the
        law of the run; that of a coefficient. The mean squared error counts, bias and variance.
    null_risk : float
        Excess risk of predicting the mean, for comparison.
    regime : Regime
        Whether the theory holds here.
    reason : str
        Why, in one line: the theorem, or what is violated.
    warnings : tuple of str
        What else to know, a line each.
    """

    excess_risk: float
    excess_risk_std: float
    parameter_error: float
    interval_length: float
    null_risk: float
    regime: Regime
    reason: str
    warnings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the numbers are to be relied on."""
        return self.regime is not Regime.OUTSIDE and bool(np.isfinite(self.excess_risk))

    @property
    def beats_the_mean(self) -> bool:
        """Whether the run is predicted to do better than predicting the mean."""
        return bool(self.excess_risk < self.null_risk)

    def marked(self, regime: Regime, reason: str) -> Prediction:
        """The same numbers in a regime, for a reason: the theorem, or the expansion."""
        require_instance("regime", regime, Regime)
        return replace(self, regime=regime, reason=require_instance("reason", reason, str))

    def with_doubt(self, reason: str) -> Prediction:
        """The same numbers, marked as not to be relied on for a reason."""
        return self.marked(Regime.OUTSIDE, reason)


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
        null = problem.null_risk
        most = 1e6 * (null + problem.label_noise_std**2)
        reason = "the run diverges: the step size is too large for the features' scale"
        diverged = Prediction(*(np.inf,) * 4, null, Regime.OUTSIDE, reason)
        return [
            Prediction(
                excess_risk=float(risk[at]),
                excess_risk_std=float(np.sqrt(spread[at])),
                parameter_error=float(error[at]),
                interval_length=float(length[at]),
                null_risk=null,
                regime=Regime.EXTENDED,
                reason="",
            )
            if np.isfinite(risk[at]) and risk[at] < most
            else diverged
            for at in range(len(risk))
        ]


def too_few_rows(problem: Problem, unclipped: float) -> str | None:
    r"""Why there are too few rows for descent on clipped gradients, or None.

    The second moment of n rows has relative eigenvalues up to :math:`(1 + \sqrt\kappa)^2` with
    κ = p/n (Marchenko and Pastur). A step that is full for the population stays stable along them
    while this is below 2, for κ < (√2 - 1)² = 0.172: κ is to be at most 0.15. Of the rows a share s
    has an unclipped gradient, and they alone have curvature: for κ/s the edge is to be at most
    1.77, κ/s = 0.11, beyond which simulations left the band of 10 %.

    Source
    ------
    Marčenko and Pastur (1967) for the edge; the simulations are those of docs/prediction.md.
    """
    ratio = problem.dimension / problem.sample_size
    if ratio <= MOST_RATIO and ratio / max(unclipped, 1e-3) <= MOST_RATIO_WHOLE:
        return None
    return (
        f"too few rows: {problem.sample_size} for {problem.dimension} features, of whose "
        f"gradients {unclipped:.0%} are not clipped"
    )
