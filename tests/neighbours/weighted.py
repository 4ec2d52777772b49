"""Records with weights: a population, and neighbours whose exact sums are compared before noise."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import relations
from relations import ADD, REPLACE
from transcripts import Watched, compared

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms import huber_descent, least_squares_descent
from privreg.auditing import NeighbouringTables, Table
from privreg.methods.huber import PrivateHuber
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.privacy.release import Release

BOUND = 4.0
BOUNDS = {"feature_bounds": (-1, 1), "label_bounds": (-5, 7)}
# Short fits by target, and the modules whose releases are written down.
FITS = {
    "huber": (huber_descent, PrivateHuber(warm_up_steps=1, final_steps=1, gram_rounds=1)),
    "least_squares": (least_squares_descent, PrivateLeastSquares(warm_up_steps=1, gram_rounds=1)),
}


def population(rng, n, *, bounded=False):
    """Weights that lean on a feature whose effect is curved, and errors of uneven size."""
    features = rng.uniform(-1, 1, (n, 3))
    weights = rng.uniform(0.5, 1.5, n) * (1 + features[:, 0])
    drawn = rng.uniform(-1, 1, n) if bounded else rng.standard_normal(n)
    noise = (0.3 + np.abs(features[:, 1])) * drawn
    labels = features @ [1.0, -1.0, 0.5] + 1.5 * features[:, 0] ** 2 + noise
    return features, labels, weights


# Of the law of `population` by weight: E[w | x] = 1 + x_0, so that E_w x_0 = E_w x_0² = 1/3 and
# E_w x_0³ = 1/5; the slope of 1.5 x_0² on x_0 is 1.5 (1/5 - 1/9)/(1/3 - 1/9) = 0.6, and the
# intercept 1.5/3 - 0.6/3 = 0.3.
SLOPES, UNWEIGHTED = np.array([1.6, -1.0, 0.5]), np.array([1.0, -1.0, 0.5])


def regression(budget=None, **settings):
    budget = Budget.zcdp(0.5) if budget is None else budget
    options = {**BOUNDS, "weight_bound": BOUND, "random_state": 3, **settings}
    return PrivateLinearRegression(budget, **options)


WEIGHTS = [0.0, 1e-12, 0.3, 1.0, 2.0, 3.7, BOUND, 1e6, -1.0]
# Records (x, w, y) of all sorts, the worst of each sum among them.
RECORDS = [
    (row, weight, label)
    for row, label in [
        ((3.0, 3.0), 2.0),
        ((-2.0, -2.0), 2.0),
        ((3.0, -2.0), -1.0),
        ((0.4, 0.2), 0.6),
    ]
    for weight in WEIGHTS
]


def estimated(pair, *, intercept, target):
    """Exact sums of a fit with weights, the last column, compared between the tables of a pair."""
    module, settings = FITS[target]

    def run(table, transcript):
        model = PrivateLinearRegression(
            Budget(relations.RHO, pair.neighbours),
            feature_bounds=(-2, 3),
            label_bounds=(-1, 2),
            weight_bound=BOUND,
            fit_intercept=intercept,
            target=target,
            settings=settings,
            random_state=3,
        )
        counted = "privreg.algorithms.whitened_descent.private_count"
        with (
            patch.object(module, "SplitBudget", lambda total, rng: Watched(total, rng, transcript)),
            patch(counted, lambda _, *, budget, rng: Release(3.0, budget)),
        ):
            features, weights = table.features[:, :-1], table.features[:, -1]
            model.fit(features, table.labels, sample_weight=weights, groups=table.groups)
        return model.coef_, model.intercept_

    return compared(run, pair)


def neighbours_of(records, relation, rng, *, persons) -> list[NeighbouringTables]:
    """Pairs that differ in a record, its weight, or all rows of a person."""
    found = []
    for record in records:
        others = [RECORDS[k] for k in rng.integers(0, len(RECORDS), 3)]
        new = [RECORDS[k] for k in rng.integers(0, len(RECORDS), int(rng.integers(1, 3)))]
        if rng.integers(2):
            # The weight alone differs.
            new = [(record[0], rng.choice(WEIGHTS), record[2])]
        first = [record, *([others[0]] if persons else []), *others]
        own = 2 if persons else 1
        after = {REPLACE: new if persons else new[:1], ADD: []}[relation]
        tables = []
        for mine in (first[:own], after):
            rows = [*mine, *others]
            groups = np.array([0] * len(mine) + [1, 2, 2]) if persons else None
            features = np.array([[*row, weight] for row, weight, _ in rows]).reshape(-1, 3)
            tables.append(Table(features, np.array([label for *_, label in rows]), groups))
        found.append(NeighbouringTables(*tables, relation))
    return found
