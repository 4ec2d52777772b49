"""Weights of records: what a weighted fit estimates, what it is private about, what it refuses."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from relations import ADD, REPLACE, ZERO
from sklearn.ensemble import BaggingRegressor
from weighted import (
    BOUND,
    FITS,
    RECORDS,
    UNWEIGHTED,
    estimated,
    neighbours_of,
    population,
    regression,
)

from privreg import AdaSSP, Budget, FullBatchDPGD, Harmonic, OnePassDPGD
from privreg.algorithms.records import Point, Records
from privreg.algorithms.samples import WeightedSamples, weight_roots
from privreg.auditing import Table
from privreg.estimators import linear_regression
from privreg.noise.exact import UNITS
from privreg.privacy.budget import Neighbours

FEW_ROWS = pytest.mark.filterwarnings("ignore:.*than predicting the mean")
RELATIONS = [each.value for each in Neighbours]


def weighted_least_squares(features, labels, weights):
    rows = np.column_stack([features, np.ones(len(labels))])
    return np.linalg.solve(rows.T @ (rows * weights[:, None]), rows.T @ (weights * labels))


def released(model):
    found = model.confidence_intervals()
    at = model.intervals_at(np.zeros((1, model.n_features_in_)))
    return np.array([*found.centre, *found.half_width, *at.centre, *at.half_width])


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("settings", ["least_squares", "huber", "without intercept", "persons"])
def test_weights_at_the_bound_change_no_bit(rng, neighbours, settings):
    features, labels, _ = population(rng, 2000)
    target = "huber" if settings == "huber" else "least_squares"
    groups = np.arange(2000) // 2 if settings == "persons" else None
    budget = Budget.zcdp(0.5, neighbours=neighbours)
    model = regression(budget, target=target, fit_intercept=settings != "without intercept")
    # Weights are one more column of which a share is bought.
    given = {"groups": groups, "quality_share": 0}
    plain = released(model.fit(features, labels, **given))
    assert model.weight_bound_ is None
    at_bound = released(model.fit(features, labels, sample_weight=np.full(2000, BOUND), **given))
    np.testing.assert_array_equal(at_bound, plain)
    less = released(model.fit(features, labels, sample_weight=np.ones(2000), **given))
    assert not np.array_equal(less, plain)


@pytest.mark.filterwarnings("ignore:bounds clip")
def test_without_noise_it_is_weighted_least_squares(rng):
    """At a budget beyond any use, up to what the clip may leave out and the last of the noise."""
    features, labels, weights = population(rng, 4000)
    model = regression(Budget.zcdp(1e8)).fit(features, labels, sample_weight=weights)
    expected = weighted_least_squares(features, labels, weights)
    intervals = model.confidence_intervals(0.9999, "empirical")
    assert np.all(intervals.covers(expected))
    assert np.all(intervals.half_width < model.confidence_intervals().standard_error)
    assert not np.any(intervals.covers([*UNWEIGHTED, 0.5])[[0, 3]])
    mean = model.intervals_at().centre
    assert mean == pytest.approx(np.average(labels, weights=weights), abs=0.01)
    assert abs(mean - np.mean(labels)) > 0.1
    # Robust slopes are those of symmetric errors.
    model.set_params(target="huber")
    model.fit(features, labels - 1.5 * features[:, 0] ** 2, sample_weight=weights)
    assert np.all(model.confidence_intervals(0.9999).covers([*UNWEIGHTED, 0.0]))


def test_standard_errors_are_those_of_the_weighted_sandwich(rng):
    """Errors without a tail: the clip takes next to nothing from the sandwich's middle."""
    features, labels, weights = population(rng, 5000, bounded=True)
    model = regression(Budget.zcdp(1e6)).fit(features, labels, sample_weight=weights)
    rows = np.column_stack([features, np.ones(5000)])
    residuals = labels - rows @ weighted_least_squares(features, labels, weights)
    inverse = np.linalg.inv(rows.T @ (rows * weights[:, None]))
    middle = rows.T @ (rows * (weights * residuals)[:, None] ** 2)
    expected = np.sqrt(np.diag(inverse @ middle @ inverse) * 5000 / 4996)
    # A third of what tells it from errors of equal size.
    np.testing.assert_allclose(model.confidence_intervals().standard_error, expected, rtol=0.03)
    equal = np.sqrt(np.diag(inverse) * np.sum(weights * residuals**2) / 4996)
    assert np.max(np.abs(equal / expected - 1)) > 0.1


@pytest.mark.parametrize("target", FITS)
def test_weights_act_record_by_record(rng, target):
    """Of weight 0 a record is the blank, whatever its values; beyond the bound it has the bound."""

    def fit(features, labels, weights, bound=BOUND):
        model = regression(target=target, weight_bound=bound)
        return released(model.fit(features, labels, sample_weight=weights, quality_share=0))

    features, labels, weights = population(rng, 1000)
    weights[:200], weights[200:250] = 0, BOUND
    first = fit(features, labels, weights)
    # In other units: the weights and their bound.
    np.testing.assert_array_equal(fit(features, labels, 1024 * weights, 1024 * BOUND), first)
    features[:200], labels[:200], weights[:200], weights[200:250] = 1e6, -1e9, -7.0, 1e12
    np.testing.assert_array_equal(fit(features, labels, weights), first)
    weights[:200] = 1e-9
    assert not np.array_equal(fit(features, labels, weights), first)


