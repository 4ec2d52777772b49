"""Figures of brown2024 on confidence intervals, drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.plotting import BLACK, BLUE, GREEN, RED, panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

# Construction, colour, marker, and a shift that keeps bars apart.
STYLES = (
    ("batch_means", "gradients", BLUE, "o", 0.96),
    ("checkpoints", "gradients", RED, "s", 1.0),
    ("independent_runs", "long_gradients", GREEN, "^", 1.04),
)


def fig5(intervals: xr.Dataset) -> Figure:
    """Coverage over the number of gradients."""
    return _coverage(intervals)


def fig10(intervals: xr.Dataset) -> Figure:
    """The same with anisotropic data."""
    return _coverage(intervals)


def fig6(intervals: xr.Dataset) -> Figure:
    """Length over the number of gradients."""
    return _length(intervals)


def fig11(intervals: xr.Dataset) -> Figure:
    """The same with anisotropic data."""
    return _length(intervals)


def _coverage(intervals: xr.Dataset) -> Figure:
    figure, panel = _draw(intervals, "coverage", "exact_coverage")
    panel.axhline(intervals.attrs["level"], color=BLACK, ls=":", lw=0.8)
    panel.set(ylabel=r"coverage of $\hat\theta_j$", ylim=(0.78, 1.005))
    panel.legend(loc="lower right")
    return figure


def _length(intervals: xr.Dataset) -> Figure:
    figure, panel = _draw(intervals, "length", "expected_length")
    panel.axhline(
        float(intervals.ols_length),
        color=BLACK,
        ls="--",
        lw=0.9,
        label=r"least squares, for $\theta^*_j$",
    )
    panel.set(ylabel="length of the interval", ylim=(0, None))
    panel.legend(loc="upper left")
    return figure


def _draw(intervals: xr.Dataset, simulated: str, exact: str) -> tuple[Figure, Any]:
    figure, panel = panels(1, 1, height=2.6)
    figure.set_size_inches(4.2, 2.6)
    for name, axis, colour, marker, shift in STYLES:
        gradients = intervals[axis].values
        middle = intervals[f"{name}_{simulated}"].values
        low, high = intervals[f"{name}_{simulated}_percentiles"].values
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
        panel.plot(gradients, intervals[f"{name}_{exact}"], color=colour, lw=0.9)
    panel.plot([], [], color="0.4", lw=0.9, label="exact, without clipping")
    panel.set(xscale="log", xlabel="total number of gradients $N$")
    ticks = intervals.gradients.values
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    return figure, panel
