"""Figures of the studies, each drawn from artifacts alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, numbers, panels, ticks
from reproduction.engine.recipe import Dataset, Figure

POINTS: dict[str, Any] = {"ls": "", "marker": "o", "ms": 3.5}
BEHIND: dict[str, Any] = {"color": "0.6", "lw": 0.8, "zorder": 0}
ESTIMATORS = {
    "PrivateLinearRegression": (BLUE, "o", "-", "PrivateLinearRegression"),
    "AdaSSP": (ORANGE, "s", "-", "AdaSSP"),
    "noisy moments": (GREEN, "^", "-", "noisy moments with a ridge"),
    "least squares": (BLACK, "", "--", "least squares (not private)"),
}
# If a panel's largest error is this many times its smallest, few ticks per decade suffice.
MANY = 6.0


def audits(simulation: Dataset) -> Figure:
    """Audited loss relative to the promised one; a row per algorithm, controls below."""
    figure, axes = panels(1, 1, height=4.0)
    names: list[str] = []
    for kind, colour in (("algorithm", BLUE), ("control", ORANGE)):
        shares = simulation[f"{kind}_share"].values
        places = len(names) + np.arange(len(shares))
        axes.hlines(places, 0, shares, color="0.8", lw=0.8, zorder=0)
        axes.plot(shares, places, color=colour, ls="", marker="o", ms=4, label=f"{kind}s")
        names += [str(name) for name in simulation[kind].values]
    axes.axvline(1.0, color=BLACK, lw=0.8)
    axes.axvspan(0.6, 1.0, color="0.93", zorder=-1, label="required of algorithms")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlim=(-0.03, None), xlabel=r"certain loss (99.9 %) / promised $\mu$")
    axes.legend(loc="upper right")
    return figure


def population_coverage(simulation: Dataset) -> Figure:
    """Coverage, and length relative to the oracle's, in every setting; bands show the limits."""
    figure, (left, right) = panels(1, 2, height=7.0, sharey=True)
    found = simulation.stack(setting=("case", "error_law", "feature_law"))
    cases = [str(case) for case, _, _ in found.setting.values]
    starts = np.array([case != before for case, before in zip(cases, ["", *cases], strict=False)])
    # The heading of a group has a row of its own.
    places = np.arange(len(cases)) + np.cumsum(starts)
    for axes, name, band, label in (
        (left, "covered", (0.93, 0.97), "coverage of the population's slopes"),
        (right, "length_ratio", (1.0, 1.2), "length / oracle length"),
    ):
        axes.axvspan(*band, color="0.9", zorder=-1)
        errors = 1.96 * found[f"{name}_standard_error"].values
        axes.errorbar(
            found[name].values, places, xerr=errors, color=BLUE, ls="", marker="o", ms=3, lw=0.8
        )
        axes.set_xlabel(label)
        axes.locator_params(axis="x", nbins=6)
    left.axvline(0.95, color=BLACK, lw=0.8)
    names = [f"{features}; {errors}" for _, errors, features in found.setting.values]
    left.set_yticks(places, names, fontsize=6.5)
    left.set(ylim=(places[-1] + 0.5, -0.5), ylabel="features; errors")
    for at in np.flatnonzero(starts):
        name = cases[at].replace("rho", "ρ")
        transform = left.get_yaxis_transform()
        left.text(0.01, places[at] - 1, name, transform=transform, fontsize=6.5, va="center")
        for axes in (left, right):
            axes.axhline(places[at] - 1.5, color="0.8", lw=0.5)
    return figure


def prediction(simulation: Dataset) -> Figure:
    """Predicted against simulated errors, and their ratios with standard errors."""
    figure, axes = panels(1, 2, height=3.2)
    laws = np.array([str(name).partition(",")[0] for name in simulation.setting.values])
    for law, colour in zip(dict.fromkeys(laws), (BLACK, BLUE, ORANGE, GREEN), strict=False):
        chosen = simulation.isel(setting=laws == law)
        style = {**POINTS, "color": colour, "label": law.replace("_", " ")}
        axes[0].plot(chosen.simulated_risk, chosen.predicted_risk, **style)
        axes[1].errorbar(
            chosen.simulated_risk, chosen.ratio, chosen.ratio_standard_error, lw=0.8, **style
        )
    ends = [simulation.simulated_risk.min(), simulation.simulated_risk.max()]
    axes[0].plot(ends, ends, **BEHIND)
    axes[0].set(yscale="log", ylabel="predicted excess risk")
    axes[0].legend(loc="upper left")
    axes[1].axhspan(0.9, 1.1, color="0.93", zorder=-1)
    axes[1].axhline(1.0, **BEHIND)
    axes[1].set(ylabel="predicted / simulated")
    for each in axes:
        each.set(xscale="log", xlabel="simulated excess risk")
    return figure


