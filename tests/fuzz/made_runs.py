"""Objects that predictions, plans and private regressions take, and valid values for them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import made
import numpy as np
from made import Made

from privreg.algorithms import huber_scales, product_tail, records, split_budget
from privreg.algorithms.adassp import Bounds
from privreg.algorithms.samples import ArraySamples
from privreg.estimators import bounds, columns, csv_table, outlook, parquet_table, tables
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
from privreg.prediction.result import Regime
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
BOUNDS = np.array([[-1.0, 1.0]] * P)
LABEL_BOUNDS = np.array([-2.0, 2.0])
FRAME = bounds.Frame(BOUNDS, LABEL_BOUNDS, True)
COLUMNS = ("a", "b", "c", "y")
FEATURE_BOUNDS = {"a": (-1, 1), "b": (-1, 1), "c": ["x", "z"]}
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
        BUDGET, feature_bounds=(-1, 1), label_bounds=(-2, 2), random_state=1
    )


@lru_cache
def fitted() -> Any:
    return regression().fit(FEATURES, LABELS)


def fitted_at_once(
    budget: Any,
    *,
    feature_bounds: Any,
    label_bounds: Any,
    fit_intercept: Any,
    target: Any,
    settings: Any,
    release: Any,
    random_state: Any,
) -> Any:
    """The estimator stores its settings unseen, as scikit-learn wants, and looks in `fit`."""
    from privreg.estimators.linear_regression import PrivateLinearRegression

    model = PrivateLinearRegression(
        budget,
        feature_bounds=feature_bounds,
        label_bounds=label_bounds,
        fit_intercept=fit_intercept,
        target=target,
        settings=settings,
        release=release,
        random_state=random_state,
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
}
# Called in place of a constructor that looks at nothing.
IN_PLACE = {"linear_regression.PrivateLinearRegression": fitted_at_once}
WHITENING, GROUPS = np.eye(P), np.arange(ROWS) // 2
PREDICTED = {"problem": PROBLEM, "rows": Made(rows), "budget": BUDGET}
RUN = {
    "samples": ArraySamples(FEATURES, LABELS),
    "budget": BUDGET,
    "declared": DECLARED,
    "runs": 2,
    "noise": Seeded(1),
}
SUMS = {"records": Made(people), "whitening": WHITENING, "clip_norm": 0.5, "cap": 2.0}
FITTED = {"X": FEATURES, "y": LABELS, "groups": None}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "huber_descent.huber_descent": {
        "samples": ArraySamples(FEATURES, LABELS),
        "feature_norm": 2.0,
        "label_bound": 2.0,
        "budget": BUDGET,
        "settings": SETTINGS,
        "groups": None,
        "sample_size": float(ROWS),
    },
    "least_squares_descent.least_squares_descent": {
        "samples": ArraySamples(FEATURES, LABELS),
        "feature_norm": 2.0,
        "label_bound": 2.0,
        "budget": BUDGET,
        "settings": LEAST_SQUARES,
        "groups": None,
        "sample_size": float(ROWS),
    },
    "least_squares_descent.product_edges": {"scale": 0.2, "label_bound": 2.0, "cap": 3.0},
    **{
        f"least_squares_sums.{name}": {
            "records": Made(people),
            "whitening": np.eye(P),
            "clip_norm": 0.5,
            "cap": 2.0,
            "short_cap": 1.0,
        }
        for name in ("kept_curvatures", "last_sums", "product_gradient_sum")
    },
    "least_squares_sums.product_histogram": {
        "records": Made(people),
        "whitening": np.eye(P),
        "cap": 2.0,
        "edges": EDGES,
    },
    "product_tail.ProductTail": {
        "edges": 2.0 ** (np.arange(6) / 2),
        "counts": COUNTS,
        "sample_size": 200.0,
    },
    **{
        f"product_tail.ProductTail.{name}": {"width": 2.0}
        for name in ("excess", "mean_square", "share_beyond")
    },
    "product_tail.ProductTail.best_width": {"noise": 0.01},
    "bias_aware.bias_aware_quantile": {"bias": made.VECTOR**2},
    "gaussian_dp.gaussian_epsilon": {"rho": 0.1, "delta": 1e-5},
    "gaussian_dp.gaussian_rho": {"epsilon": 1.0, "delta": 1e-5},
    "whitening.raised": {"curvature": np.eye(P), "longer": NOISY},
    "whitening.shrunk_curvature": {"curvature": NOISY},
    "least_squares.predicted_length": {
        "problem": PROBLEM,
        "budget": BUDGET,
        "errors": "gaussian",
        "intercept": True,
        "settings": LEAST_SQUARES,
    },
    "least_squares_intervals.least_squares_law": {"fit": Made(least_squares_fit)},
    "least_squares_intervals.robust_difference": {"fit": Made(least_squares_fit)},
    "least_squares_intervals.LeastSquaresLaw.largest_bias": {"slope": made.VECTOR},
    "least_squares_intervals.least_squares_intervals": {
        "fit": Made(least_squares_fit),
        "target": "population",
        "functionals": np.eye(P),
        "offset": made.VECTOR,
    },
    "huber_scales.length_cap": {
        "counts": np.array([3.0, 50.0, 20.0, 1.0]),
        "edges": np.array([0.5, 1.0, 2.0]),
        "noise_std": 1.0,
        "sample_size": 74.0,
    },
    "huber_scales.residual_scale": {
        "counts": np.full(EDGES.size + 1, 2.0),
        "edges": EDGES,
        "sample_size": 74.0,
    },
    "huber_scales.scale_edges": {"label_bound": 2.0},
    "huber_settings.best_clip_width": {"privacy_price": 0.5},
    **{
        f"huber_sums.{name}": SUMS
        for name in (
            "curvature_sum",
            "gradient_sum",
            "gram_sum",
            "row_sum",
            "second_moment_sum",
            "traces",
        )
    },
    "huber_sums.length_histogram": {**SUMS, "edges": EDGES},
    "huber_sums.residual_histogram": {**SUMS, "edges": EDGES},
    "records.Records": {
        "samples": ArraySamples(FEATURES, LABELS),
        "feature_norm": 2.0,
        "label_bound": 2.0,
        "groups": None,
    },
    "records.Persons": {"groups": GROUPS, "rows": ROWS},
    "records.Records.total": {"part": lambda *_: np.ones(2), "shape": (2,)},
    "split_budget.SplitBudget.histogram": {
        "what": "steps",
        "counts": np.array([3.0, 5.0]),
        "share": 0.1,
    },
    "split_budget.SplitBudget.noise_std": {"what": "steps", "share": 0.1, "sensitivity": 1.0},
    "split_budget.SplitBudget.number": {
        "what": "steps",
        "share": 0.1,
        "total": 5.0,
        "bound": 1.0,
        "n": 20.0,
    },
    "split_budget.SplitBudget.semidefinite": {
        "what": "steps",
        "share": 0.1,
        "total": np.eye(P),
        "bound": 1.0,
        "n": 20.0,
    },
    "split_budget.SplitBudget.vector": {
        "what": "steps",
        "share": 0.1,
        "total": made.VECTOR,
        "bound": 1.0,
        "n": 20.0,
    },
    "whitening.newton_matrix": {"curvature": NOISY, "slope": 0.7},
    "whitening.whiten": {"gram": NOISY},
    "bounds.Frame": {"features": BOUNDS, "label": LABEL_BOUNDS, "intercept": True},
    "bounds.Frame.rows": {"features": FEATURES},
    "bounds.Frame.labels": {"labels": LABELS},
    "bounds.Frame.features_of": {"rows": FEATURES},
    "bounds.declared": {"name": "bounds", "bounds": (-1.0, 2.0), "columns": 3, "names": None},
    "linear_regression.PrivateLinearRegression": {
        "budget": BUDGET,
        "feature_bounds": [-1.0, 1.0],
        "label_bounds": [-2.0, 2.0],
        "fit_intercept": True,
        "target": "least_squares",
        "settings": None,
        "release": "last",
        "random_state": 1,
    },
    "fitted_regression.FittedRegression.confidence_intervals": {"target": "population"},
    "fitted_regression.FittedRegression.intervals_at": {"X": FEATURES, "target": "population"},
    "fitted_regression.FittedRegression.predict": FITTED,
    "fitted_regression.FittedRegression.score": {"X": FEATURES, "y": LABELS},
    "linear_regression.PrivateLinearRegression.fit": FITTED,
    "linear_regression.PrivateLinearRegression.fit_table": {"table": Made(table), "label": "y"},
    "outlook.problem_in_bounds": {"sample_size": 50, "dimension": 3, "share": 0.5},
    "candidates.Candidates": {
        "name": "adassp",
        "starts": [ADASSP],
        "settings": lambda point: point,
        "clip": None,
    },
    "candidates.Candidates.best": {"values": lambda tried: [1.0 for _ in tried]},
    "candidates.Candidates.zoomed": {
        "name": "line",
        "settings": lambda point: point,
        "grids": [np.array([0.0, 1.0])],
        "zooms": 1,
        "clip": None,
    },
    "full_batch_dpgd.FullBatchDPGD.simulate": RUN,
    "runs.Declared": {"bounds": Bounds(2.0, 2.0), "sample_size": 50.0, "groups": None},
    "runs.Declared.of": {"problem": PROBLEM},
    "method.Method.predict": PREDICTED,
    "method.Method.run": RUN,
    "method.Method.simulate": RUN,
    "source.Ongoing": {"source": Seeded(1)},
    "outlook.outlook": {
        "sample_size": 50,
        "dimension": 3,
        "target": "robust",
        "settings": SETTINGS,
    },
    "outlook.advice": {"sample_size": 50, "dimension": 3, "target": "robust"},
    "report.PrivacyStatement.epsilon": {"delta": 1e-6},
    "report.write_report": {
        "format": "text",
        "names": ["a", "b", "c"],
        "intervals": Made(intervals),
        "target": ["Least squares."],
        "privacy": Made(statement),
        "outlook": Made(lambda: outlook.outlook(50, 3, BUDGET, settings=SETTINGS)),
        "bounds": BOUNDS,
        "label_bounds": LABEL_BOUNDS,
    },
    "csv_table.CSVTable": {"path": Made(csv_file)},
    "csv_table.CSVTable.parts": {"names": ("a", "y")},
    "parquet_table.ParquetTable.parts": {"names": ("a", "y")},
    "columns.Categories": {"name": "c", "categories": ("x", "z")},
    "columns.Numbers": {"name": "a", "low": -1.0, "high": 1.0},
    "parquet_table.ParquetTable": {"path": Made(parquet_file)},
    "tables.TableSamples": {
        "table": Made(table),
        "features": Made(used_columns),
        "label": "y",
        "frame": FRAME,
    },
    "table_quality.private_quality": {
        "counts": np.array([[3, 1], [0, 0], [0, 2]]),
        "columns": {"a": True, "c": False, "y": True},
        "sample_size": 20.0,
        "budget": BUDGET,
    },
    "tables.FolderTable": {
        "names": ("first", "second"),
        "tables": Made(lambda: (table(), table())),
    },
    "tables.FolderTable.parts": {"names": ("a", "y")},
    "tables.open_table": {"table": Made(csv_file)},
    "columns.table_columns": {"feature_bounds": FEATURE_BOUNDS, "label": "y", "available": COLUMNS},
    "population_intervals.LastIterateLaw.total": {"target": "population"},
    "population_intervals.last_iterate_law": {"fit": Made(fit), "moments": None},
    "population_intervals.population_intervals": {
        "fit": Made(fit),
        "target": "population",
        "functionals": np.eye(P),
        "offset": made.VECTOR,
    },
    "shrunk_moments.ShrunkMoments.along": {"fit": Made(fit)},
    "shrunk_moments.ShrunkMoments.relative_noise": {
        "sampling": np.eye(P),
        "privacy": 0.1 * np.eye(P),
        "target": "population",
    },
    "shrunk_moments.shrunk_moments": {"fit": Made(fit)},
    "least_budget.least_budget": {
        "problems": PROBLEM,
        "target_risk": 0.02,
        "target_length": None,
        "methods": ["adassp"],
    },
    "label_noise.squared_scales": {"law": "student_t5"},
    "plan.names_of": {"methods": ["adassp"]},
    "plan.plan_run": {"problems": PROBLEM, "budget": BUDGET, "methods": ["adassp"]},
    "report.draw": {"plan": Made(plan), "axes": Made(Axes)},
    "report.plain": {"plan": Made(plan)},
    "search.search": {
        **PREDICTED,
        "name": "adassp",
        "objective": lambda found: found.excess_risk,
        "intervals": True,
        "goals": (),
    },
    "text.table": {"alternatives": Made(lambda: plan().alternatives)},
    "finite_sample.sampling_inflation": {
        "widths": np.full((1, 4), 1.5),
        "weights": np.full(4, 0.25),
        "ratio": 0.05,
        "law": "gaussian",
        "other_variance": 0.1,
    },
    "gram_nodes.count_nodes": {"probability": np.array([0.2, 0.8]), "sample_size": 50},
    "gram_nodes.sample_nodes": {"ratio": 0.1},
    "huber.follow": {**PREDICTED, "settings": SETTINGS},
    "least_squares.follow_wide": {
        **PREDICTED,
        "settings": LEAST_SQUARES,
        "errors": "laplace",
        "intercept": False,
    },
    "record_products.record_products": {
        **PREDICTED,
        "start": Made(outcome),
        "settings": LEAST_SQUARES,
        "errors": "laplace",
        "thinning": 16,
    },
    "record_products.RecordProducts.moments": {"width": 2.0},
    "record_products.RecordProducts.residual_widths": {"width": 2.0},
    "private_regression.in_regime": {
        "problem": PROBLEM,
        "found": Made(prediction),
        "outcome": Made(outcome),
    },
    "gram_rounds.nodes_gain": {"whitening": Made(lambda: outcome().whitening), "ratio": 0.1},
    "gram_rounds.whiten": {**PREDICTED, "settings": SETTINGS, "shrink": np.ones(64)},
    "huber_scales.length_edges": {"feature_norm": 2.0},
    "huber_scales.scale_is_hidden": {"sample_size": 74.0},
    "huber_scales.white_cap": {"sample_size": 50.0},
    "correlated_noise.CorrelatedNoise": {"batch_size": 10},
    "regimes.too_few_rows": {"problem": PROBLEM, "unclipped": 0.9},
    "moments.ErrorMoments.predictions": PREDICTED,
    "method.predict_many": {**PREDICTED, "methods": [FULL_BATCH, ADASSP]},
    "problem.Problem": {"signal": made.VECTOR, "feature_norm": 2.0, "label_bound": 3.0},
    "problem.Problem.over": {"signal": (1.0, 2.0), "label_noise_std": (0.5, 1.0)},
    "result.Prediction.marked": {"regime": Regime.EXTENDED, "reason": "because"},
    "result.Prediction.with_doubt": {"reason": "because"},
    "rows.rows_of": {"problem": PROBLEM, "count": 64},
    "known_noise.inverse_root": {"matrix": np.eye(P) + 0.1, "floor": 0.5},
    "known_noise.shrink_to": {"noisy": np.eye(P) + 0.1, "target": np.eye(P)},
    "known_noise.shrink_to_identity": {"noisy": np.eye(P) + 0.1, "scale": 1.0},
    "last_iterate.averaging_step_sizes": {"warm_up_steps": 2, "final_steps": 3},
    "last_iterate.privacy_covariance": {
        "curvature": np.eye(P),
        "step_matrices": np.array([np.eye(P), np.eye(P) / 2]),
        "start_covariance": np.eye(P),
        "curvature_noise": 0.1,
    },
    "last_iterate.sandwich": {
        "curvature": np.eye(P),
        "second_moment": np.eye(P),
        "sample_size": 100.0,
    },
}
RESULTS = {
    "runs.Fit",
    "huber.Outcome",
    "least_squares.WideOutcome",
    "record_products.ClippedMoments",
    "record_products.RecordProducts",
    "result.TargetCost",
    "gram_rounds.Whitening",
    "huber_fit.HuberFit",
    "moments.ErrorMoments",
    "outlook.Outlook",
    "population_intervals.CoefficientIntervals",
    "population_intervals.LastIterateLaw",
    "report.PrivacyStatement",
    "result.Alternative",
    "result.Plan",
    "result.Prediction",
    "rows.Rows",
    "shrunk_moments.ShrunkMoments",
    "split_budget.NoisyValue",
}
