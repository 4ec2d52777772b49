"""Figures of brown2024, each drawn from artifacts alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, SKY, panels, ticks
from reproduction.engine.recipe import Axes, Dataset, Figure

HEIGHT = 2.6  # inches
STANDARD = r"$\gamma = 5\sqrt{p}$"
PRIMARY = "data_max_approximate_add_remove"
WIDE = ["wide_zcdp_replace_one_large_budget", "wide_zcdp_replace_one"]
# Colour and marker of a construction, and a shift that keeps bars apart.
CONSTRUCTIONS = {
    "batch_means": (BLUE, "o", 0.96),
    "checkpoints": (RED, "s", 1.0),
    "independent_runs": (GREEN, "^", 1.04),
}


def fig1(simulation: Dataset) -> Figure:
    """Errors as dimension and sample size grow together."""
    figure, panel = panels(1, 1, height=HEIGHT)
    # README shows it, on phones too.
    figure.set_size_inches(5, 3.2)
    dimensions = simulation.dimension.values
    others = simulation.adassp_privacy_error.drop_sel(variant=WIDE)
    band = others.min("variant"), others.max("variant")
    panel.fill_between(dimensions, *band, color=SKY, alpha=0.3, lw=0)
    at = simulation.sel(variant=PRIMARY)
    label = "AdaSSP (band: other choices)"
    _points(panel, at, "adassp_privacy_error", color=BLUE, marker="^", label=label)
    _points(panel, at, "privacy_error", color=RED, marker="o", label="DP-GD")
    _points(panel, at, "sampling_error", color=BLACK, marker="s", label="least squares")
    label = r"DP-GD, to $\theta^*$"
    panel.plot(dimensions, simulation.private_error, color=RED, ls=":", lw=0.9, label=label)
    panel.set(xlabel="features $p$, with $n = 100\\,p$", ylabel=r"$\ell_2$ error", ylim=(0, 1.3))
    ticks(panel, dimensions)
    panel.legend(loc="upper left", ncols=2, columnspacing=1.0)
    return figure


def fig2(simulation: Dataset, theory: Dataset) -> Figure:
    """Error due to privacy and due to sampling at a large budget."""
    figure, panel = panels(1, 1, height=HEIGHT)
    _errors(panel, simulation, theory, ((ORANGE, "v"), (RED, "o")))
    panel.legend(loc="lower left")
    panel.set_ylabel(r"mean $\ell_2$ error")
    return figure


def fig3(simulation: Dataset) -> Figure:
    """Share of gradients clipped over dimension and threshold."""
    figure, panel = panels(1, 1, height=HEIGHT)
    dimensions = simulation.dimension.values
    share = simulation.clipped_fraction.transpose("clip_norm", "dimension")
    grid = (dimensions, simulation["clip_norm"], share)
    drawn = panel.pcolormesh(*grid, vmin=0, vmax=1, shading="gouraud", rasterized=True)
    lines = panel.contour(*grid, levels=[0.01, 0.1, 0.5], colors="white", linewidths=0.8)
    panel.clabel(lines, fmt=lambda level: f"{100 * level:g}%", fontsize=6)
    panel.plot(dimensions, 5 * np.sqrt(dimensions), color=RED, ls="--")
    panel.annotate(
        STANDARD,
        (dimensions[2], 5 * np.sqrt(dimensions[2])),
        xytext=(0, 7),
        textcoords="offset points",
        color="white",
        ha="center",
        rotation=7,
    )
    panel.set(
        xscale="log", yscale="log", xlabel="features $p$", ylabel=r"clipping threshold $\gamma$"
    )
    figure.colorbar(drawn, ax=panel, label="share of gradients clipped")
    return figure


def fig4(simulation: Dataset) -> Figure:
    """Squared error, squared bias and variance over the threshold."""
    figure, panel = panels(1, 1, height=HEIGHT)
    at = simulation.sel(steps=50 if 50 in simulation.steps else simulation.steps[0])
    for name, colour, marker, label in (
        ("squared_error", BLACK, "o", "error"),
        ("squared_bias", RED, "s", "squared bias"),
        ("variance", BLUE, "^", "variance"),
    ):
        # An unbiased estimate of a squared bias scatters about 0, which has no place on a log axis.
        shown = at.isel(clip_norm=(at[name] > 2 * at[f"{name}_standard_error"]).values)
        _points(panel, shown, name, color=colour, marker=marker, ms=3, lw=1, label=label)
    _percentages(panel, at)
    panel.axvline(simulation.attrs["standard_clip_norm"], color=BLACK, ls=":", lw=0.8)
    panel.set(
        xscale="log",
        yscale="log",
        xlabel=r"clipping threshold $\gamma$ (dotted: $5\sqrt{p}$)",
        ylabel=r"mean square of $\|\theta_T - \hat\theta\|$",
        title="percentages: gradients clipped",
        ylim=(1e-5, 3),
    )
    panel.legend(loc="upper center")
    return figure


def fig5(intervals: Dataset) -> Figure:
    """Coverage over the number of gradients."""
    figure, panel = panels(1, 1, height=HEIGHT)
    _constructions(panel, intervals, "coverage", "exact_coverage")
    panel.axhline(intervals.attrs["level"], color=BLACK, ls=":", lw=0.8)
    panel.set(ylabel=r"coverage of $\hat\theta_j$", ylim=(0.78, 1.005))
    panel.legend(loc="lower right")
    return figure


def fig6(intervals: Dataset) -> Figure:
    """Length over the number of gradients."""
    figure, panel = panels(1, 1, height=HEIGHT)
    _constructions(panel, intervals, "length", "expected_length")
    textbook = float(intervals.ols_length)
    panel.axhline(textbook, color=BLACK, ls="--", lw=0.9, label=r"least squares, for $\theta^*_j$")
    panel.set(ylabel="length of the interval", ylim=(0, None))
    panel.legend(loc="upper left")
    return figure


def fig7(large: Dataset, small: Dataset) -> Figure:
    """Error against the share of gradients clipped."""
    figure, axes = panels(1, 2, height=2.4)
    for panel, simulation in zip(axes, (large, small), strict=True):
        styles = (ORANGE, ".-"), (BLUE, "^--"), (GREEN, "x:")
        for (colour, fmt), steps in zip(styles, simulation.steps.values, strict=False):
            at = simulation.sel(steps=steps)
            style: dict[str, Any] = {"fmt": fmt, "color": colour, "label": f"$T = {steps}$"}
            share, error = at.clipped_fraction.values, np.sqrt(at.squared_error.values)
            panel.errorbar(share, error, at.squared_error_standard_error / error, ms=3, **style)
            best, standard = error.argmin(), np.searchsorted(at["clip_norm"], at.standard_clip_norm)
            for place, marker, size in ((best, "o", 7), (standard, "s", 6)):
                panel.plot(share[place], error[place], marker, mfc="none", color=colour, ms=size)
        panel.axvline(0.5, color=BLACK, ls=":", lw=0.8, label="half clipped")
        panel.plot([], [], "o", mfc="none", color="0.4", ms=7, label="least error")
        panel.plot([], [], "s", mfc="none", color="0.4", ms=6, label=STANDARD)
        title = f"$n = {simulation.attrs['sample_size']}$"
        panel.set(yscale="log", xlabel="share of gradients clipped", title=title)
    axes[0].set_ylabel(r"root mean square of $\|\theta_T - \hat\theta\|$")
    axes[1].legend(loc="upper right")
    return figure


def fig8(ten: Dataset, ten_law: Dataset, hundred: Dataset, hundred_law: Dataset) -> Figure:
    """The two errors at the standard budget, for 10 and 100 features."""
    figure, axes = panels(1, 2, height=HEIGHT)
    cases = ((10, ten, ten_law), (100, hundred, hundred_law))
    for panel, (dimension, simulation, theory) in zip(axes, cases, strict=True):
        _errors(panel, simulation, theory, ((RED, "o"), (ORANGE, "s")))
        panel.set_title(f"$p = {dimension}$, {simulation.sizes['trial']} trials")
        at = theory.crossing.isel(steps=0)
        for kind, line, words in (
            ("noise_alone", ":", "noise alone"),
            ("whole", "--", "all of it"),
        ):
            label = f"sampling equals privacy ({words}), $T = {int(at.steps)}$"
            panel.axvline(float(at.sel(kind=kind)), color=BLACK, ls=line, lw=0.8, label=label)
    axes[0].set_ylabel(r"mean $\ell_2$ error")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


# The anisotropic designs are drawn like the isotropic ones.
fig9, fig10, fig11 = fig1, fig5, fig6


def _points(panel: Axes, dataset: Dataset, name: str, **style: Any) -> None:
    """A simulated quantity over its one axis, with two standard errors either way."""
    values = dataset[name]
    panel.errorbar(
        values[values.dims[0]],
        values,
        yerr=2 * dataset[values.attrs["ancillary_variables"]],
        **{"ms": 3.5, "elinewidth": 0.7, **style},
    )


def _errors(
    panel: Axes, simulation: Dataset, theory: Dataset, styles: tuple[tuple[str, str], ...]
) -> None:
    """Simulated means and exact root mean squares: sampling, and privacy by number of steps."""
    panel.plot([], [], color="0.4", lw=0.9, label="root mean square, exact")
    for (colour, marker), steps in zip(styles, simulation.steps.values, strict=False):
        label = rf"privacy $\|\theta_T - \hat\theta\|$, $T = {steps}$"
        at = simulation.sel(steps=steps)
        _points(panel, at, "privacy_error", color=colour, marker=marker, ls="none", label=label)
        line = theory.privacy_rms.sel(steps=steps)
        panel.plot(theory.sample_size, line, color=colour, lw=0.9)
    label = r"sampling $\|\hat\theta - \theta^*\|$"
    _points(panel, simulation, "sampling_error", color=BLUE, marker="^", ls="none", label=label)
    panel.plot(theory.sample_size, theory.sampling_rms, color=BLUE, lw=0.9)
    panel.set(xscale="log", yscale="log", xlabel="samples $n$")


def _percentages(panel: Axes, at: Dataset) -> None:
    """Share of gradients clipped at some thresholds, tied to points of the error."""
    least = int(at.squared_error.values.argmin())
    for index in range(1, at.sizes["clip_norm"], 3):
        share = 100 * float(at.clipped_fraction[index])
        if share < 0.01:
            break
        words = f"{share:.0f}%" if share >= 1 else f"{share:.1g}%"
        point = float(at["clip_norm"][index]), float(at.squared_error[index])
        style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6, "ha": "center"}
        style["arrowprops"] = {"arrowstyle": "-", "lw": 0.5, "color": "0.4", "shrinkA": 0}
        panel.annotate(words, point, (8 * np.sign(least - index), 14), **style)


def _constructions(panel: Axes, intervals: Dataset, simulated: str, exact: str) -> None:
    """Means over features, with percentiles over them, and exact lines."""
    for name, (colour, marker, shift) in CONSTRUCTIONS.items():
        middle, expected = intervals[f"{name}_{simulated}"], intervals[f"{name}_{exact}"]
        gradients = middle[middle.dims[0]].values
        low, high = intervals[f"{name}_{simulated}_percentiles"].transpose("percentile", ...)
        panel.errorbar(
            gradients * shift,
            middle,
            yerr=np.maximum([middle - low, high - middle], 0),
            color=colour,
            marker=marker,
            ms=3.5,
            ls="none",
            elinewidth=0.8,
            capsize=2,
            label=name.replace("_", " "),
        )
        panel.plot(gradients, expected, color=colour, lw=0.9)
    panel.plot([], [], color="0.4", lw=0.9, label="exact, without clipping")
    panel.set(xlabel="total number of gradients $N$")
    ticks(panel, intervals.gradients.values)