@pytest.mark.parametrize("records", [RECORDS[6::9], pytest.param(RECORDS, marks=pytest.mark.long)])
@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("target", FITS)
@FEW_ROWS
def test_no_sum_moves_by_more_than_without_weights(rng, relation, target, persons, records):
    """Before noise, release by release; and a record at the bound attains what is declared."""
    moved = [
        max(estimated(pair, intercept=bool(k % 2), target=target))
        for k, pair in enumerate(neighbours_of(records, relation, rng, persons=persons))
    ]
    assert 0.7 < max(moved) <= 1


@pytest.mark.parametrize("target", FITS)
@FEW_ROWS
def test_zero_out_takes_the_weight_with_the_record(rng, target):
    for pair in neighbours_of(RECORDS[::5], ADD, rng, persons=False):
        blank = pair.first.features.copy()
        blank[0, -1] = 0.0
        other = pair._replace(second=Table(blank, pair.first.labels), neighbours=ZERO)
        assert max(estimated(other, intercept=True, target=target)) <= 1


def test_huber_clips_a_records_own_residual(rng):
    """The sum of w̃ u ψ(r), and the trace of its square, against the formulas."""
    features, labels = rng.standard_normal((40, 2)), 2 * rng.standard_normal(40)
    roots = weight_roots(rng.uniform(-1, 5, 40), BOUND)
    samples = WeightedSamples(features * roots[:, None], labels * roots, roots)
    records = Records(samples, 8.0, 8.0, common_width=True)
    theta, gamma, root = np.array([0.3, -0.2]), 0.8, np.sqrt(2)
    residuals = np.clip(labels - features @ theta, -gamma / root, gamma / root)
    lengths = np.linalg.norm(features, axis=1) * roots
    shares = roots**2 * np.minimum(1, root / np.maximum(lengths, 1e-300))
    vectors = features * (shares * residuals)[:, None]
    # Rows and labels are rounded to 2⁻¹⁷, vectors to 2⁻²⁰ of the clip.
    near = {"rtol": 0, "atol": 40 * 3 / 2**17}
    total = Point(records, theta, np.eye(2)).gradient_sum(clip_norm=gamma)
    np.testing.assert_allclose(gamma / UNITS * total.astype(float), vectors.sum(axis=0), **near)
    second = Point(records, theta, np.eye(2)).second_moment_sum(clip_norm=gamma)
    second = (gamma / UNITS) ** 2 * second.astype(float)
    np.testing.assert_allclose(second, vectors.T @ vectors, **near)
    _, square = Point(records, theta, np.eye(2)).traces(clip_norm=gamma, cap=9.0)
    assert square * gamma**2 / UNITS == pytest.approx(np.trace(second), abs=near["atol"])
    with pytest.raises(ValueError, match="roots must be at least 0 and at most 1"):
        WeightedSamples(features, labels, np.full(40, 1.5))


def table_of(folder, rng, weights=None):
    features, labels, drawn = population(rng, 1200)
    drawn = drawn if weights is None else weights(drawn)
    columns = {"y": labels, "w": drawn, **{f"x{k}": each for k, each in enumerate(features.T)}}
    path = folder / "table.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=250)
    return path, features, labels, drawn


def of_table(**settings):
    bounds = {f"x{k}": (-1, 1) for k in range(3)}
    return regression(feature_bounds=bounds, **settings)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("target", FITS)
def test_a_table_gives_the_bits_of_its_arrays(rng, tmp_path, monkeypatch, target):
    path, features, labels, weights = table_of(tmp_path, rng)
    fit = regression(target=target).fit(features, labels, sample_weight=weights, quality_share=0)
    from_arrays = released(fit)
    model, options = of_table(target=target), {"label": "y", "weight": "w", "quality_share": 0}
    np.testing.assert_array_equal(released(model.fit_table(path, **options)), from_arrays)
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    one, three = (released(model.fit_table(path, threads=k, **options)) for k in (1, 3))
    np.testing.assert_allclose(one, from_arrays, rtol=1e-6)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("method", [AdaSSP(), FullBatchDPGD(400, 1.0, 10.0)])
def test_other_methods_that_sum_over_records_take_weights(rng, tmp_path, monkeypatch, method):
    path, features, labels, weights = table_of(tmp_path, rng)
    settings = {"budget": Budget.zcdp(1e8), "settings": method}
    arrays = {"sample_weight": weights, "quality_share": 0}
    fit = regression(**settings).fit(features, labels, **arrays)
    found = [*fit.coef_, fit.intercept_]
    expected = weighted_least_squares(features, labels, weights)
    np.testing.assert_allclose(found, expected, atol=0.01)
    monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
    options = {"label": "y", "weight": "w", "quality_share": 0}
    with ThreadPoolExecutor(2) as executor:
        for given in (None, executor):
            fit = of_table(**settings).fit_table(path, executor=given, **options)
            np.testing.assert_allclose([*fit.coef_, fit.intercept_], found, rtol=1e-6)


