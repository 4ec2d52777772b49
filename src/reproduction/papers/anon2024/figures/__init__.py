"""Figures of anon2024. The paper has one, a tree; the others are ours and say so."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Dataset, Figure
from reproduction.papers.anon2024.figures.risks import APART, bars, ticks
from reproduction.papers.anon2024.figures.risks import clip_feedback as clip_feedback
from reproduction.papers.anon2024.figures.risks import dimensions as dimensions
from reproduction.papers.anon2024.figures.risks import noise_errors as noise_errors
from reproduction.papers.anon2024.figures.risks import (
    simulation_below_bound as simulation_below_bound,
)
from reproduction.papers.anon2024.figures.risks import tuned_risk as tuned_risk

METHODS = {
    "non-private": (BLACK, "non-private SGD"),
    "identity": (BLUE, r"DP-FTRL-$I$"),
    "designed": (ORANGE, r"DP-FTRL-$\Sigma$"),
}


def fig1(theory: Dataset) -> Figure:
    """The tree: leaves hold gradients, nodes above them sums."""
    figure, axes = panels(1, 1, height=2.6)
    centre, height = (theory["first"] + theory["last"]).values / 2, theory["height"].values
    nodes = list(zip(theory["first"].values, theory["last"].values, height, centre, strict=True))
    for first, last, level, middle in nodes:
        for child_first, child_last, child_level, child_middle in nodes:
            if child_level == level - 1 and first <= child_first and child_last <= last:
                axes.plot([middle, child_middle], [level, child_level], color="0.6", lw=0.8)
    for (first, last, level, middle), enters in zip(nodes, theory.enters.values, strict=True):
        name = f"$m_{{{first}}}$" if level == 0 else f"$g_{{{first}:{last}}}$"
        axes.text(
            middle,
            level,
            name,
            ha="center",
            va="center",
            bbox={
                "boxstyle": "round,pad=0.35",
                "facecolor": "#FBE3B5" if enters else "white",
                "edgecolor": "0.4",
                "linewidth": 0.6,
            },
        )
    axes.set(xlim=(0.4, theory.attrs["leaves"] + 0.6), ylim=(-0.4, height.max() + 0.4))
    axes.axis("off")
    return figure


def exponents(theory: Dataset) -> Figure:
    """Exponent of N against the decay, printed as lines and fitted as points."""
    figure, axes = panels(1, 2, height=2.7)
    for method, (colour, name) in METHODS.items():
        axes[0].plot(
            theory.curve_decay, theory.curve.sel(algorithm=method), color=colour, label=name
        )
        axes[0].plot(theory.decay, theory.fitted.sel(algorithm=method), "o", ms=3, color=colour)
    for change, words in (("better", r"$\Sigma$ passes $I$"), ("branch", "branch changes")):
        at = float(theory.switch.sel(change=change))
        axes[0].axvline(at, color="0.6", lw=0.6, ls=":")
        axes[0].text(at + 0.08, 0.24, f"$r = {at:g}$\n{words}", fontsize=6, color="0.35")
    axes[0].set(xlabel="decay $r$ of $\\lambda_i = i^{-r}$", ylabel="$x$ in excess risk $N^{-x}$")
    axes[0].set_title("constant $\\varepsilon$: lines Table 1, points fitted")
    axes[0].legend(loc="upper left")
    for method, (colour, _) in METHODS.items():
        here = theory.sel(algorithm=method, decay=3.0)
        private = method != "non-private"
        axes[1].plot(theory.power, here.with_noise, color=colour)
        axes[1].plot(theory.fitted_power, here.with_budget_fitted, "o", ms=3, color=colour)
        if private:
            axes[1].plot(theory.power, here.with_budget, ":", color=colour)
    axes[1].plot([], [], "k-", label=r"noise of Theorem 4.1")
    axes[1].plot([], [], "k:", label="Corollaries 4.4 and 4.6")
    axes[1].set(xlabel="$p$ in $\\varepsilon = N^p$", title="growing budget, $r = 3$")
    axes[1].legend(loc="lower right")
    return figure


def bound_curves(theory: Dataset) -> Figure:
    """Minimised bounds against N, with unit noise and with the paper's."""
    figure, axes = panels(2, 4, height=1.9, sharex=True, sharey="row")
    titles = {"unit": r"$\tau = 1$", "published": r"$\tau$ of Theorem 4.1, $\delta = N^{-2}$"}
    for row, noise in enumerate(theory.noise.values):
        for column, decay in enumerate(theory.decay.values[:4]):
            panel = axes[row, column]
            for method, (colour, name) in METHODS.items():
                at = theory.sel(noise=noise, algorithm=method, decay=decay)
                panel.plot(theory.sample_size, at.bound, color=colour, label=name)
                place = list(METHODS).index(method)
                panel.text(
                    0.97,
                    0.97 - 0.09 * place,
                    f"slope {-float(at.exponent):.2f}",
                    transform=panel.transAxes,
                    fontsize=6,
                    color=colour,
                    ha="right",
                    va="top",
                )
            panel.set(xscale="log", yscale="log")
            if row == 0:
                panel.set_title(f"$r = {float(decay):g}$")
            else:
                panel.set_xlabel("sample size $N$")
        axes[row, 0].set_ylabel(f"least bound\n{titles[str(noise)]}")
        # Space above the curves for the slopes.
        axes[row, 0].set_ylim(None, 50 * float(theory.bound.sel(noise=noise).max()))
    axes[0, 0].legend(loc="lower left", fontsize=6)
    return figure


