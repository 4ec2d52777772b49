"""Objects that predictions, plans and private regressions take, and valid values for them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import made
import numpy as np

from privreg.algorithms import huber_scales, product_tail, records, split_budget
from privreg.algorithms.adassp import Bounds
from privreg.algorithms.samples import ArraySamples
from privreg.estimators import bounds, columns, csv_table, parquet_table, tables
from privreg.methods.adassp import AdaSSP
from privreg.methods.candidates import Candidates
from privreg.methods.correlated_noise import CorrelatedNoise
from privreg.methods.full_batch_dpgd import FullBatchDPGD
from privreg.methods.one_pass_dpgd import OnePassDPGD
from privreg.methods.private_least_squares import PrivateLeastSquares
from privreg.methods.private_regression import PrivateRegression
from privreg.methods.runs import Declared
from privreg.noise.source import Ongoing, Seeded
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget
from privreg.schedules import Harmonic

ROWS, P = 200, made.D
BUDGET = Budget.zcdp(5.0)
_draws = np.random.Generator(np.random.SFC64(11))
FEATURES = _draws.uniform(-1, 1, (ROWS, P))
LABELS = FEATURES @ made.VECTOR + 0.2 * _draws.standard_normal(ROWS)
SETTINGS = PrivateRegression()
LEAST_SQUARES = PrivateLeastSquares()
FULL_BATCH = FullBatchDPGD(steps=4, step_size=0.5, clip_norm=4.0)
ONE_PASS = OnePassDPGD(Harmonic(1.0, 0.5), 2.0)
CORRELATED = CorrelatedNoise(10, 0.1, 2.0, 0.1)
ADASSP = AdaSSP()
DECLARED = Declared(Bounds(2.0, 2.0))
PROBLEM = Problem(400, made.EIGENVALUES, signal=made.VECTOR, label_noise_std=0.3)
NOISY = split_budget.NoisyValue(np.eye(P) + 0.1, 0.01)
WHITENING, GROUPS = np.eye(P), np.arange(ROWS) // 2
BOUNDS = np.array([[-1.0, 1.0]] * P)
LABEL_BOUNDS = np.array([-2.0, 2.0])
FRAME = bounds.Frame(BOUNDS, LABEL_BOUNDS, True)
COLUMNS = ("a", "b", "c", "y")
FEATURE_BOUNDS = {"a": (-1, 1), "b": (-1, 1), "c": {"categories": ["x", "z"]}}
EDGES = huber_scales.scale_edges(2.0)
COUNTS = split_budget.NoisyValue(np.array([60.0, 50.0, 40.0, 30.0, 15.0, 4.0, 1.0]), 2.0)
TAIL = product_tail.ProductTail(2.0 ** (np.arange(6) / 2), COUNTS, 200.0)


@lru_cache
def rows() -> Any:
    from privreg.prediction.rows import rows_of

    return rows_of(PROBLEM, count=64)


def people() -> Any:
    return records.Records(ArraySamples(FEATURES, LABELS), 2.0, 2.0)


def shares() -> Any:
    return split_budget.SplitBudget(BUDGET, made.RNG.make())


@lru_cache
def fit() -> Any:
    from privreg.algorithms.huber_descent import huber_descent

    return huber_descent(
        ArraySamples(FEATURES, LABELS),
        feature_norm=2.0,
        label_bound=2.0,
        budget=BUDGET,
        settings=SETTINGS,
        rng=made.RNG.make(),
    ).value


@lru_cache
def least_squares_fit() -> Any:
    from privreg.algorithms.least_squares_descent import least_squares_descent

    return least_squares_descent(
        ArraySamples(FEATURES, LABELS),
        feature_norm=2.0,
        label_bound=2.0,
        budget=BUDGET,
        settings=LEAST_SQUARES,
        rng=made.RNG.make(),
    ).value


def products() -> Any:
    from privreg.prediction.record_products import record_products

    return record_products(
        PROBLEM, rows(), outcome(), LEAST_SQUARES, BUDGET, errors="gaussian", thinning=16
    )


def least_squares_law() -> Any:
    from privreg.inference.least_squares_intervals import least_squares_law as law

    return law(least_squares_fit())


def moments() -> Any:
    from privreg.inference.shrunk_moments import shrunk_moments

    return shrunk_moments(fit())


def intervals() -> Any:
    from privreg.inference.population_intervals import population_intervals

    return population_intervals(fit())


def iterate_law() -> Any:
    from privreg.inference.population_intervals import last_iterate_law

    return last_iterate_law(fit())


def error_moments() -> Any:
    from privreg.prediction import huber

    return huber.follow(PROBLEM, rows(), SETTINGS, BUDGET).moments


def outcome() -> Any:
    from privreg.prediction import huber

    return huber.follow(PROBLEM, rows(), SETTINGS, BUDGET)


def prediction() -> Any:
    return ADASSP.predict(PROBLEM, BUDGET)


@lru_cache
def plan() -> Any:
    from privreg.planning.plan import plan_run

    return plan_run(PROBLEM, BUDGET, methods=["adassp"])


def regression() -> Any:
    from privreg.estimators.linear_regression import PrivateLinearRegression

    return PrivateLinearRegression(
        BUDGET, feature_bounds=(-1, 1), label_bounds=(-2, 2), weight_bound=1.5, random_state=1
    )


@lru_cache
def fitted() -> Any:
    return regression().fit(FEATURES, LABELS)


def fitted_at_once(
    budget: Any,
    *,
    feature_bounds: Any,
    label_bounds: Any,
    weight_bound: Any,
    fit_intercept: Any,
    target: Any,
    settings: Any,
    release: Any,
    random_state: Any,
    odometer: Any,
) -> Any:
    """The estimator stores its settings unseen, as scikit-learn wants, and looks in `fit`."""
    from privreg.estimators.linear_regression import PrivateLinearRegression

    model = PrivateLinearRegression(
        budget,
        feature_bounds=feature_bounds,
        label_bounds=label_bounds,
        weight_bound=weight_bound,
        fit_intercept=fit_intercept,
        target=target,
        settings=settings,
        release=release,
        random_state=random_state,
        odometer=odometer,
    ).fit(FEATURES[:40], LABELS[:40])
    return model.coef_, model.intercept_, model.privacy_.rho


def table_regression() -> Any:
    model = regression()
    model.feature_bounds = FEATURE_BOUNDS
    return model


@lru_cache
def csv_file() -> Path:
    folder = tempfile.mkdtemp(prefix="privreg-fuzz-")
    path = Path(folder) / "table.csv"
    lines = [
        f"{row[0]},{row[1]},{'xz'[at % 2]},{label}"
        for at, (row, label) in enumerate(zip(FEATURES.tolist(), LABELS.tolist(), strict=True))
    ]
    path.write_text("\n".join([",".join(COLUMNS), *lines]) + "\n", encoding="utf-8")
    return path


@lru_cache
def parquet_file() -> Path:
    import pyarrow
    from pyarrow import parquet

    path = csv_file().with_suffix(".parquet")
    columns = dict(
        zip(COLUMNS, [*FEATURES[:, :2].T, ["x", "z"] * (ROWS // 2), LABELS], strict=True)
    )
    parquet.write_table(pyarrow.table(columns), path)
    return path


def table() -> Any:
    return csv_table.CSVTable(csv_file())


def used_columns() -> Any:
    return columns.table_columns(FEATURE_BOUNDS, "y", COLUMNS)


def folder() -> Any:
    return tables.FolderTable(("first", "second"), (table(), table()))


def table_samples() -> Any:
    return tables.TableSamples(table(), used_columns(), "y", FRAME)


def statement() -> Any:
    return fitted().privacy_


@lru_cache
def fit_file() -> Path:
    import json

    from privreg.command_line.fit import as_json

    model = table_regression().fit_table(table(), label="y")
    path = csv_file().with_name("written.json")
    path.write_text(json.dumps(as_json(model, level=0.9, delta=1e-6)), encoding="utf-8")
    return path


def odometer() -> Any:
    from privreg.estimators.odometer import Odometer

    return Odometer(Budget.zcdp(50.0))


def private_statement() -> Any:
    return replace(statement(), seeded=False)


class Axes:
    """What a drawing calls, and nothing is drawn."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


