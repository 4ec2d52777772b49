"""Results of a fit as tables: summary and prediction intervals, as text, HTML and data frames."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.inference.population_intervals import CoefficientIntervals

FloatArray = NDArray[np.float64]
WIDTH = 78
# Title, head of a table, its rows, and sentences.
Part = tuple[str, tuple[str, ...] | None, list[tuple[str, ...]], list[str]]
TABLE = "border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums"
NUMBER = "text-align:right;padding-left:1.5em;white-space:nowrap"
# A browser that is told no encoding takes one in which accents of column names are others.
OPENING = (
    '<!DOCTYPE html>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    "<title>Private linear regression</title>\n"
    '<section class="privreg-report" style="font-family:system-ui,sans-serif;line-height:1.4;'
    'max-width:60em;margin:1em auto;padding:0 1em">'
)


@dataclass(frozen=True)
class Summary:
    """Coefficients of a private fit with their standard errors, tests and intervals.

    Printed it is a table as statsmodels' `summary()`; a notebook shows it as HTML.

    Attributes
    ----------
    names : tuple of str
        Names of the coefficients, the intercept last.
    intervals : CoefficientIntervals
    facts : tuple of (str, str)
        Records, budget and the like.
    notes : tuple of str
        Meaning of the coefficients, and assumptions of the intervals.
    """

    names: tuple[str, ...]
    intervals: CoefficientIntervals
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name, without pandas."""
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


@dataclass(frozen=True)
class PredictionIntervals:
    """Mean predictions and intervals for new observations, at rows.

    Attributes
    ----------
    mean : CoefficientIntervals
        For β_0 + xᵀβ.
    lower, upper : ndarray, shape (n,)
        Ends for a new observation, within the label's declared bounds. Their middle is the robust
        fit about which the histogram of residuals was taken, not the mean.
    reason : str
        Why they are the label's bounds themselves; empty where they are not.
    """

    mean: CoefficientIntervals
    lower: FloatArray
    upper: FloatArray
    reason: str = ""

    @property
    def columns(self) -> dict[str, list[float]]:
        """Columns by statsmodels' names: mean, mean_se, mean_ci_lower and on to obs_ci_upper."""
        columns = {
            "mean": self.mean.centre,
            "mean_se": self.mean.standard_error,
            "mean_ci_lower": self.mean.lower,
            "mean_ci_upper": self.mean.upper,
            "obs_ci_lower": self.lower,
            "obs_ci_upper": self.upper,
        }
        return {name: values.tolist() for name, values in columns.items()}

    def to_frame(self) -> Any:
        """The columns as a pandas DataFrame."""
        return data_frame(self.columns)


def coefficient_columns(
    names: Sequence[str], intervals: CoefficientIntervals
) -> dict[str, list[Any]]:
    """Estimates, errors, tests and intervals by coefficient, in full precision.

    "standard_error" is that of the private fit, the root of the sum of the squares of
    "sampling_error" and "privacy_error"; "p_value", of a coefficient of 0, inverts the interval;
    "z" is NaN and "reason" says why where the interval is infinite.
    """
    size = intervals.centre.size
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


READING = (
    "Std. error: of the private fit, sampling and private noise together; by noise: the share of "
    "its square that private noise adds.",
    "P>|z| inverts the intervals, which also allow for bias and for what noise hides of the "
    "standard error: it can be larger than z alone would give.",
)


def _p_value(value: float) -> str:
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def printable(text: str) -> str:
    """A text with its control characters written out, which a column's name may hold."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def escape(text: str) -> str:
    """A printable text as HTML."""
    return html.escape(printable(text))


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first column to the left and all others to the right."""
    table = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in table
    ]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself where the page is narrower."""
    cells = "".join(f'<th scope="col" style="{NUMBER}">{escape(cell)}</th>' for cell in head)
    found = [
        f'<div style="overflow-x:auto"><table style="{TABLE}"><thead><tr>{cells}</tr></thead>'
        "<tbody>"
    ]
    for row in rows:
        inside = "".join(f'<td style="{NUMBER}">{escape(cell)}</td>' for cell in row[1:])
        name = f'<th scope="row" style="text-align:left">{escape(row[0])}</th>'
        found.append(f"<tr>{name}{inside}</tr>")
    return "\n".join([*found, "</tbody></table></div>"])


def as_text(parts: Sequence[Part]) -> str:
    """The parts one below the other."""
    lines: list[str] = []
    for title, head, rows, sentences in parts:
        lines.extend([title, "-" * len(title)])
        if head is not None:
            lines.extend(text_table(head, rows))
        lines.extend([f"- {printable(sentence)}" for sentence in sentences])
        lines.append("")
    return "\n".join(lines)


def as_html(parts: Sequence[Part], pictures: dict[str, str]) -> str:
    """A page of its own; a picture stands between the table of its part and the sentences."""
    found = [OPENING]
    for title, head, rows, sentences in parts:
        found.append(f"<h3>{escape(title)}</h3>")
        if head is not None:
            found.append(html_table(head, rows))
        found.append(pictures.get(title, ""))
        if sentences:
            listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
            found.append(f"<ul>{listed}</ul>")
    found.append("</section>")
    return "\n".join(filter(None, found))


def data_frame(columns: Mapping[str, Sequence[Any]], index: Sequence[str] | None = None) -> Any:
    """A pandas DataFrame, for those who have pandas."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError(
            "a data frame needs pandas, which is not installed: pip install pandas, or "
            "take `columns`, which has the same numbers"
        ) from None
    return DataFrame(dict(columns), index=None if index is None else list(index))
