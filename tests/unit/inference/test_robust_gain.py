"""What a robust fit would have of noise, beside what one has."""

from __future__ import annotations

import numpy as np
import pytest

from privreg import Budget
from privreg.algorithms.huber_descent import huber_descent
from privreg.algorithms.huber_settings import default_settings
from privreg.algorithms.least_squares_descent import least_squares_descent
from privreg.algorithms.least_squares_settings import default_least_squares_settings
from privreg.algorithms.samples import ArraySamples
from privreg.inference.robust_gain import robust_gain

ROWS, BETA = 4_000, np.array([0.2, 0.3, -0.2, 0.1])


def samples(rng, errors):
    features = np.column_stack([np.ones(ROWS), rng.uniform(-1, 1, (ROWS, 3))])
    return ArraySamples(features, np.clip(features @ BETA + 0.1 * errors, -1, 1))


def both(budget, seed, errors=None):
    """A least-squares and a robust fit of the same records."""
    rng = np.random.default_rng(seed)
    drawn = samples(rng, rng.standard_normal(ROWS) if errors is None else errors)
    options = {"feature_norm": 2.0, "label_bound": 1.0, "budget": budget, "intercept": True}
    size = {"sample_size": ROWS, "dimension": 4, "budget": budget}
    least, robust = default_least_squares_settings(**size), default_settings(**size)
    return (
        least_squares_descent(drawn, settings=least, rng=rng, **options).value,
        huber_descent(drawn, settings=robust, rng=rng, **options).value,
    )


def test_the_gain_is_that_of_simulated_errors():
    budget = Budget.zcdp(0.01)
    gram = np.diag([1, 1 / 3, 1 / 3, 1 / 3])
    errors, gains = [], []
    for seed in range(50):
        fits = both(budget, seed)
        off = [fit.iterates[-1] - BETA for fit in fits]
        errors.append([each @ gram @ each for each in off])
        gains.append(robust_gain(fits[0]))
    least, robust = np.mean(errors, axis=0)
    # Each mean is a χ² of 200 degrees of freedom: the ratio has a relative deviation of .14.
    assert np.mean(gains) == pytest.approx(least / robust, rel=3 * 0.14)
    assert np.mean(gains) > 1.3


def test_nothing_is_gained_where_the_budget_is_large():
    fit, _ = both(Budget.zcdp(1e6), 0)
    assert robust_gain(fit) == pytest.approx(1, abs=1e-3)
