"""Accounting of shaped noise: the paper's constant, both neighbouring relations, inverses."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from privreg.algorithms.shaped_accounting import (
    gaussian_epsilon,
    published_noise_multiplier,
    published_readings,
    shaped_budget,
    shaped_noise_multiplier,
)
from privreg.noise.correlations import (
    IndependentCorrelation,
    SquareRootCorrelation,
    TreeCorrelation,
)
from privreg.privacy.budget import Budget


def test_three_readings_of_the_published_constant():
    found = published_readings(epsilon=1.0, delta=1e-5)
    np.testing.assert_allclose(found[:3], [0.979, 1.396, 0.688], atol=0.002)
    np.testing.assert_allclose(found[3:], [0.725, 1.060, 0.497], atol=0.002)


def test_published_constant_for_a_thousand_rows():
    assert published_noise_multiplier(epsilon=1.0, delta=1e-5, steps=1000) ** 2 == pytest.approx(
        550.6, abs=0.05
    )


def test_published_constant_falls_short_for_replaced_rows_and_not_for_blank_ones():
    multiplier = published_noise_multiplier(epsilon=1.0, delta=1e-5, steps=1024)
    tree = {"correlation": TreeCorrelation(), "steps": 1024}
    replaced = shaped_budget(multiplier, **tree)
    blank = shaped_budget(multiplier, **tree, neighbours="zero-out")
    assert gaussian_epsilon(replaced.rho, delta=1e-5) == pytest.approx(1.060, abs=0.002)
    assert blank.epsilon(delta=1e-5) < 1.0 < replaced.epsilon(delta=1e-5)
    # Twice the variance is enough.
    safe = shaped_budget(math.sqrt(2) * multiplier, **tree)
    assert safe.epsilon(delta=1e-5) < 1.0


@pytest.mark.parametrize("neighbours", ["replace-one", "zero-out"])
@pytest.mark.parametrize(
    "correlation", [TreeCorrelation(), IndependentCorrelation(), SquareRootCorrelation(0.01)]
)
def test_multiplier_and_budget_are_inverses(correlation, neighbours):
    budget = Budget.zcdp(0.3, neighbours=neighbours)
    multiplier = shaped_noise_multiplier(budget, correlation=correlation, steps=777)
    found = shaped_budget(multiplier, correlation=correlation, steps=777, neighbours=neighbours)
    assert found.rho == pytest.approx(0.3, rel=1e-12)
    assert found.neighbours is budget.neighbours


def test_budget_of_the_tree_is_that_of_its_nodes():
    # A record in k nodes, each a Gaussian mechanism of sensitivity 2 (or 1) over τ.
    tau, steps = 7.0, 100
    nodes = math.floor(math.log2(steps)) + 1
    tree = {"correlation": TreeCorrelation(), "steps": steps}
    assert shaped_budget(tau, **tree).rho == pytest.approx(nodes * 2 / tau**2)
    assert shaped_budget(1e-100, **tree).rho == pytest.approx(nodes * 2e200)
    assert shaped_budget(tau, **tree, neighbours="zero-out").rho == pytest.approx(
        nodes / (2 * tau**2)
    )


def test_adding_a_record_would_move_the_others():
    with pytest.raises(ValueError, match="got 'add-remove': a record more"):
        shaped_budget(1.0, correlation=TreeCorrelation(), steps=8, neighbours="add-remove")


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_gaussian_epsilon_solves_the_exact_trade_off(mu):
    delta = 1e-6
    epsilon = gaussian_epsilon(mu**2 / 2, delta=delta)
    back = stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(
        -mu / 2 - epsilon / mu
    )
    assert back == pytest.approx(delta, rel=1e-6)
    assert epsilon <= Budget.zcdp(mu**2 / 2).epsilon(delta=delta)


def test_little_privacy_loss_needs_no_epsilon():
    assert gaussian_epsilon(1e-14, delta=1e-3) == 0.0


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 8.0])
def test_readings_are_those_of_the_published_multiplier(epsilon):
    """ρ = k/τ² as the proof has it, whatever the number of steps."""
    delta = 1e-5
    found = published_readings(epsilon=epsilon, delta=delta)
    for steps in (2, 1000, 1024):
        levels = math.ceil(math.log2(steps)) + 1
        tau = published_noise_multiplier(epsilon=epsilon, delta=delta, steps=steps)
        assert tau**2 == pytest.approx(4 * levels * (math.log(1e5) + epsilon) / epsilon**2)
        for factor, closed, exact in ((1, 0, 3), (2, 1, 4), (0.5, 2, 5)):
            rho = factor * levels / tau**2
            assert found[closed] == pytest.approx(
                rho + 2 * math.sqrt(rho * math.log(1 / delta)), rel=1e-12
            )
            assert found[exact] == pytest.approx(gaussian_epsilon(rho, delta=delta), rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_delta_out_of_range_is_refused(delta):
    for call in (
        lambda: published_noise_multiplier(epsilon=1.0, delta=delta, steps=8),
        lambda: published_readings(epsilon=1.0, delta=delta),
        lambda: gaussian_epsilon(0.1, delta=delta),
    ):
        with pytest.raises(ValueError, match="delta must be more than 0 and less than 1"):
            call()


@pytest.mark.parametrize("seed", range(8))
def test_gaussian_epsilon_is_right_over_its_whole_range(seed):
    """The trade-off in enough digits brackets δ between ε less and ε more by 1e-11 of itself."""
    rng = np.random.default_rng(seed)
    for _ in range(6):
        rho = 10.0 ** rng.uniform(-100, 30)
        delta = float(rng.choice([10.0 ** rng.uniform(-60, -1), 1 - 10.0 ** rng.uniform(-6, -1)]))
        epsilon = gaussian_epsilon(rho, delta=delta)
        with mp.workdps(60 + 2 * abs(round(np.log10(rho)))):
            mu = mp.sqrt(2 * mp.mpf(rho))

            def attained(value, mu=mu):
                upper, lower = (
                    mp.erfc((value / mu + s * mu / 2) / mp.sqrt(2)) / 2 for s in (-1, 1)
                )
                return upper - mp.exp(value) * lower

            assert attained(mp.mpf(epsilon) * (1 + mp.mpf("1e-11"))) <= delta
            if epsilon > 0:
                assert attained(mp.mpf(epsilon) * (1 - mp.mpf("1e-11"))) >= delta


@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5])
@pytest.mark.parametrize("rho", [1e-250, 1e35, 1e60, 1e100])
def test_gaussian_epsilon_has_a_value_at_the_ends(rho, delta):
    epsilon = gaussian_epsilon(rho, delta=delta)
    # What zCDP promises, and what rounding up may add.
    assert 0 <= epsilon <= (rho + 2 * (rho * np.log(1 / delta)) ** 0.5) * (1 + 1e-14)
