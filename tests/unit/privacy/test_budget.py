"""Budgets in the field's several units are one quantity, kept to the digit that was stated."""

from __future__ import annotations

from math import inf, nextafter, sqrt

import pytest
from scipy.special import ndtr

from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours

ADD = Neighbours.ADD_REMOVE


@pytest.mark.parametrize("root", [1e-150, 1e-9, 0.3, 2.0, 1e150])
def test_units_convert_into_each_other(root):
    """ρ of zCDP is half the square of √(2ρ), which is the μ of one Gaussian mechanism."""
    for budget in (Budget.half_square(root), Budget.gaussian_dp(root)):
        assert budget.root == root
        assert budget.rho == root**2 / 2
    assert Budget.zcdp(root).rho == root
    assert Budget.zcdp(root).root == pytest.approx(sqrt(2 * root), rel=1e-15)


@pytest.mark.parametrize(
    "made",
    [
        Budget.zcdp(0.5, neighbours="add-remove"),
        Budget.half_square(1.0, neighbours=ADD),
        Budget.gaussian_dp(1.0, neighbours="add-remove"),
        Budget.approximate(1.0, 1e-6, neighbours=ADD),
        Budget(0.5, "add-remove"),
    ],
)
def test_every_way_to_state_a_budget_takes_the_relation_as_name_or_member(made):
    assert made.neighbours is ADD
    assert made.share(0.5).neighbours is ADD
    assert (made + made).neighbours is ADD
    assert made.rho > 0


def test_the_relation_is_replace_one_unless_told_otherwise():
    for budget in (
        Budget(0.5),
        Budget.zcdp(0.5),
        Budget.half_square(1.0),
        Budget.gaussian_dp(1.0),
        Budget.approximate(1.0, 1e-6),
    ):
        assert budget.neighbours is Neighbours.REPLACE_ONE


def test_an_approximate_budget_keeps_its_epsilon_and_no_more():
    for epsilon, delta in ((0.3, 1e-6), (1.0, 1e-10), (5.0, 1e-2)):
        budget = Budget.approximate(epsilon, delta)
        assert epsilon * (1 - 1e-6) < budget.epsilon(delta=delta) <= epsilon
        # No mechanism's epsilon lies below that of one Gaussian mechanism of the same budget.
        mu = budget.root
        exact = ndtr(mu / 2 - epsilon / mu) - 2.718281828459045**epsilon * ndtr(
            -mu / 2 - epsilon / mu
        )
        assert exact <= delta


def test_shares_add_up_to_the_whole():
    whole = Budget.zcdp(0.7)
    assert whole.share(1.0) == whole
    assert (whole.share(0.25) + whole.share(0.75)).rho == pytest.approx(0.7, rel=1e-15)
    assert whole.share(1e-100).rho == pytest.approx(7e-101)
    for fraction in (0.0, nextafter(1.0, 2.0), 1e-101):
        with pytest.raises(ValueError, match="fraction must be"):
            whole.share(fraction)


def test_no_promise_is_infinite_in_every_unit():
    for budget in (Budget(inf), Budget.half_square(inf), Budget.gaussian_dp(inf)):
        assert (budget.rho, budget.root, budget.epsilon(delta=1e-9)) == (inf, inf, inf)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Budget(0.0), "rho"),
        (lambda: Budget.zcdp(-1.0), "rho"),
        (lambda: Budget.half_square(9e-151), "root"),
        (lambda: Budget.half_square(2e150), "root must be at most"),
        (lambda: Budget.gaussian_dp(0.0), "mu"),
        (lambda: Budget.gaussian_dp(1e200), "mu must be at most"),
        (lambda: Budget.approximate(0.0, 1e-6), "epsilon"),
        (lambda: Budget.approximate(1.0, 1.0), "delta"),
        (lambda: Budget.zcdp(1.0).epsilon(delta=0.0), "delta"),
        (lambda: Budget.zcdp(1.0).epsilon(delta=1.0), "delta"),
        (lambda: Budget(inf).epsilon(delta=1.0), "delta"),
        (lambda: Budget.zcdp(1.0, neighbours="replace-two"), "neighbours"),
        (lambda: Budget.zcdp(1.0) + Budget.zcdp(1.0, neighbours=ADD), "neighbours"),
    ],
)
def test_errors_name_the_argument(make, name):
    with pytest.raises(ValueError, match=name):
        make()


def test_a_number_is_no_budget():
    with pytest.raises(TypeError):
        Budget.zcdp(1.0) + 1.0
