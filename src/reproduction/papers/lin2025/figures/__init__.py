"""Figures of lin2025, each drawn from artifacts alone."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, panels
from reproduction.engine.recipe import Dataset, Figure
from reproduction.papers.lin2025.figures.added import (
    NO_GUARANTEE,
    NOISE_COLOURS,
    READING_NAMES,
    risk_panel,
)
from reproduction.papers.lin2025.figures.added import concentration as concentration
from reproduction.papers.lin2025.figures.added import fixed_order as fixed_order
from reproduction.papers.lin2025.figures.added import orders as orders
from reproduction.papers.lin2025.figures.added import readings as readings
from reproduction.papers.lin2025.figures.added import release_strategies as release_strategies

CLIP_COLOURS = {1.0: PURPLE, 2.0: RED, 3.0: ORANGE, 5.0: GREEN, 7.0: BLUE}
PAPER_NORMS = (3.0, 5.0, 7.0)
PROXY_NAMES = {
    "ones": r"$\|g\|$ as printed, at $\mathbf{1}_d$",
    "mean": r"$\|g_m\|$, at the mean $m(s)$",
    "norm": r"$\|a\|^4 + \|a'\|^4$",
}


def fig1a(centred: Dataset, literal: Dataset) -> Figure:
    """Quantiles of the last iterates' Mahalanobis distances against the chi-square law."""
    figure, axes = panels(1, 2, height=2.6)
    for panel, dataset, reading in zip(
        axes, (centred, literal), ("centred", "literal"), strict=True
    ):
        quantile = dataset.chi_square_quantile.values
        gradient_noise_std = float(dataset.gradient_noise_std[-1])
        panel.plot(quantile, dataset.sorted_distance.values[-1], "o", ms=2, color=BLUE)
        ends = np.array([quantile[0], quantile[-1]])
        panel.plot(ends, ends, color=BLACK, lw=0.8)
        mean = float(dataset.distance_per_coordinate[-1])
        error = float(dataset.distance_per_coordinate_standard_error[-1])
        panel.text(0.04, 0.9, f"mean / $d$ = {mean:.4f} ± {error:.4f}", transform=panel.transAxes)
        panel.set(
            title=f"{READING_NAMES[reading]}, $\\sigma = {gradient_noise_std:g}$",
            xlabel=r"quantile of $\chi^2_d$",
            ylabel=r"$(x_n - m)^\top V^{-1} (x_n - m)$, sorted",
        )
    return figure


def fig1b(simulation: Dataset) -> Figure:
    """Loss of random observed pairs against three proxies, early and late."""
    figure, axes = panels(2, 3, height=2.2, sharey="row")
    for row, (time, position) in enumerate(
        zip(simulation.time.values, simulation.position.values, strict=True)
    ):
        for column, proxy in enumerate(simulation.proxy.values):
            panel = axes[row, column]
            at = simulation.isel(place=row).sel(proxy=proxy)
            panel.plot(at.proxy_value, at.loss, ".", ms=2, color=BLUE, alpha=0.6)
            panel.set_yscale("log")
            panel.set_title(
                f"correlation {float(at.correlation):.2f}\n"
                f"first pair {100 * float(at.top_share):.0f} % of the maximum",
                fontsize=7,
            )
            if row:
                panel.set_xlabel(PROXY_NAMES[str(proxy)])
        axes[row, 0].set_ylabel(
            f"$D_{{{simulation.attrs['order']:g}}}$ at $(t, s) = ({time:g}, {position:g})$"
        )
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def fig2a(centred: Dataset, literal: Dataset) -> Figure:
    """Population risk of one run and of the theory, in two readings of the design."""
    figure, axes = panels(1, 2, height=2.4)
    for panel, dataset, reading in zip(
        axes, (centred, literal), ("centred", "literal"), strict=True
    ):
        risk_panel(panel, dataset, log=reading == "literal")
        panel.set_title(READING_NAMES[reading])
    axes[0].set_ylabel(r"population risk $\mathcal{P}$")
    axes[0].legend(loc="upper right", ncols=2)
    return figure


