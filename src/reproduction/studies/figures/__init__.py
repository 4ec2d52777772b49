"""Figures of the studies, each drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduction.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, panels
from reproduction.studies.figures.comparison import comparison as comparison

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


def population_coverage(simulation: xr.Dataset) -> Figure:
    """Coverage, and length over the oracle's, of every setting; bands are what is promised."""
    figure, (left, right) = panels(1, 2, height=4.6, sharey=True)
    found = simulation.stack(setting=("case", "error_law", "feature_law"))
    places = np.arange(found.sizes["setting"])
    for axes, name, band, label in (
        (left, "covered", (0.93, 0.97), "coverage of the population's slopes"),
        (right, "length_ratio", (1.0, 1.2), "length over the oracle's"),
    ):
        axes.axvspan(*band, color="0.9", zorder=-1)
        errors = 1.96 * found[f"{name}_standard_error"].values
        axes.errorbar(
            found[name].values, places, xerr=errors, color=BLUE, ls="", marker="o", ms=3, lw=0.8
        )
        axes.set_xlabel(label)
    left.axvline(0.95, color=BLACK, lw=0.8)
    cases = [str(case) for case, _, _ in found.setting.values]
    names = [f"{features}; {errors}" for _, errors, features in found.setting.values]
    left.set_yticks(places, names, fontsize=5)
    left.invert_yaxis()
    style = {"fontsize": 6, "ha": "left", "va": "bottom"}
    for at in [k for k in places if k == 0 or cases[k] != cases[k - 1]]:
        right.text(0.01, at - 0.6, cases[at], transform=right.get_yaxis_transform(), **style)
        for axes in (left, right):
            axes.axhline(at - 0.5, color="0.8", lw=0.5)
    return figure


def prediction(simulation: xr.Dataset) -> Figure:
    """Predicted against simulated errors, and their ratios with standard errors."""
    figure, axes = panels(1, 2, height=3.2)
    laws = [str(name).partition(",")[0] for name in simulation.setting.values]
    for law, colour in zip(dict.fromkeys(laws), (BLACK, BLUE, ORANGE, GREEN), strict=False):
        chosen = np.flatnonzero(np.array(laws) == law)
        axes[0].plot(
            simulation.simulated_risk.values[chosen],
            simulation.predicted_risk.values[chosen],
            ls="",
            marker="o",
            ms=3.5,
            color=colour,
            label=law.replace("_", " "),
        )
        axes[1].errorbar(
            simulation.simulated_risk.values[chosen],
            simulation.ratio.values[chosen],
            simulation.ratio_standard_error.values[chosen],
            ls="",
            marker="o",
            ms=3.5,
            lw=0.8,
            color=colour,
        )
    ends = [simulation.simulated_risk.values.min(), simulation.simulated_risk.values.max()]
    axes[0].plot(ends, ends, color="0.6", lw=0.8, zorder=0)
    axes[0].set(xscale="log", yscale="log", ylabel="predicted excess risk")
    axes[0].legend(loc="upper left")
    axes[1].axhspan(0.9, 1.1, color="0.93", zorder=-1)
    axes[1].axhline(1.0, color="0.6", lw=0.8, zorder=0)
    axes[1].set(xscale="log", ylabel="predicted over simulated")
    for each in axes:
        each.set_xlabel("simulated excess risk")
    return figure


def planning(simulation: xr.Dataset, california: xr.Dataset, digits: xr.Dataset) -> Figure:
    """Regrets in increasing order, and errors at budgets that were found for a target."""
    figure, axes = panels(1, 2, height=2.8)
    regret, error, names = (
        np.concatenate([each[variable].values for each in (simulation, california, digits)])
        for variable in ("regret", "regret_standard_error", "problem")
    )
    order = np.argsort(regret)
    synthetic = np.char.startswith(names[order].astype(str), "synthetic")
    for chosen, name, colour in ((synthetic, "synthetic", BLUE), (~synthetic, "tables", GREEN)):
        axes[0].errorbar(
            1 + np.flatnonzero(chosen),
            regret[order][chosen],
            error[order][chosen],
            color=colour,
            ls="",
            marker="o",
            ms=3.5,
            label=name,
        )
    axes[0].axhline(1.0, color="0.6", lw=0.8, zorder=0)
    for level, line, name in ((1.1, ":", "bound of the median"), (1.5, "--", "of the worst")):
        axes[0].axhline(level, color="0.6", lw=0.8, ls=line, zorder=0, label=f"{name}, {level}")
    axes[0].set(
        yscale="log",
        xlabel="problem, by its regret",
        ylabel="error of the plan over the grid's best",
    )
    ticks = [0.6, 0.8, 1.0, 1.2, 1.5, 2.0]
    axes[0].set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes[0].minorticks_off()
    axes[0].legend(loc="upper left")
    over = simulation.risk_over_target
    axes[1].errorbar(
        np.arange(1, over.size + 1),
        over.values,
        simulation.risk_over_target_standard_error.values,
        ls="",
        marker="o",
        ms=3.5,
        color=ORANGE,
    )
    axes[1].axhline(1.0, color="0.6", lw=0.8, zorder=0)
    axes[1].set(xlabel="target", ylabel="error at the budget found over the target")
    return figure
