"""Predicted error of a private run, and how far the theory behind it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from privreg.validation import require_instance


class Regime(StrEnum):
    """How far the theory behind a prediction holds for the problem and settings at hand."""

    PROVEN = "proven"
    """Inside the assumptions of a theorem or an exact law, up to a stated expansion."""
    EXTENDED = "extended"
    """Outside of what is proved, where simulations agreed to 10 %."""
    OUTSIDE = "outside"
    """Where the theory is known to fail: the numbers are not to be relied on."""


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
        """The same numbers with the regime that they are in.

        Parameters
        ----------
        regime : Regime
        reason : str
            The theorem, or the expansion.
        """
        require_instance("regime", regime, Regime)
        return replace(self, regime=regime, reason=require_instance("reason", reason, str))

    def with_doubt(self, reason: str) -> Prediction:
        """The same numbers, marked as not to be relied on.

        Parameters
        ----------
        reason : str
            Why not.
        """
        return self.marked(Regime.OUTSIDE, reason)
