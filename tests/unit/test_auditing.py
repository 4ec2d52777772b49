"""Audits: above the truth no more often than allowed, near it with many runs, zero on nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privreg.auditing import (
    PrivacyLoss,
    _concentrated,
    _upper,
    audit,
    audit_mechanism,
    neighbouring_tables,
)
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import Release

RUNS = 40_000


def shifted(rng: np.random.Generator, *, mu: float, runs: int = RUNS, p: int = 4) -> PrivacyLoss:
    """Audit of a Gaussian mechanism whose neighbours' outputs lie μ standard deviations apart."""
    along = np.ones(p) / np.sqrt(p)
    return audit(rng.standard_normal((runs, p)), rng.standard_normal((runs, p)) + mu * along)


@pytest.mark.parametrize(("counts", "runs"), [([0, 1, 7, 100], 100), ([0, 3, 499], 500)])
def test_error_rates_are_bounded_by_clopper_pearson(counts, runs):
    upper = _upper(np.array(counts), runs, 0.98)
    for count, found in zip(counts, upper, strict=True):
        interval = stats.binomtest(count, runs).proportion_ci(0.98, method="exact")
        # SciPy's search for its root ends at 2e-12.
        assert found == pytest.approx(interval.high, abs=1e-11)


@pytest.mark.parametrize("truth", [0.0, 1.0])
def test_the_bound_exceeds_the_truth_no_more_often_than_the_confidence_allows(rng, truth):
    """At confidence 0.8 in 200 audits: more than 62 excesses have probability below 1e-4."""
    excesses = sum(
        audit(rng.standard_normal(200), truth + rng.standard_normal(200), confidence=0.8).mu > truth
        for _ in range(200)
    )
    assert excesses <= stats.binom.isf(1e-4, 200, 0.2)


def test_a_null_mechanism_reads_zero(rng):
    loss = shifted(rng, mu=0.0)
    assert (loss.mu, loss.rho, loss.epsilon(delta=0.0)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("mu", "attained"), [(0.3, 0.6), (1.0, 0.9)])
def test_a_gaussian_mechanism_attains_its_promise_and_wrong_noise_does_not_pass(rng, mu, attained):
    promised = Budget.gaussian_dp(mu)
    assert attained < shifted(rng, mu=mu).share(promised) <= 1
    assert shifted(rng, mu=2 * mu).share(promised) > 1.5
    assert shifted(rng, mu=mu).rho < promised.rho < shifted(rng, mu=2 * mu).rho
    assert shifted(rng, mu=1.5 * mu).share(promised) > 1.2
    assert shifted(rng, mu=mu / 2).share(promised) < 0.55


def test_the_concentrated_bound_is_the_divergence_of_the_outcomes():
    alpha, beta = np.array([0.03]), np.array([0.2])
    orders = np.geomspace(1.001, 150, 4000)
    both = [
        np.log(p**orders * q ** (1 - orders) + (1 - p) ** orders * (1 - q) ** (1 - orders))
        / (orders * (orders - 1))
        for p, q in ((0.8, 0.03), (0.97, 0.2))
    ]
    assert _concentrated(alpha, beta)[0] == pytest.approx(np.max(both), rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_randomised_response_loses_epsilon_in_both_orders(rng, delta):
    """Truth told with probability e/(1 + e): exactly 1-DP, and below 1 - δ(1 + 1/e) at δ."""
    honest = rng.random((2, 4 * RUNS)) < np.e / (1 + np.e)
    zero, one = ~honest[0], honest[1]
    for first, second in ((zero, one), (one, zero)):
        loss = audit(first, second)
        assert 0.9 < loss.epsilon(delta=delta) <= 1


def test_an_event_of_small_probability_is_seen_in_either_order(rng):
    """One data set in a hundred runs says something that the other never says."""
    rare = np.where(rng.random(RUNS) < 0.01, 1.0, 0.0)
    for first, second in ((rare, np.zeros(RUNS)), (np.zeros(RUNS), rare)):
        assert audit(first, second).epsilon(delta=1e-4) > 2
        assert audit(-first, -second).epsilon(delta=1e-4) > 2
        assert audit(first, second).epsilon(delta=0.05) == 0


def test_a_change_of_spread_alone_is_caught(rng):
    loss = audit(rng.standard_normal((RUNS, 3)), 1.5 * rng.standard_normal((RUNS, 3)))
    assert loss.mu > 0.7


@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
def test_a_failure_on_one_data_set_alone_is_a_loss(rng, failure):
    outputs = rng.standard_normal((2, 2_000))
    assert audit(outputs[0], np.full(2_000, failure)).mu > 4
    broken = np.column_stack([outputs[1], np.full(2_000, failure)])
    assert audit(np.column_stack([outputs[0], outputs[0]]), broken).mu > 4
    assert audit(np.full(2_000, failure), np.full(2_000, failure)).mu == 0


def test_a_given_direction_is_used(rng):
    first, second = rng.standard_normal((2, RUNS, 3))
    second[:, 2] += 1
    assert audit(first, second, direction=[0, 0, 2.0]).mu > 0.9
    assert audit(first, second, direction=[1.0, 1.0, 0]).mu == 0


def test_coordinates_of_any_scale_and_of_no_spread(rng):
    scales = np.array([1e-12, 1e12, 0.0])
    first, second = rng.standard_normal((2, RUNS, 3)) * scales
    second += 0.5 * scales
    assert 0.6 < audit(first, second).mu < np.sqrt(0.5)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_pair_is_of_the_relation_that_is_promised(rng, neighbours):
    """A sum of ten rows, one of which is replaced by its opposite, left out or blank."""
    pair = neighbouring_tables(
        np.ones((10, 1)),
        np.zeros(10),
        record=3,
        neighbours=neighbours,
        replacement=([[-1.0]], [0.0]) if neighbours is Neighbours.REPLACE_ONE else None,
    )

    def mechanism(table, runs, rng):
        return np.sum(table.features) + rng.standard_normal(runs)

    loss = audit_mechanism(
        mechanism, pair.first, pair.second, runs=RUNS, rng=rng, neighbours=pair.neighbours
    )
    assert loss.runs == RUNS
    mu = 2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0
    assert 0.9 < loss.share(Budget.gaussian_dp(mu, neighbours=neighbours)) < 1
    for other in set(Neighbours) - {neighbours}:
        with pytest.raises(ValueError, match="promised must be for"):
            loss.share(Budget.gaussian_dp(mu, neighbours=other))
    with pytest.raises(ValueError, match="value must be private"):
        Release(pair, Budget.zcdp(1.0))


TWO = np.random.default_rng(0).standard_normal((2, 40, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: audit(np.zeros(30), np.zeros(31)), "neighbour_outputs must have the shape"),
        (lambda: audit(np.zeros(10), np.zeros(10)), "outputs must be numbers"),
        (lambda: audit(np.zeros((30, 0)), np.zeros((30, 0))), "outputs must be numbers"),
        (lambda: audit(np.full(30, "a"), np.zeros(30)), "outputs must be numbers"),
        (lambda: audit(*TWO, direction=[1.0]), "direction must have shape"),
        (lambda: audit(*TWO[..., 0], direction=[1.0]), "direction must be omitted"),
        (lambda: audit(*TWO, confidence=1.0), "confidence"),
        (lambda: audit(*TWO).epsilon(delta=np.nan), "delta"),
        (lambda: audit(*TWO).share(1.0), "promised"),
        (
            lambda: audit_mechanism(
                lambda data, runs, rng: np.zeros(30), 0, 1, runs=40, rng=np.random.default_rng(0)
            ),
            "mechanism must return",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
