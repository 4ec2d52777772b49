"""`privreg fit`: a private linear regression of a table in a file, with intervals."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from privreg.checks import require_choice, require_number
from privreg.command_line.main import shown
from privreg.command_line.options import Watched, add_budget, add_table, budget_of, open_stated

SUMMARY = "fit a table in a file under a privacy budget, with intervals"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_table(parser)
    parser.add_argument("--label", required=True, metavar="COLUMN", help="column of the label")
    parser.add_argument(
        "--bounds",
        type=Path,
        required=True,
        metavar="FILE",
        help="YAML or JSON: for the label and each feature [low, high], or of a feature "
        "{categories: [first, second]}, from public knowledge. Numbers outside are clipped; a "
        "record of an undeclared category counts as absent. `privreg bounds` writes a template",
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
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="new file for the fit as JSON; its budget is written before noise is drawn",
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="new file for the report with pictures, as HTML"
    )
    parser.add_argument(
        "--threads", type=int, default=2, help="threads that read the table (default 2)"
    )


def run(options: argparse.Namespace) -> None:
    """Print the report."""
    from privreg.command_line.bounds import read_bounds
    from privreg.command_line.record import Record, as_text
    from privreg.estimators.linear_regression import PrivateLinearRegression
    from privreg.estimators.outlook import FIT_TARGETS

    # All of it before the fit: what fails after it has spent the budget for nothing.
    require_number("--level", options.level, above=0, below=1)
    require_choice("--target", options.target, FIT_TARGETS)
    if (options.weight is None) != (options.weight_bound is None):
        raise ValueError(
            "--weight must be given with --weight-bound, and neither without the other"
        )
    record = Record(options)
    bounds = read_bounds(options.bounds)
    require_choice("--label", options.label, bounds)
    if isinstance(bounds[options.label], dict):
        raise ValueError(f"bounds of the label {options.label!r} must be [low, high]")
    model = PrivateLinearRegression(
        budget_of(options),
        feature_bounds={name: each for name, each in bounds.items() if name != options.label},
        label_bounds=bounds[options.label],
        weight_bound=options.weight_bound,
        fit_intercept=not options.no_intercept,
        target=options.target,
        odometer=record,
    )
    declared = {"label": options.label, "bounds": bounds}
    if options.weight is not None:
        declared["weight"] = {"column": options.weight, "bound": options.weight_bound}
    with record:
        with Watched(open_stated(options), "privreg fit") as table:
            model.fit_table(
                table,
                label=options.label,
                weight=options.weight,
                quality_share=options.quality_share,
                threads=options.threads,
            )
        said = model.report(level=options.level).rstrip()
        for name in (*model.feature_names_in_, *bounds):
            # A line break in a name begins no line.
            said = said.replace(name, shown(name))
        record.finish(
            said,
            output=lambda: as_text(
                as_json(model, level=options.level, delta=options.delta) | {"declared": declared}
            ),
            report=lambda: model.report("html", level=options.level),
        )


def as_json(model: Any, *, level: float, delta: float) -> dict[str, Any]:
    """A fit in plain types: coefficients, intervals, and the privacy that was spent.

    Where an interval is infinite, its ends are null and `reason` says why.
    """
    from privreg.command_line.record import finite, privacy_as_json
    from privreg.estimators.report import coefficient_columns

    def plain(value: str | float) -> str | float | None:
        # An empty reason is none.
        return value or None if isinstance(value, str) else finite(value)

    intervals, privacy, quality = model.confidence_intervals(level), model.privacy_, model.quality_
    names = [*map(str, model.feature_names_in_), *(["(intercept)"] if model.fit_intercept else [])]
    columns = coefficient_columns(names, intervals)
    covariance = model.covariance()
    return {
        "coefficients": [
            {name: plain(value) for name, value in zip(columns, row, strict=True)}
            for row in zip(*columns.values(), strict=True)
        ],
        "covariance": {
            part: [[finite(each) for each in row] for row in getattr(covariance, part)]
            for part in ("sampling", "privacy")
        },
        "estimates": model.target,
        "warnings": model.warnings_,
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
