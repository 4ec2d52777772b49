"""Formulas: terms, codings and bounds, and fits of frames and files by them."""

from __future__ import annotations

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from privreg import Budget, Odometer, PrivateLinearRegression
from privreg.estimators import linear_regression
from privreg.estimators.tables import open_frame

formulaic = pytest.importorskip("formulaic")
from privreg.estimators.formulas import read_formula  # noqa: E402

BOUNDS = {
    "rent": (0, 6000),
    "size": (10, 300),
    "year": (1900, 2030),
    "income": (1, 1e5),
    "x": (-2, 3),
    "city": {"categories": ["town", "coast", "hill"]},
    "kind": {"categories": ["a", "b"]},
    "my column": (0, 1),
    "unused": (0, 1),
}
BUDGET = Budget.zcdp(100.0)


@pytest.fixture
def frame(rng):
    n = 400
    size, city = rng.uniform(20, 200, n), rng.choice(["town", "coast", "hill"], n)
    return pandas.DataFrame(
        {
            "size": size,
            "year": rng.integers(1950, 2020, n),
            "income": rng.uniform(2, 9e4, n),
            "x": rng.uniform(-2, 3, n),
            "city": city,
            "kind": rng.choice(["a", "b"], n),
            "my column": rng.uniform(0, 1, n),
            "rent": 500 + 9 * size + 200 * (city == "coast") + rng.normal(0, 50, n),
        }
    )


def features(formula, frame, clip=True):
    design = read_formula(formula, BOUNDS)
    values = open_frame(frame, [each.name for each in design.columns]).values(design.columns)
    return design, np.column_stack(design.features(values, clip=clip))


@pytest.mark.parametrize(
    "right",
    [
        "size * C(city) + year + I(size**2) + np.log(income)",
        "0 + city + size:city",
        "city:kind",
        "city * kind * size",
        "kind + city:kind + x:city:kind",
        "C(city) + np.sqrt(size)",
        "C(city, contr.treatment('coast')) * x",
        "I(x**3 - 2 * x + 1) + np.exp(x) + np.log10(size / income) + np.log1p(x + 2)",
        "`my column` + x:size",
        "(x + size + kind)**2 - x:size",
        "x / kind",
    ],
)
def test_terms_are_those_of_formulaic(frame, right):
    """By another way: its own matrix of the same table."""
    levels = {name: own["categories"] for name, own in BOUNDS.items() if isinstance(own, dict)}
    typed = frame.assign(**{k: pandas.Categorical(frame[k], levels[k]) for k in levels})
    matrix = formulaic.model_matrix(right, typed)
    design, found = features(f"rent ~ {right}", frame)
    wanted = matrix.drop(columns="Intercept", errors="ignore")
    assert design.intercept == ("Intercept" in matrix)
    assert sorted(design.names) == sorted(wanted.columns)
    assert np.allclose(found, wanted[design.names].to_numpy(float), rtol=1e-12)


def test_a_reference_is_chosen_as_in_patsy():
    design = read_formula("rent ~ C(city, Treatment('hill'))", BOUNDS)
    assert design.names == [f"C(city, Treatment('hill'))[T.{each}]" for each in ("town", "coast")]


def random_expression(rng, depth):
    if depth == 0:
        return str(rng.choice(["size", "x", "income", "2", "0.5"]))
    inner = random_expression(rng, depth - 1)
    kind = rng.integers(7)
    if kind < 3:
        return f"({inner} {'+-*'[kind]} {random_expression(rng, depth - 1)})"
    return [
        f"({inner} / (size + 1))",
        f"({inner})**{rng.integers(1, 4)}",
        f"np.log1p(abs({inner}))",
        f"np.sqrt(abs({inner}))",
    ][kind - 3]


