"""Figures of the studies, each drawn from artifacts alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, panels
from reproduction.engine.recipe import Dataset, Figure
from reproduction.studies.figures.comparison import comparison as comparison


def audits(simulation: Dataset) -> Figure:
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


def population_coverage(simulation: Dataset) -> Figure:
    """Coverage, and length over the oracle's, of every setting; bands are what is promised."""
    figure, (left, right) = panels(1, 2, height=7.0, sharey=True)
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
    left.set_yticks(places, names, fontsize=6.5)
    left.set(ylim=(len(places) - 0.5, -0.5), ylabel="features; errors")
    style = {"fontsize": 6, "ha": "left", "va": "bottom"}
    for at in [k for k in places if k == 0 or cases[k] != cases[k - 1]]:
        right.text(0.01, at - 0.6, cases[at], transform=right.get_yaxis_transform(), **style)
        for axes in (left, right):
            axes.axhline(at - 0.5, color="0.8", lw=0.5)
    return figure


def prediction(simulation: Dataset) -> Figure:
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


def planning(
    simulation: Dataset,
    california: Dataset,
    digits: Dataset,
    pairs: Dataset,
    columns: Dataset,
    bundled: Dataset,
) -> Figure:
    """Regrets in increasing order, and errors at budgets that were found for a target."""
    figure, (left, right) = panels(1, 2, height=3.4)
    before = 1
    for name, artifacts, colour in (
        ("synthetic", (simulation,), BLUE),
        ("tables", (simulation, california, digits), GREEN),
        ("tables that nothing was chosen on", (pairs, columns, bundled), ORANGE),
    ):
        problems, regret, error = (
            np.concatenate([each[variable].values for each in artifacts])
            for variable in ("problem", "regret", "regret_standard_error")
        )
        synthetic = np.char.startswith(problems.astype(str), "synthetic")
        chosen = np.flatnonzero(synthetic == (name == "synthetic"))
        chosen = chosen[np.argsort(regret[chosen])]
        left.errorbar(
            before + np.arange(len(chosen)),
            regret[chosen],
            error[chosen],
            color=colour,
            ls="",
            marker="o",
            ms=3.5,
            label=name,
        )
        before += len(chosen)
    left.axhline(1.0, color="0.6", lw=0.8, zorder=0)
    for level, line, name in ((1.1, ":", "limit of the median"), (1.5, "--", "of the worst")):
        left.axhline(level, color="0.6", lw=0.8, ls=line, zorder=0, label=f"{name}, {level}")
    left.set(
        yscale="log",
        xlabel="problem, by its regret",
        ylabel="error of the plan over the grid's best",
    )
    _plain_ticks(left, (0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5))
    # Above all points.
    low, high = left.get_ylim()
    left.set_ylim(low, high * 1.9)
    left.legend(loc="upper left")
    over = simulation.risk_over_target
    places = np.arange(over.size)
    right.errorbar(
        over.values,
        places,
        xerr=simulation.risk_over_target_standard_error.values,
        ls="",
        marker="o",
        ms=3.5,
        color=ORANGE,
    )
    right.axvline(1.0, color="0.6", lw=0.8, zorder=0)
    right.set_yticks(places, [_target(simulation, place) for place in places], fontsize=6)
    right.invert_yaxis()
    right.set(ylabel="problem and its target", xlabel="error at the budget found over the target")
    return figure


def _target(simulation: Dataset, place: int) -> str:
    problem, target = simulation.problem.values[place], simulation.target_risk.values[place]
    return f"{problem}: {target:.2g}"


def _plain_ticks(axes: Any, ticks: tuple[float, ...]) -> None:
    """Ticks of a logarithmic axis as plain numbers, those in its range."""
    low, high = axes.get_ylim()
    inside = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(inside, labels=[f"{tick:g}" for tick in inside])
    axes.minorticks_off()
