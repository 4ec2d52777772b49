"""Scores of a fit on a table: the numbers of scikit-learn, with the noise that they cost."""

from __future__ import annotations

import json
from math import sqrt

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import mean_squared_error, r2_score

from privreg import Budget, Odometer
from privreg.algorithms.samples import Chunk
from privreg.algorithms.weighted_samples import WeightedChunk
from privreg.command_line.main import main
from privreg.estimators.bounds import Frame
from privreg.estimators.columns import Numbers, table_columns
from privreg.estimators.table_score import SHARES, private_score, record_sums, score_of
from privreg.estimators.tables import TableSamples, open_table
from privreg.estimators.weights import WEIGHTS
from privreg.privacy.neighbours import Neighbours

BOUNDS = {"size": (0, 250), "place": {"categories": ["town", "coast"]}}
LABEL_BOUNDS = np.array([0.0, 900.0])
BETA = [2.0, 80.0, 10.0]
ROWS = 2000


@pytest.fixture
def columns(rng):
    size = rng.uniform(20, 300, ROWS)
    place = rng.choice(["town", "coast"], ROWS)
    return {
        "price": 2 * size + 80 * (place == "coast") + rng.normal(10, 40, ROWS),
        "size": size,
        "place": place,
    }


@pytest.fixture
def samples(columns, tmp_path):
    return opened(columns, tmp_path)


def opened(columns, folder):
    path = folder / "homes.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=300)
    used = table_columns(BOUNDS, "price", ("price", "size", "place"))
    frame = Frame(np.array([pair for each in used for pair in each.bounds]), LABEL_BOUNDS, True)
    return TableSamples(open_table(path), used, "price", frame)


def test_without_noise_it_is_that_of_scikit_learn(columns, tmp_path, rng):
    """On complete records, with features, labels and predictions clipped."""
    columns["size"][::7] = np.nan
    columns["price"][5:9] = [-50, 2000, np.inf, np.nan]
    score = private_score(
        opened(columns, tmp_path), BETA, budget=Budget.zcdp(1e18), rng=rng, threads=3
    ).value
    whole = ~np.isnan(columns["size"]) & ~np.isnan(columns["price"])
    labels = np.clip(columns["price"], *LABEL_BOUNDS)[whole]
    found = BETA[0] * np.clip(columns["size"], 0, 250) + BETA[1] * (columns["place"] == "coast")
    found = np.clip(found[whole] + BETA[2], *LABEL_BOUNDS)
    assert score.records == pytest.approx(np.count_nonzero(whole), abs=1e-6)
    assert score.mean_squared_error == pytest.approx(mean_squared_error(labels, found), rel=1e-7)
    assert score.r2 == pytest.approx(r2_score(labels, found), rel=1e-7)


def test_a_weighted_table_has_the_score_of_scikit_learn_with_weights(columns, tmp_path, rng):
    """A missing weight makes its record incomplete; those beyond the bound are clipped to it."""
    weights = rng.choice([0.0, -1.0, 0.3, 1.5, 4.0, 9.0], ROWS) * rng.uniform(0.5, 1, ROWS)
    weights[::11] = np.nan
    plain = opened({**columns, "w": weights}, tmp_path)
    samples = TableSamples(
        plain.table, plain.features, "price", plain.frame, weight=Numbers("w", 0.0, 4.0)
    )
    release = private_score(samples, BETA, budget=Budget.zcdp(1e18), rng=rng)
    score, counted = release.value, np.nan_to_num(np.clip(weights, 0, 4))
    labels = np.clip(columns["price"], *LABEL_BOUNDS)
    found = BETA[0] * np.clip(columns["size"], 0, 250) + BETA[1] * (columns["place"] == "coast")
    found = np.clip(found + BETA[2], *LABEL_BOUNDS)
    options = {"sample_weight": counted}
    assert score.records == pytest.approx(counted.sum() / 4, rel=1e-9)
    assert score.mean_squared_error == pytest.approx(
        mean_squared_error(labels, found, **options), rel=1e-7
    )
    assert score.r2 == pytest.approx(r2_score(labels, found, **options), rel=1e-7)
    assert WEIGHTS in release.assumptions


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_weighted_record_adds_to_no_sum_more_than_its_weight(rng, kind):
    for _ in range(300):
        root = kind(np.sqrt(rng.choice([1e-30, 1e-9, 1.0, rng.uniform()])))
        row = (root * np.array([[1.0, *rng.choice([-1.0, 1.0, 0.3], 2)]])).astype(kind)
        label = np.array([root * rng.choice([-1.0, 1.0, 0.7])], dtype=kind)
        parameters = rng.standard_normal(3) * 10.0 ** rng.integers(-3, 12)
        sums = record_sums(parameters, [WeightedChunk(row, label, label, label)])
        assert np.all((sums >= 0) & (sums <= float(root) ** 2))