def test_bounds_contain_the_terms_of_random_rows(rng, frame):
    rows = frame.assign(
        size=rng.uniform(0, 400, len(frame)), income=10.0 ** rng.uniform(-1, 6, 400)
    )
    known, read = {"size": rows["size"], "x": rows.x, "income": rows.income}, 0
    known = {name: np.clip(each, *BOUNDS[name]) for name, each in known.items()}
    while read < 100:
        text = f"I({random_expression(rng, int(rng.integers(1, 4)))})"
        try:
            design, found = features(f"rent ~ {text}", rows)
        except ValueError:
            # Terms without a column, and those beyond 1e12, are refused.
            continue
        read += 1
        low, high = design.bounds[0]
        assert np.all((low <= found) & (found <= high))
        wanted = eval(text, {"np": np, "I": lambda each: each, "abs": np.abs}, known)
        assert np.allclose(found[:, 0], wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("term", "bounds"),
    [
        ("I(x**2)", (0, 9)),
        ("I(x * x)", (0, 9)),
        ("abs(x)", (0, 3)),
        ("I(1 - x)", (-2, 3)),
        ("I(6 / (x + 4))", (6 / 7, 3)),
        ("np.log10(income)", (0, 5)),
        ("np.sqrt(I(size / 10))", (1, 30**0.5)),
        ("x:size", (-600, 900)),
    ],
)
def test_bounds_are_the_obvious_ones(term, bounds):
    assert np.allclose(read_formula(f"rent ~ {term}", BOUNDS).bounds, [bounds], rtol=1e-15)
    levelled = read_formula(f"rent ~ {term}:city - 1", BOUNDS)
    ends = min(bounds[0], 0), max(bounds[1], 0)
    assert np.allclose(levelled.bounds, [ends] * 3, rtol=1e-15)


def test_a_term_does_not_depend_on_the_place_of_its_row(rng):
    """As NumPy's logarithms and powers may, whose loops end in other instructions."""
    many = pandas.DataFrame({"size": rng.uniform(10, 300, 20_000)})
    formula = "rent ~ np.log(size) + np.exp(I(size / 100)) + I((size / 100)**5) + np.sqrt(size)"
    _, whole = features(formula, many)
    for first in range(1, 18):
        assert np.array_equal(features(formula, many[first:])[1], whole[first:])
    assert np.array_equal(features(formula, many[::-1])[1], whole[::-1])


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("rent ~ scale(size)", "of a single record, .*, got 'scale', which learns from the table"),
        ("rent ~ bs(size, df=3)", "got 'bs', which learns from the table"),
        ("rent ~ I(size - np.mean(size))", "got 'mean', which learns from the table"),
        ("rent ~ C(year)", "levels of 'year' must be declared in the bounds"),
        ("rent ~ C(city, Sum)", r"C\(column, Treatment\(reference\)\)"),
        ("rent ~ C(city, Treatment('sea'))", "levels of 'city' must be declared"),
        ("rent ~ np.log(x)", r"terms that vary .*, got 'np.log\(x\)' undefined"),
        ("rent ~ I(1 / x)", r"got 'I\(1 / x\)' undefined"),
        ("rent ~ np.exp(size)", r"got 'np.exp\(size\)' from 22026.5 to 1.9"),
        ("rent ~ I(2)", "columns' bounds, got 'I"),
        ("rent ~ I(size**x)", "powers from 1 to 12"),
        ("rent ~ I(size > 3)", r"got 'size > 3'"),
        ("rent ~ I(city * 2)", "numeric columns, .*, got categories: 'city'"),
        ("rent ~ .", "formulaic's form"),
        ("rent ~ 1", "at least one feature"),
        ("rent ~ rent", "one label on the left, from a column that is not a feature"),
        ("rent + x ~ size", "one label on the left, from a column"),
        ("city ~ size", "one label on the left, from a column"),
        ("rent ~ 2:size", r"I\(2 \* a\)"),
        (3, "type str, and bounds type dict"),
    ],
)
def test_what_is_no_term_of_one_record_is_refused_by_name_and_costs_nothing(formula, said, frame):
    odometer = Odometer()
    model = PrivateLinearRegression.from_formula(formula, BOUNDS, BUDGET, odometer=odometer)
    with pytest.raises(ValueError, match=said):
        model.fit_table(frame)
    with pytest.raises(ValueError, match="counted a fit"):
        _ = odometer.total


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fit_intercept": False}, "'- 1' omits the intercept"),
        ({"label_bounds": (0, 1)}, "label_bounds and fit_intercept must not be set"),
        ({"feature_bounds": (0, 1)}, "type str, and bounds type dict"),
    ],
)
def test_settings_that_a_formula_states_are_refused(options, said, frame):
    model = PrivateLinearRegression.from_formula("rent ~ size", BOUNDS, BUDGET)
    with pytest.raises(ValueError, match=said):
        model.set_params(**options).fit(frame)


FORMULA = "rent ~ size * C(city) + np.log(income)"


def fitted(formula=FORMULA, **options):
    return PrivateLinearRegression.from_formula(formula, BOUNDS, BUDGET, random_state=1, **options)


