"""Tuned finite-time rates: the search finds the minimum, and the exponents in the steps."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.sensitivity import single_participation_sensitivity
from privreg.noise.toeplitz import inverse_coefficients
from privreg.theory.correlated_noise.finite_time import (
    damped_noise,
)

EIGENVALUES = 1 / np.arange(1, 9.0)
SETTINGS = {"noise_multiplier": 1.0, "clip_norm": 1.0, "initial_error": np.full(8, 0.3)}


def test_sensitivity_of_a_damped_family_is_that_of_its_own_inverse():
    coefficients, squared = damped_noise(0.5)(300, 0.1)
    gamma = single_participation_sensitivity(inverse_coefficients(coefficients))
    assert squared == pytest.approx(gamma**2, rel=1e-12)
