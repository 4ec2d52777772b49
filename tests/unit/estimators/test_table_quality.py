"""Shares of incomplete and clipped records: what they count, cost and say."""

from __future__ import annotations

import re
import warnings
from itertools import product
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from relations import EVERY, REPLACE

from privreg import Budget, PrivateLinearRegression
from privreg.estimators import tables
from privreg.estimators.columns import Categories, Frame, Numbers
from privreg.estimators.outlook import harmful_share
from privreg.estimators.report import fit_as_json as as_json
from privreg.estimators.tables import (
    ABSENT,
    TableQuality,
    TableSamples,
    open_table,
    private_quality,
)
from privreg.noise.exact import UNITS
from privreg.privacy.budget import Neighbours

BOUNDS = {"feature_bounds": {"x": (0, 1), "c": {"categories": ["a", "b"]}}, "label_bounds": (-1, 2)}
COLUMNS = {"x": True, "c": False, "y": True}
# Cells of a column that are missing, clipped and neither.
CELLS = {"x": ("", "9", "1"), "c": ("d", None, "a"), "y": ("?", "-9", "0.5")}


def counts(path, lines):
    path.write_text("\n".join(["x,c,y", *lines]) + "\n")
    columns = (Numbers("x", 0, 1), Categories("c", ("a", "b")))
    frame = Frame(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.0, 1.0]), True)
    return TableSamples(open_table(path), columns, "y", frame).counts()


def quality(seed, *, rho=0.5, neighbours="replace-one", found=((0, 0), (0, 0), (0, 0))):
    return private_quality(
        np.array(found),
        COLUMNS,
        sample_size=100,
        budget=Budget.zcdp(rho, neighbours=neighbours),
        rng=np.random.Generator(np.random.SFC64(seed)),
    )


def test_counts_are_those_of_the_cells(tmp_path):
    lines = ["1,a,0.5", "9,a,0.5", ",b,-9", "9,d,0.5", 'x,c,"', "inf,b,nan"]
    assert counts(tmp_path / "t.csv", lines).tolist() == [[2, 3], [2, 0], [2, 1]]


@pytest.mark.parametrize("neighbours", [each.value for each in Neighbours])
def test_no_two_records_differ_more_than_the_noise_is_for(tmp_path, neighbours):
    """Every pair of records by what can become of their cells; one pair attains it."""
    lines = [",".join(cells) for cells in product(*CELLS.values()) if None not in cells]
    each = [counts(tmp_path / "t.csv", [line]).astype(float) for line in lines]
    # What is left of a record is one that is incomplete throughout, where rows keep their places.
    blank = counts(tmp_path / "t.csv", [""])
    others = {"replace-one": each, "zero-out": [blank], "add-remove": [np.zeros((3, 2))]}[
        neighbours
    ]
    largest = max(np.linalg.norm(one - other) for one in each for other in others)
    # At rho = 1/2 the noise has the deviation of the sensitivity.
    declared = 100 * quality(0, neighbours=neighbours).value.noise_std
    # Up to a whole number of units, upwards.
    assert largest <= declared <= largest * (1 + 2 / UNITS)


def test_the_noise_is_as_said():
    found = ((5, 9), (40, 0), (0, 100))
    assert ABSENT in quality(0, found=found).assumptions
    draws = [quality(seed, found=found).value for seed in range(4000)]
    assert list(draws[0].clipped) == ["x", "y"]
    shares = np.array([[*each.incomplete.values(), *each.clipped.values()] for each in draws])
    kept = (shares - [0.05, 0.4, 0, 0.09, 1]) / draws[0].noise_std
    # Five standard errors of a mean and of a variance.
    assert np.abs(kept.mean(axis=0)).max() < 5 / np.sqrt(4000)
    assert np.abs(kept.var(axis=0) - 1).max() < 5 * np.sqrt(2 / 4000)


