"""What a fit shows to a statistician: summary, frames, pictures; and what they are made of."""

from __future__ import annotations

import builtins
import pickle
import re
from dataclasses import replace
from datetime import date
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.special import chdtrc
from sklearn.exceptions import NotFittedError

from privreg import AdaSSP, Budget, PrivateLinearRegression
from privreg.estimators.report import Bar, draw, joint_test, slope_bars
from privreg.inference.population_intervals import CoefficientIntervals
from privreg.version import __version__

BUDGET = Budget.approximate(1.0, 1e-6)
BOUNDS = {"feature_bounds": ([-4, -4, 0], [4, 4, 1]), "label_bounds": (-10, 10)}


def table(rng, n=5000):
    features = np.column_stack([rng.standard_normal((n, 2)).clip(-4, 4), np.zeros(n)])
    return features, features @ [1.0, 0.0, 0.0] + rng.standard_normal(n)


@pytest.fixture(params=["least_squares", "huber"])
def model(request, rng):
    model = PrivateLinearRegression(BUDGET, **BOUNDS, target=request.param, random_state=4)
    return model.fit(*table(rng), quality_share=0)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99, 0.9999])
def test_p_values_of_a_fit_invert_its_intervals(model, level):
    columns = model.summary(level).columns
    for p, low, high in zip(columns["p_value"], columns["lower"], columns["upper"], strict=True):
        assert (p < 1 - level) == (low > 0 or high < 0)
    # One slope is far from 0, and nothing is known of one whose feature is constant.
    assert columns["p_value"][0] < 1e-4
    assert columns["p_value"][2] == 1.0
    assert columns["lower"][2] == -np.inf
    assert np.isnan(columns["z"][2])


def test_its_columns_are_the_fits(model):
    found = model.summary(0.9, "empirical")
    intervals, columns = model.confidence_intervals(0.9, "empirical"), found.columns
    assert columns["name"] == ["x0", "x1", "x2", "(intercept)"]
    for name, values in {
        "estimate": [*model.coef_, model.intercept_],
        "standard_error": intervals.standard_error,
        "lower": intervals.lower,
        "upper": intervals.upper,
    }.items():
        np.testing.assert_allclose(columns[name], values, rtol=1e-12)
    known = np.isfinite(columns["standard_error"])
    np.testing.assert_allclose(
        np.hypot(columns["sampling_error"], columns["privacy_error"])[known],
        np.array(columns["standard_error"])[known],
    )
    frame = found.to_frame()
    assert list(frame.index) == columns["name"]
    assert list(frame.columns) == [name for name in columns if name != "name"]


def test_the_text_says_what_was_found_what_it_cost_and_why_not(model):
    text = str(model.summary())
    for words in ("P>|z|", "[0.025", "0.975]", "(intercept)", "Neighbours:   replace-one", "5,000"):
        assert words in text
    assert "seeded: not private" in text
    line = next(line for line in text.splitlines() if line.startswith("x0"))
    assert f"{model.coef_[0]:.5g}" in line
    assert "<0.001" in line
    if model.target == "least_squares":
        assert "No interval for x2: the feature is" in text
    # The report has the same table, and a notebook too.
    assert line in model.report()
    for cell in line.split("  "):
        assert cell.strip().replace("<", "&lt;") in model.summary()._repr_html_()
    with pytest.raises(NotFittedError):
        PrivateLinearRegression(BUDGET, **BOUNDS).summary()


def test_all_of_it_is_a_function_of_what_was_released(model, rng):
    """A copy that never saw the rows answers alike; it holds no array as long as the table."""
    copied = pickle.loads(pickle.dumps(model))
    rows = rng.standard_normal((4, 3))
    assert str(copied.summary()) == str(model.summary())
    assert copied.report("html") == model.report("html")
    np.testing.assert_array_equal(copied.covariance().total, model.covariance().total)
    if model.target == "least_squares":
        one, other = copied.prediction_intervals(rows), model.prediction_intervals(rows)
        assert one.columns == other.columns
    assert len(pickle.dumps(model)) < 8 * 5000


def test_new_observations_lie_within_bounds_that_leave_0_out(rng):
    """Without an intercept the frame's labels reach from -6 to 6: upper ends were below lower."""
    features = rng.uniform(0, 1, (2000, 1))
    labels = np.clip(5 + features[:, 0] + 0.1 * rng.standard_normal(2000), 5, 6)
    fit = PrivateLinearRegression(
        Budget.zcdp(50.0), feature_bounds=(-10, 10), label_bounds=(5, 6), fit_intercept=False
    ).fit(features, labels)
    found = fit.prediction_intervals([[-5.0], [-1.0], [0.5], [10.0]])
    assert np.all((found.lower >= 5) & (found.lower <= found.upper) & (found.upper <= 6))


