"""Regression: the recursion against full second moments, its limit against the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ortho_group

from privreg.noise.toeplitz import damped_anti_pgd, damped_square_root, identity
from privreg.theory.correlated_noise.finite_time import error_curve
from privreg.theory.correlated_noise.stationary import StationaryNoise, stationary_error

EIGENVALUES = np.array([1.0, 0.4, 0.15])


def full_moments(covariance, eta, beta, steps, start, sigma, zeta):
    """Excess risk by the whole covariance and its cross-covariances with every w."""
    d = len(covariance)
    mean = np.eye(d) - eta * covariance
    second = np.outer(start, start)
    cross = np.zeros((steps, d, d))
    risks = [0.5 * np.trace(covariance @ second)]
    for t in range(steps):
        fresh = covariance @ second
        fourth = 2 * fresh @ covariance + np.trace(fresh) * covariance
        moved = second - eta * (fresh + fresh.T) + eta**2 * fourth + eta**2 * zeta**2 * covariance
        weights = np.array([beta[t - s] for s in range(t + 1)])
        noisy = eta * mean @ np.tensordot(weights, cross[: t + 1], axes=1)
        second = moved - noisy - noisy.T + eta**2 * sigma**2 * weights @ weights * np.eye(d)
        for s in range(t + 1):
            cross[s] = mean @ cross[s] - eta * beta[t - s] * sigma**2 * np.eye(d)
        risks.append(0.5 * np.trace(covariance @ second))
    return np.array(risks)


@pytest.mark.parametrize("family", [identity, damped_square_root, damped_anti_pgd])
def test_curve_equals_the_propagation_of_full_second_moments(family, rng):
    steps, eta = 40, 0.3
    beta = family(steps) if family is identity else family(steps, damping=0.1)
    basis = ortho_group.rvs(3, random_state=1)
    start = rng.standard_normal(3)
    expected = full_moments(
        basis @ np.diag(EIGENVALUES) @ basis.T, eta, beta, steps, basis @ start, 0.8, 0.5
    )
    curve = error_curve(
        EIGENVALUES, step_size=eta, coefficients=beta, steps=steps, initial_error=start
    )
    found = curve.excess_risk(gradient_noise_std=0.8, label_noise_std=0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (damped_square_root, StationaryNoise.damped_square_root),
        (damped_anti_pgd, StationaryNoise.damped_anti_pgd),
    ],
)
def test_curve_tends_to_the_closed_form(family, law):
    steps, eta, damping = 3000, 0.2, 0.03
    curve = error_curve(
        EIGENVALUES, step_size=eta, coefficients=family(steps, damping=damping), steps=steps
    )
    limit = stationary_error(
        EIGENVALUES,
        step_size=eta,
        noise=law(damping),
        gradient_noise_std=1.0,
        label_noise_std=1.0,
    )
    assert curve.private[-1] == pytest.approx(limit.private, rel=1e-10)
    assert curve.label[-1] == pytest.approx(limit.label, rel=1e-10)
    assert limit.excess_risk == pytest.approx(limit.private + limit.label, rel=1e-14)
    assert 0.5 * EIGENVALUES @ limit.variances == pytest.approx(limit.excess_risk, rel=1e-13)


def test_what_dies_out_ends_at_nothing_and_never_among_subnormal_numbers():
    steps, rate = 5000, 0.5
    curve = error_curve(
        [1.0],
        step_size=rate,
        coefficients=damped_square_root(steps, damping=0.5),
        steps=steps,
        initial_error=[1e10],
    )
    exact = 0.5e20 * (1 - 2 * rate + 3 * rate**2) ** np.arange(steps + 1.0)
    seen = exact > 1e-270 * exact[0]
    np.testing.assert_allclose(curve.initial[seen], exact[seen], rtol=1e-11)
    assert curve.initial[-1] == 0
    assert curve.initial[curve.initial > 0].min() > np.finfo(float).tiny
    limit = stationary_error(
        [1.0],
        step_size=rate,
        noise=StationaryNoise.damped_square_root(0.5),
        gradient_noise_std=1.0,
        label_noise_std=0.0,
    )
    assert curve.private[-1] == pytest.approx(limit.private, rel=1e-12)


def test_short_coefficients_are_continued_by_zeros():
    short = error_curve(EIGENVALUES, step_size=0.1, coefficients=[1.0, -0.9], steps=50)
    full = damped_anti_pgd(50, damping=0.1)
    long = error_curve(EIGENVALUES, step_size=0.1, coefficients=full, steps=50)
    np.testing.assert_array_equal(short.private, long.private)


def test_undamped_noise_of_infinite_scale_has_infinite_risk():
    error = stationary_error(
        EIGENVALUES,
        step_size=0.1,
        noise=StationaryNoise.damped_square_root(0.0),
        gradient_noise_std=np.inf,
    )
    assert error.excess_risk == np.inf
