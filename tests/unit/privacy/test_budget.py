"""Budgets in the field's several units are one quantity, kept to the digit that was stated."""

from math import exp, inf, sqrt

import numpy as np
import pytest
from scipy.special import ndtr

from privreg.privacy.budget import Budget, Neighbours, one_pass_zcdp_root


def exact_delta(mu, epsilon):
    """Of one Gaussian mechanism, by the formula of its curve."""
    return ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("root", [1e-12, 0.3, 2.0, 1e12])
def test_units_convert_into_each_other(root):
    """ρ of zCDP is half the square of √(2ρ), which is the μ of one Gaussian mechanism."""
    for budget in (Budget.half_square(root), Budget.gaussian_dp(root)):
        assert budget.root == root
        assert budget.rho == root**2 / 2
    assert Budget.zcdp(root).rho == root
    assert Budget.zcdp(root).root == pytest.approx(sqrt(2 * root), rel=1e-15)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (Budget, (0.5,)),
        (Budget.zcdp, (0.5,)),
        (Budget.half_square, (1.0,)),
        (Budget.gaussian_dp, (1.0,)),
        (Budget.approximate, (1.0, 1e-6)),
    ],
)
def test_every_way_to_state_a_budget_takes_the_relation_as_name_or_member(make, arguments):
    assert make(*arguments).neighbours is Neighbours.REPLACE_ONE
    for relation in ("add-remove", Neighbours.ADD_REMOVE):
        made = make(*arguments, neighbours=relation)
        for budget in (made, made.share(0.5), made + made):
            assert budget.neighbours is Neighbours.ADD_REMOVE
        assert made.rho > 0


def test_an_approximate_budget_keeps_its_epsilon_and_no_more():
    for epsilon, delta in ((0.3, 1e-6), (1.0, 1e-90), (5.0, 1e-2)):
        budget = Budget.approximate(epsilon, delta)
        assert budget.rho < budget.gaussian().rho
        assert epsilon * (1 - 1e-6) < budget.epsilon(delta=delta) <= epsilon
        # No mechanism's epsilon lies below that of one Gaussian mechanism of the same budget.
        assert exact_delta(budget.root, epsilon) <= delta


def test_the_gaussians_epsilon_is_on_its_curve_also_below_the_mean_loss():
    for root, delta in ((1.0, 0.3), (2.0, 0.6), (4.0, 0.45)):
        epsilon = Budget.gaussian_dp(root).gaussian_epsilon(delta=delta)
        assert 0 < epsilon < root**2 / 2
        assert exact_delta(root, epsilon) == pytest.approx(delta, rel=1e-10)


def test_shares_add_up_to_the_whole():
    whole = Budget.zcdp(0.7)
    assert whole.share(1.0) == whole
    assert (whole.share(0.25) + whole.share(0.75)).rho == pytest.approx(0.7, rel=1e-15)
    with pytest.raises(TypeError):
        whole + 1.0


def test_no_promise_is_infinite_in_every_unit():
    for budget in (Budget(inf), Budget.half_square(inf), Budget.gaussian_dp(inf)):
        assert (budget.rho, budget.root, budget.epsilon(delta=1e-9)) == (inf, inf, inf)


@pytest.mark.parametrize(("epsilon", "gain"), [(0.5, 0.16), (8, 0.11)])
def test_what_exact_accounting_is_worth(epsilon, gain):
    stated = Budget.approximate(epsilon, 1e-6, neighbours="add-remove")
    exact = stated.gaussian()
    assert exact.rho / stated.rho == pytest.approx(1 + gain, abs=0.006)
    assert exact.neighbours is stated.neighbours
    assert exact.gaussian_epsilon(delta=1e-6) == pytest.approx(epsilon, rel=1e-9)
    assert stated.epsilon(delta=1e-6) == pytest.approx(epsilon, rel=1e-6)


def test_what_was_stated_otherwise_is_left_alone():
    for budget in (Budget.zcdp(0.3), Budget.gaussian_dp(1.0), Budget.approximate(1, 1e-6).share(1)):
        assert budget.gaussian() is budget
    assert Budget.approximate(1, 1e-150).gaussian() == Budget.approximate(1, 1e-150)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_it_is_the_largest_step_over_the_noise_that_follows(rng, scale):
    steps, noise = rng.random((3, 4, 6)) * scale, rng.random((3, 4, 6)) * scale
    found = one_pass_zcdp_root(steps, noise)
    assert found.shape == (3, 4)
    for index in np.ndindex(3, 4):
        after = [np.sqrt(np.sum(noise[index][k:] ** 2)) for k in range(6)]
        assert found[index] == pytest.approx(np.max(steps[index] / after), rel=1e-12)


@pytest.mark.parametrize(
    ("steps", "noise", "root"),
    [
        # A step hides behind its own noise and what follows it alone.
        ([1.0, 0.0], [3.0, 4.0], 1 / 5),
        ([0.0, 1.0], [3.0, 4.0], 1 / 4),
        ([0.5], [2.0], 0.25),
        # No noise hides no step, and no step needs no noise.
        ([0.5, 0.5], [1.0, 0.0], np.inf),
        ([0.5, 0.0], [1.0, 0.0], 0.5),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.1, 0.0], [0.0, 0.0], np.inf),
        # What is no number is no budget.
        ([np.nan, 1.0], [3.0, 4.0], np.nan),
        ([0.0, 1.0], [3.0, np.nan], np.nan),
    ],
)
def test_what_hides_a_step(steps, noise, root):
    assert one_pass_zcdp_root(steps, noise) == pytest.approx(root, rel=1e-12, abs=0, nan_ok=True)
