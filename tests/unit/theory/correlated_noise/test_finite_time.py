"""Tuned finite-time rates: the search finds the minimum, and the exponents in the steps."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.sensitivity import single_participation_sensitivity
from privreg.noise.toeplitz import inverse_coefficients
from privreg.theory.correlated_noise.finite_time import (
    damped_noise,
    final_excess_risk,
    independent_noise,
    tune_step_size,
)

EIGENVALUES = 1 / np.arange(1, 9.0)
SETTINGS = {"noise_multiplier": 1.0, "clip_norm": 1.0, "initial_error": np.full(8, 0.3)}


@pytest.mark.parametrize("correlations", [independent_noise, damped_noise(EIGENVALUES[-1])])
def test_search_finds_the_minimum_of_a_fine_grid(correlations):
    best = tune_step_size(EIGENVALUES, steps=500, correlations=correlations, **SETTINGS)
    grid = best.step_size * np.geomspace(0.02, 10, 300)
    risks = [
        final_excess_risk(
            EIGENVALUES, step_size=eta, steps=500, correlations=correlations, **SETTINGS
        )
        for eta in grid[grid < 0.45]
    ]
    assert best.excess_risk <= min(risks) * (1 + 1e-5)


@pytest.mark.parametrize("noise", [0.0, 1.0, 1e4, 1e12])
def test_one_steps_best_size_has_a_closed_form(noise):
    """The risk a - bη + cη², whose minimum may lie far below the first grid, or save nothing."""
    energy, squares = EIGENVALUES @ np.full(8, 0.09), EIGENVALUES**2 @ np.full(8, 0.09)
    bend = EIGENVALUES**3 @ np.full(8, 0.09) + 0.5 * np.sum(EIGENVALUES**2) * energy
    step = squares / (2 * bend + noise**2 * EIGENVALUES.sum())
    settings = SETTINGS | {"noise_multiplier": noise, "correlations": independent_noise}
    best = tune_step_size(EIGENVALUES, steps=1, **settings)
    assert best.step_size == pytest.approx(step, rel=1e-3, abs=1e-17)
    assert best.excess_risk == pytest.approx(0.5 * (energy - squares * step), rel=1e-6)


def test_sensitivity_of_a_damped_family_is_that_of_its_own_inverse():
    coefficients, squared = damped_noise(0.5)(300, 0.1)
    gamma = single_participation_sensitivity(inverse_coefficients(coefficients))
    assert squared == pytest.approx(gamma**2, rel=1e-12)


def test_private_error_falls_twice_as_fast_with_correlated_noise():
    steps = np.array([3_000, 30_000])

    def slope(correlations):
        risks = [
            tune_step_size(
                EIGENVALUES, steps=int(count), correlations=correlations, **SETTINGS
            ).excess_risk
            for count in steps
        ]
        return np.log(risks[1] / risks[0]) / np.log(steps[1] / steps[0])

    # Rates 1/T and 1/T² up to logarithms, which lower both by up to log³(10)/10.
    assert -1.05 < slope(independent_noise) < -0.65
    assert -2.05 < slope(damped_noise(EIGENVALUES[-1])) < -1.35