def test_frames_and_files_give_the_same_fit(frame, tmp_path):
    arrow = pa.table(frame)
    csv.write_csv(arrow, tmp_path / "a.csv")
    parquet.write_table(arrow, tmp_path / "a.parquet", row_group_size=70)
    coded = frame.astype({"city": "category", "kind": "category"})
    sources = [frame, coded, arrow, tmp_path / "a.csv", tmp_path / "a.parquet"]
    first, *found = [fitted().fit_table(each).coef_ for each in sources]
    assert all(np.array_equal(each, first) for each in found)


def test_a_table_that_is_not_held_gives_the_same_fit(frame, tmp_path, monkeypatch):
    for name, write in (("a.csv", csv.write_csv), ("a.parquet", parquet.write_table)):
        write(pa.table(frame), tmp_path / name)
        monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 10**6)
        held = fitted().fit_table(tmp_path / name)
        monkeypatch.setattr(linear_regression, "HELD_NUMBERS", 0)
        assert np.array_equal(fitted().fit_table(tmp_path / name).coef_, held.coef_)


def test_a_label_is_a_column_or_given(frame):
    formula = "np.log1p(rent) ~ size * C(city)"
    whole = fitted(formula).fit(frame)
    other = fitted(formula).fit(frame.drop(columns="rent"), frame.rent)
    assert np.array_equal(whole.coef_, other.coef_)
    assert whole.score(frame) == whole.score(frame.drop(columns="rent"), frame.rent)
    assert np.allclose(whole.label_bounds_, [0, np.log1p(6000)])
    labels = np.log1p(frame.rent)
    left = labels - whole.predict(frame)
    assert np.isclose(whole.score(frame), 1 - np.mean(left**2) / np.var(labels))


def test_names_follow_patsy(frame):
    model = fitted().fit(frame)
    assert model.summary().names[-1] == "Intercept"
    assert "size:C(city)[T.hill] within [0, 300]" in model.report()
    without = fitted("rent ~ size - 1").fit(frame)
    assert without.summary().names == ("size",)
    assert without.intercept_ == 0


def test_categories_of_a_frame_work_in_fit_as_in_fit_table(frame):
    used = ["size", "city"]
    bounds = {"feature_bounds": BOUNDS, "label_bounds": (0, 6000), "random_state": 1}
    model = PrivateLinearRegression(BUDGET, **bounds).fit(frame[used], frame.rent)
    assert model.feature_names_in_.tolist() == ["size", "city=coast", "city=hill"]
    encoded = pandas.DataFrame(
        {"size": frame["size"], **{f"city={k}": 1.0 * (frame.city == k) for k in ("coast", "hill")}}
    )
    plain = {"size": (10, 300), "city=coast": (0, 1), "city=hill": (0, 1)}
    by_hand = PrivateLinearRegression(BUDGET, **(bounds | {"feature_bounds": plain}))
    by_hand.fit(encoded, frame.rent, quality_share=0)
    again = PrivateLinearRegression(BUDGET, **bounds).fit(frame[used], frame.rent, quality_share=0)
    assert np.array_equal(again.coef_, by_hand.coef_)
    assert again.predict(frame) == pytest.approx(by_hand.predict(encoded), rel=1e-12)


def test_undeclared_levels_are_ignored_in_fits_and_refused_in_predictions(frame):
    spoilt = frame.assign(city=frame.city.where(frame.index != 3, "sea"))
    found = fitted().fit(spoilt, quality_share=0)
    blank = pa.table(frame.assign(rent=frame.rent.where(frame.index != 3)))
    assert np.array_equal(found.coef_, fitted().fit_table(blank, quality_share=0).coef_)
    with pytest.raises(ValueError, match="missing or undeclared values, got some in 'city'") as no:
        found.predict(spoilt)
    assert "sea" not in str(no.value)
    with pytest.raises(TypeError, match="X must be a data frame with the columns size, city"):
        fitted().fit(frame[["size"]].to_numpy(), frame.rent)
    with pytest.raises(ValueError, match="groups must be None with a formula"):
        fitted().fit(frame, groups=frame.year)


def test_predictions_far_outside_of_the_bounds_warn(frame):
    model = fitted("rent ~ size").fit(frame)
    near, far = pandas.DataFrame({"size": [580.0]}), pandas.DataFrame({"size": [700.0]})
    assert model.predict(near).shape == (1,)
    with pytest.warns(UserWarning, match="far outside the bounds of 'size'"):
        model.predict(far)