def test_the_page_stands_alone_and_its_picture_shows_the_numbers(model):
    page = model.report("html")
    assert not re.search(r"<(script|link|img)|\b(src|href)=\"[^#]", page)
    assert page == model.report("html")
    date.fromisoformat(re.search(r"<dt>Date</dt><dd>(.*?)</dd>", page)[1])
    for name, value in (("Version", f"privreg {__version__}"), *model.summary().facts):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in page
    ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    # Opened and closed in order: what is left after innermost pairs are taken away again and again.
    tags = re.sub(r"<(meta|br)[^>]*>|<!DOCTYPE html>|<svg.*</svg>", "", page, flags=re.DOTALL)
    while tags != (fewer := re.sub(r"<(\w+)[^<>]*>[^<>]*</\1>", "", tags)):
        tags = fewer
    assert not tags.strip()
    assert "width=device-width" in page
    bars = slope_bars(model._names(), model.confidence_intervals(), model.feature_bounds_)
    assert [bar.name for bar in bars] == ["x0", "x1", "x2"]
    # Over bounds from -4 to 4 a slope of 1 moves the label by 8.
    assert bars[0].estimate == pytest.approx(8 * model.coef_[0])
    assert bars[0].lower < bars[0].inner[0] < bars[0].estimate < bars[0].inner[1] < bars[0].upper
    assert [np.isfinite(bar.upper) for bar in bars] == [True, True, False]
    assert ">no interval<" in page


def test_a_report_needs_no_matplotlib(model, monkeypatch):
    known = builtins.__import__

    def without(name, *args, **words):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return known(name, *args, **words)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "Coefficients" in model.report("html")


