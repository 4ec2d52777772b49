"""What a report says of a robust fit where private noise is large."""

from __future__ import annotations

import numpy as np
import pytest

from privreg import Budget, PrivateLinearRegression

SENTENCE = 'target="robust" would have standard errors about'


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("rho", "said"), [(0.01, True), (100.0, False)])
def test_the_report_says_where_a_robust_fit_would_have_half_the_error(rho, said):
    rng = np.random.default_rng(3)
    features = rng.uniform(-1, 1, (6_000, 3))
    labels = features @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_t(2, 6_000)
    model = PrivateLinearRegression(
        Budget.zcdp(rho), feature_bounds=(-1, 1), label_bounds=(-20, 20), random_state=1
    ).fit(features, labels, quality_share=0)
    assert (SENTENCE in model.report()) is said
    assert (SENTENCE in str(model.summary())) is said
    robust = PrivateLinearRegression(
        Budget.zcdp(rho),
        feature_bounds=(-1, 1),
        label_bounds=(-20, 20),
        target="robust",
        random_state=1,
    ).fit(features, labels, quality_share=0)
    assert SENTENCE not in robust.report()
    if said:
        shorter = model.confidence_intervals().half_width / robust.confidence_intervals().half_width
        assert np.median(shorter) > 2
