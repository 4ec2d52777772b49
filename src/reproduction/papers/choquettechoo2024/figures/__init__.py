"""Figures of choquettechoo2024, each drawn from artifacts alone."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Axes, Dataset, Figure
from reproduction.papers.choquettechoo2024.figures.training import fig4, fig4_accuracy

__all__ = ["fig1", "fig2", "fig3", "fig4", "fig4_accuracy"]

ALGORITHMS = {
    "noisy_sgd": ("Noisy-SGD", RED, "s"),
    "noisy_ftrl": (r"$\nu$-Noisy-FTRL", BLUE, "o"),
}


def fig1(theory: Dataset, simulation: Dataset) -> Figure:
    """Ratio of the risks for a mean, and the best coefficients in time and frequency."""
    figure, (ratio, time, frequency) = panels(1, 3, height=2.1)
    ratio.plot(theory.step_size, theory.ratio, color=BLACK)
    ratio.axhline(1, color=BLACK, ls=":", lw=0.7)
    largest = float(np.abs(simulation.deviation).max())
    ratio.annotate(
        f"runs within {largest:.1f}\nstandard errors",
        (0.95, 0.06),
        xycoords="axes fraction",
        ha="right",
        fontsize=6.5,
    )
    ratio.set(
        xscale="log",
        yscale="log",
        xlabel=r"step size $\eta$",
        ylabel="risk, optimal over independent",
        title="private part",
    )
    for colour, (_, at) in zip(
        (BLUE, GREEN, ORANGE), theory.groupby("shown_step_size"), strict=False
    ):
        at = at.squeeze()
        label = rf"$\eta = {float(at.shown_step_size):g}$"
        lags = slice(1, None)
        time.plot(at.time[lags], -at.coefficient[lags], ".", color=colour, ms=3, label=label)
        time.plot(at.time[lags], -at.coefficient_tail[lags], color=colour, lw=0.7)
        for side in (-1, 1):
            frequency.plot(side * at.frequency, at.power, color=colour)
    time.plot([], [], color=BLACK, lw=0.7, label="asymptote")
    time.legend(loc="lower left")
    time.set(
        xscale="log",
        yscale="log",
        ylim=(1e-6, 1),
        xlabel="lag $t$ in steps",
        ylabel=r"$-\beta^\star_t$",
        title=r"coefficients after $\beta^\star_0 = 1$",
    )
    frequency.set(
        xlabel=r"frequency $\omega$",
        ylabel=r"$|B^\star(\omega)|^2$",
        title="power spectrum",
        ylim=(0, None),
    )
    frequency.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    return figure


def fig2(
    dimension: Dataset,
    dimension_law: Dataset,
    decay: Dataset,
    decay_law: Dataset,
    step: Dataset,
    step_law: Dataset,
) -> Figure:
    """Stationary risk over dimension, effective dimension and step size."""
    figure, axes = panels(1, 3, height=2.4)
    _scaling(axes[0], dimension, dimension_law, "dimension", "dimension $d$")
    _scaling(axes[1], decay, decay_law, "effective_dimension", "effective dimension $d_{eff}$")
    _scaling(axes[2], step, step_law, "step_size", r"step size $\eta$")
    axes[0].set_ylabel("stationary excess risk")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def fig3(theory: Dataset) -> Figure:
    """Bound for strongly convex functions over the condition number."""
    figure, axes = panels(1, theory.sizes["step_size"], height=2.7, squeeze=False)
    # The curve below is the wider one, so that both are seen where they coincide.
    algorithms = {
        "dp_sgd": ("DP-SGD", RED, 1.2),
        "dp_ftrl": (r"$\nu$-DP-FTRL", BLUE, 2.0),
        "optimised": ("Optimised", GREEN, 0.8),
    }
    for panel, step in zip(axes[0], theory.step_size.values, strict=True):
        for name, (label, colour, width) in algorithms.items():
            at, kappa = theory.sel(algorithm=name, step_size=step), theory.condition_number
            sound, printed = (at.sel(multiplier=which) for which in ("sound", "printed"))
            panel.plot(kappa, sound.bound, color=colour, lw=width, label=label)
            panel.plot(kappa, printed.bound, color=colour, lw=width, ls="--")
            panel.plot(kappa, sound.quadratic_envelope, color=colour, ls=":", lw=0.6 * width)
        panel.set(
            xscale="log",
            yscale="log",
            xlabel=r"condition number $\kappa$",
            title=rf"$\eta = {step:g}/L$",
        )
    axes[0, 0].set_ylabel("bound on the excess risk")
    for line, label in (("--", "printed multipliers"), (":", "least bound, from quadratics")):
        axes[0, 0].plot([], [], color=BLACK, ls=line, lw=0.9, label=label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, columnspacing=1.5)
    return figure


def _scaling(panel: Axes, simulation: Dataset, theory: Dataset, abscissa: str, label: str) -> None:
    places = simulation[abscissa].values
    for name, (title, colour, marker) in ALGORITHMS.items():
        at, law = simulation.sel(algorithm=name), theory.sel(algorithm=name)
        panel.errorbar(
            places,
            at.risk,
            yerr=2 * at.risk_standard_error,
            color=colour,
            marker=marker,
            ms=3.5,
            ls="none",
            label=f"{title}, simulated",
        )
        panel.plot(places, law.exact_risk, color=colour, label=f"{title}, exact")
        # The printed scaling has no constant: it is drawn through the middle of the exact risk.
        shift = np.exp(np.mean(np.log(law.exact_risk / law.scaling)))
        rate = f"{title}, the paper's rate"
        panel.plot(places, shift * law.scaling, color=colour, ls=":", label=rate)
        middle = len(places) // 2
        panel.annotate(
            f"slope {float(at.slope):.2f}",
            (places[middle], float(law.exact_risk[middle])),
            xytext=(6, -11),
            textcoords="offset points",
            fontsize=6.5,
            color=colour,
        )
    panel.set(xscale="log", yscale="log", xlabel=label)
    panel.set_xticks(places, [f"{value:.3g}" for value in places])
    panel.minorticks_off()
