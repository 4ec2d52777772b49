"""Coverage of weighted intervals."""

from __future__ import annotations

import numpy as np
import pytest
from weighted import (
    SLOPES,
    UNWEIGHTED,
    population,
    regression,
)

from privreg import Budget


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "rows"), [(1.0, 10_000), (4.0, 4_000)])
def test_intervals_cover_the_weighted_coefficients(epsilon, rows):
    """Of 200 samples each; an unweighted fit covers the first slope never."""
    model = regression(Budget.approximate(epsilon, 1e-6))
    covered, without = [], []
    for sample in range(200):
        rng = np.random.Generator(np.random.SFC64([sample, rows]))
        features, labels, weights = population(rng, rows)
        model.set_params(random_state=sample)
        fit = model.fit(features, labels, sample_weight=weights)
        covered.append(fit.confidence_intervals().covers([*SLOPES, 0.3])[:3])
        if sample < 20:
            without.append(
                model.fit(features, labels).confidence_intervals().covers([*SLOPES, 0.3])[0]
            )
    # Three slopes a sample; .95 less three standard errors of their mean.
    error = np.std(np.mean(covered, axis=1)) / np.sqrt(len(covered))
    assert np.mean(covered) > 0.95 - 3 * error
    assert np.all(np.mean(covered, axis=0) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200))
    assert np.mean(without) < 0.5


@pytest.mark.long
def test_robust_intervals_cover_where_errors_are_symmetric():
    model, covered = regression(Budget.approximate(2.0, 1e-6), target="huber"), []
    for sample in range(200):
        rng = np.random.Generator(np.random.SFC64([sample, 17]))
        features, labels, weights = population(rng, 4000)
        labels -= 1.5 * features[:, 0] ** 2
        model.set_params(random_state=sample).fit(features, labels, sample_weight=weights)
        covered.append(model.confidence_intervals().covers([*UNWEIGHTED, 0.0]))
    error = np.std(np.mean(covered, axis=1)) / np.sqrt(len(covered))
    # The range of docs/private-intervals.md for fits without weights.
    assert 0.926 - 3 * error < np.mean(covered) < 0.960 + 3 * error
