"""Heat-maps of bombari2025 over clipping constants and rates, drawn from artifacts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.engine.plotting import RED, heat_map, panels
from reproduction.engine.recipe import Axes, DataArray, Dataset, Figure

if TYPE_CHECKING:
    from matplotlib.colors import Normalize

SCHEDULES = {0.0: r"$\tilde\eta$ constant", 0.5: r"$\tilde\eta(0)\sqrt{1-t}$"}


def fig4(theory: Dataset, simulation: Dataset) -> Figure:
    """Isotropic data: mean over trials above, the deterministic equivalent below."""
    from matplotlib.colors import LogNorm

    cap = simulation.attrs["risk_cap"]
    rows = {
        f"mean of {simulation.sizes['trial']} trials": simulation.risk,
        "deterministic equivalent": theory.risk,
    }
    norm = LogNorm(float(theory.risk.min()), cap)
    figure, _ = _maps(rows, simulation, norm, r"excess risk $\mathcal{R}(\theta^p)$")
    return figure


def fig5(simulation: Dataset) -> Figure:
    """MNIST heat-maps."""
    return _table_heat_maps(simulation)


def fig6(simulation: Dataset) -> Figure:
    """California housing heat-maps."""
    return _table_heat_maps(simulation)


def reference_lines(panel: Axes, gamma: float) -> None:
    """The paper's dashed lines: c = 1, the cap on the rate, and the best settings' line."""
    limits = panel.get_xlim(), panel.get_ylim()
    line: dict[str, Any] = {"color": RED, "ls": "--", "lw": 0.8}
    panel.axhline(1, **line)
    panel.axvline(2 / gamma, **line)
    if gamma < 1:
        rates = np.asarray(limits[0])
        panel.plot(rates, np.log(1 / gamma) / rates, **line)
    panel.set(xlim=limits[0], ylim=limits[1])


def _table_heat_maps(simulation: Dataset) -> Figure:
    from matplotlib.colors import Normalize

    rows = {"mean over seeds": simulation.loss, "median over seeds": simulation.loss_median}
    norm = Normalize(float(simulation.loss_median.min()), simulation.attrs["loss_cap"])
    figure, axes = _maps(rows, simulation, norm, "validation loss")
    excluded = simulation.excluded.transpose("exponent", "sample_size").values
    for panel, count in zip(axes[0], excluded.flat, strict=True):
        # In the title, since no colour of type shows on every cell.
        seeds = f"{count} of {simulation.sizes['trial']} seeds left out"
        panel.set_title(f"{panel.get_title()}\n{seeds}")
    return figure


def _maps(
    rows: Mapping[str, DataArray], about: Dataset, norm: Normalize, meaning: str
) -> tuple[Figure, Any]:
    """One row of panels an array, one column a schedule and a sample size; shape (2, 4)."""
    figure, axes = panels(2, 4, height=2.0, sharex=True, sharey=True)
    columns = [(a, n) for a in about.exponent.values for n in about.sample_size.values]
    for (name, array), line in zip(rows.items(), axes, strict=True):
        line[0].set_ylabel(f"{name}\nclipping constant $c$")
        for panel, (exponent, sample_size) in zip(line, columns, strict=True):
            values = array.sel(exponent=exponent, sample_size=sample_size)
            drawn = heat_map(
                panel,
                about.initial_rate.values,
                about["clip_constant"].values,
                values.transpose("clip_constant", "initial_rate").clip(max=norm.vmax).values,
                norm=norm,
            )
            reference_lines(panel, about.attrs["dimension"] / float(sample_size))
    for (exponent, sample_size), top, bottom in zip(columns, *axes, strict=True):
        gamma = about.attrs["dimension"] / float(sample_size)
        top.set_title(f"{SCHEDULES[exponent]}, $\\gamma = {gamma:.2g}$")
        bottom.set_xlabel(r"initial rate $\tilde\eta(0)$")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.01)
    bar.set_label(f"{meaning} (capped at {norm.vmax:g})")
    return figure, axes
