"""The estimator: scikit-learn's contract, bounds that hold, a report, and an audit of the whole."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from privreg import Budget, FitWarning, Odometer, PrivateLinearRegression
from privreg.methods.least_squares import PrivateLeastSquares
from privreg.privacy.budget import Neighbours

BUDGET = Budget.zcdp(1.0)
WIDE = {
    "feature_bounds": (-10, 10),
    "label_bounds": (-200, 200),
    "weight_bound": 2,
    "random_state": 0,
}


def forbidden(estimator):
    """What privacy forbids to promise."""
    found = {
        "check_all_zero_sample_weights_error": "an error would tell that all weights are 0",
        "check_sample_weight_equivalence_on_dense_data": "records of weight 0 and those that are "
        "not there differ in the number of records, and the noise follows that",
    }
    if estimator.budget.neighbours is Neighbours.ADD_REMOVE:
        # A table of no rows is a neighbour of one with a row, and is fitted.
        found["check_estimators_empty_data_messages"] = "the number of rows is private"
    return found


# Their tables are of some twenty rows, far from what is declared, and the fit says so.
@pytest.mark.filterwarnings("ignore:.*(than predicting the mean|bounds clip|extrapolate)")
@parametrize_with_checks(
    [
        PrivateLinearRegression(BUDGET, **WIDE),
        PrivateLinearRegression(BUDGET, **WIDE, fit_intercept=False, release="all"),
        PrivateLinearRegression(Budget.zcdp(1.0, neighbours="add-remove"), **WIDE),
        PrivateLinearRegression(BUDGET, **WIDE, target="huber"),
    ],
    expected_failed_checks=forbidden,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def table(rng, n=6000):
    features = rng.uniform([0, 100], [1, 140], (n, 2))
    return features, 5 + features @ [4.0, -0.1] + rng.standard_normal(n)


BOUNDS = {"feature_bounds": ([0, 90], [1, 150]), "label_bounds": (-20, 20)}
TRUTH = [4.0, -0.1, 5.0]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_intervals_cover_in_the_tables_own_units(rng, neighbours, fit_intercept):
    features, labels = table(rng)
    labels = labels if fit_intercept else labels - 5
    budget = Budget.zcdp(0.5, neighbours=neighbours)
    model = PrivateLinearRegression(budget, **BOUNDS, fit_intercept=fit_intercept, random_state=1)
    model.fit(features, labels)
    intervals = model.confidence_intervals(0.9999)
    assert np.all(intervals.covers(TRUTH if fit_intercept else TRUTH[:2]))
    np.testing.assert_array_equal(intervals.centre[:2], model.coef_)
    assert np.all(intervals.length[:2] < [1.0, 0.05])
    np.testing.assert_allclose(
        model.predict(features[:3]), features[:3] @ model.coef_ + model.intercept_
    )
    assert sum(each.rho for _, each in model.privacy_.spending) == pytest.approx(0.5)


@pytest.mark.filterwarnings("ignore:bounds clip")
def test_bounds_are_enforced(rng):
    """Values outside act as the bounds themselves."""
    features, labels = table(rng)
    model = PrivateLinearRegression(Budget.zcdp(0.5), **BOUNDS, random_state=1)
    found = []
    for features[:50], labels[:50] in (([1, 150], -20), (1e9, -1e12)):
        found.append(model.fit(features, labels).coef_)
    np.testing.assert_array_equal(*found)


def test_persons_with_several_rows(rng):
    """Errors that persons share: intervals that count rows would be half as long as the errors."""
    covered = []
    for seed in range(30):
        persons = np.repeat(np.arange(1500), 4)
        features = rng.uniform(-1, 1, (1500, 1))[persons]
        labels = features[:, 0] + rng.standard_normal(1500)[persons]
        model = PrivateLinearRegression(
            Budget.zcdp(1.0), feature_bounds=(-1, 1), label_bounds=(-4, 4), random_state=seed
        ).fit(features, labels, groups=persons)
        covered.append(model.confidence_intervals().covers([1.0, 0.0]))
        assert model.privacy_.unit == "person"
    assert np.mean(covered) > 0.85


def test_a_pipeline_with_declared_categories(rng):
    n = 4000
    frame = pandas.DataFrame(
        {"size": rng.uniform(20, 200, n), "place": rng.choice(["town", "coast", "hill"], n)}
    )
    labels = 50 + 2 * frame["size"] + 80 * (frame["place"] == "coast") + rng.normal(0, 20, n)
    options = {"drop": "first", "sparse_output": False}
    places = OneHotEncoder(categories=[["coast", "hill", "town"]], **options)
    encode = ColumnTransformer(
        [("place", places, ["place"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    regression = PrivateLinearRegression(
        Budget.approximate(2.0, 1e-6),
        feature_bounds={"place_hill": (0, 1), "place_town": (0, 1), "size": (0, 250)},
        label_bounds=(0, 700),
        random_state=3,
    )
    model = make_pipeline(encode, regression).fit(frame, labels)
    intervals = model[-1].confidence_intervals(0.9999)
    assert np.all(intervals.covers([-80, -80, 2, 130]))
    assert "place_hill" in model[-1].report()
    assert np.mean(cross_val_score(model, frame, labels, cv=2)) > 0.9
    model[-1].set_params(feature_bounds={"size": (0, 1)})
    with pytest.raises(ValueError, match="feature_bounds must name every column, got none for"):
        model.fit(frame, labels)


def test_the_report_says_what_was_found_and_what_it_cost(rng):
    model = PrivateLinearRegression(Budget.approximate(1.0, 1e-6), **BOUNDS)
    with pytest.raises(NotFittedError):
        model.report()
    model.fit(*table(rng))
    text, page, foreseen = model.report(), model.report("html"), model.outlook_.missed[0]
    for words in (
        *("x0", "(intercept)", "0.975]", "(1, 1e-06)-differentially private", "wide steps"),
        *("Least squares: the best", "gradients clipped", "A robust fit", "no heavier than"),
        *("Prediction before the fit", "If R² = 0.40", f"cost {100 * foreseen:.2g} % of it"),
    ):
        assert words in text
        assert words in page
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>")
    assert f"{model.coef_[0]:.5g}" in text
    with pytest.raises(ValueError, match="did you mean 'html'"):
        model.report("htm")


def test_release_all_keeps_the_iterates_and_costs_the_same(rng):
    features, labels = table(rng)
    model = PrivateLinearRegression(Budget.zcdp(0.5), **BOUNDS, random_state=1)
    last = clone(model).fit(features, labels)
    every = clone(model).set_params(release="all").fit(features, labels)
    assert not hasattr(last, "iterates_")
    assert every.iterates_.shape == (PrivateLeastSquares().steps, 3)
    np.testing.assert_array_equal(every.iterates_[-1, :2], every.coef_)
    np.testing.assert_array_equal(last.coef_, every.coef_)
    assert last.privacy_.with_secret_noise == every.privacy_.with_secret_noise


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_row_is_absent_but_one_of_zeros_without_intercept(rng, fit_intercept):
    """Whatever its label is; a missing value is no way to say so."""
    features = rng.uniform(-1, 1, (200, 2))
    features[0], labels = 0, features[:, 0].copy()
    bounds = {"feature_bounds": (-1, 1), "label_bounds": (-1, 1), "fit_intercept": fit_intercept}
    budget = Budget.zcdp(1e4, neighbours="zero-out")
    model = PrivateLinearRegression(budget, **bounds, random_state=1)
    found = []
    for label in (1.0, -1.0):
        labels[0] = label
        found.append(model.fit(features, labels).coef_)
    assert np.array_equal(*found) != fit_intercept
    for missing in (features, labels):
        missing[0] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.fit(features, labels)
        missing[0] = 0


def test_epsilon_is_a_budget(rng):
    model = clone(PrivateLinearRegression(epsilon=1, **BOUNDS)).set_params(delta=1e-5)
    assert model.fit(*table(rng)).privacy_.budget == Budget.approximate(1.0, 1e-5).gaussian()


def test_the_guarantee_is_stated_at_the_delta_of_the_budget(rng, tmp_path):
    features, labels = table(rng)
    for given in ({"budget": Budget.approximate(1.0, 1e-5)}, {"epsilon": 1.0, "delta": 1e-5}):
        model = PrivateLinearRegression(**given, **BOUNDS, odometer=Odometer())
        assert "Epsilon:      1 at delta 1e-05" in str(model.fit(features, labels).summary())
        assert model.odometer.total.delta == 1e-5
        assert model.privacy_.sentence.startswith("(1, 1e-05)-differentially private")
    model.save(tmp_path / "fit.json")
    read = PrivateLinearRegression.load(tmp_path / "fit.json")
    assert read.privacy_.sentence == model.privacy_.sentence
    with pytest.warns(FitWarning, match=r"delta = 0.01 should be far below 1/n"):
        model.set_params(delta=0.01).fit(features, labels)


@pytest.mark.filterwarnings("ignore::privreg.FitWarning")
def test_no_r_squared_is_shown_without_an_interval(rng):
    summary = PrivateLinearRegression(Budget.zcdp(1e-5), **BOUNDS).fit(*table(rng)).summary()
    assert not np.isfinite(summary.intervals.half_width).any()
    assert "R-squared" not in str(summary)
    assert "robust fit" not in str(summary)


def test_cross_validation_protects_the_unit_that_was_declared(rng):
    features, labels = table(rng, 900)
    persons, odometer = np.arange(900) // 3, Odometer()
    model = PrivateLinearRegression(BUDGET, **BOUNDS, odometer=odometer)
    split = {"cv": GroupKFold(3), "error_score": "raise"}
    with pytest.warns(UserWarning, match="repeatedly without groups, so privacy covers rows alone"):
        cross_val_score(model, features, labels, groups=persons, **split)
    odometer = Odometer()
    model.set_params(unit="person", odometer=odometer)
    with pytest.raises(ValueError, match="groups must be given with unit='person'"):
        cross_val_score(model, features, labels, groups=persons, **split)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(groups=True)
        cross_val_score(model, features, labels, params={"groups": persons}, **split)
    assert (odometer.total.unit, odometer.total.rho) == ("person", pytest.approx(3.0))
    with pytest.raises(ValueError, match="groups must be None with unit='row'"):
        model.set_params(unit="row").fit(features, labels, groups=persons)


@pytest.mark.parametrize("target", ["least_squares", "huber"])
def test_a_fit_that_is_worse_than_the_mean_says_so(rng, target):
    """One record, one person, hardly a budget; and none that is good."""
    features, labels = table(rng)
    model = PrivateLinearRegression(BUDGET, **BOUNDS, target=target)
    assert model.fit(features, labels).warnings_ == []
    # Of a hundred fits the warning misses one.
    small = clone(model.set_params(random_state=1)).set_params(budget=Budget.zcdp(1e-5))
    for fit, rows, groups in ((model, 1, None), (model, 6000, np.zeros(6000)), (small, 6000, None)):
        with pytest.warns(UserWarning, match="likely worse than predicting the mean") as warned:
            fit.fit(features[:rows], labels[:rows], groups=groups)
        assert [str(each.message) for each in warned] == fit.warnings_
