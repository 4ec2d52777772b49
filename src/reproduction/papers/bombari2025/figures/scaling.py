"""Figures of the scaling laws on power-law data."""

from __future__ import annotations

from typing import Any

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Axes, Dataset, Figure

SIGNAL_DECAY_COLOURS = (RED, ORANGE, GREEN, BLUE)
MARKERS = ("o", "s", "^", "D")
TERMS = {
    "signal": ("$e_1$ signal", BLUE, "-"),
    "sampling": ("$e_2$ sampling noise", ORANGE, "--"),
    "private": ("$e_3$ private noise", GREEN, "-."),
}
PRIVACY = {0.0: r"$\rho = 1$", 0.5: r"$\rho = \gamma^{1/2}$"}


def fig2(theory: Dataset) -> Figure:
    """Risk of output perturbation at two privacy levels, and slopes of four schedules."""
    figure, axes = panels(1, 4, height=2.5)
    for column, privacy_power in enumerate(theory.privacy_power.values):
        at = theory.sel(privacy_power=privacy_power)
        constant = at.sel(schedule_power=0.0)
        _risk_panel(axes[column], constant, rf"$\alpha = 0$, {PRIVACY[privacy_power]}")
        _slope_panel(axes[2 + column], at, PRIVACY[privacy_power])
    axes[0].set_ylabel(r"excess risk at the best $\tilde\eta(0)$")
    axes[2].set_ylabel("log-log slope")
    _legends(figure, axes[0], theory)
    return figure


def fig3(theory: Dataset) -> Figure:
    """Risk of three schedules on heavier spectra, and slopes of ten."""
    figure, axes = panels(1, 4, height=2.5)
    at = theory.sel(privacy_power=0.5)
    shown = [power for power in (1.0, 5.0, 10.0) if power in theory.schedule_power]
    for panel, power in zip(axes, shown, strict=False):
        _risk_panel(panel, at.sel(schedule_power=power), rf"$\alpha = {power:g}$, {PRIVACY[0.5]}")
    _slope_panel(axes[3], at, PRIVACY[0.5])
    axes[0].set_ylabel(r"excess risk at the best $\tilde\eta(0)$")
    axes[3].set_ylabel("log-log slope")
    _legends(figure, axes[0], theory)
    return figure


def fig10(theory: Dataset) -> Figure:
    """Exponents of the three terms: privacy is free."""
    return _term_figure(theory, "fig10")


def fig11(theory: Dataset) -> Figure:
    """Exponents of the three terms: privacy costs."""
    return _term_figure(theory, "fig11")


def fig12(theory: Dataset) -> Figure:
    """Exponents of the three terms: a fast-decaying signal."""
    return _term_figure(theory, "fig12")


def fig13(theory: Dataset) -> Figure:
    """Exponents of the three terms: a fast-decaying schedule."""
    return _term_figure(theory, "fig13")


def _combinations(theory: Dataset) -> list[tuple[float, float]]:
    """Spectrum and signal powers, the slowest decay of the signal first."""
    pairs = [
        (float(p), float(q))
        for p in theory.spectrum_power.values
        for q in theory.signal_power.values
    ]
    return sorted(pairs, key=lambda pair: 2 - sum(pair))


def _risk_panel(panel: Axes, theory: Dataset, title: str) -> None:
    for (p, q), colour, marker in zip(
        _combinations(theory), SIGNAL_DECAY_COLOURS, MARKERS, strict=False
    ):
        curve = theory.sel(spectrum_power=p, signal_power=q)
        panel.loglog(
            theory.aspect_ratio,
            curve.risk,
            color=colour,
            marker=marker,
            ms=3,
            label=rf"$\phi = {p:g}$, $\psi = {q:g}$",
        )
    ratios = theory.aspect_ratio.values
    panel.axvspan(
        ratios.min(), theory.attrs["fitted_below"], color="0.92", lw=0, zorder=0, label="fitted"
    )
    panel.set(title=title, xlabel=r"aspect ratio $\gamma = d/n$")
    panel.yaxis.set_minor_formatter("")


def _slope_panel(panel: Axes, theory: Dataset, title: str) -> None:
    powers = theory.schedule_power.values
    for (p, q), colour in zip(_combinations(theory), SIGNAL_DECAY_COLOURS, strict=False):
        at = theory.sel(spectrum_power=p, signal_power=q)
        panel.plot(powers, at.exponent, color=colour, lw=0.5, ls=":")
        panel.plot(powers, at.exponent, color=colour, ls="", marker="*", ms=6, mew=0)
        panel.plot(powers, at.slope, color=colour, ls="", marker="o", ms=5.5, mfc="none", mew=0.8)
    panel.set(title=title, xlabel=r"schedule power $\alpha$")
    if len(powers) > 5:
        panel.set_xticks(powers[1::2])


def _legends(figure: Figure, panel: Axes, theory: Dataset) -> None:
    from matplotlib.lines import Line2D

    curves, labels = panel.get_legend_handles_labels()
    style: dict[str, Any] = {"color": BLACK, "ls": ""}
    curves += [
        Line2D([], [], marker="o", mfc="none", ms=5.5, mew=0.8, **style),
        Line2D([], [], marker="*", ms=6, mew=0, **style),
    ]
    labels += [r"slope fitted, grey range", "$h$ of Theorem 4"]
    figure.legend(curves, labels, loc="outside lower center", ncols=4, columnspacing=1.5)


def _term_figure(theory: Dataset, name: str) -> Figure:
    # As wide as the other figures, so that type has their size.
    figure, panel = panels(1, 1, height=2.3)
    at = theory.sel(panel=name)
    rates = theory.learning_rate.values
    for term, (label, colour, dashes) in TERMS.items():
        panel.plot(rates, at.term_exponent.sel(term=term), color=colour, ls=dashes, label=label)
    panel.plot(
        rates, at.term_exponent.min(dim="term"), color=BLACK, lw=2.4, alpha=0.3, label="smallest"
    )
    rate, risk = float(at.best_learning_rate), float(at.best_risk)
    panel.plot([rate], [risk], color=RED, marker="o", ms=4, ls="")
    finite = at.term_exponent.values
    left_is_free = finite[:, 0].min() > 0.3
    panel.annotate(
        f"$a = {rate:.4g}$, $h = {risk:.4g}$",
        (rate, risk),
        xytext=(0.03 if left_is_free else 0.97, 0.04),
        textcoords="axes fraction",
        ha="left" if left_is_free else "right",
        color=RED,
        arrowprops={"arrowstyle": "-", "color": RED, "lw": 0.5},
    )
    panel.set(
        xlabel=r"exponent $a$ of $c\,\tilde\eta(0) = \gamma^a$",
        ylabel=r"exponent of $\gamma$",
        xlim=(-1, 0),
        ylim=(min(0.0, float(finite.min())), min(float(finite.max()), 2.2) * 1.02),
    )
    figure.legend(loc="outside right upper")
    return figure
