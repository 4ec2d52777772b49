"""Figures of bombari2025, each drawn from artifacts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, heat_map, numbers, panels
from reproduction.engine.recipe import Axes, DataArray, Dataset, Figure

if TYPE_CHECKING:
    from matplotlib.colors import Normalize

SCHEDULES = {0.0: r"$\tilde\eta$ constant", 0.5: r"$\tilde\eta(0)\sqrt{1-t}$"}
SPECTRA = {"isotropic": r"$\Sigma = I$", "uniform": r"$\Sigma \sim U[0, 2]$"}
PRIVACY = {0.0: r"$\rho = 1$", 0.5: r"$\rho = \gamma^{1/2}$"}
TERMS = {
    "signal": ("$e_1$ signal", BLUE, "-"),
    "sampling": ("$e_2$ sampling noise", ORANGE, "--"),
    "private": ("$e_3$ private noise", GREEN, "-."),
}
DIMENSION_COLOURS = (ORANGE, GREEN, BLUE)
SCHEDULE_COLOURS = (BLACK, ORANGE, GREEN, RED)
SIGNAL_DECAY_COLOURS = (RED, ORANGE, GREEN, BLUE)
POINTER: dict[str, Any] = {"color": RED, "arrowprops": {"arrowstyle": "-", "color": RED, "lw": 0.5}}
MARKERS = ("o", "s", "^", "D", "v")
SLOPE: dict[str, Any] = {"ls": "", "ms": 6.5, "mfc": "none", "mew": 0.8, "clip_on": False}
EXPONENT: dict[str, Any] = {"ls": ":", "lw": 0.7, "ms": 2.5}


def fig1(theory: Dataset, simulation: Dataset) -> Figure:
    """Above, risk along the path at three dimensions; below, less the deterministic equivalent."""
    figure, axes = panels(2, 4, height=1.9, sharex=True, sharey="row")
    order = [(a, s) for a in theory.exponent.values for s in theory.spectrum.values]
    for above, below, (exponent, spectrum) in zip(*axes, order, strict=True):
        where = {"spectrum": spectrum, "exponent": exponent}
        _trajectory_panel(above, theory, simulation, where)
        _distance_panel(below, theory, simulation, where)
        above.set_title(f"{SCHEDULES[exponent]}, {SPECTRA[spectrum]}")
        below.set_xlabel("$t = k/n$")
    # The band of the smallest dimension may leave the panel, so that the others fill it.
    reach = 3 * float(simulation.risk_spread.isel(dimension=1).max())
    axes[0, 0].set(ylabel=r"excess risk $\mathcal{R}$", ylim=(0, 0.62))
    axes[1, 0].set(ylabel=r"$\mathcal{R}$ less that of the ODE", ylim=(-reach, reach))
    axes[0, -1].legend(loc="upper right")
    return figure


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
    """Risk of three schedules on heavier spectra, below over a common power; ten fitted slopes."""
    figure, axes = panels(2, 4, height=2.0, width_ratios=(1, 1, 1, 1.3))
    at = theory.sel(privacy_power=0.5)
    shown = [power for power in (1.0, 5.0, 10.0) if power in theory.schedule_power]
    for above, below, power in zip(*axes, shown, strict=False):
        above.sharey(axes[0, 0])
        here = at.sel(schedule_power=power)
        _risk_panel(above, here, rf"$\alpha = {power:g}$, {PRIVACY[0.5]}")
        common = round(float(here.slope.mean()), 2)
        here = here.assign(risk=here.risk / here.aspect_ratio**common)
        _risk_panel(below, here, rf"the same over $\gamma^{{{common:g}}}$")
        numbers(below.yaxis, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8))
        above.set_xlabel("")
    _slope_panel(axes[0, 3], at, PRIVACY[0.5])
    for row, label in zip(axes, ("excess risk", "excess risk over the power"), strict=True):
        row[0].set_ylabel(f"{label}\nat the best $\\tilde\\eta(0)$")
    axes[0, 3].set_ylabel("log-log slope")
    axes[0, 3].set_subplotspec(axes[0, 3].get_gridspec()[:, 3])
    axes[1, 3].remove()
    _legends(figure, axes[0, 0], theory)
    return figure


def fig4(theory: Dataset, simulation: Dataset) -> Figure:
    """Isotropic data: mean over trials above, the deterministic equivalent below."""
    from matplotlib.colors import LogNorm

    rows = {
        f"mean of {simulation.sizes['trial']} trials": simulation.risk,
        "deterministic equivalent": theory.risk,
    }
    norm = LogNorm(float(theory.risk.min()), simulation.attrs["risk_cap"])
    figure, _ = _maps(rows, simulation, norm, r"excess risk $\mathcal{R}(\theta^p)$")
    return figure


def fig5(low: Dataset, simulation: Dataset) -> Figure:
    """MNIST heat-maps, of two grids of rates side by side."""
    low, simulation = low.sel(initial_rate=slice(0.09)), simulation.sel(initial_rate=slice(1e3))
    return fig6(simulation.combine_first(low))


def fig6(simulation: Dataset) -> Figure:
    """California housing heat-maps."""
    from matplotlib.colors import Normalize

    rows = {"mean over seeds": simulation.loss, "median over seeds": simulation.loss_median}
    norm = Normalize(float(simulation.loss_median.min()), simulation.attrs["loss_cap"])
    figure, axes = _maps(rows, simulation, norm, "validation loss")
    excluded = simulation.excluded.transpose("exponent", "sample_size").values
    for panel, count in zip(axes[0], excluded.flat, strict=True):
        if count:
            seeds = f"{count} of {simulation.sizes['trial']} seeds left out"
            panel.set_title(f"{panel.get_title()}\n{seeds}")
    return figure


def fig7(theory: Dataset, simulation: Dataset) -> Figure:
    """Risk, and risk over that of output perturbation, for two spectra; theory dashed."""
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 4, height=2.3, sharex=True)
    abscissa = simulation.samples_per_dimension.values
    for column, spectrum in enumerate(simulation.spectrum.values):
        found, expected = simulation.sel(spectrum=spectrum), theory.sel(spectrum=spectrum)
        for panel, name in ((axes[column], "risk"), (axes[column + 2], "ratio")):
            for at, schedule in enumerate(simulation.schedule.values):
                look = _look(simulation, at)
                here = found.sel(schedule=schedule)
                _band(panel, abscissa, here[name], here[f"{name}_spread"], 0.15, **look)
                curve = expected[name].sel(schedule=schedule)
                panel.plot(abscissa, curve, color=look["color"], lw=0.7, ls="--")
            panel.set(xlabel="samples a dimension,\n$n / d$", xscale="log", yscale="log")
        axes[column].set_title(SPECTRA[spectrum])
        axes[column + 2].set_title(rf"{SPECTRA[spectrum]}, over $\alpha = 0$")
        axes[column + 2].set_ylim(0.12, 3.2)
        axes[column + 2].set_yticks([0.2, 0.5, 1, 2], ["0.2", "0.5", "1", "2"])
        axes[column + 2].set_yticks([], minor=True)
    axes[0].set_ylabel(r"excess risk $\mathcal{R}(\theta^p)$")
    axes[2].set_ylabel(r"risk over that of $\alpha = 0$")
    axes[1].sharey(axes[0])
    axes[0].legend(loc="lower left", handlelength=1.5)
    kinds = [
        Line2D([], [], color="0.3", lw=0.9, label="DP-GD"),
        Line2D([], [], color="0.3", lw=0.7, ls="--", label="deterministic\nequivalent"),
    ]
    axes[1].legend(handles=kinds, loc="lower left", handlelength=1.5)
    return figure


def fig8(mnist: Dataset, housing: Dataset) -> Figure:
    """Loss on the reporting rows: mean over stable runs with its standard error, and median."""
    figure, axes = panels(2, 2, height=2.1, sharex="col")
    titles = ("MNIST, digits 1 against 7", "California housing")
    for (above, below), data, title in zip(axes.T, (mnist, housing), titles, strict=True):
        for at, schedule in enumerate(data.schedule.values):
            here, look = data.sel(schedule=schedule), _look(data, at)
            # Beside each other, so that the bars of five schedules do not hide one another.
            sizes = here.sample_size * (1 + 0.07 * (at - 2))
            bars = {"yerr": here.loss_standard_error, "capsize": 1.5, "elinewidth": 0.9}
            above.errorbar(sizes, here.loss, **(look | bars | {"ls": ""}))
            below.plot(here.sample_size, here.loss_median, **look)
        above.set_title(title)
        below.set(xlabel="training samples $n$", xscale="log")
        numbers(below.xaxis)
        for panel in (above, below):
            panel.set_yscale("log")
            numbers(panel.yaxis, (1, 2, 2.5, 3, 4, 6))
    axes[0, 0].set_ylabel("validation loss,\nmean of stable runs")
    axes[1, 0].set_ylabel("validation loss,\nmedian of all runs")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5)
    return figure


def fig9(theory: Dataset) -> Figure:
    """Clipping factors against the normalised clipping constant."""
    figure, axes = panels(1, 2, height=2.2)
    ratio = theory.ratio.values
    factors = (
        (axes[0], theory.descent_factor.values, r"\mu_c", "descent", np.sqrt(2 / np.pi)),
        (axes[1], theory.variance_factor.values, r"\nu_c", "variance", None),
    )
    for panel, factor, symbol, name, limit in factors:
        panel.plot(ratio, factor, color=BLUE, label=f"${symbol}$")
        panel.plot(ratio, factor / ratio, color=RED, ls="--", label=f"${symbol} / c'$")
        if limit is not None:
            panel.axhline(limit, color=BLACK, lw=0.6, ls=":", label=r"$\sqrt{2/\pi}$")
        panel.set(
            xlabel=r"$c' = c / \sqrt{2\mathcal{R} + \zeta^2}$",
            ylabel=f"{name} factor",
            xlim=(0, ratio[-1]),
            ylim=(0, 1.02),
        )
        panel.legend(loc="center right")
    return figure


def fig10(theory: Dataset) -> Figure:
    return _term_figure(theory, "fig10")


def fig11(theory: Dataset) -> Figure:
    return _term_figure(theory, "fig11")


def fig12(theory: Dataset) -> Figure:
    return _term_figure(theory, "fig12")


def fig13(theory: Dataset) -> Figure:
    return _term_figure(theory, "fig13")


def _trajectory_panel(
    panel: Axes, theory: Dataset, simulation: Dataset, where: dict[str, Any]
) -> None:
    curve = theory.sel(where)
    for at, colour in _by_dimension(simulation.sel(where)):
        label = f"$d = {int(at.dimension)}$"
        _band(panel, at.time.values, at.risk_mean, at.risk_spread, 0.25, color=colour, label=label)
    panel.plot(theory.time, curve.risk, color=BLACK, lw=1.2, label="ODE")
    if where["exponent"] == 0:
        _output_noise(panel, float(curve.final_risk), simulation.sel(where))


def _distance_panel(
    panel: Axes, theory: Dataset, simulation: Dataset, where: dict[str, Any]
) -> None:
    """Bands of three dimensions coincide unless the deterministic equivalent is subtracted."""
    times = simulation.time.values
    curve = np.interp(times, theory.time.values, theory.sel(where).risk.values)
    for at, colour in _by_dimension(simulation.sel(where)):
        # Right after a step: between two of them the risk stays and the curve does not.
        fresh = np.flatnonzero(np.diff(at.risk_mean, prepend=np.nan))
        distance, spread = (at.risk_mean - curve)[fresh], at.risk_spread[fresh]
        _band(panel, times[fresh], distance, spread, 0.4, color=colour)
    panel.axhline(0, color=BLACK, lw=0.8)


def _by_dimension(simulation: Dataset) -> Iterator[tuple[Dataset, str]]:
    for dimension, colour in zip(simulation.dimension.values, DIMENSION_COLOURS, strict=False):
        yield simulation.sel(dimension=dimension), colour


def _output_noise(panel: Axes, predicted: float, simulation: Dataset) -> None:
    """The private output beyond t = 1, dimensions side by side."""
    for place, (at, colour) in enumerate(_by_dimension(simulation)):
        mean, spread = float(at.final_risk), float(at.final_risk_spread)
        panel.errorbar(
            [1.06 + 0.06 * place], [mean], [spread], color=colour, marker="o", ms=2, lw=1
        )
    panel.plot([1.03, 1.21], [predicted, predicted], color=RED, lw=1.2)
    words: dict[str, Any] = {"xytext": (1.0, 0.42), "ha": "center", "fontsize": 6}
    panel.annotate("output\nnoise", (1.12, predicted), **words, **POINTER)


def _combinations(theory: Dataset) -> Iterator[tuple[tuple[float, float], str, str]]:
    """Spectrum and signal powers, the slowest decay of the signal first; colour and marker."""
    pairs = product(theory.spectrum_power.values.tolist(), theory.signal_power.values.tolist())
    slowest_first = sorted(pairs, key=lambda pair: 2 - sum(pair))
    return zip(slowest_first, SIGNAL_DECAY_COLOURS, MARKERS, strict=False)


def _risk_panel(panel: Axes, theory: Dataset, title: str) -> None:
    for (p, q), colour, marker in _combinations(theory):
        curve = theory.sel(spectrum_power=p, signal_power=q)
        label = rf"spectrum $\phi = {p:g}$, signal $\psi = {q:g}$"
        panel.loglog(curve.aspect_ratio, curve.risk, color=colour, marker=marker, ms=3, label=label)
    fitted = theory.aspect_ratio.values.min(), theory.attrs["fitted_below"]
    panel.axvspan(*fitted, color="0.92", lw=0, zorder=0, label="range of the fit")
    panel.set(title=title, xlabel=r"aspect ratio $\gamma = d/n$")
    panel.yaxis.set_minor_formatter("")


def _slope_panel(panel: Axes, theory: Dataset, title: str) -> None:
    powers = theory.schedule_power.values
    for (p, q), colour, marker in _combinations(theory):
        at = theory.sel(spectrum_power=p, signal_power=q)
        panel.plot(powers, at.exponent, color=colour, marker=marker, **EXPONENT)
        panel.plot(powers, at.slope, color=colour, marker=marker, **SLOPE)
    panel.set(title=title, xlabel=r"schedule power $\alpha$")
    if len(powers) > 5:
        panel.set_xticks(powers[1::2])


def _legends(figure: Figure, panel: Axes, theory: Dataset) -> None:
    from matplotlib.lines import Line2D

    curves, labels = panel.get_legend_handles_labels()
    curves += [Line2D([], [], color=BLACK, marker="o", **look) for look in (SLOPE, EXPONENT)]
    labels += ["fitted slope (large)", "Theorem 4 (small)"]
    figure.legend(curves, labels, loc="outside lower center", ncols=4, columnspacing=1.5)


def _maps(
    rows: Mapping[str, DataArray], about: Dataset, norm: Normalize, meaning: str
) -> tuple[Figure, Any]:
    """One row of panels per array, one column per schedule and sample size; shape (2, 4)."""
    figure, axes = panels(2, 4, height=2.0, sharex=True, sharey=True)
    columns = [(a, n) for a in about.exponent.values for n in about.sample_size.values]
    for (name, array), line in zip(rows.items(), axes, strict=True):
        line[0].set_ylabel(f"{name}\nclipping constant $c$")
        for panel, (exponent, sample_size) in zip(line, columns, strict=True):
            here = array.sel(exponent=exponent, sample_size=sample_size).clip(max=norm.vmax)
            values = here.transpose("clip_constant", "initial_rate").values
            axes_values = about.initial_rate.values, about["clip_constant"].values
            drawn = heat_map(panel, *axes_values, values, norm=norm)
            _reference_lines(panel, about.attrs["dimension"] / float(sample_size))
            row, column = np.unravel_index(values.argmin(), values.shape)
            panel.plot(axes_values[0][column], axes_values[1][row], "*", color="white", ms=6, mew=0)
    for (exponent, sample_size), top, bottom in zip(columns, *axes, strict=True):
        gamma = about.attrs["dimension"] / float(sample_size)
        top.set_title(f"{SCHEDULES[exponent]}, $\\gamma = {gamma:.2g}$")
        bottom.set_xlabel(r"initial rate $\tilde\eta(0)$")
    meaning += f" (capped at {norm.vmax:g})"
    figure.colorbar(drawn, ax=axes, shrink=0.8, pad=0.01, label=meaning)
    return figure, axes


def _reference_lines(panel: Axes, gamma: float) -> None:
    """The paper's dashed lines: c = 1, the cap on the rate, and the best settings' line."""
    limits = panel.get_xlim(), panel.get_ylim()
    line: dict[str, Any] = {"color": RED, "gapcolor": "white", "ls": "--", "lw": 0.9}
    panel.axhline(1, **line)
    panel.axvline(2 / gamma, **line)
    if gamma < 1:
        panel.plot(limits[0], np.log(1 / gamma) / np.asarray(limits[0]), **line)
    panel.set(xlim=limits[0], ylim=limits[1])


def _look(data: Dataset, at: int) -> dict[str, Any]:
    """The harmonic schedule is the last one, blue as in the paper."""
    name = str(data.schedule.values[at])
    last = at == data.sizes["schedule"] - 1
    return {
        "color": BLUE if last else SCHEDULE_COLOURS[at % len(SCHEDULE_COLOURS)],
        "marker": MARKERS[at % len(MARKERS)],
        "ms": 2.5,
        "lw": 1.3 if last else 0.9,
        "label": name if last else name.replace("alpha=", r"$\alpha = $"),
    }


def _band(
    panel: Axes, abscissa: np.ndarray, mean: DataArray, spread: DataArray, alpha: float, **look: Any
) -> None:
    """A curve with one standard deviation on either side."""
    panel.plot(abscissa, mean, **({"lw": 0.8} | look))
    low, high = mean - spread, mean + spread
    panel.fill_between(abscissa, low, high, color=look["color"], alpha=alpha, lw=0)


def _term_figure(theory: Dataset, name: str) -> Figure:
    # As wide as the other figures, so that text has the same size.
    figure, panel = panels(1, 1, height=2.3)
    at = theory.sel(panel=name)
    rates = theory.learning_rate.values
    for term, (label, colour, dashes) in TERMS.items():
        panel.plot(rates, at.term_exponent.sel(term=term), color=colour, ls=dashes, label=label)
    smallest = at.term_exponent.min(dim="term")
    panel.plot(rates, smallest, color=BLACK, lw=2.4, alpha=0.3, label="smallest")
    rate, risk = float(at.best_learning_rate), float(at.best_risk)
    panel.plot([rate], [risk], color=RED, marker="o", ms=4, ls="")
    finite = at.term_exponent.values
    offset, side = ((-2, -8), "right") if rate > -0.1 else ((0, -18), "center")
    look: dict[str, Any] = {"textcoords": "offset points", "va": "top", "color": RED}
    panel.annotate(f"$a = {rate:.4g}$, $h = {risk:.4g}$", (rate, risk), offset, ha=side, **look)
    panel.set(
        xlabel=r"exponent $a$ of $c\,\tilde\eta(0) = \gamma^a$",
        ylabel=r"exponent $h$ of a term, $\gamma^h$",
        xlim=(-1, 0),
        ylim=(min(0.0, float(finite.min())), min(float(finite.max()), 2.2) * 1.02),
    )
    figure.legend(loc="outside right upper")
    return figure
