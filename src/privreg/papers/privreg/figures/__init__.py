"""Figures of privreg's own promises, each drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privreg.experiment.plotting import BLACK, BLUE, ORANGE, panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def audits(simulation: xr.Dataset) -> Figure:
    """Attained share of the promise, a line each algorithm, controls below."""
    figure, axes = panels(1, 1, height=4.0)
    names: list[str] = []
    for kind, colour in (("algorithm", BLUE), ("control", ORANGE)):
        shares = simulation[f"{kind}_share"].values
        places = len(names) + np.arange(len(shares))
        axes.hlines(places, 0, shares, color="0.8", lw=0.8, zorder=0)
        axes.plot(shares, places, color=colour, ls="", marker="o", ms=4, label=f"{kind}s")
        names += [str(name) for name in simulation[kind].values]
    axes.axvline(1.0, color=BLACK, lw=0.8)
    axes.axvspan(0.6, 1.0, color="0.93", zorder=-1)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlim=(-0.03, None), xlabel=r"loss that is certain (99.9 %) over the promised $\mu$")
    axes.legend(loc="upper right")
    return figure
