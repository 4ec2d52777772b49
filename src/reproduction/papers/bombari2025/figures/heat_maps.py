"""Heat-maps of bombari2025 over clipping constants and rates, drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.experiment.plotting import RED, heat_map, panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCHEDULES = {0.0: r"$\tilde\eta$ constant", 0.5: r"$\tilde\eta(0)\sqrt{1-t}$"}


def fig4(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Isotropic data: mean over trials above, the deterministic equivalent below."""
    from matplotlib.colors import LogNorm

    cap = simulation.attrs["risk_cap"]
    norm = LogNorm(float(theory.risk.min()), cap)
    figure, axes = panels(2, 4, height=2.0, sharex=True, sharey=True)
    columns = [(a, n) for a in simulation.exponent.values for n in simulation.sample_size.values]
    drawn: Any = None
    for column, (exponent, sample_size) in enumerate(columns):
        gamma = simulation.attrs["dimension"] / float(sample_size)
        for row, source in enumerate((simulation, theory)):
            panel = axes[row, column]
            drawn = heat_map(
                panel,
                source.initial_rate.values,
                source["clip_constant"].values,
                np.minimum(source.risk.sel(exponent=exponent, sample_size=sample_size).values, cap),
                norm=norm,
            )
            reference_lines(panel, gamma)
        axes[0, column].set_title(f"{SCHEDULES[exponent]}, $\\gamma = {gamma:g}$")
        axes[1, column].set_xlabel(r"initial rate $\tilde\eta(0)$")
    trials = simulation.sizes["trial"]
    axes[0, 0].set_ylabel(f"mean of {trials} trials\nclipping constant $c$")
    axes[1, 0].set_ylabel("deterministic equivalent\nclipping constant $c$")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.01)
    bar.set_label(rf"excess risk $\mathcal{{R}}(\theta^p)$ (capped at {cap:g})")
    return figure


def fig5(simulation: xr.Dataset) -> Figure:
    """MNIST heat-maps."""
    return _table_heat_maps(simulation)


def fig6(simulation: xr.Dataset) -> Figure:
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


def _table_heat_maps(simulation: xr.Dataset) -> Figure:
    figure, axes = panels(2, 4, height=2.0, sharex=True, sharey=True)
    cap = simulation.attrs["loss_cap"]
    columns = [(a, n) for a in simulation.exponent.values for n in simulation.sample_size.values]
    drawn: Any = None
    for column, (exponent, sample_size) in enumerate(columns):
        cell = simulation.sel(exponent=exponent, sample_size=sample_size)
        gamma = simulation.attrs["dimension"] / float(sample_size)
        for row, statistic in enumerate((cell.loss, cell.loss_median)):
            panel = axes[row, column]
            drawn = heat_map(
                panel,
                simulation.initial_rate.values,
                simulation["clip_constant"].values,
                np.minimum(statistic.values, cap),
                vmax=cap,
                vmin=float(simulation.loss_median.min()),
            )
            reference_lines(panel, gamma)
        seeds = f"{int(cell.excluded)} of {simulation.sizes['trial']}\nseeds excluded"
        axes[0, column].set_title(f"{SCHEDULES[exponent]}, $\\gamma = {gamma:.2g}$")
        axes[0, column].text(
            # Where the loss is at its cap on every table, in the colour that shows on it.
            0.97,
            0.95,
            seeds,
            transform=axes[0, column].transAxes,
            fontsize=6.5,
            ha="right",
            va="top",
        )
        axes[1, column].set_xlabel(r"initial rate $\tilde\eta(0)$")
    axes[0, 0].set_ylabel("mean over seeds\nclipping constant $c$")
    axes[1, 0].set_ylabel("median over seeds\nclipping constant $c$")
    bar = figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.01)
    bar.set_label(f"validation loss (capped at {cap:g})")
    return figure
