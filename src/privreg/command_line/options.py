"""Options that commands share: the problem, the budget, and the table with its progress."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isinf
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Self

import numpy as np

from privreg.checks import require_count, require_number
from privreg.methods.problem import FEATURE_LAWS, LABEL_NOISE_LAWS, Problem
from privreg.privacy.budget import Budget, Neighbours

# As many numbers are held.
MOST_FEATURES = 10_000_000
# Seconds before the first line, and between two.
PATIENCE, PAUSE = 3.0, 0.5


def add_problem(parser: argparse.ArgumentParser) -> None:
    """Sizes, scales and the features' law."""
    group = parser.add_argument_group("the problem")
    group.add_argument(
        "--sample-size", type=int, required=True, metavar="N", help="number of records"
    )
    spectrum = group.add_mutually_exclusive_group(required=True)
    spectrum.add_argument("--dimension", type=int, metavar="P", help="features of variance 1")
    spectrum.add_argument(
        "--eigenvalues", metavar="A,B,...", help="eigenvalues of the features' second moment"
    )
    group.add_argument(
        "--signal",
        default="1",
        metavar="NORM",
        help="norm of the coefficients, or a range of it as LOW:HIGH (default 1)",
    )
    group.add_argument(
        "--label-noise-std",
        default="1",
        metavar="STD",
        help="standard deviation of the label noise, or a range of it as LOW:HIGH (default 1)",
    )
    group.add_argument(
        "--label-noise-law",
        nargs="+",
        default=["gaussian"],
        metavar="LAW[:MISFIT]",
        help=f"law of the label noise: {', '.join(LABEL_NOISE_LAWS)} (default gaussian). MISFIT, "
        "from 0 to 1 (default 0), says how much of what clipping takes away the features explain. "
        "Name several where the law is not known: gaussian student_t3:0.3",
    )
    group.add_argument(
        "--feature-law",
        choices=FEATURE_LAWS,
        default="gaussian",
        help="law of the features (default gaussian)",
    )
    group.add_argument(
        "--feature-norm", type=float, metavar="NORM", help="declared bound on a row's norm"
    )
    group.add_argument(
        "--label-bound",
        type=float,
        metavar="SIZE",
        help="declared bound on a label's absolute value",
    )


