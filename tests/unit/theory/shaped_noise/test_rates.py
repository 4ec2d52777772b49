"""Exponents of Table 1: printed forms, limits, crossings."""

from fractions import Fraction

import pytest

from privreg.theory.shaped_noise import bounds

DECAYS = [Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(8)]


@pytest.mark.parametrize("r", DECAYS)
def test_constant_epsilon_gives_the_table(r):
    assert bounds.identity_exponent(r) == r / (1 + 2 * r)
    assert bounds.designed_exponent(r) == min(r / (3 + r), 2 * r / (1 + 3 * r))


def test_a_power_of_epsilon_enters_as_its_square_in_the_bound():
    # ε = N^p makes τ² = N^-2p; the exponents of τ² in Corollaries 4.4 and 4.6.
    r, p = Fraction(3), Fraction(1, 20)
    assert bounds.identity_exponent(r, epsilon_power=p) - bounds.identity_exponent(r) == (
        2 * p * r / (1 + 2 * r)
    )
    assert bounds.designed_exponent(r, epsilon_power=p) - bounds.designed_exponent(r) == (
        2 * p * r / (3 + r)
    )


def test_switch_points():
    found = bounds.switch_points()
    assert found == {"better": 2, "branch": 5, "threshold": 3, "threshold_better": 2}
    below, above = Fraction(199, 100), Fraction(201, 100)
    assert bounds.designed_exponent(below) < bounds.identity_exponent(below)
    assert bounds.designed_exponent(above) > bounds.identity_exponent(above)