def fig2b(simulation: Dataset) -> Figure:
    """Approximate loss of the last iterate along the path, and what more noise buys."""
    figure, axes = panels(1, 2, height=2.6)
    steps = simulation.step.values
    styles = {"ones": ("-", r"pairs by printed $\|g\|$"), "candidates": ("--", "worst of search")}
    for colour, gradient_noise_std in zip(
        NOISE_COLOURS, simulation.gradient_noise_std.values, strict=False
    ):
        for selection, (line, _) in styles.items():
            at = simulation.sel(gradient_noise_std=gradient_noise_std, selection=selection)
            axes[0].plot(
                steps,
                at.loss,
                line,
                color=colour,
                label=f"$\\sigma = {gradient_noise_std:g}$" if selection == "ones" else None,
            )
    for line, name in styles.values():
        axes[0].plot([], [], line, color="0.4", label=name)
    order = simulation.attrs["order_of_curves"]
    axes[0].set(
        xscale="log",
        yscale="log",
        xlabel="iteration $k$",
        ylabel=f"$\\varepsilon_{{{order:g}}}$, record order shuffled",
    )
    axes[0].legend(loc="upper right")
    smaller = simulation.gradient_noise_std.values[:-1]
    for colour, gradient_noise_std, before in zip(
        NOISE_COLOURS[1:], simulation.noise_step.values, smaller, strict=False
    ):
        for selection, (line, _) in styles.items():
            at = simulation.noise_ratio.sel(noise_step=gradient_noise_std, selection=selection)
            label = f"$\\sigma = {gradient_noise_std:g}$ over ${before:g}$" if line == "-" else None
            axes[1].plot(steps, at, line, color=colour, label=label)
    axes[1].axhline(1.0, color=BLACK, lw=0.6, ls=":")
    axes[1].set(xscale="log", xlabel="iteration $k$", ylabel="loss over that with less noise")
    axes[1].legend(loc="lower right")
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def fig3a(simulation: Dataset) -> Figure:
    """Population risk with clipped gradients: the paper's thresholds and two smaller ones."""
    figure, axes = panels(1, 3, height=2.4)
    steps = simulation.step.values
    risk = simulation.risk_run.isel(gradient_noise_std=-1)
    unclipped = risk.sel(clip_norm=np.inf)
    for panel, shown in ((axes[0], PAPER_NORMS), (axes[2], (1.0, 2.0, 3.0))):
        panel.plot(steps, unclipped, color="0.75", lw=4, label="no clipping")
        for clip_norm in np.intersect1d(shown, risk.clip_norm):
            label, colour = f"$c = {clip_norm:g}$", CLIP_COLOURS[clip_norm]
            panel.plot(steps, risk.sel(clip_norm=clip_norm), color=colour, lw=0.9, label=label)
        panel.legend(loc="upper right" if panel is axes[0] else "upper left", fontsize=6)
    for clip_norm in np.intersect1d(PAPER_NORMS, risk.clip_norm):
        excess = 100 * (risk.sel(clip_norm=clip_norm) / unclipped - 1)
        line, colour = "--" if clip_norm == max(PAPER_NORMS) else "-", CLIP_COLOURS[clip_norm]
        axes[1].plot(steps, excess, line, color=colour, label=f"$c = {clip_norm:g}$")
    axes[1].legend(loc="upper right", fontsize=6)
    axes[0].set(ylabel=r"population risk $\mathcal{P}$", title="thresholds of the paper")
    axes[1].set(title="the same, over no clipping", ylabel="excess of the risk (%)")
    axes[2].set(title="added: smaller thresholds", ylim=(0, None))
    for panel in axes:
        panel.set_xlabel("iteration $k$")
    return figure


def fig3b(bounds: Dataset, losses: Dataset) -> Figure:
    """Hidden-state bounds of clipped runs and the approximate loss of the unclipped one."""
    figure, panel = panels(1, 1, height=2.9)
    steps = bounds.step.values[1:]
    kinds = {
        "reconstruction": ("-", "clipped, reconstructed bound"),
        "contraction": (":", "clipped, best bound by contraction"),
    }
    for bound, (line, name) in kinds.items():
        for clip_norm, colour in CLIP_COLOURS.items():
            if clip_norm in bounds["clip_norm"]:
                curve = bounds.loss.sel(bound=bound, clip_norm=clip_norm)[1:]
                panel.plot(steps, curve, line, color=colour)
                if line == "-":
                    place = (1.15 * steps[-1], float(curve[-1]))
                    panel.text(*place, f"$c = {clip_norm:g}$", color=colour, va="center")
        panel.plot([], [], line, color="0.4", label=name)
    noisiest = losses.loss.isel(gradient_noise_std=-1)
    selections = {
        "ones": ("-", r"unclipped, pairs by $\|g\|$"),
        "candidates": ("--", "unclipped, worst of search"),
    }
    for selection, (line, name) in selections.items():
        curve = noisiest.sel(selection=selection)
        panel.plot(losses.step, curve, line, color=BLACK, label=name)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="iteration $k$",
        ylabel=f"Rényi loss of order {bounds.attrs['order']:g}",
    )
    panel.set_ylim(1e-5, None)
    panel.legend(loc="lower left", ncols=2)
    figure.suptitle(
        "Reconstruction of Ye and Shokri (2022); " + NO_GUARANTEE[0].lower() + NO_GUARANTEE[1:],
        fontsize=7,
    )
    return figure
