"""A fit as a statistician reads it: coefficients, standard errors, tests and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privreg.estimators.frames import data_frame
from privreg.estimators.layout import (
    NUMBER,
    Part,
    escape,
    html_table,
    printable,
    require_names,
    text_table,
)
from privreg.inference.population_intervals import CoefficientIntervals
from privreg.validation import require_instance

WIDTH = 78


@dataclass(frozen=True)
class Summary:
    """Coefficients of a private fit with their standard errors, tests and intervals.

    Printed it is a table as statsmodels' `summary()`; a notebook shows it as HTML.

    Attributes
    ----------
    names : tuple of str
        Of the coefficients, the intercept last.
    intervals : CoefficientIntervals
    facts : tuple of (str, str)
        Of the fit: records, budget and the like.
    notes : tuple of str
        What the coefficients are, and what the intervals rest on.
    """

    names: tuple[str, ...]
    intervals: CoefficientIntervals
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Columns of equal length: what `to_frame` holds, without pandas."""
        return coefficient_columns(self.names, self.intervals)

    def to_frame(self) -> Any:
        """The columns as a pandas DataFrame with the coefficients' names as its index."""
        columns = self.columns
        return data_frame(columns, index=columns.pop("name"))

    def __str__(self) -> str:
        head, rows = coefficient_rows(self.names, self.intervals)
        table = text_table(head, rows)
        width = max(WIDTH, len(table[0]))
        lines = ["Private linear regression".center(width).rstrip(), "=" * width]
        half = (len(self.facts) + 1) // 2
        sides = [*self.facts, *[("", "")] * (2 * half - len(self.facts))]
        for left, right in zip(sides[:half], sides[half:], strict=True):
            cells = [f"{name + ':' if name else '':<14}{value}" for name, value in (left, right)]
            lines.append(f"{cells[0]:<{width // 2}}{cells[1]}".rstrip())
        lines += ["=" * width, table[0], "-" * width, *table[1:], "=" * width]
        return "\n".join([*lines, *(f"- {printable(note)}" for note in self.notes)])

    def _repr_html_(self) -> str:
        head, rows = coefficient_rows(self.names, self.intervals)
        facts = "".join(
            f'<tr><th scope="row" style="text-align:left">{escape(name)}</th>'
            f'<td style="{NUMBER}">{escape(value)}</td></tr>'
            for name, value in self.facts
        )
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<table>{facts}</table>{html_table(head, rows)}<ul>{notes}</ul>"


def coefficient_columns(
    names: Sequence[str], intervals: CoefficientIntervals
) -> dict[str, list[Any]]:
    """Estimates, errors, tests and intervals by coefficient, in full precision."""
    require_instance("intervals", intervals, CoefficientIntervals)
    size = intervals.centre.size
    require_names(names, size=size)
    unknown = np.full(size, np.nan)
    # A standard error that noise hides is not one to divide by.
    known = np.isfinite(intervals.half_width) & (intervals.standard_error > 0)
    z = np.full(size, np.nan)
    np.divide(intervals.centre, intervals.standard_error, out=z, where=known)
    private = unknown if intervals.privacy_error is None else intervals.privacy_error
    numbers = {
        "estimate": intervals.centre,
        "standard_error": intervals.standard_error,
        "sampling_error": intervals.sampling_error,
        "privacy_error": private,
        "z": z,
        "p_value": intervals.p_values(),
        "lower": intervals.lower,
        "upper": intervals.upper,
    }
    return {
        "name": list(names),
        **{name: values.tolist() for name, values in numbers.items()},
        "reason": list(intervals.reasons) or [""] * size,
    }


def coefficient_rows(
    names: Sequence[str], intervals: CoefficientIntervals
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of the printed table of coefficients."""
    columns = coefficient_columns(names, intervals)
    ends = ((1 - intervals.level) / 2, (1 + intervals.level) / 2)
    head: tuple[str, ...] = (
        *("", "estimate", "std. error", "by noise", "z", "P>|z|"),
        *(f"[{ends[0]:.4g}", f"{ends[1]:.4g}]"),
    )
    rows: list[tuple[str, ...]] = [
        (
            columns["name"][k],
            f"{columns['estimate'][k]:.5g}",
            f"{columns['standard_error'][k]:.3g}",
            "" if np.isnan(share) else f"{100 * share:.0f} %",
            "" if np.isnan(columns["z"][k]) else f"{columns['z'][k]:.2f}",
            _p_value(columns["p_value"][k]),
            f"{columns['lower'][k]:.5g}",
            f"{columns['upper'][k]:.5g}",
        )
        for k, share in enumerate(intervals.privacy_share)
    ]
    return head, rows


def summary_part(names: Sequence[str], intervals: CoefficientIntervals, notes: list[str]) -> Part:
    """The table of coefficients as a part of a report."""
    return "Coefficients", *coefficient_rows(names, intervals), [*notes, *READING]


READING = (
    "Std. error: of the private fit, sampling and private noise together; by noise: the share of "
    "its square that private noise adds.",
    "P>|z| inverts the intervals, which also allow for bias and for what noise hides of the "
    "standard error: it can be larger than z alone would give.",
)


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.0005 else f"{value:.3f}"
