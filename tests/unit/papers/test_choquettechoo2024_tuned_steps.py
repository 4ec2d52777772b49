"""Tuned step sizes: the search finds the minimum, and the exponents in the steps."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.sensitivity import single_participation_sensitivity
from privreg.noise.toeplitz import inverse_coefficients
from privreg.theory.correlated_noise.finite_time import error_curve
from privreg.theory.correlated_noise.stationary import stability_limit
from reproduction.papers.choquettechoo2024.tuned_steps import (
    Correlation,
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


def test_the_noise_of_a_run_has_the_sensitivity_of_its_correlation(rng):
    beta, start = rng.standard_normal(4), rng.standard_normal(8)
    common = {"step_size": 0.3, "steps": 6, "initial_error": start}
    found = final_excess_risk(
        EIGENVALUES,
        correlations=lambda *_: Correlation(beta, 9.0),
        noise_multiplier=2.0,
        clip_norm=0.7,
        label_noise_std=0.5,
        **common,
    )
    curve = error_curve(EIGENVALUES, coefficients=beta, **common)
    wanted = curve.excess_risk(gradient_noise_std=2.0 * 0.7 * 3.0, label_noise_std=0.5)
    assert found == pytest.approx(wanted[-1], rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_no_step_size_is_better_than_the_tuned_one(seed):
    rng = np.random.default_rng(seed)
    values = 10.0 ** (rng.uniform(-6, 6) + rng.choice([0.0, 2.0]) * rng.random(3))
    steps = int(rng.integers(1, 60))
    correlations = independent_noise if seed % 2 else damped_noise(float(values.min()))
    settings = {
        "steps": steps,
        "correlations": correlations,
        # From none to far more than any step is worth.
        "noise_multiplier": float(rng.choice([0.0, 10.0 ** rng.uniform(-3, 12)])),
        "clip_norm": float(values.max() ** 0.5),
        "initial_error": rng.standard_normal(3) * rng.choice([0.0, 1.0]),
        "label_noise_std": float(rng.choice([0.0, 1.0])),
    }
    best = tune_step_size(values, **settings)
    idle = 0.5 * float(values @ settings["initial_error"] ** 2)
    highest = 0.999 * stability_limit(values)
    risks = [
        final_excess_risk(values, step_size=eta, **settings)
        for eta in highest * np.geomspace(1e-20, 1, 600)
    ]
    assert best.excess_risk <= min(*risks, idle) * (1 + 1e-3)
    if best.step_size:
        attained = final_excess_risk(values, step_size=best.step_size, **settings)
        assert best.excess_risk == pytest.approx(attained, rel=1e-12, abs=0)
    else:
        assert best.excess_risk == idle


def test_heavy_noise_leaves_minute_steps():
    """A search that ended at its least step called DP-SGD 31 times worse than it is."""
    values, start = 1 / np.arange(1, 9.0), np.full(8, 0.014)
    for correlations, multiplier in ((independent_noise, 10.0), (damped_noise(0.125), 1e3)):
        best = tune_step_size(
            values,
            steps=1000,
            correlations=correlations,
            noise_multiplier=multiplier,
            clip_norm=1.0,
            initial_error=start,
        )
        assert 0 < best.step_size < 1e-5
        assert best.excess_risk < 0.5 * float(values @ start**2)