def tree_covariance(theory: Dataset, simulation: Dataset) -> Figure:
    """Covariance of prefix noises: drawn, and its diagonal against the popcount."""
    figure, axes = panels(1, 2, height=2.7)
    drawn = axes[0].pcolormesh(
        simulation.step, simulation.other_step, simulation.covariance, cmap="viridis",
        shading="nearest", rasterized=True,
    )  # fmt: skip
    figure.colorbar(drawn, ax=axes[0], label=r"covariance of $\nu_s, \nu_t$ over $\sigma^2$")
    axes[0].set(xlabel="step $t$", ylabel="step $s$", aspect="equal")
    for panel in axes:
        panel.set_xticks(theory.step.values[1::2])
    axes[0].set_yticks(theory.step.values[1::2])
    variance = np.diag(simulation.covariance.values)
    error = np.diag(simulation.covariance_standard_error.values)
    axes[1].step(
        theory.step,
        np.diag(theory.law.values),
        where="mid",
        color="0.5",
        label="ones in the digits of $t$",
    )
    axes[1].errorbar(
        theory.step, variance, 4 * error, fmt="o", ms=3, color=BLUE, label="variance, drawn"
    )
    axes[1].plot(
        theory.step[:-1],
        np.diag(simulation.covariance.values, 1),
        "s",
        ms=3,
        color=ORANGE,
        label="covariance with the next prefix, drawn",
    )
    axes[1].set(xlabel="step $t$", ylabel=r"of the prefix noise, over $\sigma^2$", ylim=(-0.3, 5.6))
    axes[1].legend(loc="upper left")
    score = float(simulation.largest_score)
    axes[1].set_title(f"largest deviation {score:.1f} standard errors")
    return figure


def effective_dimension(theory: Dataset, simulation: Dataset) -> Figure:
    """Effective dimension and shaped trace against the horizon, and the public features' share."""
    figure, axes = panels(1, 2, height=2.6)
    lines = dict(zip(simulation.public_ratio.values, ("o-", "s--"), strict=False))
    for apart, colour, decay in zip(
        APART, (BLUE, ORANGE, GREEN), theory.decay.values, strict=False
    ):
        at, label = theory.sel(decay=decay), f"$r = {float(decay):g}$"
        axes[0].plot(theory.horizon, at.effective_dimension, color=colour, label=label)
        axes[0].plot(theory.horizon, at.shaped_trace, "--", color=colour)
        for ratio, line in lines.items():
            point = simulation.sel(decay=decay, public_ratio=ratio)
            x = apart * simulation.sampled_horizon
            bars(axes[1], x, point, "inverse_ratio", fmt=line, color=colour)
    axes[0].plot([], [], "--", color="0.4", label=r"$\mathrm{tr}(\Sigma^{-1} H)$")
    axes[0].set(xscale="log", yscale="log", ylabel="effective dimension")
    for ratio, line in lines.items():
        rows = "N" if ratio == 1 else f"{int(ratio)} N"
        axes[1].plot([], [], line, ms=3, lw=0.9, color="0.4", label=f"$M = {rows}$ public rows")
    axes[1].axhline(1, color=RED, lw=0.6, ls=":")
    axes[1].set(ylabel=r"$\mathrm{tr}(\Sigma^{-1} H)$, public over population")
    ticks(axes[1], simulation.sampled_horizon.values)
    for panel in axes:
        panel.set(xlabel=r"steps times step size, $N\eta$")
        panel.legend()
    return figure


def privacy_constant(theory: Dataset) -> Figure:
    """Guaranteed against promised epsilon at the paper's noise."""
    figure, axes = panels(1, 2, height=2.6)
    colours = {"stated": BLACK, "replace-one": RED, "zero-out": BLUE}
    names = {
        "stated": "as the proof counts",
        "replace-one": "a record replaced",
        "zero-out": "a record blanked",
    }
    for reading, colour in colours.items():
        at = theory.sel(reading=reading)
        axes[0].plot(
            theory.promised,
            at.epsilon / theory.promised,
            "o-",
            ms=3,
            color=colour,
            label=names[reading],
        )
        axes[0].plot(theory.promised, at.exact_epsilon / theory.promised, "--", color=colour)
    axes[0].plot([], [], "--", color="0.4", label="exact Gaussian")
    axes[0].axhline(1, color="0.6", lw=0.6, ls=":")
    axes[0].set(
        xscale="log",
        xlabel=r"promised $\varepsilon$",
        ylabel=r"$\varepsilon$ at the paper's noise / promised",
    )
    axes[0].set_xticks(theory.promised.values, [f"{e:g}" for e in theory.promised.values])
    axes[0].minorticks_off()
    axes[0].set_ylim(None, 1.8)
    axes[0].legend(fontsize=6, loc="upper right", ncols=2)
    one = theory.sel(promised=1.0)
    sizes = theory.sample_size.values.astype(float)
    axes[1].plot(sizes, one.rows_needed, "o-", ms=3, color=GREEN, label="rows needed at least")
    axes[1].plot(sizes, sizes, ":", color="0.4", label="$N$")
    axes[1].set(
        xscale="log",
        yscale="log",
        xlabel="sample size $N$",
        title=r"private residual estimate (Option 2), $\varepsilon = 1$",
    )
    axes[1].legend()
    return figure
