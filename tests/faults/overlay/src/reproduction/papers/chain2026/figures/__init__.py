"""Figures of chain2026."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.engine.plotting import panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def fig1(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Both slopes."""
    figure, panel = panels(1, 1, height=1.5)
    panel.plot([float(theory.slope), float(simulation.slope)], marker="o")
    return figure
