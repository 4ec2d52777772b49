"""Slopes with their intervals, and where the budget went: in HTML alone, and on Matplotlib axes.

Slopes have the units of their features. So each is drawn as the change of the label that goes with
the feature's way from its lower to its upper declared bound, which is public; the intercept, in the
units of the label at features of 0, is left to the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privreg.estimators.layout import escape, require_names
from privreg.inference.population_intervals import CoefficientIntervals
from privreg.privacy.budget import Budget
from privreg.validation import require_array, require_instance, sort

FloatArray = NDArray[np.float64]
SAMPLING, WHOLE, MARK = "#2166ac", "#f4a582", "#222222"
LEGEND = ("sampling", "private noise, and what else the interval allows for")
CHANGE = "change of the label over the feature's declared bounds"
COLUMNS = "minmax(7em, 22%) 1fr"


class Bar(NamedTuple):
    """A slope as a change of the label, and what its interval is made of."""

    name: str
    estimate: float
    lower: float
    upper: float
    sampling: float
    noise: float

    @property
    def known(self) -> bool:
        """Whether the interval is finite."""
        return bool(np.isfinite(self.upper))

    @property
    def inner(self) -> tuple[float, float]:
        """Ends of the interval that sampling alone would give, within the whole one."""
        return max(self.estimate - self.sampling, self.lower), min(
            self.estimate + self.sampling, self.upper
        )


def slope_bars(
    names: Sequence[str], intervals: CoefficientIntervals, bounds: FloatArray
) -> list[Bar]:
    """A bar for each feature."""
    require_instance("intervals", intervals, CoefficientIntervals)
    bounds = require_array("bounds", bounds, shape=(None, 2))
    require_names(names, size=intervals.centre.size)
    if len(bounds) > len(names):
        raise ValueError(f"bounds must be of {len(names)} features or fewer, got {len(bounds)}")
    width = np.ptp(bounds, axis=1)
    z = float(ndtri((1 + intervals.level) / 2))
    columns = np.stack(
        [
            intervals.centre,
            intervals.lower,
            intervals.upper,
            np.nan_to_num(z * intervals.sampling_error),
        ]
    )[:, : len(bounds)]
    scaled = (columns * width).T.tolist()
    return [
        Bar(name, estimate, lower, upper, sampling, float(noise))
        for name, (estimate, lower, upper, sampling), noise in zip(
            names, scaled, intervals.privacy_share, strict=False
        )
    ]


def html_slopes(bars: Sequence[Bar]) -> str:
    """Bars by themselves, without script or image, that follow the width of the page."""
    low, high = _reach(bars)

    def place(value: float) -> float:
        return 100 * (value - low) / (high - low)

    def span(start: float, end: float, colour: str, height: str) -> str:
        left, right = place(start), place(end)
        return (
            f'<span style="position:absolute;left:{left:.2f}%;width:{right - left:.2f}%;'
            f'top:calc(50% - {height} / 2);height:{height};background:{colour}"></span>'
        )

    rows = []
    for bar in bars:
        inside = [_line(place(0.0))]
        if bar.known:
            inside.append(span(bar.lower, bar.upper, WHOLE, "10px"))
            inside.append(span(*bar.inner, SAMPLING, "4px"))
            inside.append(
                f'<span style="position:absolute;left:calc({place(bar.estimate):.2f}% - 1px);'
                f'top:calc(50% - 8px);width:2px;height:16px;background:{MARK}"></span>'
            )
            words = f"{bar.estimate:.4g}, from {bar.lower:.4g} to {bar.upper:.4g}"
            if not np.isnan(bar.noise):
                words += f", {100 * bar.noise:.0f} % of the variance by private noise"
        else:
            words = f"{bar.estimate:.4g}, no interval"
            inside.append(
                '<span style="position:absolute;left:.3em;padding:0 .3em;background:#fff;'
                'color:#666">no interval</span>'
            )
        rows.append(_row(bar.name, words, "".join(inside), _parts(bar)))
    scale = "".join(f"<span>{each}</span>" for each in (f"{low:.4g}", CHANGE, f"{high:.4g}"))
    legend = "".join(
        f'<span style="display:inline-block;margin-right:1.5em"><span style="display:inline-block;'
        f'width:1.5em;height:{height};background:{colour};margin-right:.4em;vertical-align:middle">'
        f"</span>{words}</span>"
        for words, colour, height in zip(LEGEND, (SAMPLING, WHOLE), ("4px", "10px"), strict=True)
    )
    return (
        f'<div style="margin:.8em 0">{"".join(rows)}'
        f'<div style="display:grid;grid-template-columns:{COLUMNS} 18%;gap:0 1em;color:#444;'
        'font-size:.85em"><span></span><span style="display:flex;justify-content:space-between;'
        f'gap:.5em;text-align:center">{scale}</span><span>share of variance</span></div>'
        f'<div style="font-size:.85em;color:#444;margin-top:.4em">{legend}</div></div>'
    )


def html_budget(spending: Sequence[tuple[str, Budget]]) -> str:
    """Shares of ρ as bars."""
    rows = []
    for what, share in _shares(spending):
        inside = (
            f'<span style="position:absolute;left:0;top:calc(50% - 5px);height:10px;'
            f'width:{85 * share:.2f}%;background:{SAMPLING}"></span>'
            f'<span style="position:absolute;left:calc({85 * share:.2f}% + .4em)">'
            f"{100 * share:.1f} %</span>"
        )
        rows.append(_row(what, f"{100 * share:.1f} %", inside))
    return f'<div style="margin:.8em 0">{"".join(rows)}</div>'


def draw_slopes(bars: Sequence[Bar], axes: Any) -> None:
    """The bars on Matplotlib axes."""
    require_axes(axes)
    places = np.arange(len(bars))[::-1]
    for place, bar in zip(places, bars, strict=True):
        if not bar.known:
            note = axes.get_yaxis_transform()
            words = axes.text(0.02, place, "no interval", color="0.4", va="center", transform=note)
            words.set_backgroundcolor("white")
            continue
        axes.plot([bar.lower, bar.upper], [place, place], color=WHOLE, linewidth=7)
        axes.plot(bar.inner, [place, place], color=SAMPLING, linewidth=3)
        axes.plot([bar.estimate], [place], "|", color=MARK, markersize=12, markeredgewidth=1.5)
        if not np.isnan(bar.noise):
            share = f"{100 * bar.noise:.0f} % noise"
            axes.text(1.01, place, share, va="center", transform=axes.get_yaxis_transform())
    for words, colour, width in zip(LEGEND, (SAMPLING, WHOLE), (3, 7), strict=True):
        axes.plot([], [], color=colour, linewidth=width, label=words)
    axes.axvline(0.0, color="0.7", linewidth=1, zorder=0)
    axes.set_yticks(places, [bar.name for bar in bars])
    axes.set_ylim(-0.6, len(bars) - 0.4)
    axes.set_xlabel(CHANGE)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize="small")


def draw_budget(spending: Sequence[tuple[str, Budget]], axes: Any) -> None:
    """Shares of ρ on Matplotlib axes."""
    require_axes(axes)
    shares = _shares(spending)
    places = np.arange(len(shares))[::-1]
    axes.barh(places, [100 * share for _, share in shares], color=SAMPLING, height=0.6)
    axes.set_yticks(places, [what for what, _ in shares])
    axes.set_xlabel("% of ρ")


def require_axes(axes: Any) -> Any:
    """Axes that can be drawn on."""
    if not hasattr(axes, "plot") or not hasattr(axes, "barh"):
        raise ValueError(f"axes must be Matplotlib's, got {sort(axes)}")
    return axes


def new_axes(bars: int, spent: int) -> Any:
    """Two axes, one above the other, of a new figure of pyplot."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "a plot needs Matplotlib, which is not installed: pip install matplotlib, or "
            "take report('html'), which has the same pictures"
        ) from None
    heights = (0.35 * bars + 1.2, 0.3 * spent + 0.8)
    _, axes = pyplot.subplots(
        2, 1, figsize=(7, sum(heights)), height_ratios=heights, layout="constrained"
    )
    return axes


