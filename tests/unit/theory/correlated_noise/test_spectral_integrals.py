"""Integrals over frequencies: closed forms against adaptive and against graded quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

from privreg.theory.correlated_noise.stationary import (
    distance_ratio_integral,
    frequency_rule,
    inverse_distance_integral,
    squared_distance,
)

RATES = [1e-20, 1e-4, 0.3, 1.0]
BELOW_ONE = [0.0, *RATES]


@pytest.mark.parametrize("denominator", RATES)
@pytest.mark.parametrize("numerator", BELOW_ONE)
def test_ratio_integral_equals_graded_quadrature(numerator, denominator):
    grid, weights = frequency_rule(min(x for x in (numerator, denominator) if x > 0))
    integrand = np.sqrt(squared_distance(grid, numerator)) / squared_distance(grid, denominator)
    closed = distance_ratio_integral(numerator, denominator)
    assert closed == pytest.approx(weights @ integrand, rel=1e-11)


@pytest.mark.parametrize(("numerator", "denominator"), [(0.3, 0.2), (0.05, 0.4), (0.9, 0.9)])
def test_ratio_integral_equals_adaptive_quadrature_of_the_textbook_form(numerator, denominator):
    def integrand(w: float) -> float:
        return float(
            abs(1 - numerator - np.exp(1j * w)) / abs(1 - denominator - np.exp(1j * w)) ** 2
        )

    total, _ = integrate.quad(integrand, 0, np.pi, epsabs=0, epsrel=1e-12, limit=400)
    assert distance_ratio_integral(numerator, denominator) == pytest.approx(2 * total, rel=1e-10)


@pytest.mark.parametrize("rate", RATES)
def test_inverse_integral_equals_quadrature_and_the_ratio_at_equal_rates(rate):
    grid, weights = frequency_rule(rate)
    closed = inverse_distance_integral(rate)
    assert closed == pytest.approx(weights @ squared_distance(grid, rate) ** -0.5, rel=1e-12)
    assert distance_ratio_integral(rate, rate) == pytest.approx(closed, rel=1e-12)
