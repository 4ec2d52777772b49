"""Accounting of shaped noise: the paper's constant, both neighbouring relations, inverses."""

import math

import numpy as np
import pytest

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


def test_published_constants():
    found = published_readings(epsilon=1.0, delta=1e-5)
    np.testing.assert_allclose(found[:3], [0.979, 1.396, 0.688], atol=0.002)
    np.testing.assert_allclose(found[3:], [0.725, 1.060, 0.497], atol=0.002)
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


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_delta_and_relations_out_of_range_are_refused(delta):
    for call in (
        lambda: published_noise_multiplier(epsilon=1.0, delta=delta, steps=8),
        lambda: published_readings(epsilon=1.0, delta=delta),
        lambda: gaussian_epsilon(0.1, delta=delta),
    ):
        with pytest.raises(ValueError, match="delta must be more than 0 and less than 1"):
            call()
    with pytest.raises(ValueError, match="got 'add-remove': a record more"):
        shaped_budget(1.0, correlation=TreeCorrelation(), steps=8, neighbours="add-remove")
