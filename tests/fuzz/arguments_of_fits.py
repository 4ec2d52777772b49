"""Valid values for what a fit shows: intervals, tests, covariance, summaries and pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from made import Made
from made_runs import (
    BOUNDS,
    BUDGET,
    FEATURES,
    P,
    fit_file,
    intervals,
    iterate_law,
    least_squares_fit,
    private_statement,
    table_samples,
)

from privreg.privacy.budget import Budget

ERRORS = {
    "standard_error": np.array([1.0, 2.0, 0.5]),
    "degrees_of_freedom": np.array([9.0, 30.0, 4.0]),
    "bias": np.array([0.1, 1.0, 0.5]),
}
NAMED = {"names": ["a", "b", "c"], "intervals": Made(intervals)}
EXCEPTIONS: dict[str, dict[str, Any]] = {
    "coefficient_covariance.coefficient_covariance": {
        "intervals": Made(intervals),
        "law": Made(iterate_law),
        "directions": np.eye(P),
    },
    "critical_values.half_widths": ERRORS,
    "least_squares_intervals.LeastSquaresLaw.last_iterate": {"sample_size": 200.0},
    "population_intervals.CoefficientIntervals.p_values": {"value": np.zeros(P)},
    "critical_values.p_values": {**ERRORS, "distance": np.array([0.0, 2.0, 3.0])},
    "fitted_regression.FittedRegression.covariance": {"target": "population"},
    "fitted_regression.FittedRegression.prediction_intervals": {"X": FEATURES},
    "fitted_regression.FittedRegression.summary": {"target": "population"},
    "new_observations.new_observations": {
        "fit": Made(least_squares_fit),
        "rows": np.eye(P),
    },
    "robust_gain.robust_gain": {"fit": Made(least_squares_fit)},
    "odometer.Odometer": {"limit": Budget.zcdp(2.0)},
    "odometer.Odometer.add": {"fit": Made(private_statement)},
    "odometer.read_statement": {"fit": Made(fit_file)},
    "picture.slope_bars": {**NAMED, "bounds": BOUNDS},
    "summary.coefficient_columns": NAMED,
    "table_score.private_score": {
        "samples": Made(table_samples),
        "coefficients": np.array([1.0, -0.5, 0.5, 0.1]),
        "budget": BUDGET,
    },
    "table_score.score_of": {
        "sums": np.array([200.0, 90.0, 60.0, 5.0]),
        "noise_stds": np.array([2.0, 1.0, 1.0, 1.0]),
        "width": 4.0,
    },
}
# What lays out and draws what others have checked, and hooks that estimators call.
INTERNALS = {
    "fitted_regression.FittedRegression.plot",
    "frames.data_frame",
    *(f"layout.{name}" for name in ("as_html", "as_text", "html_table", "text_table")),
    *(f"picture.{kind}_{name}" for kind in ("html", "draw") for name in ("slopes", "budget")),
    "picture.new_axes",
    "summary.coefficient_rows",
    "summary.summary_part",
    "method.Method.covariance",
    "method.Method.new_observations",
    "private_least_squares.PrivateLeastSquares.new_observations",
    "whitened_descent.WhitenedDescent.covariance",
    "refits.Clones",
    "refits.clones_of",
    "refits.is_clone_of",
    "refits.related",
    "table_score.record_sums",
    "tables.TableSamples.each_part",
    "tables.Unread",
    "tables.Unread.parts",
}
