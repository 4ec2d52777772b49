"""Simulated risks of anon2024's algorithm, none of which the paper shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, panels
from reproduction.engine.recipe import Axes, Dataset, Figure

SHAPES = {"identity": (BLUE, "$I$"), "population": (ORANGE, r"$H + I/(N\eta)$")}
CORRELATIONS = {
    "tree": (BLUE, "tree (Algorithm 3)"),
    "independent": (RED, "independent (one-pass DP-SGD)"),
    "square root": (PURPLE, "square root (choquettechoo2024)"),
}
# Factors on a logarithmic axis that keep points of equal settings apart.
APART = (0.93, 1.07, 1.0)


def bars(panel: Axes, x: Any, dataset: Dataset, name: str, **style: Any) -> None:
    """A quantity with two standard errors."""
    error = 2 * dataset[f"{name}_standard_error"]
    given: dict[str, Any] = {"fmt": "o-", "ms": 3, "lw": 0.9} | style
    panel.errorbar(x, dataset[name], error, **given)


def ticks(panel: Axes, values: Any) -> None:
    """These values as the only ticks of a logarithmic axis."""
    panel.set(xscale="log")
    panel.set_xticks(values, [f"{value:g}" for value in values])
    panel.minorticks_off()


def tuned_risk(slow: Dataset, middle: Dataset, steep: Dataset) -> Figure:
    """Tuned excess risk with isotropic noise, and ratios to it; one row a decay."""
    figure, axes = panels(3, 4, height=1.8, sharex=True)
    designs = {"population": (ORANGE, r"$H + I/(N\eta)$"), "public": (GREEN, "public, $M = N$")}
    for row, simulation in zip(axes, (slow, middle, steep), strict=True):
        for correlation, (colour, title) in CORRELATIONS.items():
            at = simulation.sel(arm=f"{correlation}, identity")
            label = title.partition(" (")[0]
            bars(row[0], simulation.epsilon, at, "tuned", color=colour, label=label)
        plain = float(simulation.tuned_nonprivate)
        row[0].axhline(plain, color=BLACK, lw=0.8, ls="--", label="without privacy")
        row[0].set(yscale="log", ylabel=f"decay $r = {simulation.attrs['decay']:g}$")
        for panel, correlation in zip(row[1:], CORRELATIONS, strict=True):
            for apart, (design, (colour, name)) in zip(APART, designs.items(), strict=False):
                at = simulation.sel(comparison=f"{correlation}: {design} over identity")
                x, label = apart * simulation.epsilon, rf"$\Sigma$: {name}"
                bars(panel, x, at, "ratio", color=colour, label=label)
            panel.axhline(1.0, color="0.5", lw=0.6)
            panel.set(ylim=(0.45, 1.35))
    titles = ["tuned excess risk, $\\Sigma = I$", *(name for _, name in CORRELATIONS.values())]
    for panel, title in zip(axes[0], titles, strict=True):
        above = "" if panel is axes[0, 0] else "risk over that of $\\Sigma = I$:\n"
        panel.set_title(above + title, fontsize=6)
    for panel in axes[2]:
        panel.set_xlabel(r"budget $\varepsilon$")
        ticks(panel, (1, 10, 100))
    handles, labels = axes[0, 0].get_legend_handles_labels()
    designed, names = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles + designed, labels + names, loc="outside lower center", ncols=6)
    return figure


def simulation_below_bound(theory: Dataset, simulation: Dataset) -> Figure:
    """Simulated risk, exact risk and Theorem 4.2 against the step size, for the tree."""
    figure, axes = panels(1, 2, height=2.7, sharey=True)
    colours = {1.0: RED, 8.0: ORANGE, 128.0: SKY}
    for panel, (shape, (_, name)) in zip(axes, SHAPES.items(), strict=True):
        for epsilon in np.intersect1d(list(colours), simulation.epsilon):
            colour, label = colours[epsilon], rf"simulated, $\varepsilon = {epsilon:g}$"
            at = simulation.sel(arm=f"tree, {shape}", epsilon=epsilon)
            exact = theory.risk.sel(diagonal_arm=f"tree, {shape}", epsilon=epsilon)
            bound = theory.bound.sel(noise_shape=shape, epsilon=epsilon)
            panel.plot(at.step_size, at.risk, "o", ms=2.5, color=colour, label=label)
            panel.plot(at.step_size, exact, color=colour, lw=0.8)
            panel.plot(at.step_size, bound, "--", color=colour)
        panel.set(xscale="log", yscale="log", xlabel=r"step size $\eta$")
        panel.set_title(rf"tree, $\Sigma$: {name}")
    axes[0].plot([], [], color="0.4", lw=0.8, label="exact, unclipped")
    axes[0].plot([], [], "--", color="0.4", label="Theorem 4.2, constants 1")
    axes[0].set_ylabel("excess risk")
    axes[0].set_ylim(None, 1e9)
    axes[0].legend(fontsize=6, loc="upper left")
    return figure


def noise_errors(theory: Dataset, simulation: Dataset) -> Figure:
    """Simulated error of the noise over both formulas."""
    figure, axes = panels(1, 3, height=2.3, sharey=True)
    linear = theory.linear / theory.exact
    for panel, (correlation, (_, title)) in zip(axes, CORRELATIONS.items(), strict=True):
        for apart, (shape, (colour, name)) in zip(APART, SHAPES.items(), strict=False):
            cell = {"correlation": correlation, "noise_shape": shape}
            style = {"fmt": "o", "color": colour, "label": rf"$\Sigma$: {name}"}
            x = apart * simulation.step_size
            bars(panel, x, simulation.sel(cell), "ratio_to_exact", **style)
            panel.plot(simulation.step_size, linear.sel(cell), "--", color=colour)
        panel.axhline(1, color="0.5", lw=0.6)
        panel.set(xscale="log", xlabel=r"step size $\eta$", title=title)
    axes[0].plot([], [], "--", color="0.4", label="mean gradients, exact")
    axes[0].set_ylabel("error of the noise over its exact value")
    axes[0].legend(fontsize=6)
    return figure


def clip_feedback(theory: Dataset, simulation: Dataset) -> Figure:
    """Median excess risk with adaptive clipping; diverged settings lie in a band of their own."""
    figure, axes = panels(1, 2, height=2.7, sharey=True)
    start = float(simulation.risk_at_start)
    top = 1e3 * start
    steps = simulation.relative_step.values
    titles = {
        "paper": "$C$ of Theorem 4.2",
        "practical": r"$C = 2\,(\mathrm{tr}\,\Sigma^{-1}H)^{1/2}$",
    }
    for panel, (constant, title) in zip(axes, titles.items(), strict=True):
        panel.axhspan(top, 100 * top, color="0.92", lw=0)
        shapes = zip(APART, SHAPES.items(), "os", strict=False)
        for apart, (shape, (colour, name)), marker in shapes:
            cell = {"noise_shape": shape, "constant": constant}
            risk = simulation.median_risk.sel(cell).values
            shown = np.where(risk < top, risk, np.nan)
            style = {"color": colour, "marker": marker, "ms": 3}
            panel.plot(apart * steps, shown, lw=0.9, **style, label=rf"$\Sigma$: {name}")
            lost = risk >= top
            panel.plot(apart * steps[lost], np.full(lost.sum(), 10 * top), ls="", **style)
            gain = theory.gain.sel(cell).values
            crossing = np.exp(np.interp(0.0, np.log(gain), np.log(steps)))
            panel.axvline(apart * crossing, color=colour, lw=0.9, ls=":")
        panel.axhline(start, color="0.5", lw=0.6, label="risk at the start")
        panel.axvline(1.0, color=RED, lw=0.8, label="largest step of Theorem 4.2")
        panel.plot([], [], ":", color="0.4", label="feedback of clip norm and noise has gain 1")
        panel.set(xscale="log", yscale="log", title=title)
        panel.set_xlabel("step size over the largest of Theorem 4.2")
        panel.text(steps[0], 10 * top, "diverged", va="center", fontsize=7, color="0.3")
    axes[0].set(ylabel="median excess risk", ylim=(0.3 * start, 100 * top))
    axes[1].legend(fontsize=6, loc="upper left", bbox_to_anchor=(0.0, 0.64))
    return figure


def dimensions(simulation: Dataset) -> Figure:
    """Tuned excess risk against the dimension, and its change in per cent."""
    figure, axes = panels(1, 2, height=2.5)
    arms = {"non-private": (BLACK, "without privacy")} | {
        f"tree, {shape}": (colour, rf"tree, $\Sigma$: {name}")
        for shape, (colour, name) in SHAPES.items()
    }
    for apart, (arm, (colour, name)) in zip((1.0, *APART), arms.items(), strict=False):
        at, x = simulation.sel(arm=arm), apart * simulation.ratio
        bars(axes[0], x, at, "tuned", color=colour, label=name)
        change, error = at.relative - 1, at.relative_standard_error
        axes[1].errorbar(x, 100 * change, 200 * error, fmt="o-", ms=3, lw=0.9, color=colour)
    for panel in axes:
        ticks(panel, simulation.ratio.values)
        panel.set(xlabel="dimension over sample size, $d / N$")
    axes[0].set(ylabel="tuned excess risk", ylim=(0, None))
    axes[0].legend(fontsize=6, loc="center right")
    axes[1].axhline(0, color="0.5", lw=0.6, zorder=0)
    axes[1].set(ylabel="change from $d = N$ (%)", ylim=(-3, 3))
    return figure
