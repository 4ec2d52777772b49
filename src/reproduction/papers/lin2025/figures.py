"""Figures of lin2025, drawn from artifacts alone; `readings` and later ones are not the paper's."""

from __future__ import annotations

import json

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, numbers, panels
from reproduction.engine.recipe import Axes, Dataset, Figure

NO_GUARANTEE = "Not a guarantee: an approximation by a conjecture, over observed pairs."
NOISE_COLOURS = (GREEN, ORANGE, BLUE)
MARKERS = {RED: "o", ORANGE: "s", GREEN: "^", BLUE: "D", BLACK: "."}
CLIP_COLOURS = {1.0: PURPLE, 2.0: RED, 3.0: ORANGE, 5.0: GREEN, 7.0: BLUE}
PAPER_NORMS = (3.0, 5.0, 7.0)
READING_NAMES = {
    "centred": r"centred, sd $d^{-1/2}$",
    "literal": r"literal, $U(0, d^{-1/2})$",
    "symmetric": r"symmetric, $U(\pm d^{-1/2})$",
    "wide": r"wide, variance $d^{-1/2}$",
}
PROXY_NAMES = {
    "ones": r"$\|g\|$ as printed, at $\mathbf{1}_d$",
    "mean": r"$\|g_m\|$, at the mean $m(s)$",
    "norm": r"$\|a\|^4 + \|a'\|^4$",
}


def fig1a(centred: Dataset, literal: Dataset) -> Figure:
    """Quantiles of the last iterates' Mahalanobis distances against the chi-square law."""
    figure, axes = panels(1, 2, height=2.6)
    for panel, dataset, reading in zip(axes, (centred, literal), READING_NAMES, strict=False):
        quantile = dataset.chi_square_quantile.values
        gradient_noise_std = float(dataset.gradient_noise_std[-1])
        panel.plot(quantile, dataset.sorted_distance.values[-1], "o", ms=2, color=BLUE)
        ends = np.array([quantile[0], quantile[-1]])
        panel.plot(ends, ends, color=BLACK, lw=0.8)
        mean = float(dataset.distance_per_coordinate[-1])
        error = float(dataset.distance_per_coordinate_standard_error[-1])
        words = f"mean / $d$ = {mean:.4f}\nstandard error {error:.4f}"
        panel.text(0.04, 0.85, words, transform=panel.transAxes)
        panel.set(
            title=f"{READING_NAMES[reading]}, $\\sigma = {gradient_noise_std:g}$",
            xlabel=r"quantile of $\chi^2_d$",
            ylabel=r"$(x_n - m)^\top V^{-1} (x_n - m)$, sorted",
        )
    return figure


def fig1b(simulation: Dataset) -> Figure:
    """Loss of random observed pairs against three proxies, early and late."""
    figure, axes = panels(2, 3, height=2.2, sharey="row")
    for row, shown in enumerate(axes):
        place = simulation.isel(place=row)
        for panel, proxy in zip(shown, simulation.proxy.values, strict=True):
            at = place.sel(proxy=proxy)
            panel.plot(at.proxy_value, at.loss, ".", ms=2, color=BLUE, alpha=0.6)
            if not row:
                panel.set_yscale("log")
                numbers(panel.yaxis)
            share = f"its top pair: {100 * float(at.top_share):.0f} % of the largest loss"
            panel.set_title(f"correlation {float(at.correlation):.2f}\n{share}", fontsize=7)
            if row:
                panel.set_xlabel(PROXY_NAMES[str(proxy)])
        times = f"({float(place.time):g}, {float(place.position):g})"
        shown[0].set_ylabel(f"$D_{{{simulation.attrs['order']:g}}}$ at $(t, s) = {times}$")
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def fig2a(centred: Dataset, literal: Dataset) -> Figure:
    """Population risk of one run and of the theory, in two readings of the design."""
    figure, axes = panels(1, 4, height=2.4, width_ratios=[2, 1, 1, 1])
    _risk_panel(axes[0], centred, "centred")
    _literal_panels(axes[1:], literal)
    axes[0].set_ylabel(r"population risk $\mathcal{P}$")
    axes[0].legend(loc="upper right")
    return figure


