"""Limits, traces and integers of noise over the whole domain, in many digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from privreg.noise import sensitivity
from privreg.noise.covariance import population_covariance
from privreg.noise.discrete import grid, integer_noise_std

from ..magnitudes import magnitude, magnitudes, near

SEEDS = pytest.mark.parametrize("seed", range(25))


@SEEDS
def test_limits_of_any_damping_and_spectrum(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 60
    damping, radius = magnitude(rng, 1e-12, 1.0), rng.uniform(0.0, 0.95)
    nu = mp.mpf(damping)
    assert near(sensitivity.damped_anti_pgd_limit(damping), 1 / mp.sqrt(nu * (2 - nu)), 1e-14)
    wanted = 1 / mp.sqrt(mp.agm(1, mp.sqrt(nu * (2 - nu))))
    assert near(sensitivity.damped_square_root_limit(damping), wanted, 1e-13)
    unit = magnitude(rng, 1e-12, 1e12)
    found = sensitivity.limiting_sensitivity(
        lambda w: unit * (1 + radius**2 - 2 * radius * np.cos(w))
    )
    assert near(found, 1 / mp.sqrt(mp.mpf(unit) * (1 - mp.mpf(radius) ** 2)), 1e-9)


@SEEDS
def test_traces_of_a_population_shape(seed):
    rng = np.random.default_rng(seed)
    values, horizon = magnitudes(rng, 1e-12, 1e12, 3), magnitude(rng, 1e-12, 1e12)
    noise = population_covariance(values, horizon=horizon)
    pairs = [(Fraction(v), Fraction(v) + 1 / Fraction(horizon)) for v in values.tolist()]
    assert near(noise.trace(values), sum(v * s for v, s in pairs), 1e-14)
    assert near(noise.inverse_trace(values), sum(v / s for v, s in pairs), 1e-14)


@SEEDS
def test_integers_of_any_budget(seed):
    rng = np.random.default_rng(seed)
    norm, dimension = magnitude(rng, 1e-12, 1e12), int(10 ** rng.uniform(0, 4))
    lattice = grid(norm, dimension=dimension)
    # A vector of that norm, rounded coordinate by coordinate, is within reach.
    assert lattice.reach >= Fraction(norm) / Fraction(lattice.unit)
    square, rho = int(magnitude(rng, 1, 1e15)), magnitude(rng, 1e-12, 1e12)
    std = integer_noise_std(square_sensitivity=square, rho=rho)
    assert Fraction(square, 2 * std**2) <= Fraction(rho)
    assert std == 1 or Fraction(square, 2 * (std - 1) ** 2) > Fraction(rho)