def _reach(bars: Sequence[Bar]) -> tuple[float, float]:
    ends = [0.0, *(each for bar in bars if bar.known for each in (bar.lower, bar.upper))]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (-1.0, 1.0)


def _shares(spending: Sequence[tuple[str, Budget]]) -> list[tuple[str, float]]:
    whole = sum(budget.rho for _, budget in spending)
    return [(what, budget.rho / whole) for what, budget in spending]


def _line(left: float) -> str:
    return (
        f'<span style="position:absolute;left:{left:.2f}%;top:0;bottom:0;'
        'border-left:1px solid #bbb"></span>'
    )


def _parts(bar: Bar) -> str:
    """A variance in its parts, sampling first."""
    if not bar.known or np.isnan(bar.noise):
        return "<span></span>"
    return (
        f'<span style="display:flex;height:10px;background:{WHOLE}">'
        f'<span style="width:{100 - 100 * bar.noise:.1f}%;background:{SAMPLING}"></span></span>'
    )


def _row(name: str, words: str, inside: str, beside: str = "") -> str:
    columns = f"{COLUMNS} 18%" if beside else COLUMNS
    return (
        f'<div style="display:grid;grid-template-columns:{columns};align-items:center;'
        f'gap:0 1em"><span style="overflow-wrap:break-word;min-width:0">{escape(name)}</span>'
        f'<span role="img" aria-label="{escape(name)}: {escape(words)}" style="position:relative;'
        f'display:block;height:1.5em">{inside}</span>{beside}</div>'
    )
