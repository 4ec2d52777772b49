"""Stationary noise: sensitivity and variance law by coefficients and by closed form."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.toeplitz import damped_anti_pgd, damped_square_root, inverse_coefficients
from privreg.privacy.budget import Budget
from privreg.theory.correlated_noise.stationary import StationaryNoise, calibrated_noise_std

RATES = np.array([0.003, 0.05, 0.4, 1.0])
STEPS = 4000


def by_coefficients(coefficients, rates):
    """Σ β_τ β_k (1-b)^|τ-k| by the autocovariance, and the squared norm of the inverse."""
    lags = np.correlate(coefficients, coefficients, mode="full")[coefficients.size - 1 :]
    powers = (1 - rates[:, None]) ** np.arange(coefficients.size)
    encoder = inverse_coefficients(coefficients)
    return lags[0] + 2 * powers[:, 1:] @ lags[1:], encoder @ encoder


@pytest.mark.parametrize("damping", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(
    ("family", "law"),
    [
        (damped_square_root, StationaryNoise.damped_square_root),
        (damped_anti_pgd, StationaryNoise.damped_anti_pgd),
    ],
)
def test_closed_forms_equal_sums_over_coefficients(family, law, damping):
    noise = law(damping)
    variances, squared = by_coefficients(family(STEPS, damping=damping), RATES)
    np.testing.assert_allclose(noise.relative_variance(RATES), variances, rtol=1e-10)
    assert noise.squared_sensitivity == pytest.approx(squared, rel=1e-10)


def test_independent_noise_is_the_fully_damped_family():
    independent, damped = StationaryNoise.independent(), StationaryNoise.damped_square_root(1.0)
    np.testing.assert_allclose(
        damped.relative_variance(RATES), independent.relative_variance(RATES), rtol=1e-13
    )
    assert damped.squared_sensitivity == pytest.approx(1.0, rel=1e-14)


def test_undamped_noise_has_finite_variance_and_infinite_sensitivity():
    for law in (StationaryNoise.damped_square_root, StationaryNoise.damped_anti_pgd):
        noise = law(0.0)
        assert noise.squared_sensitivity == np.inf
        assert np.all(np.isfinite(noise.relative_variance(RATES)))
        # Continuous in the damping.
        near = law(1e-13).relative_variance(RATES)
        np.testing.assert_allclose(noise.relative_variance(RATES), near, rtol=1e-10)


def test_noise_for_a_budget_depends_on_the_neighbours():
    settings = {"squared_sensitivity": 4.0, "clip_norm": 3.0}
    zero_out = Budget.zcdp(0.5, neighbours="zero-out")
    assert calibrated_noise_std(budget=zero_out, **settings) == pytest.approx(6.0)
    assert calibrated_noise_std(budget=Budget.zcdp(0.5), **settings) == pytest.approx(12.0)
    endless = calibrated_noise_std(squared_sensitivity=np.inf, clip_norm=1.0, budget=zero_out)
    assert endless == np.inf
