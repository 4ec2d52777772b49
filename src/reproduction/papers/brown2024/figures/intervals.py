"""Figures of brown2024 on confidence intervals, drawn from artifacts alone."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, RED
from reproduction.engine.recipe import Axes, Dataset, Figure
from reproduction.papers.brown2024.figures.common import exact_line, single

# Colour and marker of a construction, and a shift that keeps bars apart.
STYLES = {
    "batch_means": (BLUE, "o", 0.96),
    "checkpoints": (RED, "s", 1.0),
    "independent_runs": (GREEN, "^", 1.04),
}


def coverage(intervals: Dataset) -> Figure:
    """Coverage over the number of gradients."""
    figure, panel = single()
    _draw(panel, intervals, "coverage", "exact_coverage")
    panel.axhline(intervals.attrs["level"], color=BLACK, ls=":", lw=0.8)
    panel.set(ylabel=r"coverage of $\hat\theta_j$", ylim=(0.78, 1.005))
    panel.legend(loc="lower right")
    return figure


def length(intervals: Dataset) -> Figure:
    """Length over the number of gradients."""
    figure, panel = single()
    _draw(panel, intervals, "length", "expected_length")
    textbook = float(intervals.ols_length)
    panel.axhline(textbook, color=BLACK, ls="--", lw=0.9, label=r"least squares, for $\theta^*_j$")
    panel.set(ylabel="length of the interval", ylim=(0, None))
    panel.legend(loc="upper left")
    return figure


def _draw(panel: Axes, intervals: Dataset, simulated: str, exact: str) -> None:
    for name, (colour, marker, shift) in STYLES.items():
        middle, expected = intervals[f"{name}_{simulated}"], intervals[f"{name}_{exact}"]
        gradients = middle[middle.dims[0]].values
        low, high = intervals[f"{name}_{simulated}_percentiles"].transpose("percentile", ...)
        panel.errorbar(
            gradients * shift,
            middle,
            yerr=np.maximum([middle - low, high - middle], 0),
            color=colour,
            marker=marker,
            ms=3.5,
            ls="none",
            elinewidth=0.8,
            capsize=2,
            label=name.replace("_", " "),
        )
        panel.plot(gradients, expected, color=colour, lw=0.9)
    exact_line(panel)
    panel.set(xscale="log", xlabel="total number of gradients $N$")
    ticks = intervals.gradients.values
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
