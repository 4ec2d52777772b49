"""`privreg score`: how well a fit predicts the labels of a table, under a budget of its own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from privreg.command_line.options import Watched, add_budget, add_table, budget_of, open_stated

SUMMARY = "score a fit on a table under a privacy budget: mean squared error and R²"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_table(parser)
    parser.add_argument(
        "--fit",
        type=Path,
        required=True,
        metavar="FILE",
        help="file that `privreg fit --output` wrote; the score of a weighted fit is weighted, by "
        "the same column and bound",
    )
    add_budget(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="new file for the score as JSON; its budget is written before noise is drawn",
    )
    parser.add_argument(
        "--threads", type=int, default=2, help="threads that read the table (default 2)"
    )


def run(options: argparse.Namespace) -> None:
    """Print the score."""
    from privreg.command_line.record import Record, as_text, privacy_as_json
    from privreg.estimators.odometer import PrivacyStatement
    from privreg.estimators.table_quality import SHARES
    from privreg.privacy.release import SECRET_STREAM

    record = Record(options)
    budget = budget_of(options).gaussian()
    fit = _declared(options.fit)
    spent = tuple((what, budget.share(share)) for what, share in SHARES.items())
    privacy = PrivacyStatement(budget, "row", spent, (SECRET_STREAM,))
    with record:
        with Watched(open_stated(options), "privreg score") as table:
            found = _score(table, options, fit, budget, lambda: record.add(privacy))
        privacy = replace(privacy, assumptions=found.assumptions)
        numbers = {k: None if isnan(value) else value for k, value in vars(found.value).items()}
        written = {"score": numbers, "privacy": privacy_as_json(privacy, delta=options.delta)}
        record.finish(_text(found.value, fit, privacy), output=lambda: as_text(written))


def _text(score: Any, fit: _Fit, privacy: Any) -> str:
    weighing = []
    if fit.weight is not None:
        column, bound = fit.weight
        weighing.append(
            f"Records count by their weights in {column!r} as in the fit, clipped to "
            f"[0, {bound:g}]; their sum is in units of {bound:g}."
        )
    lines = [
        _line("mean squared error", score.mean_squared_error, score.mean_squared_error_noise),
        _line("R²", score.r2, score.r2_noise),
        f"{'sum of weights' if fit.weight else 'complete records':20}"
        f"{score.records:,.0f} ± {score.records_noise:,.0f}",
        "",
        *weighing,
        "± is the standard deviation of the private noise alone. Predictions are clipped to the "
        "label's bounds.",
        f"The score is {privacy.sentence}. It adds to what other fits and scores of these records "
        "cost.",
    ]
    return "\n".join(lines)


class _Fit(NamedTuple):
    """Declarations in a file of `privreg fit`, and its coefficients by name."""

    label: str
    bounds: dict[str, Any]
    weight: tuple[str, float] | None
    estimates: list[tuple[str, float]]


def _score(
    table: Any, options: argparse.Namespace, fit: _Fit, budget: Any, reserve: Callable[[], None]
) -> Any:
    import numpy as np

    from privreg.estimators.columns import Frame, Numbers, declared, table_columns
    from privreg.estimators.table_quality import private_score
    from privreg.estimators.tables import TableSamples
    from privreg.privacy.release import SECRET

    class Counted(TableSamples):
        """Reserves the budget between what is refused and noise, and between rows and noise."""

        def each_part(self, task: Any, *, threads: int = 1) -> Iterator[Any]:
            yield from super().each_part(task, threads=threads)
            reserve()

    label, bounds, weight, estimates = fit
    columns = table_columns(
        {name: each for name, each in bounds.items() if name != label},
        label,
        tuple(table.schema.names),
    )
    names = [name for column in columns for name in column.names]
    # By their places: a column may be called "(intercept)", too.
    found = [name for name, _ in estimates]
    if found not in (names, [*names, "(intercept)"]):
        raise ValueError(f"--fit must have the coefficients {names}, got {found}")
    coefficients = [estimate for _, estimate in estimates]
    frame = Frame(
        np.array([pair for column in columns for pair in column.bounds]),
        declared("label_bounds", bounds[label], columns=1)[0],
        True,
    )
    weighing = None if weight is None else Numbers(weight[0], 0.0, weight[1])
    return private_score(
        Counted(table, columns, label, frame, weight=weighing),
        coefficients if len(found) > len(names) else [*coefficients, 0.0],
        budget=budget,
        rng=SECRET.generator(),
        threads=options.threads,
    )


def _declared(path: Path) -> _Fit:
    """A fit that was written."""
    found = None
    try:
        found = json.loads(path.read_bytes())
        label, bounds = found["declared"]["label"], found["declared"]["bounds"]
        estimates = [(each["name"], float(each["estimate"])) for each in found["coefficients"]]
        if not isinstance(bounds, dict) or label not in bounds:
            raise KeyError("label")
        weighing = found["declared"].get("weight")
        weight = None if weighing is None else (str(weighing["column"]), float(weighing["bound"]))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        unfinished = isinstance(found, dict) and "unfinished" in found
        raise ValueError(
            f"--fit must be a file of `privreg fit --output` of this version, got {str(path)!r}"
            f"{', whose fit did not finish' if unfinished else ''}"
        ) from None
    return _Fit(label, bounds, weight, estimates)


def _line(what: str, value: float, noise: float) -> str:
    shown = "hidden by the noise" if isnan(value) else f"{value:.4g} ± {noise:.2g}"
    return f"{what:20}{shown}"
