"""Figures of brown2024, each drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, RED, SKY, panels
from reproduction.papers.brown2024.figures.intervals import fig5, fig6, fig10, fig11
from reproduction.papers.brown2024.figures.sizes import fig2, fig8

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11"]

PRIMARY = "data_max_approximate_add_remove"
LARGE_BUDGET = "wide_zcdp_replace_one_large_budget"
WIDE = "wide_zcdp_replace_one"
STEP_COLOURS = (ORANGE, BLUE, GREEN)
COLUMN_WIDE = 4.2  # inches


def fig1(simulation: xr.Dataset) -> Figure:
    """Errors as dimension and sample size grow together."""
    return _fixed_ratio(simulation)


def fig9(simulation: xr.Dataset) -> Figure:
    """The same with anisotropic data."""
    return _fixed_ratio(simulation)


def fig3(simulation: xr.Dataset) -> Figure:
    """Share of gradients clipped over dimension and threshold."""
    figure, panel = _column(2.6)
    share = simulation.clipped_fraction
    clip_norms, dimensions = simulation["clip_norm"].values, simulation.dimension.values
    drawn = panel.pcolormesh(
        dimensions,
        clip_norms,
        share.values.T,
        cmap="viridis",
        vmin=0,
        vmax=1,
        shading="gouraud",
        rasterized=True,
    )
    lines = panel.contour(
        dimensions,
        clip_norms,
        share.values.T,
        levels=[0.01, 0.1, 0.5],
        colors="white",
        linewidths=0.8,
    )
    panel.clabel(lines, fmt=lambda level: f"{100 * level:g}%", fontsize=6)
    panel.plot(dimensions, 5 * np.sqrt(dimensions), color=RED, ls="--")
    panel.annotate(
        r"$\gamma = 5\sqrt{p}$",
        (dimensions[2], 5 * np.sqrt(dimensions[2])),
        xytext=(0, 7),
        textcoords="offset points",
        color="white",
        ha="center",
        rotation=14,
    )
    panel.set(
        xscale="log", yscale="log", xlabel="features $p$", ylabel=r"clipping threshold $\gamma$"
    )
    bar = figure.colorbar(drawn, ax=panel)
    bar.set_label("share of gradients clipped")
    return figure


def fig4(simulation: xr.Dataset) -> Figure:
    """Squared error, squared bias and variance over the threshold."""
    figure, panel = _column(2.6)
    at = simulation.sel(steps=50) if 50 in simulation.steps else simulation.isel(steps=0)
    clip_norms = at["clip_norm"].values
    for name, colour, marker, label in (
        ("squared_error", BLACK, "o", "error"),
        ("squared_bias", RED, "s", "squared bias"),
        ("variance", BLUE, "^", "variance"),
    ):
        values, error = at[name].values, at[f"{name}_standard_error"].values
        # An unbiased estimate of a squared bias scatters about 0, which has no place on a log axis.
        shown = values > 2 * error
        panel.errorbar(
            clip_norms[shown],
            values[shown],
            yerr=error[shown],
            color=colour,
            marker=marker,
            ms=3,
            lw=1,
            elinewidth=0.6,
            label=label,
        )
    for index in range(1, len(clip_norms), 3):
        panel.annotate(
            _percent(float(at.clipped_fraction[index])),
            (clip_norms[index], float(at.squared_error[index])),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=6,
        )
    panel.axvline(simulation.attrs["standard_clip_norm"], color=BLACK, ls=":", lw=0.8)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel=r"clipping threshold $\gamma$ (dotted: $5\sqrt{p}$)",
        ylabel=r"of $\theta_T$ about $\hat\theta$, squared",
        title="percentages: gradients clipped",
        ylim=(1e-4, 3),
    )
    panel.legend(loc="upper center")
    return figure


def fig7(large: xr.Dataset, small: xr.Dataset) -> Figure:
    """Error against the share of gradients clipped."""
    figure, axes = panels(1, 2, height=2.4)
    for panel, simulation in zip(axes, (large, small), strict=True):
        clip_norms = simulation["clip_norm"].values
        standard = int(np.argmin(np.abs(clip_norms - simulation.attrs["standard_clip_norm"])))
        for colour, steps in zip(STEP_COLOURS, simulation.steps.values, strict=False):
            at = simulation.sel(steps=steps)
            share, error = at.clipped_fraction.values, np.sqrt(at.squared_error.values)
            best = int(np.argmin(error))
            panel.plot(share, error, color=colour, marker=".", ms=3, label=f"$T = {steps}$")
            panel.plot(share[best], error[best], "o", mfc="none", color=colour, ms=7)
            panel.plot(share[standard], error[standard], "s", mfc="none", color=colour, ms=6)
        panel.axvline(0.5, color=BLACK, ls=":", lw=0.8)
        panel.plot([], [], "o", mfc="none", color="0.4", ms=7, label="least error")
        panel.plot([], [], "s", mfc="none", color="0.4", ms=6, label=r"$\gamma = 5\sqrt{p}$")
        panel.set(
            yscale="log",
            xlabel="share of gradients clipped",
            title=_samples_title(simulation),
        )
    axes[0].set_ylabel(r"root mean square of $\|\theta_T - \hat\theta\|$")
    axes[1].legend(loc="upper right")
    return figure


def _fixed_ratio(simulation: xr.Dataset) -> Figure:
    figure, panel = _column(2.6)
    dimensions = simulation.dimension.values

    def draw(name: str, colour: str, marker: str, label: str, **where: Any) -> None:
        panel.errorbar(
            dimensions,
            simulation[name].sel(where).values,
            yerr=2 * simulation[f"{name}_standard_error"].sel(where).values,
            color=colour,
            marker=marker,
            ms=3.5,
            elinewidth=0.7,
            label=label,
        )

    others = simulation.adassp_privacy_error.drop_sel(variant=[LARGE_BUDGET, WIDE]).values
    panel.fill_between(
        dimensions, others.min(axis=1), others.max(axis=1), color=SKY, alpha=0.3, lw=0
    )
    draw("adassp_privacy_error", BLUE, "^", "AdaSSP (band: other choices)", variant=PRIMARY)
    draw("privacy_error", RED, "o", "DP-GD")
    draw("sampling_error", BLACK, "s", "least squares")
    panel.plot(
        dimensions,
        simulation.private_error,
        color=RED,
        ls=":",
        lw=0.9,
        label=r"DP-GD, to $\theta^*$",
    )
    panel.set(
        xscale="log",
        xlabel="features $p$, with $n = 100\\,p$",
        ylabel=r"$\ell_2$ error",
        ylim=(0, 1.3),
        xticks=dimensions,
    )
    panel.set_xticklabels([f"{value:g}" for value in dimensions])
    panel.minorticks_off()
    panel.legend(loc="upper left", ncols=2, columnspacing=1.0)
    return figure


def _column(height: float) -> tuple[Figure, Axes]:
    figure, panel = panels(1, 1, height=height)
    figure.set_size_inches(COLUMN_WIDE, height)
    return figure, panel


def _samples_title(simulation: xr.Dataset) -> str:
    return f"$n = {simulation.attrs['sample_size']}$"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.01 else f"{100 * share:.1g}%"
