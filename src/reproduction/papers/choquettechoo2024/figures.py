"""Figures of choquettechoo2024, each drawn from artifacts alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, panels, ticks
from reproduction.engine.recipe import Axes, Dataset, Figure

ALGORITHMS = {"noisy_sgd": ("Noisy-SGD", RED, "s"), "noisy_ftrl": (r"$\nu$-Noisy-FTRL", BLUE, "o")}
MECHANISMS = {
    "dp_sgd": "DP-SGD",
    "dp_sgd_sampled": "DP-SGD, sampled",
    "tree_aggregation": "TreeAgg",
    "full_honaker": "Full Honaker",
    "optimal_cc": "Optimal CC",
    "nu_dp_ftrl": r"$\nu$-DP-FTRL",
    "fft": "FFT",
    "banded": "banded Toeplitz",
    "multi_epoch": "Multi-Epoch (ME)",
}
ANYTIME = ("dp_sgd", "tree_aggregation", "optimal_cc", "nu_dp_ftrl")
TRAINED = {
    "dp_sgd": (RED, "s"),
    "dp_sgd_sampled": (RED, "x"),
    "tree_aggregation": (ORANGE, "^"),
    "optimal_cc": (GREEN, "v"),
    "nu_dp_ftrl": (PURPLE, "o"),
    "banded": (BLUE, "D"),
    "multi_epoch": (BLACK, "*"),
}
FEATURES = {"pixels": "standardised pixels", "wavelets": "wavelet moduli"}
BESIDE: dict[str, Any] = {"textcoords": "offset points", "fontsize": 6.5}


def fig1(theory: Dataset) -> Figure:
    """Ratio of the risks in mean estimation, and the best coefficients in time and frequency."""
    figure, (ratio, time, frequency) = panels(1, 3, height=2.1)
    ratio.plot(theory.step_size, theory.ratio, color=BLACK)
    ratio.axhline(1, color=BLACK, ls=":", lw=0.7)
    ratio.set(
        xscale="log",
        yscale="log",
        xlabel=r"step size $\eta$",
        ylabel="risk, optimal / independent",
        title="private part",
    )
    later = theory.isel(time=slice(1, None))
    styles = zip((BLUE, GREEN, ORANGE), "ox^", ("-", "--", ":"), strict=True)
    for (colour, marker, line), eta in zip(styles, theory.shown_step_size.values, strict=False):
        at, label = later.sel(shown_step_size=eta), rf"$\eta = {eta:g}$"
        time.plot(at.time, -at.coefficient, marker, color=colour, ms=3, label=label)
        time.plot(at.time, -at.coefficient_tail, color=colour, lw=0.7)
        both = np.outer(at.frequency, (-1, 1))
        frequency.plot(both, at.power, line, color=colour, label=[label, "_"])
    time.plot([], [], color=BLACK, lw=0.7, label="asymptote")
    time.legend(loc="lower left")
    frequency.legend(loc="upper center")
    time.set(
        xscale="log",
        yscale="log",
        ylim=(1e-6, 1),
        xlabel="lag $t$ in steps",
        ylabel=r"$-\beta^\star_t$",
        title=r"coefficients after $\beta^\star_0 = 1$",
    )
    frequency.set(
        xlabel=r"frequency $\omega$",
        ylabel=r"$|B^\star(\omega)|^2$",
        title="power spectrum",
        ylim=(0, None),
    )
    frequency.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    return figure


def fig2(
    dimension: Dataset,
    dimension_law: Dataset,
    decay: Dataset,
    decay_law: Dataset,
    step: Dataset,
    step_law: Dataset,
) -> Figure:
    """Stationary risk against dimension, effective dimension and step size."""
    figure, axes = panels(1, 3, height=2.4)
    _scaling(axes[0], dimension, dimension_law, "dimension", "dimension $d$")
    _scaling(axes[1], decay, decay_law, "effective_dimension", "effective dimension $d_{eff}$")
    _scaling(axes[2], step, step_law, "step_size", r"step size $\eta$")
    axes[0].set_ylabel("stationary excess risk")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def fig3(theory: Dataset) -> Figure:
    """Bound for strongly convex functions against the condition number, one column per reading."""
    figure, axes = panels(1 + theory.sizes["step_size"], 3, height=1.7, sharex=True, sharey="row")
    algorithms = {
        "dp_sgd": ("DP-SGD", RED, "s-"),
        "dp_ftrl": (r"$\nu$-DP-FTRL", BLUE, "o-"),
        "optimised": ("optimised coefficients", GREEN, "x--"),
    }
    printed, sound = (theory.sel(multiplier=which) for which in ("printed", "sound"))
    readings = {
        "multipliers as printed": printed.bound,
        "multipliers that hold": sound.bound,
        "least bound, from quadratics": sound.quadratic_envelope,
    }
    for column, (reading, bound) in zip(axes.T, readings.items(), strict=True):
        over = bound / bound.sel(algorithm="dp_sgd")
        for name, (label, colour, fmt) in algorithms.items():
            at, style = bound.isel(step_size=0).sel(algorithm=name), {"color": colour, "ms": 4}
            column[0].plot(theory.condition_number, at, fmt, mfc="none", label=label, **style)
            for panel, step in zip(column[1:], theory.step_size.values, strict=True):
                at = over.sel(algorithm=name, step_size=step)
                panel.plot(theory.condition_number, at, fmt, mfc="none", **style)
        for panel in column:
            panel.set(xscale="log", yscale="log")
        column[0].set_title(reading)
        column[-1].set_xlabel(r"condition number $\kappa$")
    steps = [f"$\\eta = {step:g}/L$" for step in theory.step_size.values]
    axes[0, 0].set_ylabel(f"bound on the risk,\n{steps[0]}")
    for panel, step in zip(axes[1:, 0], steps, strict=True):
        panel.set_ylabel(f"bound / that of\nDP-SGD, {step}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def fig4(cifar10: Dataset, stackoverflow: Dataset, budgets: Dataset) -> Figure:
    """Prefix-sum errors for the two schedules of the paper, and against the budget."""
    figure, axes = panels(2, 2, height=2.5, sharey="row")
    for panel, errors in zip(axes[0], (cifar10, stackoverflow), strict=True):
        _errors(panel, errors.isel(schedule=0))
    names = cifar10.mechanism.values
    axes[0, 0].set_yticks(range(len(names)), [MECHANISMS[str(name)] for name in names])
    axes[0, 0].invert_yaxis()
    for panel, steps in zip(axes[1], budgets.steps.values, strict=True):
        at = budgets.isel(schedule=budgets.steps.values == steps).squeeze("schedule")
        for account, style in zip(at.account.values, ("-", "--", ":"), strict=True):
            own = at.dp_sgd_error.sel(account=account)
            panel.loglog(at.epsilon, own, style, color=RED, label=f"DP-SGD, {account}")
        own, label = at.nu_dp_ftrl_error.isel(account=0), MECHANISMS["nu_dp_ftrl"]
        panel.loglog(at.epsilon, own, color=PURPLE, label=label)
        panel.set(xlabel=r"privacy budget $\varepsilon$", title=f"{steps} steps")
        ticks(panel, [0.5, 1, 2, 4, 10])
    axes[1, 0].set_ylabel("mean prefix error\n/ clip norm")
    axes[0, 1].legend(loc="lower right")
    figure.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def fig4_accuracy(simulation: Dataset) -> Figure:
    """Test accuracy of each mechanism against the budget, one panel for each feature map."""
    maps = simulation.feature_map.values
    figure, axes = panels(1, len(maps), height=2.9, squeeze=False)
    places = np.arange(simulation.sizes["epsilon"])
    for panel, name in zip(axes[0], maps, strict=True):
        at = simulation.sel(feature_map=name)
        for number, (mechanism, (colour, marker)) in enumerate(TRAINED.items()):
            one = at.sel(mechanism=mechanism)
            # Points of one budget stand side by side, so that their bars can be seen.
            beside = places + 0.12 * (number - (len(TRAINED) - 1) / 2)
            mean, bars = 100 * one.accuracy, 200 * one.accuracy_standard_error
            style: dict[str, Any] = {"color": colour, "fmt": marker, "ms": 4}
            panel.errorbar(beside, mean, bars, label=MECHANISMS[mechanism], **style)
        for between in places[1:]:
            panel.axvline(between - 0.5, color=BLACK, lw=0.3)
        noiseless = 100 * float(at.noiseless_accuracy)
        panel.axhline(noiseless, color=BLACK, ls=":", lw=0.8, label="without noise")
        title = f"{simulation.attrs['images']}\n{FEATURES[str(name)]}"
        panel.set(xlabel=r"privacy budget $\varepsilon$", title=title)
        panel.set_xticks(places, [f"{epsilon:g}" for epsilon in simulation.epsilon.values])
    axes[0, 0].set_ylabel("test accuracy (%)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _scaling(panel: Axes, simulation: Dataset, theory: Dataset, abscissa: str, label: str) -> None:
    places = simulation[abscissa].values
    for name, (title, colour, marker) in ALGORITHMS.items():
        at, law = simulation.sel(algorithm=name), theory.sel(algorithm=name)
        style: dict[str, Any] = {"color": colour, "fmt": marker, "ms": 3.5}
        bars = 2 * at.risk_standard_error
        panel.errorbar(places, at.risk, bars, label=f"{title}, simulated", **style)
        panel.plot(places, law.exact_risk, color=colour, label=f"{title}, exact")
        # The printed scaling has no constant: it is drawn through the middle of the exact risk.
        shift = np.exp(np.mean(np.log(law.exact_risk / law.scaling)))
        rate = f"{title}, the paper's rate"
        panel.plot(places, shift * law.scaling, color=colour, ls=":", label=rate)
        middle = len(places) // 2
        place = (places[middle], float(law.exact_risk[middle]))
        words = f"slope {float(at.slope):.2f}"
        panel.annotate(words, place, xytext=(6, -11), color=colour, **BESIDE)
    panel.set(xscale="log", yscale="log", xlabel=label)
    panel.set_xticks(places, [f"{value:.3g}" for value in places])
    panel.minorticks_off()


def _errors(panel: Axes, at: Dataset) -> None:
    """Mean error, with its value to the left, and largest error; one row for each mechanism."""
    mean, largest = at.mean_error.values, at.largest_error.values
    rows, anytime = np.arange(len(mean)), at.mechanism.isin(ANYTIME).values
    panel.hlines(rows, mean, largest, color=BLUE, lw=0.8)
    kinds = {"any number of steps": (anytime, BLUE), "others": (~anytime, "white")}
    for kind, (chosen, fill) in kinds.items():
        style: dict[str, Any] = {"color": BLUE, "mfc": fill, "ms": 4, "zorder": 3}
        panel.plot(mean[chosen], rows[chosen], "o", label=f"mean, {kind}", **style)
    panel.plot(largest, rows, "|", color=BLACK, ms=8, label="largest step's")
    for row, value, stretches in zip(rows, mean, at.stretches.values, strict=True):
        restarts = rf" ($\times {stretches}$)" if stretches > 1 else ""
        left: dict[str, Any] = {"xytext": (-5, 0), "ha": "right", "va": "center"}
        panel.annotate(f"{value:.3g}{restarts}", (value, row), **left, **BESIDE)
    panel.set(xscale="log", xlim=(mean.min() / 2.2, 1.2 * largest.max()))
    panel.set_xlabel("root mean square error of prefix sums")
    steps, participations, separation = map(int, (at.steps, at.participations, at.separation))
    panel.set_title(f"{steps} steps, {participations} participations, {separation} apart")
    inside = [tick for tick in (5, 10, 20, 50, 100, 200) if tick < largest.max()]
    panel.set_xticks(inside, map(str, inside))
    panel.minorticks_off()