def test_a_record_adds_to_no_sum_more_than_one(rng):
    """Whatever the fit says of it; an incomplete one adds nothing.

    Where bounds are narrow beside their size, rounding carries labels beyond -1 and 1.
    """
    largest = np.zeros(4)
    for _ in range(300):
        row = np.array([[1.0, *rng.uniform(-1, 1, 2)]])
        label = rng.choice([-1.0, 1.0, rng.uniform(-2, 2)], 1)
        parameters = rng.standard_normal(3) * 10.0 ** rng.integers(-3, 12)
        sums = record_sums(parameters, [Chunk(row, label, label)])
        assert np.all((sums >= 0) & (sums <= 1))
        largest = np.maximum(largest, sums)
        assert not np.any(record_sums(parameters, [Chunk(0 * row, 0 * label, label)]))
    # The bounds are met.
    np.testing.assert_array_equal(largest, 1)


@pytest.mark.parametrize("relation", Neighbours)
def test_the_loss_is_that_of_the_budget_for_the_worst_neighbours_and_no_more(
    samples, relation, rng
):
    """A record with its label at the top and its prediction at the bottom, and one that is absent.

    The noise is recovered from the score by its own formulas, so that this route does not share
    the code's.
    """
    budget = Budget.zcdp(0.3, neighbours=relation)
    stds = noise_stds(samples, budget, rng)
    top = Chunk(np.array([[1.0, 0.0, 0.0]]), np.array([1.0]), np.ones(1))
    apart = record_sums(np.array([-5.0, 0.0, 0.0]), [top])
    assert np.sum((apart / stds) ** 2) / 2 == pytest.approx(budget.rho)
    losses = []
    for _ in range(200):
        parameters = 3 * rng.standard_normal(3)
        rows = np.column_stack([rng.integers(0, 2, 2), rng.uniform(-1, 1, (2, 2))])
        chunks = [Chunk(rows[[k]] * rows[k, 0], rng.uniform(-1, 1, 1), np.ones(1)) for k in (0, 1)]
        first, second = (record_sums(parameters, [each]) for each in chunks)
        losses.append(np.sum(((first - second) / stds) ** 2) / 2)
    assert max(losses) <= budget.rho * (1 + 1e-12)


def noise_stds(samples, budget, rng):
    score = private_score(samples, BETA, budget=budget, rng=rng)
    assert score.budget == budget
    # Of the number of records it is stated; the others follow from their shares of the budget.
    first = score.value.records_noise
    shares = np.array(list(SHARES.values()))
    assert shares.sum() == pytest.approx(1)
    return first * np.sqrt(shares[0] / shares)


def test_stated_noise_is_the_noise(samples, rng):
    """Over many draws; the standard error of a standard deviation is 1/√(2 · draws) of it."""
    draws, exact = 400, np.array([2000.0, 900.0, 500.0, 60.0])
    stds = np.array([4.0, 3.0, 3.0, 2.0])
    scores = [score_of(exact + stds * rng.standard_normal(4), stds, width=10) for _ in range(draws)]
    stated = score_of(exact, stds, width=10)
    for name in ("mean_squared_error", "r2", "records"):
        found = np.array([getattr(each, name) for each in scores])
        noise = getattr(stated, f"{name}_noise")
        assert np.std(found) == pytest.approx(noise, rel=4 / sqrt(2 * draws))
        assert abs(np.mean(found) - getattr(stated, name)) < 4 * noise / sqrt(draws)
    # And in a run: a budget of a hundredth has ten times the noise.
    many, few = (
        private_score(samples, BETA, budget=Budget.zcdp(rho), rng=rng).value for rho in (100, 1)
    )
    assert few.records_noise == pytest.approx(10 * many.records_noise)


