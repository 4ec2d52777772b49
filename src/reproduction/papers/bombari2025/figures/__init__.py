"""Figures of bombari2025, each drawn from artifacts alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Axes, Dataset, Figure
from reproduction.papers.bombari2025.figures.heat_maps import SCHEDULES, fig4, fig5, fig6
from reproduction.papers.bombari2025.figures.sample_sizes import SPECTRA, band, fig7, fig8
from reproduction.papers.bombari2025.figures.scaling import fig2, fig3, fig10, fig11, fig12, fig13

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

DIMENSION_COLOURS = (ORANGE, GREEN, BLUE)


def fig1(theory: Dataset, simulation: Dataset) -> Figure:
    """Risk along the path at three dimensions, above; less the deterministic equivalent, below."""
    figure, axes = panels(2, 4, height=1.9, sharex=True, sharey="row")
    order = [(a, s) for a in theory.exponent.values for s in theory.spectrum.values]
    for above, below, (exponent, spectrum) in zip(*axes, order, strict=True):
        where = {"spectrum": spectrum, "exponent": exponent}
        _trajectory_panel(above, theory, simulation, where)
        _distance_panel(below, theory, simulation, where)
        above.set_title(f"{SCHEDULES[exponent]}, {SPECTRA[spectrum]}")
        below.set_xlabel("$t = k/n$")
    # The band of the smallest dimension may leave the panel, so that the others fill it.
    reach = 3 * float(simulation.risk_spread.isel(dimension=1).max())
    axes[0, 0].set(ylabel=r"excess risk $\mathcal{R}$", ylim=(0, 0.62))
    axes[1, 0].set(ylabel=r"$\mathcal{R}$ less that of the ODE", ylim=(-reach, reach))
    axes[0, -1].legend(loc="upper right")
    return figure


def fig9(theory: Dataset) -> Figure:
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
    panel: Axes, theory: Dataset, simulation: Dataset, where: dict[str, Any]
) -> None:
    curve = theory.sel(where)
    for at, colour in _by_dimension(simulation.sel(where)):
        label = f"$d = {int(at.dimension)}$"
        band(panel, at.time.values, at.risk_mean, at.risk_spread, color=colour, label=label)
    panel.plot(theory.time, curve.risk, color=BLACK, lw=1.2, label="ODE")
    if where["exponent"] == 0:
        _output_noise(panel, float(curve.final_risk), simulation.sel(where))


def _distance_panel(
    panel: Axes, theory: Dataset, simulation: Dataset, where: dict[str, Any]
) -> None:
    """Bands of three dimensions lie on one another until the curve is taken off."""
    times = simulation.time.values
    curve = np.interp(times, theory.time.values, theory.sel(where).risk.values)
    for at, colour in _by_dimension(simulation.sel(where)):
        # Right after a step: between two of them the risk stays and the curve does not.
        fresh = np.flatnonzero(np.diff(at.risk_mean, prepend=np.nan))
        distance, spread = (at.risk_mean - curve)[fresh], at.risk_spread[fresh]
        band(panel, times[fresh], distance, spread, color=colour, alpha=0.4)
    panel.axhline(0, color=BLACK, lw=0.8)


def _by_dimension(simulation: Dataset) -> Iterator[tuple[Dataset, str]]:
    for dimension, colour in zip(simulation.dimension.values, DIMENSION_COLOURS, strict=False):
        yield simulation.sel(dimension=dimension), colour


def _output_noise(panel: Axes, predicted: float, simulation: Dataset) -> None:
    """The private output beyond t = 1, dimensions side by side."""
    for place, (at, colour) in enumerate(_by_dimension(simulation)):
        panel.errorbar(
            [1.06 + 0.06 * place],
            [float(at.final_risk)],
            yerr=[float(at.final_risk_spread)],
            color=colour,
            marker="o",
            ms=2,
            lw=1,
        )
    panel.plot([1.03, 1.21], [predicted, predicted], color=RED, lw=1.2)
    panel.annotate(
        "output\nnoise",
        (1.12, predicted),
        xytext=(1.0, 0.42),
        ha="center",
        fontsize=6,
        color=RED,
        arrowprops={"arrowstyle": "-", "color": RED, "lw": 0.5},
    )
