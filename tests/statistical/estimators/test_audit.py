"""How much privacy the whole estimator really loses, its scales and second moments included."""

from __future__ import annotations

import numpy as np
import pytest

from privreg import Budget, PrivateLinearRegression, audit

ROWS, RUNS = 1000, 500


@pytest.mark.long
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("target", "least"), [("robust", 0.5), ("least_squares", 0.6)])
def test_an_audit_of_the_whole_estimator(neighbours, target, least):
    """From raw table to coefficient, scales included: below the promise and not far below.

    One record of the largest row and label is replaced by its opposite, or left out.
    """
    rng = np.random.Generator(np.random.SFC64(5))
    features = np.where(np.arange(ROWS) % 2, 1.0, -1.0)[:, None]
    labels = 0.02 * rng.standard_normal(ROWS)
    features[0], labels[0] = 1.0, 1.0
    pair = [(features, labels), (features[1:], labels[1:])]
    if neighbours == "replace-one":
        opposite = labels.copy()
        opposite[0] = -1.0
        pair[1] = (features, opposite)
    budget = Budget.gaussian_dp(3.0, neighbours=neighbours)
    model = PrivateLinearRegression(
        budget, feature_bounds=(-1, 1), label_bounds=(-1, 1), fit_intercept=False, target=target
    )
    outputs = [
        [
            model.set_params(random_state=1000 * which + run).fit(*data).coef_[0]
            for run in range(RUNS)
        ]
        for which, data in enumerate(pair)
    ]
    loss = audit(*outputs, confidence=0.9, neighbours=neighbours)
    assert least < loss.share(budget) < 1
    assert loss.share(Budget.gaussian_dp(1.0, neighbours=neighbours)) > 1