@pytest.mark.parametrize("stds", [[7.0, 0.3, 0.2, 0.1], [0.1, 3.0, 0.2, 0.3], [0.2, 0.1, 4, 3.0]])
@pytest.mark.parametrize("sums", [[2000.0, 900.0, 500.0, 160.0], [500.0, 430.0, 400.0, 9.0]])
def test_stated_noise_is_that_of_the_derivatives(sums, stds):
    """To first order, from central differences; each sum's noise counts by its own."""
    sums, step = np.array(sums), 1e-4
    found = score_of(sums, stds, width=3)
    for name in ("mean_squared_error", "r2"):
        slopes = [
            (getattr(up, name) - getattr(down, name)) / (2 * step)
            for up, down in (
                (score_of(sums + each, stds, width=3), score_of(sums - each, stds, width=3))
                for each in step * np.eye(4)
            )
        ]
        expected = np.linalg.norm(np.array(slopes) * stds)
        assert getattr(found, f"{name}_noise") == pytest.approx(expected, rel=1e-6)


def test_where_a_divisor_is_visible():
    """Beyond four standard deviations of its own noise, and a record at least."""
    loud = [0.0, 100.0, 100.0, 0.0]

    def shown(sums, stds):
        score = score_of(sums, stds, width=0.5)
        return [not np.isnan(each) for each in (score.mean_squared_error, score.r2)]

    assert shown([4.5, 1.0, 2.0, 0.5], [1.0, *loud[1:]])[0]
    assert not shown([4.0, 1.0, 2.0, 0.5], [1.0, *loud[1:]])[0]
    assert shown([1.0, 0.5, 0.5, 0.1], loud)[0]
    assert not shown([0.9, 0.5, 0.5, 0.1], loud)[0]
    assert shown([1.0, 0.5, 0.5, 0.1], [0.0] * 4) == [True, True]
    assert shown([1.0, 0.5, 0.25, 0.1], [0.0] * 4) == [True, False]
    # Without labels on average the noise of the spread is that of the squares alone.
    assert shown([10.0, 0.0, 4.5, 1.0], [0.0, 9.0, 1.0, 1.0])[1]
    assert not shown([10.0, 0.0, 4.0, 1.0], [0.0, 9.0, 1.0, 1.0])[1]


def test_what_noise_hides_is_no_number():
    stds = np.array([4.0, 3.0, 3.0, 2.0])
    few = score_of([12.0, 5.0, 3.0, 1.0], stds, width=10)
    assert np.isnan([few.mean_squared_error, few.r2]).all()
    flat = score_of([2000.0, 1000.0, 501.0, 1.0], stds, width=10)
    assert flat.mean_squared_error == pytest.approx(0.05)
    assert np.isnan(flat.r2)


@pytest.fixture
def files(columns, tmp_path):
    table, bounds = tmp_path / "homes.parquet", tmp_path / "bounds.yaml"
    parquet.write_table(pa.table(columns), table)
    bounds.write_text("price: [0, 900]\nsize: [0, 250]\nplace: {categories: [town, coast]}\n")
    return table, bounds, tmp_path / "fit.json"


@pytest.mark.parametrize("options", [[], ["--no-intercept"]])
def test_the_command_scores_what_the_command_fitted(files, columns, tmp_path, capsys, options):
    table, bounds, fit = map(str, files)
    words = ["--label", "price", "--bounds", bounds, "--rho", "100", "--output", fit]
    assert main(["fit", table, *words, *options]) == 0
    output = tmp_path / "score.json"
    capsys.readouterr()
    words = ["--fit", fit, "--epsilon", "20", "--output", str(output)]
    assert main(["score", table, *words]) == 0
    out = capsys.readouterr().out
    for shown in ("mean squared error", "R²", "(20, 1e-06)-differentially private", "adds to what"):
        assert shown in out
    found = json.loads(output.read_text())
    beta = [each["estimate"] for each in json.loads(files[2].read_text())["coefficients"]]
    size, coast = np.clip(columns["size"], 0, 250), columns["place"] == "coast"
    labels = np.clip(columns["price"], *LABEL_BOUNDS)
    exact = np.clip(beta[0] * size + beta[1] * coast + (beta[2:] or [0.0])[0], *LABEL_BOUNDS)
    score = found["score"]
    for name, value in (
        ("mean_squared_error", mean_squared_error(labels, exact)),
        ("r2", r2_score(labels, exact)),
        ("records", ROWS),
    ):
        assert abs(score[name] - value) < 6 * score[f"{name}_noise"]
    odometer = Odometer()
    odometer.add(files[2])
    odometer.add(output)
    assert odometer.total.rho == pytest.approx(100 + found["privacy"]["rho"])