def test_plots_are_drawn_on_given_axes(model):
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots(2)
    assert model.plot(axes) is axes
    slopes, budget = axes
    assert [each.get_text() for each in slopes.get_yticklabels()] == ["x0", "x1", "x2"]
    assert sum(patch.get_width() for patch in budget.patches) == pytest.approx(100)
    found = model.confidence_intervals()
    # Each interval has a scale of its own, with its ends in numbers.
    np.testing.assert_allclose(slopes.collections[1].get_segments()[0][:, 0], [-1, 1], atol=1e-9)
    ends = [f"{float(f'{8 * end:.4g}'):,g}" for end in (found.lower[0], found.upper[0])]
    assert [each.get_text() for each in slopes.texts[:2]] == ends
    # The legend names zero only if a drawn interval holds it.
    for lower, shown in ((1.0, 2), (-1.0, 3)):
        slopes.clear()
        draw([Bar("x", 2.0, lower, 3.0, (lower, 3.0), 0.5)], model.privacy_.spending, axes)
        assert len(slopes.get_legend().get_texts()) == shown
    for call, message in (
        (lambda: model.summary(1.0), "level must be"),
        (lambda: model.covariance("sample"), "target must be"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def wald_model(rng, **options):
    features = rng.uniform(-1, 1, (4000, 3))
    labels = features @ [1.0, 0.0, 0.0] + rng.normal(0, 0.5, 4000)
    options = {"feature_bounds": (-1, 1), "label_bounds": (-4, 4), "random_state": 1} | options
    return PrivateLinearRegression(Budget.zcdp(0.2), **options).fit(features, labels)


def test_a_wald_test_of_one_hypothesis_is_the_intervals_p_value(rng):
    model = wald_model(rng)
    found = model.wald_test("x1 - 2*x2 = 0.1")
    interval = model.t_test("x1 - 2 * x2 = 0.1").intervals
    assert found.p_value == interval.p_values()[0]
    assert model.wald_test("x0").p_value == model.summary().columns["p_value"][0]
    assert np.isclose(
        model.t_test("2*x0 + 1 = x1").intervals.centre[0], 2 * model.coef_[0] + 1 - model.coef_[1]
    )


def test_a_joint_test_does_not_depend_on_how_hypotheses_are_written(rng):
    model = wald_model(rng)
    first = model.wald_test("x1 = 0.05, x2 = -0.1")
    for other in ("x2 = -0.1, x1 = 0.05", "1000*x1 = 50, x2 / 7 = -0.1 / 7"):
        again = model.wald_test(other)
        assert np.isclose(again.p_value, first.p_value)
    # Close to the same test by other axes, each of which has an allowance of its own.
    assert np.isclose(
        model.wald_test("x1 + x2 = -0.05, x1 - x2 = 0.15").p_value, first.p_value, rtol=0.1
    )
    assert model.wald_test("x0 = 0, x1 = 0").p_value < 1e-6
    assert "Joint test that all slopes are 0: F = " in str(model.summary())


def test_a_joint_test_allows_for_bias_and_noise(rng):
    """As the sum of squares does where there is neither, and never less."""
    exact = CoefficientIntervals(
        np.zeros(3), np.ones(3), np.ones(3), np.full(3, 1e12), 0.95, "population"
    )
    away = rng.standard_normal(3) * 1.5
    plain = joint_test(away, exact).p_value
    assert np.isclose(plain, chdtrc(3, away @ away), rtol=1e-6)
    for change in (
        {"bias": np.array([0.0, 1.0, 0.0])},
        {"degrees_of_freedom": np.array([1e9, 20.0, 1e9])},
        {"standard_error": np.array([1.0, 1.0, 2.0])},
    ):
        assert joint_test(away, replace(exact, **change)).p_value > 1.05 * plain
    hidden = replace(exact, half_width=np.array([1, np.inf, 1]), reasons=("", "hidden", ""))
    assert joint_test(away, hidden).p_value == 1
    assert joint_test(away, hidden).reason == "hidden"


@pytest.mark.parametrize(
    "hypotheses",
    ["x9 = 0", "x0 * x1", "3 = 3", "x0 / 0 = 1", "x0 = = 1", "x0 ** 2", "", [], np.eye(2)],
)
def test_hypotheses_that_are_not_linear_are_refused(hypotheses, rng):
    with pytest.raises(ValueError, match="hypotheses must"):
        wald_model(rng).wald_test(hypotheses)


def test_dependent_hypotheses_are_refused_and_unknown_intervals_test_nothing(rng):
    with pytest.raises(ValueError, match="linearly independent"):
        wald_model(rng).wald_test("x0 = 0, 2 * x0 = 0")
    adassp = wald_model(rng, settings=AdaSSP())
    assert adassp.wald_test("x0 = 0, x1 = 0").p_value == adassp.wald_test("x0 = 0").p_value == 1


def test_words_of_statsmodels_are_those_of_the_summary(rng):
    pytest.importorskip("pandas")
    model = wald_model(rng)
    columns, intervals = model.summary().columns, model.confidence_intervals()
    for found, name in ((model.params, "estimate"), (model.bse, "standard_error")):
        assert found.to_dict() == dict(zip(columns["name"], columns[name], strict=True))
    assert model.pvalues["x0"] < 0.01 < model.pvalues["x1"]
    ends = model.confidence_intervals(0.9)
    np.testing.assert_array_equal(model.conf_int(0.1), np.column_stack([ends.lower, ends.upper]))
    assert list(intervals.to_frame().index) == list(intervals.names) == columns["name"]
    assert model.nobs == 4000
    with pytest.raises(AttributeError, match="rsquared needs an unweighted least-squares fit"):
        _ = wald_model(rng, target="huber").rsquared


@pytest.mark.parametrize("intercept", [True, False])
def test_r_squared_and_the_residuals_deviation_are_those_without_privacy(rng, intercept):
    features = rng.uniform(-1, 1, (20_000, 3))
    labels = features @ [1.0, 0.5, 0.0] + intercept * 3 + rng.normal(0, 0.5, 20_000)
    options = {"feature_bounds": (-1, 1), "label_bounds": (-6, 6), "fit_intercept": intercept}
    model = PrivateLinearRegression(Budget.zcdp(50.0), **options).fit(features, labels)
    left, centre = labels - model.predict(features), labels.mean() * intercept
    assert model.rsquared == pytest.approx(
        1 - np.mean(left**2) / np.mean((labels - centre) ** 2), abs=0.02
    )
    std, mark = dict(model.summary().facts)["Residual std"].split()
    assert (float(std), mark) == (pytest.approx(left.std(), rel=0.05), "(noisy)")
    model.fit(features, labels, groups=np.arange(20_000) // 4)
    assert "R-squared" not in dict(model.summary().facts)
    with pytest.raises(AttributeError, match="without groups"):
        _ = model.rsquared


def test_a_file_holds_the_whole_fit(rng, tmp_path):
    weights = rng.uniform(0, 2, 500)
    features = rng.uniform(-1, 1, (500, 2))
    options = {"feature_bounds": [(-1, 1), (-2, 2)], "label_bounds": (-4, 4), "weight_bound": 2}
    model = PrivateLinearRegression(BUDGET, release="all", **options)
    model.fit(features, features[:, 0], sample_weight=weights).save(tmp_path / "fit.json")
    found = PrivateLinearRegression.load(tmp_path / "fit.json")
    assert found.report() == model.report()
    np.testing.assert_array_equal(found.predict(features), model.predict(features))
    np.testing.assert_array_equal(found.iterates_, model.iterates_)
    given = {"sample_weight": weights, "budget": Budget.zcdp(1e9)}
    first, again = (
        each.private_score(features, features[:, 0], **given) for each in (model, found)
    )
    assert first.value.r2 == pytest.approx(again.value.r2, abs=1e-3)
    text = (
        (tmp_path / "fit.json").read_text().replace("privreg.estimators.odometer:Priv", "os:Priv")
    )
    (tmp_path / "fit.json").write_text(text)
    with pytest.raises(ValueError, match="fit must be an existing file"):
        PrivateLinearRegression.load(tmp_path / "fit.json")
