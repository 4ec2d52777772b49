"""Bounds: a sandwich around the exact excess risk, and where a printed one is false."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.toeplitz import damped_square_root
from privreg.theory.correlated_noise.bounds import (
    fourth_moment_bound,
    stationary_lower_bound,
    stationary_upper_bound,
    transient_bound,
    universal_lower_bound,
)
from privreg.theory.correlated_noise.finite_time import error_curve
from privreg.theory.correlated_noise.stationary import StationaryNoise, stationary_error

HARMONIC = 1 / np.arange(1, 129.0)


def noises(eta, smallest):
    return [
        StationaryNoise.independent(),
        StationaryNoise.damped_square_root(eta * smallest),
        StationaryNoise.damped_square_root(0.3),
        StationaryNoise.damped_anti_pgd(0.1),
    ]


def test_sharp_fourth_moment_holds_with_equality_on_the_first_direction():
    values = np.array([2.0, 1.0, 0.5])
    rng = np.random.default_rng(3)
    basis = np.diag(values)
    exact = 2 * basis**2 + values.sum() * basis  # E ‖x‖² x xᵀ, Isserlis
    sharp = fourth_moment_bound(values)
    slack = np.linalg.eigvalsh(sharp * basis - exact)
    assert slack.min() == pytest.approx(0, abs=1e-12)
    draws = rng.standard_normal((200_000, 3)) * np.sqrt(values)
    moment = np.einsum("ni,n->i", draws**2, np.sum(draws**2, axis=1)) / len(draws)
    np.testing.assert_allclose(moment, np.diag(exact), rtol=0.03)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.95])
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_bounds_enclose_the_exact_risk(share, exponent):
    values = np.arange(1, 33.0) ** -exponent
    eta = share / fourth_moment_bound(values)
    for noise in noises(eta, values[-1]):
        sigma = 0.6 * noise.squared_sensitivity**0.5
        settings = {
            "step_size": eta,
            "noise": noise,
            "gradient_noise_std": sigma,
            "label_noise_std": 0.4,
        }
        exact = stationary_error(values, **settings).excess_risk
        universal = universal_lower_bound(
            values, step_size=eta, noise_multiplier=0.6, label_noise_std=0.4
        )
        lower = stationary_lower_bound(values, **settings)
        assert universal <= lower <= exact <= stationary_upper_bound(values, **settings)


def test_the_printed_lower_bound_is_false_for_the_excess_risk_at_small_steps():
    for eta in (1e-4, 1e-3):
        for noise in noises(eta, HARMONIC[-1]):
            settings = {"step_size": eta, "noise": noise, "gradient_noise_std": 1.0}
            printed = 2 * stationary_lower_bound(HARMONIC, **settings)
            exact = stationary_error(HARMONIC, **settings).excess_risk
            assert exact < printed < 2 * exact


def test_exact_curve_stays_below_the_transient_bound_and_rises_from_the_optimum():
    values = 1 / np.arange(1, 9.0)
    eta, steps = 0.9 / fourth_moment_bound(values), 2000
    noise = StationaryNoise.damped_square_root(eta * values[-1])
    beta = damped_square_root(steps, damping=eta * values[-1])
    curve = error_curve(
        values, step_size=eta, coefficients=beta, steps=steps, initial_error=np.ones(8)
    )
    # Noise from the optimum on only grows, though its own variance first falls.
    assert np.all(np.diff(curve.private) >= -1e-15)
    limit = stationary_error(values, step_size=eta, noise=noise, gradient_noise_std=2.0)
    bound = transient_bound(
        np.arange(steps + 1),
        eigenvalues=values,
        step_size=eta,
        initial_risk=float(curve.initial[0]),
        stationary_risk=limit.excess_risk,
    )
    assert np.all(curve.excess_risk(gradient_noise_std=2.0) <= bound)