@pytest.mark.parametrize("options", [[], ["--no-intercept"]])
def test_a_column_may_be_called_as_the_intercept_is(tmp_path, rng, options):
    """Its slope was taken to be the intercept: R² was .82 of a prediction that misses nothing."""
    x = rng.uniform(-1, 1, 2000)
    path, bounds, fit, output = (tmp_path / f"{name}" for name in ("t.csv", "b.json", "f", "s"))
    lines = [f"{each!r},{(0 if options else 3) + 2 * each!r}" for each in x.tolist()]
    path.write_text("\n".join(["(intercept),y", *lines]) + "\n")
    bounds.write_text(json.dumps({"(intercept)": [-1, 1], "y": [-5, 5]}))
    command = ["fit", str(path), "--label", "y", "--bounds", str(bounds), "--rho", "1e6"]
    assert main([*command, "--output", str(fit), *options]) == 0
    command = ["score", str(path), "--fit", str(fit), "--rho", "1e6", "--output", str(output)]
    assert main(command) == 0
    assert json.loads(output.read_text())["score"]["r2"] > 0.99


def test_the_command_weighs_by_the_columns_of_the_fit(files, columns, tmp_path, capsys, rng):
    table, bounds, fit = map(str, files)
    weights = rng.uniform(0, 4, ROWS) * (columns["place"] == "town")
    parquet.write_table(pa.table({**columns, "w": weights}), table)
    words = ["--label", "price", "--bounds", bounds, "--rho", "100", "--output", fit]
    assert main(["fit", table, *words, "--weight", "w", "--weight-bound", "4"]) == 0
    output = tmp_path / "score.json"
    capsys.readouterr()
    assert main(["score", table, "--fit", fit, "--rho", "1e4", "--output", str(output)]) == 0
    out = capsys.readouterr().out
    assert "sum of weights" in out
    assert "weights in 'w' as in the fit, clipped to [0, 4]; their sum is in units of 4." in out
    score = json.loads(output.read_text())["score"]
    assert abs(score["records"] - weights.sum() / 4) < 6 * score["records_noise"]
    parquet.write_table(pa.table(columns), table)
    assert main(["score", table, "--fit", fit, "--rho", "1"]) == 1
    assert "weight must be" in capsys.readouterr().err


def test_what_the_noise_hides_is_said(files, capsys, tmp_path):
    table, bounds, fit = map(str, files)
    words = ["--label", "price", "--bounds", bounds, "--rho", "100", "--output", fit]
    assert main(["fit", table, *words]) == 0
    output = tmp_path / "score.json"
    assert main(["score", table, "--fit", fit, "--rho", "1e-9", "--output", str(output)]) == 0
    assert "hidden by the noise" in capsys.readouterr().out
    assert json.loads(output.read_text())["score"]["r2"] is None


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("declared"),
        lambda found: found["declared"].update(label="none"),
        lambda found: found["coefficients"].pop(0),
        lambda found: found["coefficients"][0].update(estimate=None),
    ],
)
def test_files_that_are_no_fits_are_refused(files, capsys, change):
    table, bounds, fit = map(str, files)
    words = ["--label", "price", "--bounds", bounds, "--rho", "100", "--output", fit]
    assert main(["fit", table, *words]) == 0
    found = json.loads(files[2].read_text())
    change(found)
    files[2].write_text(json.dumps(found))
    capsys.readouterr()
    assert main(["score", table, "--fit", fit, "--rho", "1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("privreg score: --fit must ")
