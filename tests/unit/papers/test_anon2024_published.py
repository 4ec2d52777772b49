"""The published accounting of anon2024 and its residual estimates, public and private."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privreg.algorithms.shaped_dp_ftrl import (
    private_groups_needed,
    private_residual_scale,
    private_share,
    public_residual_scale,
    shaped_budget,
)
from privreg.noise.streams import TreeCorrelation
from privreg.privacy.budget import gaussian_epsilon
from reproduction.papers.anon2024.published import published_noise_multiplier, published_readings

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "failure_probability": 0.01}


def rows(count, residual, seed=0):
    """Rows whose residual at w = 0 is normal of a given standard deviation."""
    rng = np.random.Generator(np.random.SFC64(seed))
    return rng.standard_normal((count, 2)), residual * rng.standard_normal(count)


def test_square_of_the_public_scale_is_twice_the_truth():
    """So that "l² ≤ 2 (truth)" of Lemma B.3 fails for Option 1 in about every second sample."""
    scale = public_residual_scale([[1.0, 0.0], [0.0, 2.0]], [1.0, 5.0], [3.0, 1.0])
    assert scale == pytest.approx(np.sqrt(4 + 9))
    m, samples = 50, 1000
    squares = [
        public_residual_scale(*rows(m, 1.0, seed), [0.0, 0.0]) ** 2 for seed in range(samples)
    ]
    deviation = 2 * np.sqrt(2 / m)
    assert np.mean(squares) == pytest.approx(2.0, abs=4 * deviation / np.sqrt(samples))
    assert np.std(squares) == pytest.approx(deviation, rel=0.1)
    assert 0.4 < np.mean(np.array(squares) <= 2.0) < 0.6


@pytest.mark.parametrize("residual", [0.01, 1.0, 300.0])
def test_private_scale_brackets_the_truth(residual):
    groups = private_groups_needed(**BUDGET)
    features, labels = rows(groups * 200, residual)
    found = private_residual_scale(
        features, labels, [0.0, 0.0], rng=np.random.Generator(np.random.SFC64(1)), **BUDGET
    )
    # 2 b for the end b of the bin of a mean of 200 squares, each within ±30 % of the truth.
    assert 2 * 0.7 <= found**2 / residual**2 <= 4 * 1.3


def test_too_few_rows_are_a_clear_error():
    share = private_share(epsilon=1.0, delta=1e-5, calls=1000)
    assert share == (pytest.approx(0.0032, abs=5e-5), 5e-9)
    budget = {"epsilon": share[0], "delta": share[1], "failure_probability": 0.01}
    with pytest.raises(ValueError, match=r"labels must have at least \d{5} rows .* got 1000"):
        private_residual_scale(*rows(1000, 1.0), [0.0, 0.0], rng=np.random.default_rng(0), **budget)


def test_advanced_composition_of_the_shares_keeps_the_total():
    for epsilon, delta, calls in ((1.0, 1e-5, 1000), (8.0, 1e-6, 300), (0.1, 1e-9, 50)):
        share, small = private_share(epsilon=epsilon, delta=delta, calls=calls)
        slack = delta - calls * small
        total = share * np.sqrt(2 * calls * np.log(1 / slack)) + calls * share * np.expm1(share)
        assert total <= epsilon
    # Where it does not hold: ε(1 + ε̃) beyond 4 ln(2/δ) = 48.8, and ε̃ beyond 1, each alone.
    private_share(epsilon=40.0, delta=1e-5, calls=1000)
    for epsilon, calls in ((45.0, 1000), (12.0, 1), (60.0, 10)):
        with pytest.raises(ValueError, match=r"epsilon must be less than 48\.8"):
            private_share(epsilon=epsilon, delta=1e-5, calls=calls)


def labels_of(counts):
    """One row a group: residuals whose squares fill the bin 2^k with `counts[k]` groups."""
    return np.concatenate([np.full(count, 2.0 ** (k / 2)) for k, count in counts.items()])


def drawn(counts, *, draws, **budget):
    labels = labels_of(counts)
    assert labels.size == private_groups_needed(**budget)
    rng = np.random.Generator(np.random.SFC64(3))
    features = np.zeros((labels.size, 1))
    found = [
        private_residual_scale(features, labels, [0.0], rng=rng, **budget) for _ in range(draws)
    ]
    return np.array(found)


def within(found, expected, draws):
    return abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / draws)


def test_the_noise_of_a_share_is_laplace_of_scale_two_over_epsilon_groups():
    """Two bins 3 groups apart: the emptier one wins with the chance of a Laplace difference."""
    draws = 4000
    found = drawn({0: 149, 4: 146}, draws=draws, **BUDGET | {"epsilon": 0.5})
    # The bins' upper ends are 2 and 32, and the answer is the root of twice that.
    assert set(found) == {2.0, 8.0}
    wins = np.mean(found == 8.0)

    def chance(scale):
        return 0.5 * np.exp(-3 / scale) * (1 + 1.5 / scale)

    assert within(wins, chance(4.0), draws)
    for wrong in (1.0, 8 / 3, 6.0):
        assert not within(wins, chance(wrong), draws)


@pytest.mark.parametrize("full", [55, 59, 65])
def test_a_share_counts_from_the_threshold_on(full):
    """At 2 ln(2/δ)/ε + 1 = 59.03 groups; all other bins hold one group."""
    draws, singles = 2000, 295 - full
    counts = {0: full} | dict.fromkeys(range(1, singles // 2 + 1), 1)
    counts |= {-k: 1 for k in range(1, singles - singles // 2 + 1)}
    named = np.mean(np.isfinite(drawn(counts, draws=draws, **BUDGET | {"epsilon": 0.5})))

    def chance(groups):
        short = (groups - full) / 4
        return 0.5 * np.exp(-short) if short > 0 else 1 - 0.5 * np.exp(short)

    threshold = 4 * np.log(2 / 1e-6) + 1
    assert within(named, chance(threshold), draws)
    for wrong in (threshold - 2, threshold + 2, 1.5 * threshold, threshold / 1.5):
        assert not within(named, chance(wrong), draws)


def test_groups_that_are_needed():
    assert private_groups_needed(**BUDGET) == np.ceil(8 * np.log(1e8)) == 148
    assert private_groups_needed(epsilon=0.5, delta=1e-6, failure_probability=0.01) == 295


def test_published_constants():
    found = published_readings(epsilon=1.0, delta=1e-5)
    assert_allclose(found[:3], [0.979, 1.396, 0.688], atol=0.002)
    assert_allclose(found[3:], [0.725, 1.060, 0.497], atol=0.002)
    multiplier = published_noise_multiplier(epsilon=1.0, delta=1e-5, steps=1000)
    assert multiplier**2 == pytest.approx(550.6, abs=0.05)


def test_published_constant_falls_short_for_replaced_rows_and_not_for_blank_ones():
    multiplier = published_noise_multiplier(epsilon=1.0, delta=1e-5, steps=1024)
    tree = {"correlation": TreeCorrelation(), "steps": 1024}
    replaced = shaped_budget(multiplier, **tree)
    blank = shaped_budget(multiplier, **tree, neighbours="zero-out")
    assert gaussian_epsilon(replaced.rho, delta=1e-5) == pytest.approx(1.060, abs=0.002)
    assert blank.epsilon(delta=1e-5) < 1.0 < replaced.epsilon(delta=1e-5)
    # Twice the variance is enough.
    assert shaped_budget(math.sqrt(2) * multiplier, **tree).epsilon(delta=1e-5) < 1.0


@pytest.mark.parametrize("epsilon", [0.3, 8.0])
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
            loss = rho + 2 * math.sqrt(rho * math.log(1 / delta))
            assert found[closed] == pytest.approx(loss, rel=1e-12)
            assert found[exact] == pytest.approx(gaussian_epsilon(rho, delta=delta), rel=1e-9)
