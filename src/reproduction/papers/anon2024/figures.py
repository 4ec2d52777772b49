"""Figures of anon2024. The paper has one, a tree; the others are ours and say so."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, panels, ticks
from reproduction.engine.recipe import Axes, Dataset, Figure

METHODS = {
    "non-private": (BLACK, "non-private SGD"),
    "identity": (BLUE, r"DP-FTRL-$I$"),
    "designed": (ORANGE, r"DP-FTRL-$\Sigma$"),
}
SHAPES = {"identity": (BLUE, "$I$"), "population": (ORANGE, r"$H + I/(N\eta)$")}
CORRELATIONS = {
    "tree": (BLUE, "tree (Algorithm 3)"),
    "independent": (RED, "independent (one-pass DP-SGD)"),
    "square root": (PURPLE, "square root (choquettechoo2024)"),
}
# Factors on a logarithmic axis that keep points of equal settings apart.
APART = (0.93, 1.07, 1.0)


def fig1(theory: Dataset) -> Figure:
    """The tree: leaves hold gradients, nodes above them sums."""
    figure, axes = panels(1, 1, height=2.6)
    height = theory["height"].values
    nodes = list(zip(theory["first"].values, theory["last"].values, height, strict=True))
    for first, last, level in nodes:
        for child_first, child_last, child_level in nodes:
            if child_level == level - 1 and first <= child_first and child_last <= last:
                x = [(first + last) / 2, (child_first + child_last) / 2]
                axes.plot(x, [level, child_level], color="0.6", lw=0.8)
    box = {"boxstyle": "round,pad=0.35", "edgecolor": "0.4", "linewidth": 0.6}
    for (first, last, level), enters in zip(nodes, theory.enters.values, strict=True):
        name = f"$m_{{{first}}}$" if level == 0 else f"$g_{{{first}:{last}}}$"
        box["facecolor"] = "#FBE3B5" if enters else "white"
        axes.text((first + last) / 2, level, name, ha="center", va="center", bbox=box)
    axes.set(xlim=(0.4, theory.attrs["leaves"] + 0.6), ylim=(-0.4, height.max() + 0.4))
    axes.axis("off")
    return figure


def exponents(theory: Dataset) -> Figure:
    """Exponents of N against the decay: lines as printed, points as fitted."""
    figure, axes = panels(1, 2, height=2.7)
    for method, (colour, name) in METHODS.items():
        at = theory.sel(algorithm=method)
        axes[0].plot(theory.curve_decay, at.curve, color=colour, label=name)
        axes[0].plot(theory.decay, at.fitted, "o", ms=3, color=colour)
    for change, words in (("better", r"$\Sigma$ passes $I$"), ("branch", "branch changes")):
        decay = float(theory.switch.sel(change=change))
        axes[0].axvline(decay, color="0.6", lw=0.6, ls=":")
        axes[0].text(decay + 0.08, 0.24, f"$r = {decay:g}$\n{words}", fontsize=6, color="0.35")
    axes[0].set(xlabel="decay $r$ of $\\lambda_i = i^{-r}$", ylabel="$x$ in excess risk $N^{-x}$")
    axes[0].set_title("constant $\\varepsilon$: lines Table 1, points fitted")
    for method, (colour, _) in METHODS.items():
        here = theory.sel(algorithm=method, decay=3.0)
        axes[1].plot(theory.power, here.with_noise, color=colour)
        axes[1].plot(theory.fitted_power, here.with_budget_fitted, "o", ms=3, color=colour)
        if method != "non-private":
            axes[1].plot(theory.power, here.with_budget, ":", color=colour)
    axes[1].plot([], [], color="0.6", label="noise of Theorem 4.1")
    axes[1].plot([], [], ":", color="0.6", label="Corollaries 4.4 and 4.6")
    label = axes[0].get_ylabel()
    axes[1].set(xlabel="$p$ in $\\varepsilon = N^p$", ylabel=label, title="growing budget, $r = 3$")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def bound_curves(theory: Dataset) -> Figure:
    """Minimised bounds against N, with unit noise and with the paper's."""
    figure, axes = panels(2, 4, height=1.9, sharex=True, sharey="row")
    titles = {"unit": r"$\tau = 1$", "published": r"$\tau$ of Theorem 4.1, $\delta = N^{-2}$"}
    for row, noise in zip(axes, theory.noise.values, strict=True):
        for panel, decay in zip(row, theory.decay.values, strict=False):
            for place, (method, (colour, name)) in enumerate(METHODS.items()):
                at = theory.sel(noise=noise, algorithm=method, decay=decay)
                panel.plot(theory.sample_size, at.bound, color=colour, label=name)
                style = {"fontsize": 6, "color": colour, "ha": "right", "va": "top"}
                slope, x, y = f"slope {-float(at.exponent):.2f}", 0.97, 0.97 - 0.09 * place
                panel.text(x, y, slope, transform=panel.transAxes, **style)
            panel.set(xscale="log", yscale="log")
        row[0].set_ylabel(f"least bound\n{titles[str(noise)]}")
        # Space above the curves for the slopes.
        row[0].set_ylim(None, 50 * float(theory.bound.sel(noise=noise).max()))
    for panel, decay in zip(axes[0], theory.decay.values, strict=False):
        panel.set_title(f"$r = {float(decay):g}$")
    for panel in axes[1]:
        panel.set_xlabel("sample size $N$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def tree_covariance(theory: Dataset, simulation: Dataset) -> Figure:
    """Covariance of prefix noises: drawn, and its diagonal against the popcount."""
    figure, axes = panels(1, 2, height=2.7)
    steps, covariance = theory.step, simulation.covariance.values
    style = {"cmap": "viridis", "shading": "nearest", "rasterized": True}
    drawn = axes[0].pcolormesh(simulation.step, simulation.other_step, covariance, **style)
    figure.colorbar(drawn, ax=axes[0], label=r"covariance of $\nu_s, \nu_t$ over $\sigma^2$")
    axes[0].set(xlabel="step $t$", ylabel="step $s$", aspect="equal")
    for panel in axes:
        panel.set_xticks(steps.values[1::2])
    axes[0].set_yticks(steps.values[1::2])
    law, error = np.diag(theory.law.values), np.diag(simulation.covariance_standard_error.values)
    axes[1].step(steps, law, where="mid", color="0.5", label="ones in the binary digits of $t$")
    style = {"fmt": "o", "ms": 3, "color": BLUE, "label": r"variance of $\nu_t$, drawn"}
    axes[1].errorbar(steps, np.diag(covariance), 4 * error, **style)
    # Between its two steps, where it covers no variance.
    label = r"covariance of $\nu_t, \nu_{t+1}$, drawn"
    axes[1].plot(steps[:-1] + 0.5, np.diag(covariance, 1), "s", ms=3, color=ORANGE, label=label)
    axes[1].set(xlabel="step $t$", ylabel=r"covariance over $\sigma^2$", ylim=(-0.3, 5.6))
    axes[1].legend(loc="upper left")
    return figure


def effective_dimension(theory: Dataset, simulation: Dataset) -> Figure:
    """Effective dimension and shaped trace against the horizon, and the public features' share."""
    figure, axes = panels(1, 3, height=2.5, width_ratios=[3, 2, 2])
    axes[2].sharey(axes[1])
    styles = (BLUE, "o-"), (ORANGE, "s-"), (GREEN, "^-")
    for apart, (colour, fmt), decay in zip(APART, styles, theory.decay.values, strict=False):
        at, style = theory.sel(decay=decay), {"color": colour, "ms": 4}
        mark = {"label": f"$r = {float(decay):g}$", "markevery": 0.2}
        axes[0].plot(theory.horizon, at.effective_dimension, fmt, **style, **mark)
        axes[0].plot(theory.horizon, at.shaped_trace, "--", color=colour)
        for panel, ratio in zip(axes[1:], simulation.public_ratio.values, strict=False):
            point = simulation.sel(decay=decay, public_ratio=ratio)
            bars(panel, apart * point.sampled_horizon, point, "inverse_ratio", fmt=fmt, **style)
            panel.set_title(f"$M = {ratio:.2g}\\, N$ public rows".replace("1\\, ", ""))
    axes[0].plot([], [], "--", color="0.4", label=r"trace $\mathrm{tr}(\Sigma^{-1} H)$")
    axes[0].set(xscale="log", yscale="log", ylabel="effective dimension")
    for panel in axes[1:]:
        panel.axhline(1, color="0.5", lw=0.6, zorder=0)
        ticks(panel, simulation.sampled_horizon.values)
    axes[1].set_ylabel("trace, public over population")
    for panel in axes:
        panel.set(xlabel=r"steps times step size, $N\eta$")
    axes[0].legend()
    return figure


def privacy_constant(theory: Dataset) -> Figure:
    """Guaranteed against promised epsilon at the paper's noise."""
    figure, axes = panels(1, 2, height=2.6)
    readings = {
        "stated": (BLACK, "as the proof counts"),
        "replace-one": (RED, "a record replaced"),
        "zero-out": (BLUE, "a record blanked"),
    }
    for reading, (colour, name) in readings.items():
        at, style = theory.sel(reading=reading), {"color": colour, "label": name}
        axes[0].plot(theory.promised, at.epsilon / theory.promised, "o-", ms=3, **style)
        axes[0].plot(theory.promised, at.exact_epsilon / theory.promised, "--", color=colour)
    axes[0].plot([], [], "--", color="0.4", label="by the exact Gaussian account")
    axes[0].axhline(1, color="0.6", lw=0.6, ls=":")
    ticks(axes[0], theory.promised.values)
    axes[0].set(xlabel=r"promised $\varepsilon$", ylim=(None, 1.8))
    axes[0].set_ylabel(r"guaranteed over promised $\varepsilon$")
    axes[0].set_title("guarantee of the noise of Theorem 4.1")
    axes[0].legend(fontsize=6, loc="upper right", ncols=2)
    one = theory.sel(promised=1.0)
    sizes = theory.sample_size.values.astype(float)
    axes[1].plot(sizes, one.rows_needed, "o-", ms=3, color=GREEN, label="rows needed at least")
    axes[1].plot(sizes, sizes, ":", color="0.4", label="$N$")
    axes[1].set(xscale="log", yscale="log", xlabel="sample size $N$", ylabel="rows")
    axes[1].set_title(r"private residual estimate (Option 2), $\varepsilon = 1$")
    axes[1].legend()
    return figure


def tuned_risk(slow: Dataset, middle: Dataset, steep: Dataset) -> Figure:
    """Tuned excess risk with isotropic noise, and ratios to it; one row a decay."""
    figure, axes = panels(3, 4, height=1.7, sharex=True)
    designs = {"population": (ORANGE, r"$H + I/(N\eta)$"), "public": (GREEN, "$M = N$ public rows")}
    for row, simulation in zip(axes, (slow, middle, steep), strict=True):
        for correlation, (colour, title) in CORRELATIONS.items():
            at = simulation.sel(arm=f"{correlation}, identity")
            label = title.partition(" (")[0]
            bars(row[0], simulation.epsilon, at, "tuned", color=colour, label=label)
        plain = float(simulation.tuned_nonprivate)
        row[0].axhline(plain, color=BLACK, lw=0.8, ls="--", label="without privacy")
        row[0].set(yscale="log", ylabel=f"tuned risk, $r = {simulation.attrs['decay']:g}$")
        for panel, correlation in zip(row[1:], CORRELATIONS, strict=True):
            for apart, (design, (colour, label)) in zip(APART, designs.items(), strict=False):
                at = simulation.sel(comparison=f"{correlation}: {design} over identity")
                bars(panel, apart * simulation.epsilon, at, "ratio", color=colour, label=label)
            panel.axhline(1.0, color="0.5", lw=0.6)
            panel.set(ylim=(0.45, 1.35))
            panel.tick_params(labelleft=panel is row[1])
        row[1].set_ylabel(r"over that of $\Sigma = I$")
    titles = ["$\\Sigma = I$", *(name.replace(" (", "\n(") for _, name in CORRELATIONS.values())]
    for panel, title in zip(axes[0], titles, strict=True):
        panel.set_title(title)
    for panel in axes[2]:
        panel.set_xlabel(r"budget $\varepsilon$")
        ticks(panel, (1, 10, 100))
    meanings = {"left": "noise correlated over steps", "right": r"shape $\Sigma$ of the noise"}
    for panel, (side, meaning) in zip(axes[0], meanings.items(), strict=False):
        style: dict[str, Any] = {
            "loc": f"outside lower {side}",
            "ncols": 2,
            "title": f"{side}: {meaning}",
        }
        figure.legend(*panel.get_legend_handles_labels(), **style)
    return figure


def simulation_below_bound(theory: Dataset, simulation: Dataset) -> Figure:
    """Simulated risk, exact risk and Theorem 4.2 against the step size, for the tree."""
    epsilons = np.intersect1d((1.0, 8.0, 128.0), simulation.epsilon)
    figure, axes = panels(2, len(epsilons), height=1.8, sharex=True, sharey=True)
    for row, (shape, (_, name)) in zip(axes, SHAPES.items(), strict=True):
        for panel, epsilon in zip(row, epsilons, strict=True):
            at = simulation.sel(arm=f"tree, {shape}", epsilon=epsilon)
            exact = theory.risk.sel(diagonal_arm=f"tree, {shape}", epsilon=epsilon)
            bound = theory.bound.sel(noise_shape=shape, epsilon=epsilon)
            panel.plot(at.step_size, bound, "--", color=BLACK, label="Theorem 4.2, all constants 1")
            style = {"color": RED, "fmt": "o", "label": "simulated, clipped"}
            bars(panel, at.step_size, at, "risk", **style)
            panel.plot(at.step_size, exact, color=BLUE, label="exact, without clipping")
            panel.set(xscale="log", yscale="log")
            panel.set_title(rf"$\Sigma$: {name}, $\varepsilon = {epsilon:g}$")
        row[0].set_ylabel("excess risk")
    for panel in axes[1]:
        panel.set_xlabel(r"step size $\eta$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def noise_errors(theory: Dataset, simulation: Dataset) -> Figure:
    """Simulated error from noise, divided by each of the two formulas."""
    figure, axes = panels(1, 3, height=2.3, sharey=True)
    linear = theory.linear / theory.exact
    for panel, (correlation, (_, title)) in zip(axes, CORRELATIONS.items(), strict=True):
        for apart, (shape, (colour, name)) in zip(APART, SHAPES.items(), strict=False):
            cell = {"correlation": correlation, "noise_shape": shape}
            style = {"fmt": "o", "color": colour, "label": rf"simulated, $\Sigma$: {name}"}
            x = apart * simulation.step_size
            bars(panel, x, simulation.sel(cell), "ratio_to_exact", **style)
            label = rf"with mean gradients, $\Sigma$: {name}"
            panel.plot(simulation.step_size, linear.sel(cell), "--", color=colour, label=label)
        panel.axhline(1, color="0.5", lw=0.6)
        panel.set(xscale="log", xlabel=r"step size $\eta$", title=title)
    axes[0].set_ylabel("noise risk over exact")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def clip_feedback(theory: Dataset, simulation: Dataset) -> Figure:
    """Median excess risk with adaptive clipping; diverged settings lie in a band of their own."""
    figure, axes = panels(1, 2, height=2.7, sharey=True)
    start, steps = float(simulation.risk_at_start), simulation.relative_step.values
    top = 1e3 * start
    titles = {
        "paper": "$C$ of Theorem 4.2",
        "practical": r"$C = 2\,(\mathrm{tr}\,\Sigma^{-1}H)^{1/2}$",
    }
    for panel, (constant, title) in zip(axes, titles.items(), strict=True):
        panel.axhspan(top, 100 * top, color="0.92", lw=0)
        # Dots of one line lie between those of the other where both coincide.
        shapes = zip(APART, SHAPES.items(), "os", (0, 2), strict=False)
        for apart, (shape, (colour, name)), marker, offset in shapes:
            cell = {"noise_shape": shape, "constant": constant}
            risk = simulation.median_risk.sel(cell).values
            shown = np.where(risk < top, risk, np.nan)
            style = {"color": colour, "marker": marker, "ms": 3}
            panel.plot(apart * steps, shown, lw=0.9, **style, label=rf"$\Sigma$: {name}")
            lost = risk >= top
            panel.plot(apart * steps[lost], np.full(lost.sum(), 10 * top), ls="", **style)
            gain = theory.gain.sel(cell).values
            crossing = np.exp(np.interp(0.0, np.log(gain), np.log(steps)))
            panel.axvline(crossing, color=colour, lw=1.1, ls=(offset, (1, 3)))
        panel.axhline(start, color="0.5", lw=0.6, label="risk at the start")
        panel.axvline(1.0, color=RED, lw=0.8, label="largest step of Theorem 4.2")
        panel.plot([], [], ":", color="0.4", label="feedback of clip norm and noise has gain 1")
        panel.set(xscale="log", yscale="log", title=title)
        panel.set_xlabel("step size over the largest of Theorem 4.2")
        panel.text(steps[0], 10 * top, "diverged", va="center", fontsize=7, color="0.3")
    axes[0].set(ylabel="median excess risk", ylim=(0.3 * start, 100 * top))
    # Heights in the band mean nothing.
    axes[0].set_yticks(10.0 ** np.arange(*np.ceil(np.log10([0.3 * start, top]))))
    axes[0].yaxis.minorticks_off()
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
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


def bars(panel: Axes, x: Any, dataset: Dataset, name: str, **style: Any) -> None:
    """A quantity with two standard errors."""
    error = 2 * dataset[f"{name}_standard_error"]
    given: dict[str, Any] = {"fmt": "o-", "ms": 3, "lw": 0.9} | style
    panel.errorbar(x, dataset[name], error, **given)
