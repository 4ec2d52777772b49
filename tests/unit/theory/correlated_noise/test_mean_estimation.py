"""Mean estimation: the stationary error by time domain, by quadrature, and its optimum."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.toeplitz import damped_square_root, inverse_coefficients
from privreg.theory.correlated_noise.stationary import (
    StationaryNoise,
    frequency_rule,
    least_private_excess_risk,
    optimal_risk_ratio,
    squared_distance,
    stationary_excess_risk,
)


@pytest.mark.parametrize(("eta", "damping"), [(0.05, 0.05), (0.05, 0.3), (0.5, 0.02)])
def test_stationary_error_equals_the_sum_of_squared_responses(eta, damping):
    steps = 3000
    beta = damped_square_root(steps, damping=damping)
    decay = (1 - eta) ** np.arange(steps)
    response = eta * np.convolve(beta, decay)[:steps]
    label = eta * decay
    expected = 0.5 * (1.3**2 * response @ response + 0.7**2 * label @ label)
    found = stationary_excess_risk(
        eta,
        noise=StationaryNoise.damped_square_root(damping),
        gradient_noise_std=1.3,
        sample_std=0.7,
    )
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("eta", [1e-8, 1e-4, 0.1, 0.7, 1.0])
def test_least_error_is_that_of_the_optimal_coefficients_and_of_quadrature(eta):
    noise = StationaryNoise.damped_square_root(eta)
    risk = stationary_excess_risk(
        eta, noise=noise, gradient_noise_std=0.4 * noise.squared_sensitivity**0.5
    )
    least = least_private_excess_risk(eta, noise_multiplier=0.4)
    assert risk == pytest.approx(least, rel=1e-10)
    grid, weights = frequency_rule(eta)
    integral = weights @ squared_distance(grid, eta) ** -0.5 / (2 * np.pi)
    assert least == pytest.approx(0.5 * (eta * 0.4 * integral) ** 2, rel=1e-10)
    independent = stationary_excess_risk(
        eta, noise=StationaryNoise.independent(), gradient_noise_std=0.4
    )
    assert optimal_risk_ratio(eta) == pytest.approx(least / independent, rel=1e-10)


def test_no_other_coefficients_do_better(rng):
    eta, steps = 0.1, 2000
    beta = damped_square_root(steps, damping=eta)
    least = least_private_excess_risk(eta, noise_multiplier=1.0)

    def risk(coefficients):
        response = eta * np.convolve(coefficients, (1 - eta) ** np.arange(steps))[:steps]
        encoder = inverse_coefficients(coefficients)
        return 0.5 * (response @ response) * (encoder @ encoder)

    assert risk(beta) == pytest.approx(least, rel=1e-9)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(5):
            change = size * rng.standard_normal(steps) * np.abs(beta)
            assert risk(beta + change) > least


def test_ratio_is_one_at_the_largest_step_and_vanishes_at_small_ones():
    eta = np.geomspace(1e-10, 1, 200)
    ratio = optimal_risk_ratio(eta)
    assert np.all(np.diff(ratio) > 0)
    assert ratio[-1] == pytest.approx(1.0, rel=1e-14)
    # 4K(1-η) tends to 2 log(8/η), so the ratio to 2η log²(8/η)/π².
    limit = 2 * eta[:50] * np.log(8 / eta[:50]) ** 2 / np.pi**2
    np.testing.assert_allclose(ratio[:50], limit, rtol=1e-6)
