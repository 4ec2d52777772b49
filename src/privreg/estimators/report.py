"""Reports of a fit: summary, prediction intervals, text, HTML, and a picture of slopes."""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from math import isfinite
from string import Template
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ncfdtr, ndtri

from privreg.algorithms.huber_descent import HuberFit
from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.checks import rounded
from privreg.estimators.odometer import encoded, privacy_as_json
from privreg.estimators.tables import TableQuality
from privreg.inference.least_squares_intervals import (
    least_squares_law,
    robust_difference,
    robust_gain,
)
from privreg.inference.population_intervals import CoefficientIntervals
from privreg.methods.method import Fitted, Method
from privreg.privacy.budget import Budget
from privreg.version import __version__

FloatArray = NDArray[np.float64]
WIDTH = 78
# Title, head of a table, its rows, and sentences.
Part = tuple[str, tuple[str, ...] | None, list[tuple[str, ...]], list[str]]
TABLE = "border-collapse:collapse;margin:.5em 0;font-variant-numeric:tabular-nums"
NUMBER = "text-align:right;padding-left:1.5em"
CELL = f"{NUMBER};white-space:nowrap"
TITLE = "Private linear regression"
# Matplotlib writes black and white into its picture; a dark page shows its own colours instead.
PAGE = Template(f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root{{color-scheme:light dark;--page:#fff;--text:#1f2328;--faint:#59636e;--line:#d8dee4}}
@media (prefers-color-scheme:dark){{
  :root{{--page:#14181d;--text:#e3e7eb;--faint:#9aa5b1;--line:#38414b}}
  [style*="stroke: #000000"]{{stroke:currentColor!important}}
  [style*="#ffffff"]{{fill:var(--page)!important;stroke:none!important}}
}}
body{{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}}
main{{max-width:56em;margin:auto;padding:1em;overflow-wrap:anywhere}}
h1{{font-size:1.6em;margin:.5em 0}} h2{{font-size:1.15em;margin:1.6em 0 .5em}}
dl{{display:grid;grid-template-columns:repeat(auto-fill,minmax(9em,1fr));gap:.8em;margin:0}}
dt,thead{{color:var(--faint);font-size:.85em}} dd{{margin:0}} ul{{padding-left:1.2em}}
th{{font-weight:normal;vertical-align:bottom}} tbody tr{{border-top:1px solid var(--line)}}
tbody th{{position:sticky;left:0;background:var(--page);min-width:7em}}
th{{overflow-wrap:break-word}} svg{{max-width:100%;height:auto}} svg text{{fill:currentColor}}
@media (max-width:40em){{td,thead th{{padding-left:.4em!important}} table{{font-size:.72em}}
tbody th{{min-width:0}}}}
</style></head><body><main>
<h1>{TITLE}</h1>
<dl>$facts</dl>
$parts
</main></body></html>""")
READING = (
    'Standard errors cover sampling and privacy; "by noise" is the share of variance from privacy.',
    "P-values match the intervals, which also allow for bias and for noise in the standard errors.",
)
SAMPLING, WHOLE, MARK = "#2f7cc0", "#f4a582", "black"
LEGEND = ("sampling alone", "whole interval")
CHANGE = "change in label across a feature's bounds,\neach bar on its own scale (table: per unit)"
# Level of the test whether a robust fit differs.
ALARM = 0.05
# Ratio of variances from which a robust fit's standard errors are said to be half as long or less.
LEAST_GAIN = 4.0
GIVEN_WEIGHTS = "With weights, conditions on errors must hold given features and weights."


@dataclass(frozen=True)
class Summary:
    """Coefficients of a private fit with their standard errors, tests and intervals.

    It prints as a table like statsmodels' `summary()`; a notebook shows it as HTML. `names` lists
    the coefficients, intercept last. `facts` holds the number of records, the budget and the like.
    `notes` explains the numbers and states the assumptions.
    """

    names: tuple[str, ...]
    intervals: CoefficientIntervals
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[str, list[Any]]:
        """Estimates, errors, tests and intervals by coefficient, in full precision.

        The square of "standard_error" is the sum of the squares of "sampling_error" and
        "privacy_error". For infinite intervals "z" is NaN; least squares adds a "reason".
        """
        found = self.intervals
        unknown = np.full(found.centre.size, np.nan)
        # Do not divide by a standard error that noise hides.
        known = np.isfinite(found.half_width) & (found.standard_error > 0)
        numbers = {
            "estimate": found.centre,
            "standard_error": found.standard_error,
            "sampling_error": found.sampling_error,
            "privacy_error": unknown if found.privacy_error is None else found.privacy_error,
            "z": np.divide(found.centre, found.standard_error, out=unknown.copy(), where=known),
            "p_value": found.p_values(),
            "lower": found.lower,
            "upper": found.upper,
        }
        return {
            "name": list(self.names),
            **{name: values.tolist() for name, values in numbers.items()},
            "reason": list(found.reasons) or [""] * len(self.names),
        }

    @property
    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Header and rows of the printed table."""
        columns, level = self.columns, self.intervals.level
        head = ("", "estimate", "std. error", "by noise", "z", "P>|z|")
        columns["share"] = self.intervals.privacy_share.tolist()
        names = ("name", "estimate", "standard_error", "share", "z", "p_value", "lower", "upper")
        rows: list[tuple[str, ...]] = []
        for row in zip(*(columns[each] for each in names), strict=True):
            name, estimate, error, share, z, p, lower, upper = row
            noise = "" if np.isnan(share) else f"{100 * share:.0f} %"
            tests = "" if np.isnan(z) else f"{z:.2f}", "<0.001" if p < 0.0005 else f"{p:.3f}"
            middle, low, high = (rounded(each, 5, "") for each in (estimate, lower, upper))
            rows.append((name, middle, rounded(error, 3, ""), noise, *tests, low, high))
        return (*head, f"[{(1 - level) / 2:.4g}", f"{(1 + level) / 2:.4g}]"), rows

    def to_frame(self) -> Any:
        """The columns as a pandas DataFrame with the coefficients' names as its index."""
        columns = self.columns
        return data_frame(columns, index=columns.pop("name"))

    def __str__(self) -> str:
        table = text_table(*self.table)
        width = max(WIDTH, len(table[0]))
        lines = [TITLE.center(width).rstrip(), "=" * width]
        half = (len(self.facts) + 1) // 2
        sides = [*self.facts, *[("", "")] * (2 * half - len(self.facts))]
        for left, right in zip(sides[:half], sides[half:], strict=True):
            cells = [f"{name + ':' if name else '':<14}{value}" for name, value in (left, right)]
            lines.append(f"{cells[0]:<{width // 2}}{cells[1]}".rstrip())
        lines += ["=" * width, table[0], "-" * width, *table[1:], "=" * width]
        return "\n".join([*lines, *(f"- {printable(note)}" for note in self.notes)])

    def _repr_html_(self) -> str:
        return html_table(None, self.facts) + html_table(*self.table) + html_list(self.notes)


@dataclass(frozen=True)
class NamedIntervals(CoefficientIntervals):
    """Intervals for coefficients with their names."""

    names: tuple[str, ...] = ()

    def to_frame(self) -> Any:
        """Estimates and interval ends as a pandas DataFrame with the names as its index."""
        columns = {"estimate": self.centre, "lower": self.lower, "upper": self.upper}
        return data_frame(columns, index=self.names)


class WaldTest(NamedTuple):
    """Joint test of q hypotheses; `statistic` is the squared standardised distance divided by q."""

    statistic: float
    degrees_of_freedom: tuple[int, float]
    p_value: float
    reason: str = ""  # reason why no test is possible

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.0005 else f"p = {self.p_value:.3f}"
        freedom = "{} and {:.4g} degrees of freedom".format(*self.degrees_of_freedom)
        return f"{self.reason or f'F = {rounded(self.statistic, 4)} with {freedom}'}, {p}"


def joint_test(away: FloatArray, own: CoefficientIntervals, p: float | None = None) -> WaldTest:
    r"""Joint test of q hypotheses, from distances along the axes of the estimates' covariance.

    .. math::
        T^2 = \sum_i \frac{d_i^2}{\max(s_i, 1)^2}, \quad K^2 = \sum_i \frac{b_i^2}{s_i^2}, \qquad
        p = P\Big(F'_{q,\,\nu - q + 1}(K^2) \ge \frac{\nu - q + 1}{\nu q}\,T^2\Big)

    Along each axis the estimate has variance 1, distance d and an interval of standard error s and
    largest bias b. ν is the least of the degrees of freedom, as in Hotelling's test. The total bias
    is at most K errors; F′ is the noncentral F law. One hypothesis has the p of its interval.
    """
    q, nu = len(away), float(np.min(own.degrees_of_freedom))
    if not np.all(np.isfinite(own.half_width)) or nu <= q + 1:
        hidden = "noise hides the covariance of the estimates"
        return WaldTest(0.0, (q, 0.0), 1.0, next(filter(None, own.reasons), hidden))
    error, rest = own.standard_error, nu - q + 1
    squared = float(np.sum((away / np.maximum(error, 1.0)) ** 2)) if q > 1 else float(away[0] ** 2)
    if p is None:
        shift = 0.0 if own.bias is None else float(np.sum((own.bias / error) ** 2))
        point = squared * rest / (nu * q)
        tail = 1 - ncfdtr(q, rest, shift, point) if shift > 1e-6 else fdtrc(q, rest, point)
        p = float(np.clip(tail, 0.0, 1.0))
    return WaldTest(squared / q, (q, rest), p)


@dataclass(frozen=True)
class PredictionIntervals:
    """Mean predictions (β_0 + xᵀβ) and intervals for new observations, at n rows.

    `lower` and `upper` (n,) are the ends of intervals for new labels. The centres are predictions
    of the fit's robust first stage; the ends are clipped to the label's bounds. If every interval
    reaches from bound to bound, `reason` says why.
    """

    mean: CoefficientIntervals
    lower: FloatArray
    upper: FloatArray
    reason: str = ""

    @property
    def columns(self) -> dict[str, list[float]]:
        """Columns under statsmodels' names: mean, mean_se, mean_ci_lower, ..., obs_ci_upper."""
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


def data_frame(columns: dict[str, Any], index: Any = None) -> Any:
    """Create a pandas DataFrame; raise an ImportError if pandas is not installed."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise ImportError("to_frame needs pandas; `columns` has the same numbers") from None
    return DataFrame(columns, index=index)


def printable(text: str) -> str:
    """Text with control characters escaped, since a column's name may hold them."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def escape(text: str) -> str:
    """A printable text as HTML."""
    return html.escape(printable(text))


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, the first column aligned left and all others right."""
    table = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(head))]
    sides = [str.ljust, *[str.rjust] * (len(head) - 1)]
    lines = (zip(sides, row, widths, strict=True) for row in table)
    return ["  ".join(side(cell, width) for side, cell, width in line) for line in lines]


def html_list(sentences: Sequence[str]) -> str:
    """Sentences as an HTML list; an empty text if there are none."""
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{listed}</ul>" if listed else ""


def html_table(head: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> str:
    """An HTML table that scrolls sideways on a narrower page."""
    cells = "".join(f'<th scope="col" style="{NUMBER}">{escape(cell)}</th>' for cell in head or ())
    found = [f'<div style="overflow-x:auto"><table style="{TABLE}">']
    found.append(f"<thead><tr>{cells}</tr></thead><tbody>" if cells else "<tbody>")
    for row in rows:
        inside = "".join(f'<td style="{CELL}">{escape(cell)}</td>' for cell in row[1:])
        name = f'<th scope="row" style="text-align:left">{escape(row[0])}</th>'
        found.append(f"<tr>{name}{inside}</tr>")
    return "\n".join([*found, "</tbody></table></div>"])


def as_text(parts: Sequence[Part]) -> str:
    """The parts of a report as text, one below the other."""
    lines: list[str] = []
    for title, head, rows, sentences in parts:
        lines += [title, "-" * len(title), *([] if head is None else text_table(head, rows))]
        lines += [*(f"- {printable(sentence)}" for sentence in sentences), ""]
    return "\n".join(lines)


def as_html(parts: Sequence[Part], picture: str, facts: Sequence[tuple[str, str]]) -> str:
    """A complete HTML page, dated today, with the picture below the first table."""
    facts = (("Date", date.today().isoformat()), ("Version", f"privreg {__version__}"), *facts)
    listed = (f"<div><dt>{escape(k)}</dt><dd>{escape(value)}</dd></div>" for k, value in facts)
    found = []
    for title, head, rows, sentences in parts:
        found.append(f"<h2>{escape(title)}</h2>")
        if head is not None:
            found += [html_table(head, rows), picture]
            picture = ""
        found.append(html_list(sentences))
    return PAGE.substitute(facts="".join(listed), parts="\n".join(filter(None, found)))


def quality_part(quality: TableQuality) -> Part:
    """Shares of incomplete and clipped records as a part of a report."""
    sentences = []
    if quality.incomplete or not quality.clipped:
        what = "a missing, unreadable or undeclared value in a used column"
        sentences.append(f"Records with {what} are incomplete and ignored.")
    bought = {kind: own for kind in ("incomplete", "clipped") if (own := getattr(quality, kind))}
    if not bought:
        return "Records", None, [], sentences
    sentences += [
        "Numbers outside their bounds are clipped to the nearer bound.",
        "Shares are of all records, ± one standard deviation of privacy noise.",
    ]
    listed, std = quality.incomplete or quality.clipped, quality.noise_std
    rows = [(name, *(_share(own.get(name), std) for own in bought.values())) for name in listed]
    return "Records", ("", *bought), rows, sentences


def _share(share: float | None, noise_std: float) -> str:
    if share is None or noise_std > 0.5:
        return "" if share is None else "hidden by the noise"
    return f"{100 * min(max(share, 0.0), 1.0):.2f} ± {100 * noise_std:.2g} %"


def target_sentences(
    method: Method,
    fit: Fitted,
    intervals: CoefficientIntervals,
    names: Sequence[str],
    *,
    weighted: bool = False,
) -> list[str]:
    """Notes on a fit: its target, clipping and tail, and the reasons for infinite intervals."""
    same = "if errors are symmetric given the features or independent of them"
    if not method.has_intervals:
        return [f"No intervals are known for {method.name.replace('_', ' ')}: they are infinite."]
    covered = f"Intervals are for the {intervals.target} coefficients and account for all noise."
    if isinstance(fit, HuberFit):
        robust = "Robust fit: the minimiser of a Huber loss. Its slopes are those of least squares"
        return [f"{robust} {same}.", covered]
    if not isinstance(fit, LeastSquaresFit):
        return [covered]
    share = fit.tail.share_beyond(fit.tail_clip)
    found = [
        "Least squares: the best linear prediction of the mean label.",
        f"{covered} They also allow for bias from clipping.",
        f"About {round(100 * share, 1):g} % of the records had their gradients clipped (private "
        "estimate).",
        "Assumption: residuals too rare to see privately continue the visible tail, no heavier "
        "than a power law. Intervals do not cover bias from a few records far beyond this tail.",
    ]
    # The warm-up clips the weighted residual, a robust fit of weighted rows the residual itself.
    if np.isfinite(intervals.half_width).any() and not weighted:
        test, gain = robust_difference(fit), robust_gain(fit)
        differs = "differs" if test.p_value < ALARM else "agrees"
        chance = f"about {test.degrees_of_freedom} expected by chance, p = {test.p_value:.2g}"
        found.append(f"A robust fit {differs} (distance {test.statistic:.3g}; {chance}).")
        if gain >= LEAST_GAIN:
            smaller = f"would have standard errors about {gain**0.5:.2g} times smaller"
            found.append(f'target="huber" {smaller}, and the same slopes only {same}.')
    for reason in dict.fromkeys(filter(None, intervals.reasons)):
        whose = [name for name, own in zip(names, intervals.reasons, strict=True) if own == reason]
        found.append(f"No interval for {', '.join(whose)}: {reason}.")
    return found


def weight_sentences(fit: Fitted, bound: float) -> list[str]:
    """Meaning of the weights of a weighted fit."""
    noun, mean = "robust fit" if isinstance(fit, HuberFit) else "least squares", ""
    centre = fit.centre if isinstance(fit, (HuberFit, LeastSquaresFit)) else None
    if centre is not None and 5 * centre.noise_std < 1:
        share = min(max(float(centre.value[0]), 0.0), 1.0)
        mean = f"; their mean is about {bound * share:.3g}"
    clipped = f"Weights are clipped to [0, {bound:g}]{mean}."
    return [
        f"Weighted {noun}: a record counts in proportion to its weight. {clipped}",
        *([GIVEN_WEIGHTS] if isinstance(fit, HuberFit) else []),
        "The prediction before the fit assumes the largest weight for every record.",
    ]


def explained(model: Any) -> tuple[float, float]:
    r"""Residual variance tr B / tr A in units of the bounds, and R², from a least-squares fit.

    R² is S/(S + tr B / tr A) with S = (φᵀAφ - tr AV)₊; A and B are as in `LeastSquaresLaw`. φ is
    the whitened estimate without the intercept's part, and V the covariance of its error. Both
    results are NaN for another method, or if noise hides A. They are NaN for weights and persons,
    since A counts the signal of a person's rows once for each row.
    """
    fit, alone = model._fitted, model.weight_bound_ is None and model.privacy_.unit == "row"
    if not (alone and isinstance(fit, LeastSquaresFit) and np.isfinite(fit.parameters).all()):
        return np.nan, np.nan
    if np.linalg.matrix_rank(fit.whitening) < fit.parameters.size:
        return np.nan, np.nan
    law = least_squares_law(fit)
    kept, last = law.curvature, law.last_iterate(fit.sample_size)
    slopes = np.linalg.solve(fit.whitening, fit.parameters)
    if np.any(law.constant):
        along = kept @ law.constant
        slopes = slopes - law.constant * (along @ slopes) / (along @ law.constant)
    noise = float(np.sum(kept * (last.sampling + last.privacy)))
    variance = float(np.trace(law.second_moment) / np.trace(kept))
    signal = max(float(slopes @ kept @ slopes) - noise, 0.0)
    return variance, signal / (signal + variance)


def fit_as_json(model: Any, *, level: float) -> dict[str, Any]:
    """Convert a fit to plain types: coefficients, intervals, and the privacy budget spent."""
    found, quality, covariance = model.summary(level), model.quality_, model.covariance()
    columns, source = found.columns, model._source
    columns["reason"] = [reason or None for reason in columns["reason"]]
    used = (*source.columns, source.aim)
    declared = {"label": source.aim.name, "bounds": {each.name: each.declaration for each in used}}
    kept = {**vars(model), "odometer": None, "_source": None, "by_name": source.by_name}
    kept.pop("_siblings", None)
    if source.weight is not None:
        declared["weight"] = {"column": source.weight.name, "bound": source.weight.high}
    rows = zip(*columns.values(), strict=True)
    parts = {"sampling": covariance.sampling.tolist(), "privacy": covariance.privacy.tolist()}
    return {
        "coefficients": [dict(zip(columns, row, strict=True)) for row in rows],
        "covariance": parts,
        "estimates": model.target,
        "warnings": model.warnings_,
        "level": level,
        "target": found.intervals.target,
        "records": quality
        and {
            "incomplete": quality.incomplete,
            "clipped": quality.clipped,
            "noise_standard_deviation": quality.noise_std,
        },
        "privacy": privacy_as_json(model.privacy_),
        "declared": declared | ({"formula": model.formula} if model.formula else {}),
        "state": encoded(kept),
    }


class Bar(NamedTuple):
    """A slope as the change in the label across the feature's bounds, with its interval.

    `inner` is the interval for sampling alone. `noise` is privacy's share of the variance, or NaN.
    """

    name: str
    estimate: float
    lower: float
    upper: float
    inner: tuple[float, float]
    noise: float


def slope_bars(
    names: Sequence[str], intervals: CoefficientIntervals, bounds: FloatArray
) -> list[Bar]:
    """Bars for the features with `bounds` (p, 2); the intercept has another unit and no bar."""
    width = np.ptp(bounds, axis=1)
    z = float(ndtri((1 + intervals.level) / 2))
    sampling = np.nan_to_num(z * intervals.sampling_error)
    columns = np.stack([intervals.centre, intervals.lower, intervals.upper, sampling])
    scaled = (columns[:, : len(bounds)] * width).T.tolist()
    return [
        Bar(printable(name), at, low, high, (max(at - own, low), min(at + own, high)), float(noise))
        for name, (at, low, high, own), noise in zip(
            names, scaled, intervals.privacy_share, strict=False
        )
    ]


def draw(bars: Sequence[Bar], spending: Sequence[tuple[str, Budget]], axes: Sequence[Any]) -> None:
    """Draw the bars, each on its own scale, and the shares of ρ, on two Matplotlib axes."""
    slopes, budget = axes
    places = np.arange(len(bars))[::-1]
    known = [(place, bar) for place, bar in zip(places, bars, strict=True) if isfinite(bar.upper)]
    at = [place for place, _ in known]
    rows = [(bar.lower, bar.upper, *bar.inner, bar.estimate, 0.0) for _, bar in known]
    ends = np.reshape(rows, (-1, 6))
    ends -= ends[:, 4:5].copy()
    half = np.abs(ends[:, :2]).max(axis=1, keepdims=True)
    low, high, inner, outer, middle, zero = (ends / np.where(half > 0, half, 1.0)).T
    slopes.hlines(at, inner, outer, SAMPLING, linewidth=3, label=LEGEND[0], zorder=2)
    slopes.hlines(at, low, high, WHOLE, linewidth=7, label=LEGEND[1], zorder=1)
    slopes.plot(middle, at, "|", color=MARK, markersize=12, markeredgewidth=1.5, zorder=3)
    zero[np.abs(zero) > 1.0] = np.nan
    slopes.plot(zero, at, "|", color="0.5", ms=20, label="zero" * any(np.isfinite(zero)), zorder=0)
    for place, bar in zip(places, bars, strict=True):
        if not isfinite(bar.upper):
            slopes.text(0.0, place, "no interval", color="0.5", ha="center", va="center")
            continue
        for x, value, side in ((-1.1, bar.lower, "right"), (1.1, bar.upper, "left")):
            slopes.text(x, place, rounded(value, 4), ha=side, va="center")
        if not np.isnan(bar.noise):
            slopes.text(2.6, place, f"{100 * bar.noise:.0f} % noise", va="center")
    # A dollar in a name begins no formula.
    slopes.set_yticks(places, [bar.name for bar in bars], parse_math=False)
    slopes.set(xlim=(-2.5, 2.5), ylim=(-0.6, len(bars) - 0.4), xticks=(), xlabel=CHANGE)
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    slopes.legend(**above, ncols=3, frameon=False, fontsize="small")
    places, rho = np.arange(len(spending))[::-1], np.array([each.rho for _, each in spending])
    budget.barh(places, 100 * rho / np.sum(rho), color=SAMPLING, height=0.6)
    budget.set_yticks(places, [what for what, _ in spending])
    budget.set_xlabel("% of ρ")


def new_axes(bars: int, spent: int, figure: Callable[..., Any] | None = None) -> Any:
    """Two stacked axes, sized for the numbers of lines; by default in a new pyplot figure."""
    if figure is None:
        from matplotlib import pyplot

        figure = pyplot.figure
    heights = (0.35 * bars + 1.2, 0.3 * spent + 0.8)
    found = figure(figsize=(6, sum(heights)), layout="constrained")
    return found.subplots(2, 1, height_ratios=heights)


def drawn(bars: Sequence[Bar], spending: Sequence[tuple[str, Budget]]) -> str:
    """The picture of `draw` as an SVG element for a page; empty without Matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    written, unstated = StringIO(), dict.fromkeys(("Creator", "Date", "Format", "Type"))
    # Equal fits give equal pictures. A letter that the font lacks must not prevent the picture.
    equal = rc_context({"svg.hashsalt": "privreg", "svg.fonttype": "none"})
    with equal, warnings.catch_warnings(action="ignore"):
        axes = new_axes(len(bars), len(spending), Figure)
        draw(bars, spending, axes)
        axes[0].figure.savefig(written, format="svg", metadata=unstated)
    text = written.getvalue()
    return f'<div style="overflow-x:auto">{text[text.index("<svg") :]}</div>'
