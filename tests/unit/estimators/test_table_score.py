"""Scores of a fit on a table: the numbers of scikit-learn, with the noise that they cost."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import mean_squared_error, r2_score

from privreg import Budget, Odometer
from privreg.algorithms.samples import Chunk, WeightedChunk
from privreg.command_line.main import main
from privreg.estimators.columns import Frame, Numbers, table_columns
from privreg.estimators.tables import (
    SHARES,
    WEIGHTS,
    TableSamples,
    open_table,
    private_score,
    record_sums,
    score_of,
)
from privreg.noise.exact import UNITS
from privreg.privacy.budget import Neighbours

BOUNDS = {"size": (0, 250), "place": {"categories": ["town", "coast"]}}
LABEL_BOUNDS = np.array([0.0, 900.0])
BETA = [2.0, 80.0, 10.0]
ROWS, TABLE = 2000, "homes.parquet"


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
    path = folder / TABLE
    parquet.write_table(pa.table(columns), path, row_group_size=300)
    used = table_columns(BOUNDS, "price", ("price", "size", "place"))
    frame = Frame(np.array([pair for each in used for pair in each.bounds]), LABEL_BOUNDS, True)
    return TableSamples(open_table(path), used, "price", frame)


def scored(columns, beta, weights):
    """Mean squared error and R² of scikit-learn, features, labels and predictions clipped."""
    labels = np.clip(columns["price"], *LABEL_BOUNDS)
    found = beta[0] * np.clip(columns["size"], 0, 250) + beta[1] * (columns["place"] == "coast")
    found = np.clip(found + beta[2], *LABEL_BOUNDS)
    whole = ~np.isnan(found) & ~np.isnan(labels)
    given = labels[whole], found[whole]
    return [each(*given, sample_weight=weights[whole]) for each in (mean_squared_error, r2_score)]


@pytest.mark.parametrize("weighted", [False, True])
def test_without_noise_it_is_that_of_scikit_learn(columns, tmp_path, rng, weighted):
    """On complete records; those with weights beyond their bound are clipped to it."""
    columns["size"][::7] = np.nan
    columns["price"][5:9] = [-50, 2000, np.inf, np.nan]
    weights = rng.choice([0.0, -1.0, 0.3, 1.5, 4.0, 9.0], ROWS) * rng.uniform(0.5, 1, ROWS)
    weights[::11] = np.nan
    samples = opened({**columns, "w": weights}, tmp_path)
    if weighted:
        weight = Numbers("w", 0.0, 4.0)
        used = samples.features, samples.label, samples.frame
        samples = TableSamples(samples.table, *used, weight=weight)
    release = private_score(samples, BETA, budget=Budget.zcdp(1e12), rng=rng, threads=3)
    counted = np.nan_to_num(np.clip(weights, 0, 4)) / 4 if weighted else np.ones(ROWS)
    whole = ~np.isnan(columns["size"]) & ~np.isnan(columns["price"])
    mean, r2 = scored(columns, BETA, counted)
    exact = {"records": counted[whole].sum(), "mean_squared_error": mean, "r2": r2}
    for name, value in exact.items():
        noise = getattr(release.value, f"{name}_noise")
        assert noise < 1e-5 * value
        assert getattr(release.value, name) == pytest.approx(value, abs=6 * noise)
    assert (WEIGHTS in release.assumptions) is weighted


def test_a_record_adds_to_no_sum_more_than_its_weight(rng):
    """Whatever the fit says of it; without weights more than one, and an incomplete one nothing.

    Where bounds are narrow beside their size, rounding carries labels beyond -1 and 1.
    """
    largest = np.zeros(4)
    for _ in range(100):
        row, label = np.array([[1.0, *rng.uniform(-1, 1, 2)]]), rng.uniform(-2, 2, 1)
        label = rng.choice([[-1.0], [1.0], label])
        parameters = rng.standard_normal(3) * 10.0 ** rng.integers(-3, 12)
        sums = record_sums(parameters, [Chunk(row, label, label)])
        assert np.all((sums >= 0) & (sums <= UNITS))
        largest = np.maximum(largest, sums)
        assert not np.any(record_sums(parameters, [Chunk(0 * row, 0 * label, label)]))
        root = np.sqrt(rng.choice([1e-30, 1e-9, 1.0, rng.uniform()]))
        mine = [root * np.clip(each, -1, 1) for each in (row, *[label] * 3)]
        sums = record_sums(parameters, [WeightedChunk(*mine)])
        assert np.all((sums >= 0) & (sums <= np.rint(UNITS * root**2)))
    # The bounds are met.
    np.testing.assert_array_equal(largest, UNITS)


@pytest.mark.parametrize("relation", Neighbours)
def test_the_loss_is_that_of_the_budget_for_the_worst_neighbours_and_no_more(
    samples, relation, rng
):
    """A record with its label at the top and its prediction at the bottom, and one that is absent.

    The noise is recovered from the score by its own formulas, so that this route does not share
    the code's.
    """
    budget = Budget.zcdp(0.3, neighbours=relation)
    score = private_score(samples, BETA, budget=budget, rng=rng)
    assert score.budget == budget
    # Of the number of records it is stated; the others follow from their shares of the budget.
    shares = np.array(list(SHARES.values()))
    assert shares.sum() == pytest.approx(1)
    stds = score.value.records_noise * np.sqrt(shares[0] / shares)
    top = Chunk(np.array([[1.0, 0.0, 0.0]]), np.array([1.0]), np.ones(1))
    apart = record_sums(np.array([-5.0, 0.0, 0.0]), [top])
    assert apart.tolist() == [UNITS] * 4
    # Noise is rounded up to whole units, each sum's by itself.
    assert np.sum((1 / stds) ** 2) / 2 == pytest.approx(budget.rho, rel=4 / UNITS)
    for _ in range(100):
        parameters = 3 * rng.standard_normal(3)
        rows = np.column_stack([rng.integers(0, 2, 2), rng.uniform(-1, 1, (2, 2))])
        first, second = (
            record_sums(parameters, [Chunk(row[None] * row[0], rng.uniform(-1, 1, 1), np.ones(1))])
            for row in rows
        )
        assert np.all(np.abs(first - second) <= UNITS)


def test_stated_noise_is_the_noise(samples, rng):
    """The standard error of a standard deviation is 1/√(2 · draws) of it."""
    draws, budget = 200, Budget.zcdp(1.0)
    scores = [private_score(samples, BETA, budget=budget, rng=rng).value for _ in range(draws)]
    for name in ("mean_squared_error", "r2", "records"):
        found = np.array([getattr(each, name) for each in scores])
        stated = getattr(scores[0], f"{name}_noise")
        assert np.std(found) == pytest.approx(stated, rel=4 / sqrt(2 * draws))
    assert abs(np.mean(found) - ROWS) < 4 * stated / sqrt(draws)


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
    flat = score_of([2000.0, 1000.0, 501.0, 1.0], np.array([4.0, 3.0, 3.0, 2.0]), width=10)
    assert flat.mean_squared_error == pytest.approx(0.05)
    assert np.isnan(flat.r2)


@pytest.fixture
def command(columns, tmp_path, capsys, monkeypatch):
    """Fit a table, and score it with the fit: status, what is printed, and the score's file."""
    monkeypatch.chdir(tmp_path)
    parquet.write_table(pa.table(columns), TABLE)
    Path("bounds.yaml").write_text(
        "price: [0, 900]\nsize: [0, 250]\nplace: {categories: [town, coast]}\n"
    )

    def fit(*options):
        words = ["--label=price", "--bounds=bounds.yaml", "--rho=100", "--output=fit"]
        assert main(["fit", TABLE, *words, *options]) == 0

    def score(*options):
        capsys.readouterr()
        status = main(["score", TABLE, "--fit=fit", *options, "--output=score"])
        said = capsys.readouterr()
        return status, said, json.loads(Path("score").read_text()) if status == 0 else None

    return fit, score