def fig2b(simulation: Dataset) -> Figure:
    """Approximate loss of the last iterate along the path, and the effect of more noise."""
    figure, axes = panels(1, 2, height=2.6)
    stds = simulation.gradient_noise_std.values
    styles = {"ones": ("-", r"pairs by printed $\|g\|$"), "candidates": ("--", "worst of search")}
    for colour, std in zip(NOISE_COLOURS, stds, strict=False):
        for selection, (line, _) in styles.items():
            at = simulation.sel(gradient_noise_std=std, selection=selection)
            label = f"$\\sigma = {std:g}$" if line == "-" else None
            _means(axes[0], at, "loss", line, colour, label)
    for line, name in styles.values():
        axes[0].plot([], [], line, color="0.4", label=name)
    order = simulation.attrs["order"]
    label = f"$\\varepsilon_{{{order:g}}}$, record order shuffled"
    axes[0].set(xscale="log", yscale="log", xlabel="iteration $k$", ylabel=label)
    axes[0].legend(loc="upper right")
    for colour, std, before in zip(NOISE_COLOURS[1:], stds[1:], stds[:-1], strict=False):
        for selection, (line, _) in styles.items():
            at = simulation.sel(noise_step=std, selection=selection)
            label = f"$\\sigma = {std:g}$ over ${before:g}$" if line == "-" else None
            _means(axes[1], at, "noise_ratio", line, colour, label)
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
    axes[2].set(title="added: smaller thresholds", ylim=(0, None), ylabel=axes[0].get_ylabel())
    for panel in axes:
        panel.set_xlabel("iteration $k$")
    return figure


