"""The law of the diffusion where the start's own law counts as noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD


class DrawnStart(HomogenisedSGD):
    """Equation (10) for a start that is drawn from N(0, I) and never shown.

    Its mean starts at 0 and its variance at 1, where (10) has x_0 and 0. The risk in the
    diffusion's noise stays that of the problem's start: it hardly varies from one to the next.
    """

    def mean(self, time: ArrayLike) -> NDArray[np.float64]:
        """Mean m(t), shape (..., m)."""
        return np.asarray(-np.expm1(-self._exponent(time)) * self.problem.minimiser)

    def variance(self, time: ArrayLike) -> NDArray[np.float64]:
        """Variance V(t) by coordinate, shape (..., m)."""
        return np.asarray(super().variance(time) + np.exp(-2.0 * self._exponent(time)))

    def _exponent(self, time: ArrayLike) -> NDArray[np.float64]:
        integral = self.schedule.integral(self._checked(time))
        return np.asarray(integral[..., None] * self.problem.curvatures)
