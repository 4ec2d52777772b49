"""Figure 4: errors of the mechanisms' noise, and accuracies of models trained with it."""

from __future__ import annotations

import numpy as np

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, panels
from reproduction.engine.recipe import Axes, Dataset, Figure

MECHANISMS = {
    "dp_sgd": "DP-SGD",
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
    "tree_aggregation": (ORANGE, "^"),
    "optimal_cc": (GREEN, "v"),
    "nu_dp_ftrl": (PURPLE, "o"),
    "banded": (BLUE, "D"),
    "multi_epoch": (BLACK, "*"),
}
FEATURES = {"pixels": "standardised pixels", "wavelets": "wavelet moduli"}


def fig4(cifar10: Dataset, stackoverflow: Dataset) -> Figure:
    """Prefix-sum error of every mechanism at the two schedules of the paper's experiments."""
    figure, axes = panels(1, 2, height=2.5, sharey=True)
    for panel, errors in zip(axes, (cifar10, stackoverflow), strict=True):
        _errors(panel, errors.isel(schedule=0))
    names = cifar10.mechanism.values
    axes[0].set_yticks(range(len(names)), [MECHANISMS[str(name)] for name in names])
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _errors(panel: Axes, at: Dataset) -> None:
    """Mean with its number to the left of it, and largest error, one row a mechanism."""
    mean, largest = at.mean_error.values, at.largest_error.values
    rows, anytime = np.arange(len(mean)), at.mechanism.isin(ANYTIME).values
    panel.hlines(rows, mean, largest, color=BLUE, lw=0.8)
    kinds = {"made for any number of steps": (anytime, BLUE), "others": (~anytime, "white")}
    for kind, (chosen, fill) in kinds.items():
        panel.plot(
            mean[chosen],
            rows[chosen],
            "o",
            color=BLUE,
            mfc=fill,
            ms=4,
            zorder=3,
            label=f"mean over steps, {kind}",
        )
    panel.plot(largest, rows, "|", color=BLACK, ms=8, label="the largest step's")
    for row, value, stretches in zip(rows, mean, at.stretches.values, strict=True):
        restarts = rf" ($\times {stretches}$)" if stretches > 1 else ""
        panel.annotate(
            f"{value:.3g}{restarts}",
            (value, row),
            xytext=(-5, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=6.5,
        )
    panel.set(
        xscale="log",
        xlim=(mean.min() / 2.2, 1.2 * largest.max()),
        xlabel="root mean square error of prefix sums",
        title=(
            f"{int(at.steps)} steps, {int(at.participations)} participations, "
            f"{int(at.separation)} apart"
        ),
    )
    inside = [tick for tick in (5, 10, 20, 50, 100, 200) if tick < largest.max()]
    panel.set_xticks(inside, map(str, inside))
    panel.minorticks_off()


def fig4_accuracy(simulation: Dataset) -> Figure:
    """Test accuracy over the budget for each mechanism, one panel for each feature map."""
    maps = simulation.feature_map.values
    figure, axes = panels(1, len(maps), height=2.9, squeeze=False)
    places = np.arange(simulation.sizes["epsilon"])
    for panel, name in zip(axes[0], maps, strict=True):
        at = simulation.sel(feature_map=name)
        for number, (mechanism, (colour, marker)) in enumerate(TRAINED.items()):
            one = at.sel(mechanism=mechanism)
            # Points of one budget stand side by side, for their bars to be seen.
            panel.errorbar(
                places + 0.12 * (number - (len(TRAINED) - 1) / 2),
                100 * one.accuracy,
                yerr=200 * one.accuracy_standard_error,
                color=colour,
                marker=marker,
                ms=4,
                ls="none",
                label=MECHANISMS[mechanism],
            )
        for between in places[1:]:
            panel.axvline(between - 0.5, color=BLACK, lw=0.3)
        panel.axhline(
            100 * float(at.noiseless_accuracy), color=BLACK, ls=":", lw=0.8, label="without noise"
        )
        panel.set(
            xlabel=r"privacy budget $\varepsilon$",
            title=f"{simulation.attrs['images']}, {FEATURES[str(name)]}",
        )
        panel.set_xticks(places, [f"{epsilon:g}" for epsilon in simulation.epsilon.values])
    axes[0, 0].set_ylabel("test accuracy (%)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
