"""Lower and upper bounds on the risk, each constant against a second derivation of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from privreg.schedules import Harmonic
from privreg.theory.one_pass_dpgd.deterministic_equivalent import sandwich
from privreg.theory.one_pass_dpgd.rates import private_bound, statistical_bound
from reproduction.papers.bombari2025.experiments.harmonic_limits import explicit_constants


@pytest.mark.parametrize("gamma", [1e-4, 0.02, 0.7])
@pytest.mark.parametrize("rho", [0.05, 1.0, 2.5])
@pytest.mark.parametrize("noise", [0.1, 1.3])
def test_private_bound_is_where_the_tracing_attack_balances(gamma, rho, noise):
    """Attacks sum to at least ζ²d/2 while ‖θ̂ - θ*‖² ≤ 1/40, and to at most what privacy allows."""
    smallest, samples = 0.6, 1e6
    dimension = gamma * samples

    def excess(risk: float) -> float:
        allowed = samples * math.sqrt(math.exp(rho**2) - 1) * math.sqrt(2 * noise**2 * risk)
        return allowed - noise**2 * dimension / 2

    balance = brentq(excess, 0.0, 1e9, xtol=1e-300, rtol=1e-13)
    # Half the squared error in the norm of the covariance, at a squared error of 1/40.
    largest_traced = 0.5 * smallest * (1 / 40)
    found = private_bound(
        aspect_ratio=gamma, zcdp_root=rho, label_noise_std=noise, smallest=smallest
    )
    assert found == pytest.approx(min(balance, largest_traced), rel=1e-9)


@pytest.mark.parametrize("gamma", [0.01, 0.4])
def test_statistical_bound_is_a_quarter_of_the_risk_of_least_squares(gamma):
    """Half the printed (D.157); least squares has ζ²γ/2 as γ goes to 0."""
    noise, largest = 0.7, 3.0
    printed = noise**2 * gamma / (4 * largest)
    found = statistical_bound(aspect_ratio=gamma, label_noise_std=noise, largest=largest)
    assert found == pytest.approx(printed / 2, rel=1e-14)
    least_squares = noise**2 * gamma / 2
    isotropic = statistical_bound(aspect_ratio=gamma, label_noise_std=noise, largest=1.0)
    assert isotropic == pytest.approx(least_squares / 4, rel=1e-14)


@pytest.mark.parametrize(("smallest", "largest"), [(1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("rho", [0.2, 3.0])
def test_sandwich_without_clipping_solves_linear_equations(smallest, largest, rho):
    """With c of 60 standard deviations nothing is clipped, and the equations are linear."""
    gamma, noise, clip, start = 0.01, 0.4, 60.0, 0.5
    schedule = Harmonic(0.8, 0.4)
    times = np.array([0.0, 0.3, 0.8, 1.0])

    def solved(descent: float, kick: float) -> np.ndarray:
        def slope(time: float, risk: np.ndarray) -> np.ndarray:
            rate = 0.8 / (time + 0.4)
            fall = 2 * 0.8**2 / (time + 0.4) ** 3
            private = 2 * clip**2 * gamma**2 * fall / rho**2
            return (
                -2 * descent * rate * risk
                + kick * rate**2 * (risk + noise**2 / 2) * gamma
                + private
            )

        found = solve_ivp(slope, (0, 1), [start], t_eval=times, rtol=1e-11, atol=1e-13)
        return found.y[0]

    bounds = sandwich(
        schedule,
        smallest=smallest,
        largest=largest,
        aspect_ratio=gamma,
        zcdp_root=rho,
        clip_constant=clip,
        label_noise_std=noise,
        times=times,
        start=start,
    )
    np.testing.assert_allclose(bounds.lower, solved(largest, 1.0), rtol=1e-6)
    np.testing.assert_allclose(bounds.upper, solved(smallest, largest), rtol=1e-6)


# The smallest rho makes the second part of the offset the larger one.
@pytest.mark.parametrize("rho", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("gamma", [1e-6, 1e-3])
def test_explicit_constants_are_the_printed_ones(gamma, rho):
    """(D.105) and (D.109), written out in the numbers of the paper."""
    smallest, largest, start, noise = 0.5, 2.0, 0.7, 0.6
    a = start + noise**2 / 2 + 90
    found = explicit_constants(
        aspect_ratio=gamma,
        zcdp_root=rho,
        label_noise_std=noise,
        smallest=smallest,
        largest=largest,
        start=start,
    )
    numerator, clip = 3 * math.sqrt(a) / smallest, 3 * math.sqrt(2 * a) / smallest
    offset = max(
        9 * a * largest * gamma / smallest**2, 12 * math.sqrt(2 * a) * gamma / (smallest * rho)
    )
    assert found.schedule.numerator == pytest.approx(numerator, rel=1e-13)
    assert found.clip_constant == pytest.approx(clip, rel=1e-13)
    assert found.schedule.offset == pytest.approx(offset, rel=1e-13)
    sampling = 81 * a**2 * largest * gamma / (2 * smallest**4)
    private = 4 * 18 * a * 9 * a * gamma**2 / (smallest**4 * rho**2)
    assert found.bound == pytest.approx(offset**3 * start + sampling + 2.5 * private, rel=1e-12)
