"""Sensitivities of families and their limits: closed forms against quadrature."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp
from numpy.testing import assert_allclose

from privreg.noise import sensitivity, toeplitz
from privreg.noise.exact import integer_noise_std

from ..magnitudes import magnitude, near


def test_a_rising_encoder_would_be_underestimated_and_is_refused():
    rising = np.array([0.1, 0.1, 1.0, 0.1, 0.1, 1.0])
    fixed = {"participations": 2, "separation": 2}
    formula = np.linalg.norm(rising + np.r_[0, 0, rising[:-2]])
    # Of the first step and the fourth, three apart.
    exact = np.linalg.norm(rising + np.r_[0, 0, 0, rising[:-3]])
    assert formula < 0.98 * exact
    with pytest.raises(ValueError, match="non-increasing"):
        sensitivity.multi_participation_sensitivity(rising, **fixed)
    with pytest.raises(ValueError, match="non-negative"):
        sensitivity.multi_participation_sensitivity(-rising[:2], **fixed)


def test_undamped_sensitivity_grows_as_its_logarithm():
    steps = 100_000
    encoder = toeplitz.damped_square_root_encoder(steps, damping=0.0)
    expected = (np.log(steps) + np.euler_gamma + 4 * np.log(2)) / np.pi
    found = sensitivity.single_participation_sensitivity(encoder) ** 2
    assert_allclose(found, expected, atol=1 / steps)


def test_undamped_limits_are_infinite():
    assert sensitivity.damped_square_root_limit(0.0) == np.inf
    assert sensitivity.damped_anti_pgd_limit(0.0) == np.inf


SEEDS = pytest.mark.parametrize("seed", range(25))


@SEEDS
def test_limits_of_any_damping(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 60
    damping = magnitude(rng, 1e-12, 1.0)
    nu = mp.mpf(damping)
    assert near(sensitivity.damped_anti_pgd_limit(damping), 1 / mp.sqrt(nu * (2 - nu)), 1e-14)
    wanted = 1 / mp.sqrt(mp.agm(1, mp.sqrt(nu * (2 - nu))))
    assert near(sensitivity.damped_square_root_limit(damping), wanted, 1e-13)


@SEEDS
def test_integers_of_any_budget(seed):
    rng = np.random.default_rng(seed)
    square, rho = int(magnitude(rng, 1, 1e15)), magnitude(rng)
    std = integer_noise_std(square_sensitivity=square, rho=rho)
    assert Fraction(square, 2 * std**2) <= Fraction(rho)
    assert std == 1 or Fraction(square, 2 * (std - 1) ** 2) > Fraction(rho)
