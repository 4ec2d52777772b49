"""Figure 4: errors of the mechanisms' noise, and accuracies of models trained with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.experiment.plotting import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    panels,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

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
LINES = {
    "dp_sgd": (RED, "s"),
    "tree_aggregation": (ORANGE, "^"),
    "optimal_cc": (GREEN, "v"),
    "nu_dp_ftrl": (PURPLE, "o"),
    "banded": (BLUE, "D"),
    "multi_epoch": (BLACK, "*"),
}
FEATURES = {"pixels": "standardised pixels", "wavelets": "wavelet moduli"}


def fig4(cifar10: xr.Dataset, stackoverflow: xr.Dataset) -> Figure:
    """Prefix-sum error of every mechanism at the two schedules of the paper's experiments."""
    from matplotlib.patches import Patch

    figure, axes = panels(1, 2, height=2.7)
    names = [str(name) for name in cifar10.mechanism.values]
    for column, (panel, errors) in enumerate(zip(axes, (cifar10, stackoverflow), strict=True)):
        at = errors.isel(schedule=0)
        values = at.mean_error.values
        colours = [
            PURPLE if name == "nu_dp_ftrl" else BLUE if name in ANYTIME else SKY for name in names
        ]
        panel.barh(range(len(names)), values, color=colours, height=0.7)
        panel.plot(
            at.largest_error, range(len(names)), "|", color=BLACK, ms=8, label="the largest step's"
        )
        stretches = at.stretches.values
        for row, (value, largest) in enumerate(zip(values, at.largest_error.values, strict=True)):
            restarts = rf" ($\times {stretches[row]}$)" if stretches[row] > 1 else ""
            panel.annotate(
                f"{value:.3g}{restarts}",
                (max(value, largest), row),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=6.5,
            )
        panel.set(
            xlim=(0, 1.15 * float(at.largest_error.max())),
            yticks=range(len(names)),
            xlabel="root mean square error of prefix sums",
            title=(
                f"{int(at.steps)} steps, {int(at.participations)} participations, "
                f"{int(at.separation)} apart"
            ),
        )
        panel.set_yticklabels([MECHANISMS[name] for name in names] if column == 0 else [])
        panel.invert_yaxis()
    kinds = ((PURPLE, r"$\nu$-DP-FTRL"), (BLUE, "other anytime"), (SKY, "others"))
    bars = [Patch(color=colour, label=f"mean over steps, {kind}") for colour, kind in kinds]
    figure.legend(handles=[*bars, axes[0].lines[0]], loc="outside lower center", ncols=4)
    return figure


def fig4_accuracy(simulation: xr.Dataset) -> Figure:
    """Test accuracy over the budget for each mechanism, one panel for each feature map."""
    maps = simulation.feature_map.values
    figure, axes = panels(1, len(maps), height=2.9, squeeze=False)
    epsilons = simulation.epsilon.values
    for panel, name in zip(axes[0], maps, strict=True):
        at = simulation.sel(feature_map=name)
        for number, (mechanism, (colour, marker)) in enumerate(LINES.items()):
            one = at.sel(mechanism=mechanism)
            # Points of one budget stand side by side, lest their bars hide each other.
            shift = 1.012 ** (number - len(LINES) / 2)
            panel.errorbar(
                epsilons * shift,
                100 * one.accuracy,
                yerr=200 * one.accuracy_standard_error,
                color=colour,
                marker=marker,
                ms=3.5,
                lw=0.9,
                label=MECHANISMS[mechanism],
            )
        panel.axhline(
            100 * float(at.noiseless_accuracy), color=BLACK, ls=":", lw=0.8, label="without noise"
        )
        panel.set(
            xscale="log",
            xlabel=r"privacy budget $\varepsilon$",
            title=f"{simulation.attrs['images']}, {FEATURES[str(name)]}",
        )
        panel.set_xticks(epsilons)
        panel.set_xticklabels([f"{epsilon:g}" for epsilon in epsilons])
        panel.minorticks_off()
    axes[0, 0].set_ylabel("test accuracy (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