@pytest.fixture
def table(tmp_path, rng):
    x = rng.uniform(0, 1, 4000)
    cells = [
        f"{each},{'ab'[k % 2]},{each + 0.1 * rng.standard_normal()}" for k, each in enumerate(x)
    ]
    cells[:400] = ["nan,a,0.5"] * 400
    cells[400:600] = ["7,b,0.5"] * 200
    cells[600:700] = ["0.5,B,0.5"] * 100
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["x,c,y", *cells]) + "\n")
    return path


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_fit_says_what_could_not_be_used(table, neighbours):
    budget = Budget.zcdp(50.0, neighbours=neighbours)
    model = PrivateLinearRegression(budget, **BOUNDS, random_state=3)
    absent = pytest.warns(
        UserWarning, match=r"incomplete because of 'x' \((9.9|10) %\), 'c' \(2.. %\):"
    )
    with pytest.warns(UserWarning, match="bounds clip values of 'x'"), absent:
        model.fit_table(table, label="y")
    found = model.quality_
    wanted = {"x": 0.1, "c": 0.025, "y": 0}
    assert found.incomplete == pytest.approx(wanted, abs=5 * found.noise_std)
    assert found.clipped == pytest.approx({"x": 0.05, "y": 0}, abs=5 * found.noise_std)
    assert found.noise_std < 0.001
    spending = dict(model.privacy_.spending)
    assert sum(each.rho for each in spending.values()) == pytest.approx(budget.rho)
    left = budget.rho - (spending["number of records"].rho if neighbours == "add-remove" else 0)
    assert spending["incomplete and clipped records"].rho == pytest.approx(0.01 * left)
    for form in ("text", "html"):
        assert "incomplete and ignored" in model.report(form)
    shown = re.search(r"\nx +(\d+\.\d+) ± (\S+) % +(\d+\.\d+) ± ", model.report())
    wanted = [100 * each for each in (found.incomplete["x"], found.noise_std, found.clipped["x"])]
    assert [float(each) for each in shown.groups()] == pytest.approx(wanted, abs=0.00501)
    said = as_json(model, level=0.9)["records"]
    assert (said["incomplete"], said["clipped"]) == (found.incomplete, found.clipped)


def test_shares_can_be_left_out(table):
    model = PrivateLinearRegression(Budget.zcdp(1.0), **BOUNDS)
    model.fit_table(table, label="y", quality_share=0)
    assert model.quality_.incomplete == model.quality_.clipped == {}
    assert "incomplete and clipped records" not in dict(model.privacy_.spending)
    assert "incomplete and ignored" in model.report()
    x = np.linspace(0, 1, 300)
    model.set_params(feature_bounds=(0, 1)).fit(x[:, None], x, quality_share=0)
    assert model.quality_ is None
    for share, message in ((1.0, "at least 0 and less than 1"), (1e-20, "0 or at least 1e-10")):
        with pytest.raises(ValueError, match=f"quality_share must be {message}"):
            model.fit_table(table, label="y", quality_share=share)


@pytest.mark.parametrize("relation", EVERY)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_no_person_moves_the_counts_of_arrays_more_than_the_noise_is_for(rng, relation):
    """All of a person's rows are replaced by others, more of them, or taken away."""
    model = PrivateLinearRegression(
        Budget(50.0, relation), feature_bounds=(-1, 1), label_bounds=(-1, 1), random_state=1
    )

    def counts(rows, whose):
        with patch.object(tables, "private_quality", wraps=private_quality) as bought:
            model.fit(rows[:, :-1], rows[:, -1], groups=whose)
        return bought.call_args.args[0]

    moved = []
    for trial in range(20):
        rows, whose = rng.choice([-2.0, 0.0, 2.0], (9, 3)), rng.permutation(np.arange(9) % 3)
        new = rng.choice([-2.0, 0.0, 2.0], (4 if relation is REPLACE else 0, 3))
        if trial == 0:
            rows[whose == 0], new[:] = 0.0 if relation is REPLACE else 2.0, 2.0
        other = np.concatenate([rows[whose > 0], new]), np.append(whose[whose > 0], 0 * new[:, 0])
        moved.append(np.linalg.norm(counts(rows, whose) - counts(*other)))
    bought = private_quality(
        np.zeros((3, 1)), COLUMNS, sample_size=1, budget=Budget(0.5, relation), rng=rng
    ).value
    assert max(moved) <= bought.noise_std <= max(moved) * (1 + 2 / UNITS)
    assert (bought.incomplete, list(bought.clipped)) == ({}, ["x", "y"])


@pytest.mark.parametrize(
    ("quality", "said"),
    [
        (TableQuality({"x": 0.9, "y": 0.3}, {}, 0.09), r"^most .* because of 'x' \(90 %\), and"),
        (TableQuality({"x": 0.5, "y": 0.04}, {}, 0.01), r"^records .* because of 'x' \(50 %\):"),
        (TableQuality({"x": 0.0}, {"x": 0.01, "y": 1.1}, 0.01), r"^bounds .* 'y' \(100 %\):"),
        (TableQuality({"x": 112.0}, {"x": -58.0}, 60.0), None),
        (TableQuality({"x": 0.86}, {"x": 0.05}, 0.21), None),
        (TableQuality({"x": 0.023, "y": 0.019}, {}, 0.005, 0.02), r"because of 'x' \(2.3 %\):"),
        (TableQuality({}, {"x": 0.023, "y": 0.019}, 0.005, 0.02), r"values of 'x' \(2.3 %\):"),
        (TableQuality({"x": 0.023}, {"x": 0.018}, 0.006, 0.001), None),
    ],
)
def test_large_shares_warn_where_noise_cannot_be_their_cause(quality, said):
    assert [bool(re.search(said, text)) for text in quality.warnings] == [True] * bool(said)


