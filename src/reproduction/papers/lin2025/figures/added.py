"""Panels that lin2025 does not draw: readings, rates, releases, orders, the exact loss."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Axes, Dataset, Figure

NO_GUARANTEE = "Not a guarantee: an approximation by a conjecture, over observed pairs."
NOISE_COLOURS = (GREEN, ORANGE, BLUE)
READING_NAMES = {
    "centred": r"centred, sd $d^{-1/2}$",
    "literal": r"literal, $U(0, d^{-1/2})$",
    "symmetric": r"symmetric, $U(\pm d^{-1/2})$",
    "wide": r"wide, variance $d^{-1/2}$",
}


def readings(centred: Dataset, literal: Dataset, symmetric: Dataset, wide: Dataset) -> Figure:
    """Risk of one run and of the theory in four readings of the design."""
    figure, axes = panels(1, 4, height=2.1)
    datasets = {"centred": centred, "literal": literal, "symmetric": symmetric, "wide": wide}
    for panel, (reading, dataset) in zip(axes, datasets.items(), strict=True):
        risk_panel(panel, dataset, log=reading == "literal")
        panel.set_title(
            f"{READING_NAMES[reading]}\nlargest gap {100 * float(dataset.gap[-1]):.0f} %",
            fontsize=7,
        )
    axes[0].set_ylabel(r"population risk $\mathcal{P}$")
    axes[-1].legend(loc="upper right", fontsize=6)
    return figure


def concentration(theory: Dataset, simulation: Dataset) -> Figure:
    """Distances to the theory against the dimension, with the rates that are claimed."""
    figure, axes = panels(1, 3, height=2.2)
    dimension = theory.dimension.values.astype(float)
    curves = (
        (theory.mean_gap, None, float(theory.mean_gap_slope), -1.0, "mean risk, exact"),
        (
            simulation.gap,
            simulation.gap_standard_error,
            float(simulation.gap_slope),
            -0.5,
            "risk of one run",
        ),
        (
            simulation.martingale,
            simulation.martingale_standard_error,
            float(simulation.martingale_slope),
            -1.0,
            "martingale of Lemma A.4",
        ),
    )
    for panel, (values, error, slope, rate, title) in zip(axes, curves, strict=True):
        fitted = f"slope ${slope:.2f}$"
        panel.errorbar(dimension, values, error, fmt="o", ms=3, color=BLUE, capsize=2, label=fitted)
        middle = np.exp(np.log(values.values).mean() - rate * np.log(dimension).mean())
        label = f"$d^{{{rate:g}}}$"
        panel.plot(dimension, middle * dimension**rate, color=BLACK, lw=0.8, label=label)
        panel.set(
            xscale="log",
            yscale="log",
            xlabel="dimension $d$",
            title=title,
        )
        panel.set_xticks(dimension, [f"{d:g}" for d in dimension])
        low, high = panel.get_ylim()
        # A range of about a decade holds one power of ten.
        marks = [m * 10.0**power for power in range(-9, 3) for m in (1, 2, 5)]
        shown = [mark for mark in marks if low < mark < high]
        panel.set_yticks(shown, [f"{mark:g}" for mark in shown])
        panel.minorticks_off()
        panel.legend(loc="upper right")
    axes[0].set_ylabel("largest distance to the theory")
    return figure


def release_strategies(simulation: Dataset) -> Figure:
    """Divergence by position and loss at a random position of three strategies."""
    figure, axes = panels(1, 2, height=2.7, width_ratios=[2, 1])
    colours = dict(zip(simulation.strategy.values, (BLACK, BLUE, ORANGE), strict=True))
    for strategy, colour in colours.items():
        for variant, line in (("exact", "-"), ("paper", "--")):
            if strategy == "last iterate" and variant == "paper":
                continue
            at = simulation.divergence.sel(strategy=strategy, variant=variant)
            label = strategy if variant == "exact" else f"{strategy}, as printed"
            axes[0].plot(simulation.position, at, line, color=colour, lw=1, label=label)
    for release in simulation.release.values:
        axes[0].axvline(release, color="0.8", lw=0.6, zorder=0)
    axes[0].set(
        yscale="log",
        xlabel="position $s$ of the differing record (grey: releases)",
        ylabel=f"$D_{{{simulation.attrs['order']:g}}}$ given $s$",
    )
    # Plain ground, or the lines of the releases would cross its words.
    legend = axes[0].legend(loc="upper right", fontsize=6.5, ncols=2, frameon=True)
    legend.get_frame().set(alpha=1, edgecolor="none")
    places = np.arange(len(colours))
    for apart, variant, face, label in (
        (-0.1, "exact", None, "exact"),
        (0.1, "paper", "white", "as printed"),
    ):
        at = simulation.sel(variant=variant)
        for place, (strategy, colour) in zip(places, colours.items(), strict=True):
            value = at.loss.sel(strategy=strategy)
            error = 2 * at.loss_standard_error.sel(strategy=strategy)
            axes[1].errorbar(place + apart, value, error, fmt="o", ms=5, color=colour, mfc=face)
        axes[1].plot([], [], "o", ms=5, color="0.3", mfc=face, label=label)
    names = [str(name).replace(" ", "\n") for name in colours]
    axes[1].set_xticks(places, names)
    axes[1].set(
        yscale="log", ylabel=r"$\varepsilon$, position random", xlim=(-0.5, len(colours) - 0.5)
    )
    axes[1].legend(loc="upper left")
    axes[1].set_ylim(1e-4, 1e-2)
    axes[0].set_ylim(5e-7, 5.0)
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def orders(simulation: Dataset) -> Figure:
    """Loss against the Rényi order, up to the order at which it becomes infinite."""
    figure, panel = panels(1, 1, height=2.5)
    order = simulation.order.values
    for colour, step in zip((RED, ORANGE, BLUE), simulation.sweep_step.values, strict=False):
        values = simulation.swept_loss.sel(sweep_step=step).values
        finite = np.isfinite(values)
        panel.plot(order[finite], values[finite], "o-", ms=3, color=colour, label=f"$k = {step}$")
        if not finite.all():
            panel.axvspan(order[~finite].min(), order.max(), color="0.9", zorder=0, lw=0)
    if np.isinf(simulation.swept_loss.values).any():
        where = panel.get_xaxis_transform()
        middle = (order[np.isinf(simulation.swept_loss.values).any(axis=1)].min() + order.max()) / 2
        panel.text(middle, 0.5, "infinite", transform=where, ha="center", fontsize=7)
    panel.set(
        yscale="log", xlabel=r"Rényi order $\alpha$", ylabel=r"$\varepsilon_\alpha$ after $k$ steps"
    )
    panel.legend(loc="upper left")
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def fixed_order(simulation: Dataset) -> Figure:
    """Exact loss between two data sets and the diffusion's, by steps since the replacement."""
    figure, axes = panels(1, 2, height=2.6)
    lag = simulation.lag.values
    for colour, position in zip((RED, ORANGE, GREEN, BLUE), simulation.position, strict=False):
        at = simulation.sel(position=position)
        axes[0].plot(lag, at.exact, "-", color=colour, label=f"record {int(position)}")
        axes[0].plot(lag, at.surrogate, "x", ms=4, color=colour)
        axes[1].plot(lag, at.surrogate_ratio, "x-", ms=4, color=colour, lw=0.8)
        axes[1].plot(lag, at.shorter_surrogate_ratio, "o-", ms=3, color=colour, lw=0.8)
    axes[0].plot([], [], "x", ms=4, color="0.4", label="diffusion")
    axes[1].plot([], [], "x-", ms=4, lw=0.8, color="0.4", label="as printed, $t - s$ = lag / $d$")
    axes[1].plot([], [], "o-", ms=3, lw=0.8, color="0.4", label="$t - s$ = (lag - 1) / $d$")
    axes[1].axhline(1.0, color=BLACK, lw=0.6, ls=":")
    order = simulation.attrs["order"]
    axes[0].set(
        xscale="log",
        yscale="log",
        xlabel="lag: steps since the record",
        ylabel=f"$D_{{{order:g}}}$",
    )
    axes[1].set(xscale="log", xlabel="lag: steps since the record", ylabel="diffusion over exact")
    axes[0].legend(loc="lower left")
    axes[1].legend(loc="lower right")
    figure.suptitle(
        "Not a guarantee: the loss between two given data sets, exact and by the diffusion.",
        fontsize=7,
    )
    return figure


def risk_panel(panel: Axes, dataset: Dataset, *, log: bool = False) -> None:
    """One unclipped run and the theory for its own start, each noise scale."""
    steps = dataset.step.values
    for colour, std in zip(NOISE_COLOURS, dataset.gradient_noise_std.values, strict=False):
        at = dataset.sel(gradient_noise_std=std)
        run = at.risk_run.isel(clip_norm=-1)
        # Where runs are far from the theory they are drawn pale behind it.
        panel.plot(steps, run, color=colour, lw=0.7, alpha=0.4 if log else 1.0)
        panel.plot([], [], color=colour, lw=0.9, label=f"SGD, $\\sigma = {std:g}$")
        panel.plot(steps, at.law_run, color=colour if log else BLACK, lw=1.0, ls="--")
    panel.plot([], [], color=BLACK, lw=1.0, ls="--", label="Volterra")
    panel.set_xlabel("iteration $k$")
    if log:
        panel.set_yscale("log")
    else:
        panel.set_ylim(0, None)