INSTANCES: dict[str, Callable[[], Any]] = {
    "candidates.Candidates": lambda: Candidates("adassp", [ADASSP]),
    "full_batch_dpgd.FullBatchDPGD": lambda: FULL_BATCH,
    "method.Method": lambda: ADASSP,
    "source.Ongoing": lambda: Ongoing(made.RNG.make(), Seeded(1)),
    "bounds.Frame": lambda: FRAME,
    "fitted_regression.FittedRegression": fitted,
    "odometer.Odometer": odometer,
    "least_squares_intervals.LeastSquaresLaw": least_squares_law,
    "product_tail.ProductTail": lambda: TAIL,
    "linear_regression.PrivateLinearRegression": fitted,
    "linear_regression.PrivateLinearRegression.fit": regression,
    "linear_regression.PrivateLinearRegression.fit_table": table_regression,
    "moments.ErrorMoments": error_moments,
    "record_products.RecordProducts": products,
    "population_intervals.CoefficientIntervals": intervals,
    "population_intervals.LastIterateLaw": iterate_law,
    "problem.Problem": lambda: PROBLEM,
    "records.Records": people,
    "report.PrivacyStatement": statement,
    "result.Prediction": prediction,
    "rows.Rows": rows,
    "shrunk_moments.ShrunkMoments": moments,
    "split_budget.SplitBudget": shares,
    "csv_table.CSVTable": table,
    "columns.Categories": lambda: columns.Categories("c", ("x", "z")),
    "columns.Numbers": lambda: columns.Numbers("a", -1.0, 1.0),
    "parquet_table.ParquetTable": lambda: parquet_table.ParquetTable(parquet_file()),
    "tables.FolderTable": folder,
    "tables.TableSamples": table_samples,
    "whitened_descent.WhitenedDescent": lambda: SETTINGS,
}
# Called in place of a constructor that looks at nothing.
IN_PLACE = {"linear_regression.PrivateLinearRegression": fitted_at_once}
