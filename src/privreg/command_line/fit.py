"""`privreg fit`: a private linear regression of a table in a file, with intervals."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from privreg.command_line.options import add_budget, budget_of, require_writable
from privreg.command_line.progress import Watched
from privreg.validation import require_choice, require_number

SUMMARY = "fit a table in a file under a privacy budget, with intervals"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("table", type=Path, help="a .csv or .parquet file, or a folder of them")
    parser.add_argument("--label", required=True, metavar="COLUMN", help="column of the label")
    parser.add_argument(
        "--bounds",
        type=Path,
        required=True,
        metavar="FILE",
        help="YAML or JSON: for the label and each feature [low, high] or a list of categories, "
        "from public knowledge. Numbers outside are clipped; a record of an undeclared category "
        "counts as absent",
    )
    parser.add_argument(
        "--target",
        default="least_squares",
        help="least_squares, or robust: shorter intervals, right where errors are symmetric given "
        "the features or independent of them (default least_squares)",
    )
    parser.add_argument(
        "--weight", metavar="COLUMN", help="column of the records' weights, such as a survey's"
    )
    parser.add_argument(
        "--weight-bound",
        type=float,
        metavar="W",
        help="largest weight, from public knowledge; needed with --weight. Larger weights are "
        "clipped to it, negative ones to 0",
    )
    add_budget(parser)
    parser.add_argument(
        "--quality-share",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="share of the budget that counts incomplete and clipped records (default 0.01)",
    )
    parser.add_argument("--no-intercept", action="store_true", help="fit no intercept")
    parser.add_argument(
        "--level", type=float, default=0.95, help="coverage of the intervals (default 0.95)"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the fit as JSON")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write the report and its pictures as HTML"
    )
    parser.add_argument(
        "--threads", type=int, default=2, help="threads that read the table (default 2)"
    )


def run(options: argparse.Namespace) -> str:
    """The report as text."""
    from privreg.command_line.bounds_file import read_bounds
    from privreg.estimators.linear_regression import PrivateLinearRegression
    from privreg.estimators.outlook import FIT_TARGETS
    from privreg.estimators.tables import open_table

    # All of it before the fit: what fails after it has spent the budget for nothing.
    require_number("--level", options.level, above=0, below=1)
    require_choice("--target", options.target, FIT_TARGETS)
    for name, path in (("--output", options.output), ("--report", options.report)):
        require_writable(name, path)
    bounds = read_bounds(options.bounds)
    require_choice("--label", options.label, bounds)
    if (options.weight is None) != (options.weight_bound is None):
        raise ValueError(
            "--weight must be given with --weight-bound, and neither without the other"
        )
    model = PrivateLinearRegression(
        budget_of(options),
        feature_bounds={name: each for name, each in bounds.items() if name != options.label},
        label_bounds=bounds[options.label],
        weight_bound=options.weight_bound,
        fit_intercept=not options.no_intercept,
        target=options.target,
    )
    with Watched(open_table(options.table), "privreg fit") as table:
        model.fit_table(
            table,
            label=options.label,
            weight=options.weight,
            quality_share=options.quality_share,
            threads=options.threads,
        )
    if options.output is not None:
        written = as_json(model, level=options.level, delta=options.delta)
        written["declared"] = {"label": options.label, "bounds": bounds}
        if options.weight is not None:
            weighing = {"column": options.weight, "bound": options.weight_bound}
            written["declared"]["weight"] = weighing
        options.output.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    if options.report is not None:
        options.report.write_text(model.report("html", level=options.level), encoding="utf-8")
    return model.report(level=options.level).rstrip()


def as_json(model: Any, *, level: float, delta: float) -> dict[str, Any]:
    """A fit in plain types: coefficients, intervals, and the privacy that was spent.

    Where an interval is infinite, its ends are null and `reason` says why.
    """
    from privreg.estimators.summary import coefficient_columns

    intervals, privacy, quality = model.confidence_intervals(level), model.privacy_, model.quality_
    names = [*map(str, model.feature_names_in_), *(["(intercept)"] if model.fit_intercept else [])]
    columns = coefficient_columns(names, intervals)
    covariance = model.covariance()
    return {
        "coefficients": [
            {name: _plain(value) for name, value in zip(columns, row, strict=True)}
            for row in zip(*columns.values(), strict=True)
        ],
        "covariance": {
            part: [[_finite(each) for each in row] for row in getattr(covariance, part)]
            for part in ("sampling", "privacy")
        },
        "estimates": model.target,
        "level": level,
        "target": intervals.target,
        "records": None
        if quality is None
        else {
            "incomplete": quality.incomplete,
            "clipped": quality.clipped,
            "noise_standard_deviation": quality.noise_std,
        },
        "privacy": privacy_as_json(privacy, delta=delta),
    }


def privacy_as_json(privacy: Any, *, delta: float) -> dict[str, Any]:
    """What was spent, in plain types, as `privreg odometer` reads it."""
    return {
        "seeded": privacy.seeded,
        "epsilon": _finite(privacy.epsilon(delta)),
        "delta": delta,
        "rho": _finite(privacy.rho),
        "mu": _finite(privacy.mu),
        "unit": privacy.unit,
        "neighbours": privacy.with_secret_noise.neighbours.value,
        "spent": [{"on": what, "rho": budget.rho} for what, budget in privacy.spending],
        "assumptions": list(privacy.assumptions),
    }


def _plain(value: str | float) -> str | float | None:
    """An empty reason is none."""
    return value or None if isinstance(value, str) else _finite(value)


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return float(value) if abs(value) < float("inf") else None