@pytest.mark.parametrize("name", ["size", "(intercept)"])
@pytest.mark.parametrize("options", [[], ["--no-intercept"]])
def test_the_command_scores_what_the_command_fitted(command, columns, options, name):
    """A column may be called as the intercept is."""
    fit, score = command
    bounds = Path("bounds.yaml")
    bounds.write_text(bounds.read_text().replace("size", name))
    parquet.write_table(
        pa.table({name if k == "size" else k: v for k, v in columns.items()}), TABLE
    )
    fit(*options)
    status, said, found = score("--epsilon=20")
    assert status == 0
    for shown in ("mean squared error", "R²", "(20, 1e-06)-differentially private", "adds to"):
        assert shown in said.out
    beta = [each["estimate"] for each in json.loads(Path("fit").read_text())["coefficients"]]
    exact = [*scored(columns, (*beta, 0.0)[:3], np.ones(ROWS)), ROWS]
    for name, value in zip(("mean_squared_error", "r2", "records"), exact, strict=True):
        assert abs(found["score"][name] - value) < 6 * found["score"][f"{name}_noise"]
    odometer = Odometer()
    odometer.add("fit")
    odometer.add("score")
    assert odometer.total.rho == pytest.approx(100 + found["privacy"]["rho"])
    Path("score").unlink()
    _, said, found = score("--rho=1e-9")
    assert "hidden by the noise" in said.out
    assert found["score"]["r2"] is None


def test_the_command_weighs_by_the_columns_of_the_fit(command, columns, rng, capsys):
    fit, score = command
    weights = rng.uniform(0, 4, ROWS) * (columns["place"] == "town")
    parquet.write_table(pa.table({**columns, "w": weights}), TABLE)
    fit("--weight=w", "--weight-bound=4")
    declared = json.loads(Path("fit").read_text())["declared"]
    assert declared["weight"] == {"column": "w", "bound": 4.0}
    status, said, found = score("--rho=1e4")
    assert status == 0
    assert "sum of weights" in said.out
    assert "weighted by 'w', as in the fit. Weights are clipped to [0, 4] and summed in" in said.out
    assert abs(found["score"]["records"] - weights.sum() / 4) < 6 * found["score"]["records_noise"]
    Path("score").unlink()
    parquet.write_table(pa.table(columns), TABLE)
    status, said, _ = score("--rho=1")
    assert status == 1
    assert "must be a column of the table (3 columns), got 'w'" in said.err
    words = [TABLE, "--label=price", "--bounds=bounds.yaml", "--rho=100"]
    for alone in ("--weight=w", "--weight-bound=4"):
        assert main(["fit", *words, alone]) != 0
        assert "--weight and --weight-bound must be given together" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("declared"),
        lambda found: found["declared"].update(label="none"),
        lambda found: found["coefficients"].pop(0),
        lambda found: found["coefficients"][0].update(estimate=None),
    ],
)
def test_files_that_are_no_fits_are_refused(command, change):
    fit, score = command
    fit()
    found = json.loads(Path("fit").read_text())
    change(found)
    Path("fit").write_text(json.dumps(found))
    status, said, _ = score("--rho=1")
    assert (status, said.out) == (1, "")
    assert said.err.startswith("privreg score: --fit must ")