def fig3b(bounds: Dataset, losses: Dataset) -> Figure:
    """Hidden-state bounds of clipped runs and the approximate loss of the unclipped one."""
    figure, axes = panels(1, 2, height=2.7, sharey=True)
    steps = bounds.step.values[1:]
    kinds = {"reconstruction": ("-", "reconstructed bound"), "contraction": (":", "best bound")}
    noisiest = losses.isel(gradient_noise_std=-1)
    selections = {"ones": ("-", r"pairs by $\|g\|$"), "candidates": ("--", "worst of search")}
    for panel, shown in zip(axes, (PAPER_NORMS, (1.0, 2.0)), strict=True):
        for bound, (line, name) in kinds.items():
            for clip_norm in np.intersect1d(shown, bounds["clip_norm"]):
                curve = bounds.loss.sel(bound=bound, clip_norm=clip_norm)[1:]
                colour = CLIP_COLOURS[clip_norm]
                panel.plot(steps, curve, line, color=colour)
                if line == "-":
                    place = (1.15 * steps[-1], float(curve[-1]))
                    panel.text(*place, f"$c = {clip_norm:g}$", color=colour, va="center", size=6)
            panel.plot([], [], line, color="0.4", label=f"clipped at $c$, {name}")
        for selection, (line, name) in selections.items():
            at = noisiest.sel(selection=selection)
            _means(panel, at, "loss", line, BLACK, f"unclipped, {name}")
        panel.set(xscale="log", yscale="log", xlabel="iteration $k$")
    axes[0].set_title("thresholds of the paper")
    axes[1].set_title("added: smaller thresholds")
    axes[0].set_ylabel(f"Rényi loss of order {bounds.attrs['order']:g}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"Black curves. {NO_GUARANTEE}", fontsize=7)
    return figure


def readings(centred: Dataset, literal: Dataset, symmetric: Dataset, wide: Dataset) -> Figure:
    """Risk of one run and of the theory in four readings of the design."""
    figure, axes = panels(2, 3, height=1.9)
    others = {"centred": centred, "symmetric": symmetric, "wide": wide}
    for panel, (reading, dataset) in zip(axes[0], others.items(), strict=True):
        _risk_panel(panel, dataset, reading)
    _literal_panels(axes[1], literal)
    for row in axes:
        row[0].set_ylabel(r"population risk $\mathcal{P}$")
    axes[0, -1].legend(loc="upper right", fontsize=6)
    return figure


def concentration(theory: Dataset, simulation: Dataset) -> Figure:
    """Distances to the theory against the dimension, with lines of the stated slopes."""
    figure, axes = panels(1, 3, height=2.2)
    dimension = theory.dimension.values.astype(float)
    curves = (
        (theory, "mean_gap", -1.0, "mean risk, exact", r"slope $-1$"),
        (simulation, "gap", -0.5, "risk of one run", r"slope $-1/2$"),
        (simulation, "martingale", -0.5, "martingale of Lemma A.4", r"lemma's slope $-1/2$"),
    )
    for panel, (dataset, quantity, rate, title, label) in zip(axes, curves, strict=True):
        values, error = dataset[quantity], dataset.get(f"{quantity}_standard_error")
        fitted = f"fitted slope ${float(dataset[f'{quantity}_slope']):.2f}$"
        panel.errorbar(dimension, values, error, fmt="o", ms=3, color=BLUE, capsize=2, label=fitted)
        middle = np.exp(np.log(values.values).mean() - rate * np.log(dimension).mean())
        panel.plot(dimension, middle * dimension**rate, color=BLACK, lw=0.8, label=label)
        panel.set(xscale="log", yscale="log", xlabel="dimension $d$", title=title)
        panel.set_xticks(dimension, [f"{d:g}" for d in dimension])
        panel.minorticks_off()
        numbers(panel.yaxis)
        panel.legend(loc="upper right")
    axes[0].set_ylabel("largest distance to the theory")
    return figure


def release_strategies(simulation: Dataset) -> Figure:
    """Divergence by position and loss at a random position of three strategies."""
    figure, axes = panels(1, 3, height=2.7, width_ratios=[3, 3, 2])
    colours = dict(zip(simulation.strategy.values, (BLACK, BLUE, ORANGE), strict=True))
    last, *others = colours
    for panel, strategy in zip(axes, others, strict=False):
        for release in simulation.release.values:
            panel.axvline(release, color="0.85", lw=0.6, zorder=0)
        for shown, variant in ((strategy, "exact"), (strategy, "paper"), (last, "exact")):
            line = "--" if variant == "paper" else "-"
            at = simulation.divergence.sel(strategy=shown, variant=variant)
            panel.plot(simulation.position, at, line, color=colours[shown], lw=1)
        panel.set(yscale="log", xlabel="position $s$ of the differing record", title=strategy)
        panel.set_ylim(5e-7, 3e-2)
    axes[0].set_ylabel(f"$D_{{{simulation.attrs['order']:g}}}$ given $s$")
    axes[1].tick_params(labelleft=False)
    places = np.arange(len(colours))
    kinds = (("exact", -0.1, None, "o-", "exact"), ("paper", 0.1, "white", "o--", "as printed"))
    for variant, apart, face, look, label in kinds:
        at = simulation.sel(variant=variant)
        for place, (strategy, colour) in zip(places, colours.items(), strict=True):
            value = at.loss.sel(strategy=strategy)
            error = 2 * at.loss_standard_error.sel(strategy=strategy)
            axes[2].errorbar(place + apart, value, error, fmt="o", ms=5, color=colour, mfc=face)
        axes[2].plot([], [], look, ms=5, lw=1, color="0.3", mfc=face, label=label)
    axes[2].plot([], [], color=BLACK, lw=1, label=last)
    axes[2].plot([], [], color="0.85", lw=0.6, label="releases")
    axes[2].set_xticks(places, [str(name).replace(" ", "\n") for name in colours])
    axes[2].set(yscale="log", ylabel=r"$\varepsilon$", xlim=(-0.5, len(colours) - 0.5))
    axes[2].set(ylim=(1e-4, 1e-2), title="position random")
    figure.legend(loc="outside lower center", ncols=4)
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def orders(simulation: Dataset, pairs: Dataset) -> Figure:
    """Loss against the Rényi order, up to the order at which it becomes infinite."""
    figure, panel = panels(1, 1, height=2.5)
    finite = simulation.isel(order=np.isfinite(simulation.swept_loss.values).all(axis=1))
    for colour, step in zip((RED, ORANGE, BLUE), simulation.sweep_step.values, strict=False):
        at = finite.sel(sweep_step=step)
        _means(panel, at, "swept_loss", "-", colour, f"after {step} steps")
    limit, last = float(pairs.order_limit), float(simulation.order[-1])
    if limit < last:
        panel.axvspan(limit, last, color="0.9", zorder=0, lw=0)
        place = panel.get_xaxis_transform()
        panel.text((limit + last) / 2, 0.5, "infinite", transform=place, ha="center", fontsize=7)
        panel.set_xlim(None, last)
    panel.set(yscale="log", xlabel=r"Rényi order $\alpha$", ylabel=r"loss $\varepsilon_\alpha$")
    panel.legend(loc="upper left")
    figure.suptitle(NO_GUARANTEE, fontsize=7)
    return figure


def fixed_order(
    simulation: Dataset, noise_1: Dataset, noise_03: Dataset, noise_01: Dataset, noise_003: Dataset
) -> Figure:
    """Exact loss and the diffusion's by the noise; their distance in the paper's design."""
    figure, axes = panels(1, 3, height=2.6)
    titles = {
        "surrogate": "paper's design, as printed,\n$t - s$ = lag / $d$",
        "shorter_surrogate": "one step less,\n$t - s$ = (lag - 1) / $d$",
    }
    small = [each.isel(position=0, lag=0) for each in (noise_1, noise_03, noise_01, noise_003)]
    given = [json.loads(each.attrs["config"]) for each in small]
    scaled = [each["gradient_noise_std"] * each["design"]["dimension"] ** 0.5 for each in given]
    for name, line, label in (("exact", "o-", "exact"), ("shorter_surrogate", "x--", "diffusion")):
        losses = [float(each[name]) for each in small]
        bars = [2 * float(each[f"{name}_standard_error"]) for each in small]
        axes[0].errorbar(scaled, losses, bars, fmt=line, color=BLACK, ms=4, label=label)
    apart = (0.8, 0.93, 1.07, 1.25)
    for colour, aside, position in zip(MARKERS, apart, simulation.position, strict=False):
        at = simulation.sel(position=position).assign_coords(lag=aside * simulation.lag)
        for panel, name in zip(axes[1:], titles, strict=True):
            panel.axhline(100.0, color=BLACK, lw=0.4, ls=":", zorder=0)
            _means(panel, 100 * at, f"{name}_ratio", "-", colour, f"record {int(position)}")
    for panel, title in zip(axes, ("as the private noise falls", *titles.values()), strict=True):
        panel.set(xscale="log", xlabel="lag: steps since the record", title=title)
    axes[0].set(yscale="log", xlabel=r"private noise $\sigma\sqrt{d}$")
    for axis in (axes[0].xaxis, axes[0].yaxis):
        numbers(axis, (1,))
    axes[0].set_ylabel(f"$D_{{{simulation.attrs['order']:g}}}$")
    axes[1].set_ylabel("diffusion over exact (%)")
    for panel, place in zip(axes[:2], ("upper right", "lower right"), strict=True):
        panel.legend(loc=place)
    words = "Not a guarantee: the loss between two given data sets, exact and by the diffusion."
    figure.suptitle(words, fontsize=7)
    return figure


def _means(panel: Axes, at: Dataset, name: str, line: str, colour: str, label: str | None) -> None:
    """Means over data sets along the one axis that is left, with two standard errors."""
    mean, error, look = at[name], 2 * at[f"{name}_standard_error"], MARKERS[colour] + line
    x = at[mean.dims[0]]
    panel.errorbar(x, mean, error, fmt=look, ms=3, lw=0.9, color=colour, label=label)


def _risk_panel(panel: Axes, dataset: Dataset, reading: str) -> None:
    """One unclipped run and the theory for its own start, at each noise scale."""
    for colour, std in zip(NOISE_COLOURS, dataset.gradient_noise_std.values, strict=False):
        at = dataset.sel(gradient_noise_std=std)
        _risk_path(panel, at, colour)
        place = (1.03 * float(at.step[-1]), float(at.law_run[-1]))
        panel.text(*place, rf"$\sigma = {std:g}$", va="center", fontsize=6)
    panel.plot([], [], color="0.4", lw=0.8, label="one run of SGD")
    panel.plot([], [], color=BLACK, lw=1.0, ls="--", label="Volterra equation")
    panel.set_ylim(0, None)
    panel.set_title(READING_NAMES[reading])


def _literal_panels(axes: np.ndarray, literal: Dataset) -> None:
    """The printed design, whose runs cross: one noise scale a panel, on one logarithmic axis."""
    scales = literal.gradient_noise_std.values
    for panel, colour, std in zip(axes, NOISE_COLOURS, scales, strict=False):
        _risk_path(panel, literal.sel(gradient_noise_std=std), colour)
        panel.sharey(axes[0])
        panel.tick_params(labelleft=panel is axes[0])
        panel.set(yscale="log", title=rf"literal, $\sigma = {std:g}$")


def _risk_path(panel: Axes, at: Dataset, colour: str) -> None:
    panel.plot(at.step, at.risk_run.isel(clip_norm=-1), color=colour, lw=0.8)
    panel.plot(at.step, at.law_run, color=BLACK, lw=1.0, ls="--")
    panel.set_xlabel("iteration $k$")