@pytest.mark.parametrize("intercept", [True, False])
def test_no_share_of_records_moves_a_slope_further_than_was_said(rng, intercept):
    """Those left out are the worst of many: along a slope, with the largest residuals."""
    frame = Frame(np.array([[0.0, 3.0], [-2.0, 1.0]]), np.array([-5.0, 5.0]), intercept)
    features = rng.choice([0.0, 1.0], (4000, 2)) * 3 - [0, 2]
    rows, labels = frame.rows(features), rng.choice([-1.0, 1.0], 4000)
    slope, whole = frame.functionals()[0][0], np.linalg.lstsq(rows, labels)[0]
    harm = (labels - rows @ whole) * (rows @ np.linalg.solve(rows.T @ rows, slope))
    kept = np.argsort(harm)[: int(0.98 * len(harm))]
    found = np.linalg.lstsq(rows[kept], labels[kept])[0]
    inverse = np.linalg.inv(rows[kept].T @ rows[kept] / len(labels))
    fit = SimpleNamespace(whitening=np.linalg.cholesky(inverse))
    half = SimpleNamespace(half_width=np.array([abs(slope @ (found - whole)), np.inf]))
    share = harmful_share(fit, frame, SimpleNamespace(intervals=lambda *_, **__: half))
    # Residuals are half as large as they may be.
    assert 0.02 / 3 < share <= 0.02
    assert harmful_share(SimpleNamespace(), frame, None) == np.inf


@pytest.mark.parametrize(
    ("place", "cell", "bounds", "said"),
    [
        (0, 9999, (0, 3), ["bounds clip values of 'x'"]),
        (0, 9999, {"bounds": (0, 3), "missing": [-999, 9999]}, ["incomplete because of 'x'"]),
        (1, "", (0, 3), ["incomplete because of 'y'"]),
        (1, "0", (0, 3), []),
    ],
)
def test_few_records_that_may_move_a_slope_are_warned_of(tmp_path, rng, place, cell, bounds, said):
    """One in a hundred; a code that is not declared moves it by far."""
    x = rng.uniform(0, 1, 4000)
    rows = np.column_stack([x, x + 0.1 * rng.standard_normal(4000)]).tolist()
    for row in sorted(rows, key=lambda row: row[1])[-40:]:
        row[place] = cell
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *(f"{x},{y}" for x, y in rows)]))
    model = PrivateLinearRegression(
        Budget.zcdp(9.0), feature_bounds={"x": bounds}, label_bounds=(-1, 2), random_state=1
    )
    with warnings.catch_warnings(action="ignore"):
        model.fit_table(tmp_path / "t.csv", label="y")
    said = ["not private: seeded", *said]
    assert all(text in found for text, found in zip(said, model.warnings_, strict=True))
    assert (abs(model.coef_[0] - 1) < 0.1) == ("bounds clip values of 'x'" not in said)


def test_a_warning_stands_beside_the_coefficients_and_the_fit_stands(rng):
    features = rng.uniform(0, 1, (4000, 1))
    labels = 45 + 10 * features[:, 0]
    model = PrivateLinearRegression(epsilon=4, feature_bounds=(0, 1), label_bounds=(50, 60))
    with pytest.warns(UserWarning, match=r"bounds clip values of '\(label\)' \(5\d %\)"):
        model.fit(features, labels)
    shown = model.report().split("\n\n")[0], model.report("html"), str(model.summary())
    assert all("Warning: bounds clip values" in text for text in shown)
    # Tests turn warnings into errors.
    with pytest.raises(UserWarning, match="bounds clip") as refused:
        model.fit(features[:2000], labels[:2000])
    assert "counts as spent, with rho" in refused.value.__notes__[0]
    assert model._fitted.sample_size == 2000


def test_shares_that_are_all_noise_are_called_so():
    budget = Budget.zcdp(0.1, neighbours="add-remove")
    model = PrivateLinearRegression(budget, feature_bounds=(0, 1), label_bounds=(0, 1))
    with pytest.warns(UserWarning, match="worse than predicting the mean"):
        model.fit(np.zeros((0, 1)), np.zeros(0))
    assert re.search(r"\nx0 +hidden by the noise\n", model.report())