def planning(
    simulation: Dataset,
    california: Dataset,
    digits: Dataset,
    pairs: Dataset,
    columns: Dataset,
    bundled: Dataset,
) -> Figure:
    """Regrets in increasing order, and errors at budgets that the plan found for a target."""
    figure, (left, right) = panels(1, 2, height=3.4)
    before = 1
    for name, artifacts, colour in (
        ("synthetic", (simulation,), BLUE),
        ("tables", (simulation, california, digits), GREEN),
        ("tables not used for any choice", (pairs, columns, bundled), ORANGE),
    ):
        problems, regret, error = (
            np.concatenate([each[variable].values for each in artifacts])
            for variable in ("problem", "regret", "regret_standard_error")
        )
        synthetic = np.char.startswith(problems.astype(str), "synthetic")
        chosen = np.flatnonzero(synthetic == (name == "synthetic"))
        chosen = chosen[np.argsort(regret[chosen])]
        places = before + np.arange(len(chosen))
        left.errorbar(places, regret[chosen], error[chosen], color=colour, label=name, **POINTS)
        before += len(chosen)
    left.axhline(1.0, **BEHIND)
    for level, line, name in ((1.1, ":", "limit on median"), (1.5, "--", "limit on worst")):
        left.axhline(level, ls=line, label=f"{name}, {level}", **BEHIND)
    left.set(
        yscale="log",
        xlabel="problem, in order of regret",
        ylabel="error of the plan / best of the grid",
    )
    low, high = left.get_ylim()
    ticks = [each for each in (0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5) if low <= each <= high]
    left.set_yticks(ticks, labels=[f"{each:g}" for each in ticks])
    left.minorticks_off()
    # The legend stands above all points.
    left.set_ylim(low, high * 1.9)
    left.legend(loc="upper left")
    over, error = simulation.risk_over_target, simulation.risk_over_target_standard_error
    targets = [
        f"{problem}: {target:.2g}"
        for problem, target in zip(
            simulation.problem.values, simulation.target_risk.values, strict=False
        )
    ]
    places = np.arange(over.size)
    right.errorbar(over.values, places, xerr=error.values, color=BLUE, **POINTS)
    right.axvline(1.0, **BEHIND)
    right.set_yticks(places, targets, fontsize=6)
    right.invert_yaxis()
    right.set(ylabel="problem and its target", xlabel="error at the budget found / target")
    return figure


def comparison(drawn: Dataset, california_housing: Dataset, mnist: Dataset) -> Figure:
    """Mean errors with standard errors, relative to predicting the mean; one panel per table."""
    figure, axes = panels(2, 3, height=2.1, sharex=True)
    found = [
        each.sel(table=table)
        for each in (drawn, california_housing, mnist)
        for table in each.table.values
    ]
    for panel, errors in zip(axes.flat, found, strict=False):
        for name, (colour, marker, line, label) in ESTIMATORS.items():
            own = errors.sel(estimator=name)
            panel.errorbar(
                own.rho,
                own.error,
                own.error_standard_error,
                color=colour,
                marker=marker,
                ls=line,
                ms=3.5,
                lw=1.0,
                label=label,
            )
        panel.axhline(1.0, color=PURPLE, lw=0.7, ls="-.", label="predicting the mean")
        panel.set(yscale="log", title=str(errors.table.item()).replace("_", " "))
        ticks(panel, errors.rho.values)
        low, high = panel.get_ylim()
        # A range of less than a decade or two contains hardly a power of ten.
        steps = (1, 2, 5) if high / low > MANY else (1, 1.5, 2, 3, 4, 5, 6, 8)
        numbers(panel.yaxis, steps)
    for panel in axes.flat[len(found) :]:
        panel.axis("off")
    for panel in axes[-1]:
        panel.set_xlabel(r"budget $\rho$ (zCDP, replace-one)")
    for panel in axes[:, 0]:
        panel.set_ylabel("held-out error / variance")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
