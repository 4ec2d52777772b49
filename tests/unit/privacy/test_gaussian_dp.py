"""Exact budgets of Gaussian mechanisms: two routes, and what users state."""

from __future__ import annotations

import pickle
from copy import deepcopy
from math import exp, sqrt

import pytest
from scipy.special import ndtr

from privreg.privacy.budget import Budget
from privreg.privacy.gaussian_dp import gaussian_epsilon, gaussian_rho


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
def test_the_trade_off_of_one_gaussian_mechanism_is_met_exactly(epsilon, delta):
    """By the formula of the curve itself, which the root is not computed by."""
    mu = sqrt(2 * gaussian_rho(epsilon, delta=delta))
    curve = ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert curve == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize("delta", [1e-100, 1e-12, 1e-3, 0.9])
@pytest.mark.parametrize("epsilon", [1e-100, 1e-9, 1.0, 1e5, 1e99])
def test_the_inverse_is_from_below_over_the_whole_domain(epsilon, delta):
    rho = gaussian_rho(epsilon, delta=delta)
    assert gaussian_epsilon(rho, delta=delta) <= epsilon
    assert rho >= 1e100 * (1 - 1e-9) or gaussian_epsilon(1.001 * rho, delta=delta) > epsilon


@pytest.mark.parametrize(("epsilon", "gain"), [(0.5, 0.16), (1, 0.15), (4, 0.13), (8, 0.11)])
def test_what_exact_accounting_is_worth(epsilon, gain):
    stated = Budget.approximate(epsilon, 1e-6, neighbours="add-remove")
    exact = stated.gaussian()
    assert exact.rho / stated.rho == pytest.approx(1 + gain, abs=0.006)
    assert exact.neighbours is stated.neighbours
    assert exact.gaussian_epsilon(delta=1e-6) == pytest.approx(epsilon, rel=1e-9)
    assert stated.epsilon(delta=1e-6) == pytest.approx(epsilon, rel=1e-6)
    for other in (pickle.loads(pickle.dumps(stated)), deepcopy(stated)):
        assert other.gaussian() == exact


def test_what_was_stated_otherwise_is_left_alone():
    for budget in (Budget.zcdp(0.3), Budget.gaussian_dp(1.0), Budget.approximate(1, 1e-6).share(1)):
        assert budget.gaussian() is budget
    tiny = Budget.approximate(1.0, 1e-120)
    assert tiny.gaussian() == tiny
    assert Budget.zcdp(1e-300).gaussian_epsilon(delta=1e-6) <= 1e-6
