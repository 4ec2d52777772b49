"""Error against budget of private estimators, a panel for each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, panels
from reproduction.engine.recipe import Dataset, Figure

# Largest over smallest error of a panel from which few ticks a decade are enough.
MANY = 6.0
STYLES = {
    "PrivateLinearRegression": (BLUE, "o", "-", "PrivateLinearRegression"),
    "AdaSSP": (ORANGE, "s", "-", "AdaSSP"),
    "noisy moments": (GREEN, "^", "-", "noisy moments with a ridge"),
    "least squares": (BLACK, "", "--", "least squares (not private)"),
}


class Curve(NamedTuple):
    """Errors by budget, and their standard errors."""

    budgets: Sequence[float]
    errors: Sequence[float]
    standard_errors: Sequence[float]


def comparison(drawn: Dataset, california_housing: Dataset, mnist: Dataset) -> Figure:
    """Mean errors with standard errors over that of predicting the mean."""
    found = {}
    for simulation in (drawn, california_housing, mnist):
        rho = simulation.rho.values
        for table in simulation.table.values:
            errors = {name: simulation.sel(table=table, estimator=name) for name in STYLES}
            found[str(table).replace("_", " ")] = {
                name: Curve(rho, each.error.values, each.error_standard_error.values)
                for name, each in errors.items()
            }
    return curves_by_table(found, STYLES, height=2.1, columns=3)


def curves_by_table(
    found: Mapping[str, Mapping[str, Curve]],
    styles: Mapping[str, tuple[Any, str, str, str]],
    *,
    height: float,
    columns: int,
) -> Figure:
    """Up to six tables' curves; a style is a colour, a marker, a line and a label."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, StrMethodFormatter

    figure, axes = panels(2, 3, height=height, sharex=True)
    for panel, (title, curves) in zip(axes.flat, found.items(), strict=False):
        for name, (colour, marker, line, label) in styles.items():
            panel.errorbar(
                *curves[name], color=colour, marker=marker, ls=line, ms=3.5, lw=1.0, label=label
            )
        panel.axhline(1.0, color=PURPLE, lw=0.7, ls="-.", label="predicting the mean")
        panel.set(xscale="log", yscale="log", title=title)
        budgets = next(iter(curves.values())).budgets
        panel.xaxis.set_major_locator(FixedLocator(list(budgets)))
        panel.xaxis.set_minor_locator(FixedLocator([]))
        panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        low, high = panel.get_ylim()
        # Less than a decade or two has hardly a power of ten in it.
        steps = (1, 2, 5) if high / low > MANY else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
        panel.yaxis.set_major_locator(LogLocator(subs=steps))
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    for panel in axes.flat[len(found) :]:
        panel.axis("off")
    for panel in axes[-1]:
        panel.set_xlabel(r"budget $\rho$ (zCDP, replace-one)")
    for panel in axes[:, 0]:
        panel.set_ylabel("held-out error over variance")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure
