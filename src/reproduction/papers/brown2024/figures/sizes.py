"""Figures of brown2024 over the sample size, alone or with the dimension."""

from __future__ import annotations

from reproduction.engine.plotting import BLACK, BLUE, ORANGE, RED, SKY, panels
from reproduction.engine.recipe import Axes, Dataset, Figure
from reproduction.papers.brown2024.figures.common import HEIGHT, exact_line, points, single

PRIMARY = "data_max_approximate_add_remove"
WIDE = ["wide_zcdp_replace_one_large_budget", "wide_zcdp_replace_one"]


def fixed_ratio(simulation: Dataset) -> Figure:
    """Errors as dimension and sample size grow together."""
    figure, panel = single()
    dimensions = simulation.dimension.values
    others = simulation.adassp_privacy_error.drop_sel(variant=WIDE)
    band = others.min("variant"), others.max("variant")
    panel.fill_between(dimensions, *band, color=SKY, alpha=0.3, lw=0)
    for name, colour, marker, label in (
        ("adassp_privacy_error", BLUE, "^", "AdaSSP (band: other choices)"),
        ("privacy_error", RED, "o", "DP-GD"),
        ("sampling_error", BLACK, "s", "least squares"),
    ):
        at = simulation.sel(variant=PRIMARY)
        points(panel, at, name, color=colour, marker=marker, label=label)
    population = r"DP-GD, to $\theta^*$"
    panel.plot(dimensions, simulation.private_error, color=RED, ls=":", lw=0.9, label=population)
    panel.set(
        xscale="log",
        xlabel="features $p$, with $n = 100\\,p$",
        ylabel=r"$\ell_2$ error",
        ylim=(0, 1.3),
    )
    panel.set_xticks(dimensions, [f"{value:g}" for value in dimensions])
    panel.minorticks_off()
    panel.legend(loc="upper left", ncols=2, columnspacing=1.0)
    return figure


def large_budget(simulation: Dataset, theory: Dataset) -> Figure:
    """Error due to privacy and due to sampling at a large budget."""
    figure, panel = single()
    _errors(panel, simulation, theory, ((ORANGE, "v"), (RED, "o")))
    panel.legend(loc="lower left")
    panel.set_ylabel(r"mean $\ell_2$ error")
    return figure


def standard_budget(
    ten: Dataset, ten_law: Dataset, hundred: Dataset, hundred_law: Dataset
) -> Figure:
    """The two errors at the standard budget, for 10 and 100 features."""
    figure, axes = panels(1, 2, height=HEIGHT)
    cases = ((10, ten, ten_law), (100, hundred, hundred_law))
    for panel, (dimension, simulation, theory) in zip(axes, cases, strict=True):
        _errors(panel, simulation, theory, ((RED, "o"), (ORANGE, "s")))
        panel.set_title(f"$p = {dimension}$, {simulation.sizes['trial']} trials")
        steps = int(theory.steps[0])
        crossings = [
            panel.axvline(float(at), color=BLACK, ls=line, lw=0.8, label=f"{label}, $T = {steps}$")
            for at, line, label in zip(
                theory.crossing.sel(steps=steps, kind=["noise_alone", "whole"]),
                (":", "--"),
                ("its noise alone crosses", "the whole error crosses"),
                strict=True,
            )
        ]
    lines = {each.get_label() for each in crossings}
    shown = [
        each for each in axes[0].get_legend_handles_labels()[0] if each.get_label() not in lines
    ]
    axes[0].set_ylabel(r"mean $\ell_2$ error")
    axes[0].legend(handles=shown, loc="lower left")
    axes[1].legend(handles=crossings, loc="lower left")
    return figure


def _errors(
    panel: Axes, simulation: Dataset, theory: Dataset, styles: tuple[tuple[str, str], ...]
) -> None:
    """Simulated points and exact lines: sampling, and privacy for each number of steps."""
    exact_line(panel)
    for (colour, marker), steps in zip(styles, simulation.steps.values, strict=False):
        label = rf"privacy $\|\theta_T - \hat\theta\|$, $T = {steps}$"
        at = simulation.sel(steps=steps)
        points(panel, at, "privacy_error", color=colour, marker=marker, ls="none", label=label)
        line = theory.privacy_rms.sel(steps=steps)
        panel.plot(theory.sample_size, line, color=colour, lw=0.9)
    label = r"sampling $\|\hat\theta - \theta^*\|$"
    points(panel, simulation, "sampling_error", color=BLUE, marker="^", ls="none", label=label)
    panel.plot(theory.sample_size, theory.sampling_rms, color=BLUE, lw=0.9)
    panel.set(xscale="log", yscale="log", xlabel="samples $n$")
