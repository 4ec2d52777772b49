"""What a fit shows to a statistician: summary, frames, pictures; and what they are made of."""

from __future__ import annotations

import builtins
import pickle
import re
from datetime import date
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from privreg import Budget, PrivateLinearRegression
from privreg.estimators.report import slope_bars
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
    ends = [f"{8 * end:.3g}" for end in (found.lower[0], found.upper[0])]
    assert [each.get_text() for each in slopes.texts[:2]] == ends
    for call, message in (
        (lambda: model.summary(1.0), "level must be"),
        (lambda: model.covariance("sample"), "target must be"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
