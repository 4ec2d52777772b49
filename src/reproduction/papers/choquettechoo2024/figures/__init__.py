"""Figures of choquettechoo2024, each drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduction.experiment.plotting import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    RED,
    panels,
)
from reproduction.papers.choquettechoo2024.figures.training import fig4, fig4_accuracy

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["fig1", "fig2", "fig3", "fig4", "fig4_accuracy"]

STEP_COLOURS = (BLUE, GREEN, ORANGE)
ALGORITHMS = {
    "noisy_sgd": ("Noisy-SGD", RED, "s"),
    "noisy_ftrl": (r"$\nu$-Noisy-FTRL", BLUE, "o"),
}


def fig1(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Ratio of the risks for a mean, and the best coefficients in time and frequency."""
    figure, (ratio, time, frequency) = panels(1, 3, height=2.1)
    ratio.plot(theory.step_size, theory.ratio, color=BLACK)
    ratio.axhline(1, color=BLACK, ls=":", lw=0.7)
    ratio.set(
        xscale="log",
        yscale="log",
        xlabel=r"step size $\eta$",
        ylabel="risk, optimal over independent",
        title="private part",
    )
    lags = theory.time.values[1:]
    for colour, step in zip(STEP_COLOURS, theory.shown_step_size.values, strict=False):
        at = theory.sel(shown_step_size=step)
        label = rf"$\eta = {step:g}$"
        time.plot(lags, -at.coefficient.values[1:], ".", color=colour, ms=3, label=label)
        time.plot(lags, -at.coefficient_tail.values[1:], color=colour, lw=0.7)
        mirrored = np.concatenate([-at.frequency.values[::-1], at.frequency.values])
        power = np.concatenate([at.power.values[::-1], at.power.values])
        frequency.plot(mirrored, power, color=colour, label=label)
    time.set(
        xscale="log",
        yscale="log",
        ylim=(1e-6, 1),
        xlabel="lag $t$ in steps",
        ylabel=r"$-\beta^\star_t$",
        title=r"after $\beta^\star_0 = 1$; lines: the asymptote",
    )
    frequency.set(
        xlabel=r"frequency $\omega$",
        ylabel=r"$|B^\star(\omega)|^2$",
        title="power spectrum",
        xticks=[-np.pi, 0, np.pi],
        ylim=(0, None),
    )
    frequency.set_xticklabels([r"$-\pi$", "0", r"$\pi$"])
    time.legend(loc="lower left")
    largest = float(np.abs(simulation.deviation).max())
    ratio.annotate(
        f"runs within {largest:.1f} s.e.",
        (0.95, 0.06),
        xycoords="axes fraction",
        ha="right",
        fontsize=6.5,
    )
    return figure


def fig2(
    dimension: xr.Dataset,
    dimension_law: xr.Dataset,
    decay: xr.Dataset,
    decay_law: xr.Dataset,
    step: xr.Dataset,
    step_law: xr.Dataset,
) -> Figure:
    """Stationary risk over dimension, effective dimension and step size."""
    figure, axes = panels(1, 3, height=2.4, sharey=False)
    _scaling(axes[0], dimension, dimension_law, "dimension", "dimension $d$")
    _scaling(
        axes[1],
        decay,
        decay_law,
        "effective_dimension",
        r"effective dimension $d_{\mathrm{eff}}$",
    )
    _scaling(axes[2], step, step_law, "step_size", r"step size $\eta$")
    axes[0].set_ylabel("stationary excess risk")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def fig3(theory: xr.Dataset) -> Figure:
    """Bound for strongly convex functions over the condition number."""
    figure, axes = panels(1, theory.sizes["step_size"], height=2.5, squeeze=False)
    algorithms = {
        "dp_sgd": ("DP-SGD", RED),
        "dp_ftrl": (r"$\nu$-DP-FTRL", BLUE),
        "optimised": ("Optimised", GREEN),
    }
    for panel, step in zip(axes[0], theory.step_size.values, strict=True):
        for name, (label, colour) in algorithms.items():
            at = theory.sel(algorithm=name, step_size=step)
            for multiplier, line in (("sound", "-"), ("printed", "--")):
                panel.plot(
                    theory.condition_number,
                    at.bound.sel(multiplier=multiplier),
                    color=colour,
                    ls=line,
                    label=label if line == "-" else None,
                )
            panel.plot(
                theory.condition_number,
                at.quadratic_envelope.sel(multiplier="sound"),
                color=colour,
                ls=":",
                lw=0.8,
            )
        panel.set(
            xscale="log",
            yscale="log",
            xlabel=r"condition number $\kappa$",
            title=rf"$\eta = {step:g}/L$",
        )
    axes[0, 0].set_ylabel("bound on the excess risk")
    for line, label in (("--", "printed multipliers"), (":", "quadratics alone: a floor")):
        axes[0, 0].plot([], [], color=BLACK, ls=line, lw=0.9, label=label)
    axes[0, 0].legend(loc="upper left")
    return figure


def _scaling(
    panel: Axes, simulation: xr.Dataset, theory: xr.Dataset, abscissa: str, label: str
) -> None:
    for name, (title, colour, marker) in ALGORITHMS.items():
        at, law = simulation.sel(algorithm=name), theory.sel(algorithm=name)
        panel.errorbar(
            at[abscissa],
            at.risk,
            yerr=2 * at.risk_standard_error,
            color=colour,
            marker=marker,
            ms=3.5,
            ls="none",
            label=f"{title}, simulated",
        )
        panel.plot(law[abscissa], law.exact_risk, color=colour, label=f"{title}, exact")
        # The printed scaling has no constant: it is drawn through the middle of the exact risk.
        shift = np.exp(np.mean(np.log(law.exact_risk / law.scaling)))
        panel.plot(
            law[abscissa],
            shift * law.scaling,
            color=colour,
            ls=":",
            label=f"{title}, the paper's rate",
        )
        middle = law.sizes["setting"] // 2
        panel.annotate(
            f"slope {float(at.slope):.2f}",
            (float(law[abscissa][middle]), float(law.exact_risk[middle])),
            xytext=(6, -11),
            textcoords="offset points",
            fontsize=6.5,
            color=colour,
        )
    panel.set(xscale="log", yscale="log", xlabel=label)
    values = simulation[abscissa].values
    panel.set_xticks(values)
    panel.set_xticklabels([f"{value:.3g}" for value in values])
    panel.minorticks_off()
