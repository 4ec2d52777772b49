"""Error against budget of private estimators, a panel for each table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privreg.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

STYLES = {
    "PrivateLinearRegression": (BLUE, "o", "-", "PrivateLinearRegression"),
    "AdaSSP": (ORANGE, "s", "-", "AdaSSP"),
    "noisy moments": (GREEN, "^", "-", "noisy moments with a ridge"),
    "least squares": (BLACK, "", "--", "least squares (not private)"),
}


def comparison(drawn: xr.Dataset, california_housing: xr.Dataset, mnist: xr.Dataset) -> Figure:
    """Mean errors with standard errors over that of predicting the mean."""
    found = [
        (str(table), simulation.sel(table=table))
        for simulation in (drawn, california_housing, mnist)
        for table in simulation.table.values
    ]
    figure, axes = panels(2, 3, height=2.1, sharex=True)
    for panel, (table, errors) in zip(axes.flat, found, strict=False):
        for name, (colour, marker, line, label) in STYLES.items():
            chosen = errors.sel(estimator=name)
            panel.errorbar(
                chosen.rho.values,
                chosen.error.values,
                chosen.error_standard_error.values,
                color=colour,
                marker=marker,
                ls=line,
                ms=3.5,
                lw=1.0,
                label=label,
            )
        panel.axhline(1.0, color=PURPLE, lw=0.7, ls="-.", label="predicting the mean")
        panel.set(xscale="log", yscale="log", title=table.replace("_", " "))
    for panel in axes.flat[len(found) :]:
        panel.axis("off")
    for panel in axes[-1]:
        panel.set_xlabel(r"budget $\rho$ (zCDP, replace-one)")
    for panel in axes[:, 0]:
        panel.set_ylabel("held-out error over variance")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
