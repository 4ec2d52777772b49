"""Figures of brown2024 over the clipping threshold."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Axes, Dataset, Figure
from reproduction.papers.brown2024.figures.common import points, single

STEP_COLOURS = (ORANGE, BLUE, GREEN)
STANDARD = r"$\gamma = 5\sqrt{p}$"


def shares(simulation: Dataset) -> Figure:
    """Share of gradients clipped over dimension and threshold."""
    figure, panel = single()
    dimensions = simulation.dimension.values
    share = simulation.clipped_fraction.transpose("clip_norm", "dimension")
    grid = (dimensions, simulation["clip_norm"], share)
    drawn = panel.pcolormesh(*grid, vmin=0, vmax=1, shading="gouraud", rasterized=True)
    lines = panel.contour(*grid, levels=[0.01, 0.1, 0.5], colors="white", linewidths=0.8)
    panel.clabel(lines, fmt=lambda level: f"{100 * level:g}%", fontsize=6)
    panel.plot(dimensions, 5 * np.sqrt(dimensions), color=RED, ls="--")
    panel.annotate(
        STANDARD,
        (dimensions[2], 5 * np.sqrt(dimensions[2])),
        xytext=(0, 7),
        textcoords="offset points",
        color="white",
        ha="center",
        rotation=7,
    )
    panel.set(
        xscale="log", yscale="log", xlabel="features $p$", ylabel=r"clipping threshold $\gamma$"
    )
    figure.colorbar(drawn, ax=panel, label="share of gradients clipped")
    return figure


def bias_and_variance(simulation: Dataset) -> Figure:
    """Squared error, squared bias and variance over the threshold."""
    figure, panel = single()
    at = simulation.sel(steps=50 if 50 in simulation.steps else simulation.steps[0])
    for name, colour, marker, label in (
        ("squared_error", BLACK, "o", "error"),
        ("squared_bias", RED, "s", "squared bias"),
        ("variance", BLUE, "^", "variance"),
    ):
        # An unbiased estimate of a squared bias scatters about 0, which has no place on a log axis.
        shown = (at[name] > 2 * at[f"{name}_standard_error"]).values
        points(
            panel,
            at.isel(clip_norm=shown),
            name,
            color=colour,
            marker=marker,
            ms=3,
            lw=1,
            label=label,
        )
    _percentages(panel, at)
    panel.axvline(simulation.attrs["standard_clip_norm"], color=BLACK, ls=":", lw=0.8)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel=r"clipping threshold $\gamma$ (dotted: $5\sqrt{p}$)",
        ylabel=r"mean square of $\|\theta_T - \hat\theta\|$",
        title="percentages: gradients clipped",
        ylim=(5e-5, 3),
    )
    panel.legend(loc="upper center")
    return figure


def against_shares(large: Dataset, small: Dataset) -> Figure:
    """Error against the share of gradients clipped."""
    figure, axes = panels(1, 2, height=2.4)
    for panel, simulation in zip(axes, (large, small), strict=True):
        for colour, steps in zip(STEP_COLOURS, simulation.steps.values, strict=False):
            at = simulation.sel(steps=steps)
            share, error = at.clipped_fraction.values, np.sqrt(at.squared_error.values)
            panel.plot(share, error, color=colour, marker=".", ms=3, label=f"$T = {steps}$")
            best, standard = error.argmin(), np.searchsorted(at["clip_norm"], at.standard_clip_norm)
            for place, marker, size in ((best, "o", 7), (standard, "s", 6)):
                panel.plot(share[place], error[place], marker, mfc="none", color=colour, ms=size)
        panel.axvline(0.5, color=BLACK, ls=":", lw=0.8)
        panel.plot([], [], "o", mfc="none", color="0.4", ms=7, label="least error")
        panel.plot([], [], "s", mfc="none", color="0.4", ms=6, label=STANDARD)
        title = f"$n = {simulation.attrs['sample_size']}$"
        panel.set(yscale="log", xlabel="share of gradients clipped", title=title)
    axes[0].set_ylabel(r"root mean square of $\|\theta_T - \hat\theta\|$")
    axes[1].legend(loc="upper right")
    return figure


def _percentages(panel: Axes, at: Dataset) -> None:
    """Share of gradients clipped at some thresholds, beside the curve of the error."""
    least = int(at.squared_error.values.argmin())
    for index in range(1, at.sizes["clip_norm"], 3):
        share = 100 * float(at.clipped_fraction[index])
        if share < 0.01:
            break
        side = np.sign(least - index)
        panel.annotate(
            f"{share:.0f}%" if share >= 1 else f"{share:.1g}%",
            (float(at["clip_norm"][index]), float(at.squared_error[index])),
            xytext=(4 * side, 2 if side else 6),
            textcoords="offset points",
            ha={1: "left", 0: "center", -1: "right"}[side],
            fontsize=6,
        )
