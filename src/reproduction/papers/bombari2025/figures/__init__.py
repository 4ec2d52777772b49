"""Figures of bombari2025, each drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.papers.bombari2025.figures.heat_maps import SCHEDULES, fig4, fig5, fig6
from reproduction.papers.bombari2025.figures.sample_sizes import fig7, fig8
from reproduction.papers.bombari2025.figures.scaling import fig2, fig3, fig10, fig11, fig12, fig13

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "fig7",
    "fig8",
    "fig9",
    "fig10",
    "fig11",
    "fig12",
    "fig13",
]

SPECTRA = {"isotropic": r"$\Sigma = I$", "uniform": r"$\Sigma \sim U[0, 2]$"}
DIMENSION_COLOURS = (ORANGE, GREEN, BLUE)


def fig1(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Risk along the path at three dimensions, and the deterministic equivalent."""
    figure, axes = panels(1, 4, height=2.1, sharey=True)
    order = [(a, s) for a in theory.exponent.values for s in theory.spectrum.values]
    for panel, (exponent, spectrum) in zip(axes, order, strict=True):
        _trajectory_panel(panel, theory, simulation, {"spectrum": spectrum, "exponent": exponent})
        panel.set(
            title=f"{SCHEDULES[exponent]}, {SPECTRA[spectrum]}", xlabel="$t = k/n$", ylim=(0, 0.62)
        )
    axes[0].set_ylabel(r"excess risk $\mathcal{R}$")
    axes[-1].legend(loc="upper right")
    return figure


def fig9(theory: xr.Dataset) -> Figure:
    """Clipping factors against the normalised clipping constant."""
    figure, axes = panels(1, 2, height=2.2)
    ratio = theory.ratio.values
    factors = (
        (axes[0], theory.descent_factor.values, r"\mu_c", "descent", np.sqrt(2 / np.pi)),
        (axes[1], theory.variance_factor.values, r"\nu_c", "variance", None),
    )
    for panel, factor, symbol, name, limit in factors:
        panel.plot(ratio, factor, color=BLUE, label=f"${symbol}$")
        panel.plot(ratio, factor / ratio, color=RED, ls="--", label=f"${symbol} / c'$")
        if limit is not None:
            panel.axhline(limit, color=BLACK, lw=0.6, ls=":", label=r"$\sqrt{2/\pi}$")
        panel.set(
            xlabel=r"$c' = c / \sqrt{2\mathcal{R} + \zeta^2}$",
            ylabel=f"{name} factor",
            xlim=(0, ratio[-1]),
            ylim=(0, 1.02),
        )
        panel.legend(loc="center right")
    return figure


def _trajectory_panel(
    panel: Axes, theory: xr.Dataset, simulation: xr.Dataset, where: dict[str, Any]
) -> None:
    times = simulation.time.values
    dimensions = simulation.dimension.values
    for colour, dimension in zip(DIMENSION_COLOURS, dimensions, strict=False):
        at = simulation.sel(**where, dimension=dimension)
        mean, spread = at.risk_mean.values, at.risk_spread.values
        panel.plot(times, mean, color=colour, lw=0.8, label=f"$d = {dimension}$")
        panel.fill_between(times, mean - spread, mean + spread, color=colour, alpha=0.25, lw=0)
        if where["exponent"] == 0:
            final, final_spread = float(at.final_risk), float(at.final_risk_spread)
            panel.plot([1.02, 1.1], [final, final], color=colour, lw=0.8)
            panel.fill_between(
                [1.02, 1.1],
                final - final_spread,
                final + final_spread,
                color=colour,
                alpha=0.25,
                lw=0,
            )
    curve = theory.sel(**where)
    panel.plot(theory.time, curve.risk, color=BLACK, lw=1.2, label="ODE")
    if where["exponent"] == 0:
        panel.plot([1.02, 1.1], [float(curve.final_risk)] * 2, color=RED, lw=1.2)
        panel.annotate(
            "output\nnoise",
            (1.06, float(curve.final_risk)),
            xytext=(0.95, 0.42),
            ha="center",
            fontsize=6,
            color=RED,
            arrowprops={"arrowstyle": "-", "color": RED, "lw": 0.5},
        )
