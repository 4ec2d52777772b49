"""Noisy-FTRL, simulated: the exact errors within three standard errors of the runs."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.dp_ftrl import simulate_ftrl
from privreg.noise.toeplitz import damped_square_root, identity
from privreg.theory.correlated_noise.finite_time import error_curve
from privreg.theory.correlated_noise.stationary import StationaryNoise, stationary_error

STEP = 0.02


def assert_mean(values, expected, *, precision):
    """Within 3 standard errors, which are small enough to refuse 2/3 and 3/2 of the value."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    assert error < precision * expected
    assert abs(values.mean() - expected) < 3 * error


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize(
    ("dimension", "steps", "burn_in", "runs"), [(8, 12_000, 3_000, 30), (128, 40_000, 24_000, 6)]
)
def test_stationary_error_is_that_of_long_runs(dimension, steps, burn_in, runs, correlated, rng):
    eigenvalues = 1 / np.arange(1, dimension + 1.0)
    damping = STEP * eigenvalues[-1]
    decoder = damped_square_root(steps, damping=damping) if correlated else identity(1)
    law = StationaryNoise.damped_square_root(damping if correlated else 1.0)
    settings = {"step_size": STEP, "decoder": decoder, "gradient_noise_std": 1.0, "steps": steps}
    found = [
        simulate_ftrl(eigenvalues, **settings, label_noise_std=0.3, rng=rng)[burn_in:].mean()
        for _ in range(runs)
    ]
    exact = stationary_error(
        eigenvalues,
        step_size=STEP,
        noise=law,
        gradient_noise_std=1.0,
        label_noise_std=0.3,
    )
    # The slowest direction forgets as exp(-2ηλt): what is left of the start is no bias here.
    assert np.exp(-2 * damping * burn_in) < 1e-3
    assert_mean(np.array(found), exact.excess_risk, precision=0.06)


@pytest.mark.parametrize("damping", [0.01, 0.3])
def test_curve_is_that_of_runs_from_a_start(damping, rng):
    eigenvalues = np.array([1.0, 0.5, 0.1])
    start, steps, runs = np.array([1.0, -2.0, 1.0]), 60, 4000
    decoder = damped_square_root(steps, damping=damping)
    settings = {"step_size": 0.2, "decoder": decoder, "gradient_noise_std": 0.7, "steps": steps}
    settings |= {"label_noise_std": 0.5, "initial_error": start}
    found = np.array([simulate_ftrl(eigenvalues, **settings, rng=rng) for _ in range(runs)])
    curve = error_curve(
        eigenvalues, step_size=0.2, coefficients=decoder, steps=steps, initial_error=start
    ).excess_risk(gradient_noise_std=0.7, label_noise_std=0.5)
    for time in (1, 3, 10, 60):
        assert_mean(found[:, time], curve[time], precision=0.1)