def test_a_missing_weight_makes_its_own_record_absent(rng, tmp_path):
    """Negative ones are clipped to 0, `inf` to the bound; shares of both are released."""

    def spoilt(weights):
        weights[:300:3], weights[1:300:3], weights[2:300:3] = np.nan, -1.0, np.inf
        return weights

    path, features, labels, weights = table_of(tmp_path, rng, spoilt)
    model = of_table(budget=Budget.zcdp(1e6))
    clipped = pytest.warns(UserWarning, match=r"bounds clip values of 'w' \(17 %\)")
    with pytest.warns(UserWarning, match=r"as incomplete because of 'w' \(8.3 %\)"), clipped:
        fit = model.fit_table(path, label="y", weight="w")
    assert fit.quality_.incomplete["w"] == pytest.approx(100 / 1200, abs=1e-3)
    assert fit.quality_.clipped["w"] == pytest.approx(200 / 1200, abs=1e-3)
    kept = np.where(np.isnan(weights), 0, np.clip(weights, 0, BOUND))
    arrays = regression(Budget.zcdp(1e6)).fit(features, labels, sample_weight=kept)
    np.testing.assert_allclose(fit.coef_, arrays.coef_, atol=1e-3)


def test_reports_say_that_weights_were_used(rng):
    features, labels, weights = population(rng, 4000)
    model = regression(Budget.zcdp(1.0)).fit(features, labels, sample_weight=weights)
    assert "weighted least squares" in str(model.summary())
    found = model.report()
    said = re.search(r"clipped to \[0, 4\]; their mean is about ([\d.]+)\.", found)
    assert float(said[1]) == pytest.approx(np.mean(weights), abs=0.1)
    assert "weight depends on that record alone" in found
    # Its start clips weighted residuals, which no robust fit does.
    assert "A robust fit" not in found
    robust = regression(Budget.zcdp(1.0), target="huber").fit(
        features, labels, sample_weight=weights
    )
    assert "Weighted robust fit" in robust.report()
    assert "must hold given features and weights" in robust.report()
    assert "must hold given features and weights" not in found
    with pytest.raises(ValueError, match="no row-level residual distribution"):
        model.prediction_intervals(features[:2])
    assert model.score(features, labels, sample_weight=weights) > 0.4
    assert "eight" not in model.fit(features, labels).report()
    # Without an intercept no mean is released; a bound is in the units of the weights.
    model.set_params(fit_intercept=False, weight_bound=0.5)
    found = model.fit(features, labels, sample_weight=weights / 8).report()
    assert "clipped to [0, 0.5]." in found
    assert "their mean" not in found


@FEW_ROWS
def test_no_rows_have_no_weights():
    budget = Budget.zcdp(0.5, neighbours="add-remove")
    model = regression(budget).fit(np.zeros((0, 3)), np.zeros(0), sample_weight=np.zeros(0))
    assert np.all(np.isfinite(model.coef_))


ONE_PASS = OnePassDPGD(Harmonic(1.6, 0.1), 0.6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight_bound": None}, "weight_bound, the public largest weight, must be"),
        *(({"weight_bound": bound}, "weight_bound must be") for bound in (0, np.inf, "4")),
        ({"sample_weight": np.ones(7)}, r"sample_weight must have shape \(50,\), got \(7,\)"),
        ({"sample_weight": np.ones((50, 1))}, "sample_weight must have shape"),
        ({"sample_weight": np.full(50, np.nan)}, "sample_weight"),
        ({"sample_weight": np.full(50, np.inf)}, "sample_weight"),
        ({"settings": ONE_PASS}, "settings must be a method that takes weights"),
        ({"weight": "y"}, "weight must be neither a feature nor the label"),
        ({"weight": "x1"}, "weight must be neither a feature nor the label"),
        ({"weight": "none"}, "weight must be a column of the table"),
        ({"weight": "w", "weight_bound": None}, "weight_bound, the public largest weight, must be"),
    ],
)
def test_what_is_refused(rng, tmp_path, change, message):
    path, features, labels, weights = table_of(tmp_path, rng)
    settings = {name: each for name, each in change.items() if not name.endswith("weight")}
    given = {"sample_weight": weights[:50]} | change
    fit = partial(
        regression(**settings).fit, features[:50], labels[:50], sample_weight=given["sample_weight"]
    )
    if "weight" in change:
        fit = partial(of_table(**settings).fit_table, path, label="y", weight=change["weight"])
    with pytest.raises(ValueError, match=message):
        fit()


def test_bagging_is_refused_until_its_counts_have_a_bound(rng):
    """Bootstrap counts are weights: a doubled row is one record that counts twice."""
    features, labels, _ = population(rng, 400)
    undeclared = BaggingRegressor(regression(weight_bound=None), n_estimators=2, random_state=0)
    with pytest.raises(ValueError, match="the public largest weight"):
        undeclared.fit(features, labels)
    BaggingRegressor(regression(), n_estimators=2, random_state=0).fit(features, labels)
