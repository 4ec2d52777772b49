"""The bounds of Corollaries 4.3 and 4.5, minimised over the step size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from privreg.theory.shaped_noise.bounds import Minimum
    from privreg.theory.shaped_noise.decay import Decay


def least_bound(method: str, law: Decay, size: float, noise_multiplier: float) -> Minimum:
    """Of a method of Table 1, or "weighted": the designed one with the best weights in (B.16)."""
    from privreg.theory.shaped_noise.bounds import (
        designed_bound,
        identity_bound,
        minimise_over_step_size,
    )

    if method == "weighted":
        return minimise_over_step_size(_weighted(law, size, noise_multiplier), sample_size=size)
    formula = designed_bound if method == "designed" else identity_bound
    noise = 0.0 if method == "non-private" else noise_multiplier

    def total(eta: np.ndarray) -> np.ndarray:
        return formula(law, sample_size=size, step_size=eta, noise_multiplier=noise).total

    return minimise_over_step_size(total, sample_size=size)


def _weighted(
    law: Decay, size: float, noise_multiplier: float
) -> Callable[[np.ndarray], np.ndarray]:
    from privreg.theory.shaped_noise.bounds import identity_bound
    from privreg.theory.shaped_noise.decay import effective_dimension

    def total(eta: np.ndarray) -> np.ndarray:
        plain = identity_bound(law, sample_size=size, step_size=eta, noise_multiplier=0.0).total
        # Parts c psi^2 and psi^2 / c of a cross term, the best c > 0, psi^2 of order D.
        private = 1 / size + 2 * eta * np.sqrt(law.squared_trace / size)
        return plain + (noise_multiplier * effective_dimension(law, size * eta)) ** 2 * private

    return total
