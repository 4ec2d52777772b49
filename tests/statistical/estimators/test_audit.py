"""How much privacy the whole estimator really loses, its scales and second moments included."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from privreg import Budget, PrivateHuber, PrivateLinearRegression, audit
from privreg.estimators.tables import open_table

# A record that stands alone against a thousand is no table that a fit explains.
pytestmark = pytest.mark.filterwarnings("ignore:.*than predicting the mean")
ROWS, RUNS = 1000, 500
FILE_ROWS, FITS = 200, 300


@pytest.mark.long
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("target", "least"), [("huber", 0.5), ("least_squares", 0.6)])
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


def test_an_audit_of_a_fit_to_a_file_with_an_incomplete_record(tmp_path):
    """From file to iterates: a record's cell is incomplete in one of two files.

    That is a blank: it loses nearly what is promised. Which incomplete cell it is shows nowhere,
    and what it once did, to turn the other records into the first category, would show.
    """
    budget = Budget.gaussian_dp(3.0, neighbours="zero-out")
    settings = PrivateHuber(warm_up_steps=1, final_steps=1, gram_rounds=1, moment_share=0.0)
    bounds = {"feature_bounds": {"x": {"categories": [1, 2]}}, "label_bounds": (-1, 1)}
    model = PrivateLinearRegression(budget, **bounds, settings=settings, release="all")
    others = [1 + row % 2 for row in range(1, FILE_ROWS)]
    noise = np.random.Generator(np.random.SFC64(5)).standard_normal(len(others))
    labels = [1.0, *(0.02 * noise)]
    columns = [[2, *others], [None, *others], [3, *others], [None, *(1 for _ in others)]]
    outputs = []
    for which, column in enumerate(columns):
        path = tmp_path / f"{which}.parquet"
        parquet.write_table(pa.table({"x": pa.array(column, pa.int64()), "y": labels}), path)
        table = open_table(path)
        outputs.append([])
        for run in range(FITS):
            model.set_params(random_state=FITS * which + run)
            model.fit_table(table, label="y", threads=1)
            outputs[-1].append([*model.iterates_.ravel(), *model.quality_.incomplete.values()])
    whole, incomplete, also, spread = outputs

    def share(one, two):
        return audit(one, two, confidence=0.9, neighbours="zero-out").share(budget)

    assert 0.6 < share(whole, incomplete) <= 1
    assert share(incomplete, also) < 0.1
    assert share(whole, spread) > 1
