"""Exponents of Table 1: printed forms, limits, crossings."""

from fractions import Fraction

from privreg.theory.shaped_noise import rates


def test_switch_points():
    found = rates.switch_points()
    assert found == {"better": 2, "branch": 5, "threshold": 3, "threshold_better": 2}
    below, above = Fraction(199, 100), Fraction(201, 100)
    for r in (below, above, Fraction(8)):
        assert rates.designed_exponent(r) == min(branch(r) for branch in rates.DESIGNED_BRANCHES)
    assert rates.designed_exponent(below) < rates.identity_exponent(below)
    assert rates.designed_exponent(above) > rates.identity_exponent(above)


def test_exponential_decay_is_the_limit():
    assert rates.exponential_exponents() == (1, Fraction(1, 2), Fraction(2, 3))
    assert rates.exponential_exponents(epsilon_power=Fraction(1, 2)) == (1, 1, 1)


def test_branches_that_never_meet_have_no_crossing():
    assert rates.NON_PRIVATE.crossings(rates.IDENTITY) == []