def add_budget(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """A zCDP budget, or ε and δ."""
    group = parser.add_argument_group("the budget")
    stated = group.add_mutually_exclusive_group(required=required)
    stated.add_argument("--rho", type=float, help="budget as rho of rho-zCDP")
    stated.add_argument("--epsilon", type=float, help="budget as epsilon of (epsilon, delta)-DP")
    group.add_argument(
        "--delta", type=float, default=1e-6, help="delta of --epsilon (default 1e-6)"
    )
    group.add_argument(
        "--neighbours",
        choices=[each.value for each in Neighbours],
        default=Neighbours.REPLACE_ONE.value,
        help="how neighbouring data sets differ: one record replaced by another, added or removed, "
        "or blanked (default replace-one)",
    )


def problems_of(options: argparse.Namespace) -> tuple[Problem, ...]:
    """Problems at the ends of the stated ranges."""
    signals = _range("--signal", options.signal)
    noises = _range("--label-noise-std", options.label_noise_std)
    if options.eigenvalues is None:
        values = np.ones(require_count("--dimension", options.dimension, most=MOST_FEATURES))
        if options.feature_law == "one_hot":
            values /= options.dimension
    else:
        values = np.array(_numbers("--eigenvalues", options.eigenvalues, ","))
    # One declared bound for all, from the largest stated label.
    bounds = {
        name: getattr(options, name)
        for name in ("feature_norm", "label_bound")
        if getattr(options, name) is not None
    }
    largest = Problem(
        options.sample_size,
        values,
        signal=signals[-1],
        label_noise_std=noises[-1],
        feature_law=options.feature_law,
        **bounds,
    )
    return largest.over(
        signal=[signal / signals[-1] if signals[-1] else 1.0 for signal in signals],
        label_noise_std=[noise / noises[-1] for noise in noises],
        noise_shapes=[_shape(text) for text in options.label_noise_law],
    )


def budget_of(options: argparse.Namespace) -> Budget:
    """The stated budget; δ is looked at even where ρ needs none."""
    require_number("--delta", options.delta, above=0, below=1)
    if options.rho is not None:
        return Budget.zcdp(options.rho, neighbours=options.neighbours)
    return Budget.approximate(options.epsilon, options.delta, neighbours=options.neighbours)


def add_table(parser: argparse.ArgumentParser) -> None:
    """A table in files."""
    parser.add_argument("table", type=Path, help="a .csv or .parquet file, or a folder of them")
    parser.add_argument(
        "--separator",
        type=lambda text: text.replace("\\t", "\t"),
        metavar="CHARACTER",
        help=r"character between the cells of a CSV file, \t for a tab (a comma if none is given)",
    )


def open_stated(options: argparse.Namespace) -> Any:
    """The table of `add_table`."""
    from privreg.estimators.tables import open_table

    stated = {} if options.separator is None else {"separator": options.separator}
    return open_table(options.table, **stated)


class Watched:
    """A table that shows after some seconds, on a terminal, how far the pass over its rows is.

    As a context it clears the line at its end. Of the rows nothing enters but their number.
    """

    def __init__(self, table: Any, what: str) -> None:
        self.table, self.what = table, what
        self._lock, self._read, self._length = Lock(), 0, 0
        self._start = self._shown = monotonic()

    @property
    def schema(self) -> Any:
        return self.table.schema

    @property
    def row_count(self) -> int:
        return int(self.table.row_count)

    def parts(self, names: Sequence[str]) -> list[Callable[[], Iterator[Any]]]:
        """Parts of the table, whose rows are counted as they are read."""
        if not sys.stderr.isatty():
            return list(self.table.parts(names))
        return [partial(self._counted, part) for part in self.table.parts(names)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._length:
            print("\r" + " " * self._length + "\r", end="", file=sys.stderr, flush=True)

    def _counted(self, part: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        for batch in part():
            yield batch
            with self._lock:
                self._read += batch.num_rows
                self._show()

    def _show(self) -> None:
        now = monotonic()
        if now - self._start < PATIENCE or now - self._shown < PAUSE:
            return
        self._shown = now
        passes, rest = divmod(self._read, max(1, self.row_count))
        line = (
            f"{self.what}: pass {passes + 1} over the table, "
            f"{100 * rest // max(1, self.row_count)} %, {now - self._start:.0f} s"
        )
        # Nothing of a longer line before stays.
        print("\r" + line.ljust(self._length), end="", file=sys.stderr, flush=True)
        self._length = max(self._length, len(line))


def _shape(text: str) -> tuple[str, float]:
    law, colon, misfit = text.partition(":")
    if law not in LABEL_NOISE_LAWS:
        raise ValueError(
            f"--label-noise-law must be {', '.join(LABEL_NOISE_LAWS)} or one of them with "
            f":MISFIT, got {text}"
        )
    try:
        return law, float(misfit) if colon else 0.0
    except ValueError:
        raise ValueError(f"--label-noise-law must be LAW:MISFIT, got {text}") from None


def as_json(value: Any) -> str:
    """Plain types as JSON, which has no infinity: null stands for it."""
    return json.dumps(_finite(value), indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and isinf(value) else value


def _range(name: str, text: str) -> list[float]:
    ends = _numbers(name, text, ":")
    if len(ends) > 2 or ends != sorted(ends):
        raise ValueError(f"{name} must be a number or LOW:HIGH, got {text}")
    return sorted(set(ends))


def _numbers(name: str, text: str, separator: str) -> list[float]:
    try:
        return [float(part) for part in text.split(separator)]
    except ValueError:
        raise ValueError(f"{name} must be numbers with {separator!r} between, got {text}") from None
