"""Schedules of bombari2025 against the number of samples, drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, RED, panels
from reproduction.engine.recipe import Axes, DataArray, Dataset, Figure

if TYPE_CHECKING:
    import numpy as np

SPECTRA = {"isotropic": r"$\Sigma = I$", "uniform": r"$\Sigma \sim U[0, 2]$"}
COLOURS = (BLACK, ORANGE, GREEN, RED)
MARKERS = ("o", "s", "^", "D", "v")


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
                band(panel, abscissa, here[name], here[f"{name}_spread"], alpha=0.15, **look)
                panel.plot(
                    abscissa,
                    expected[name].sel(schedule=schedule),
                    color=look["color"],
                    lw=0.7,
                    ls="--",
                )
            panel.set(xlabel="$n / d$", xscale="log", yscale="log")
        axes[column].set_title(SPECTRA[spectrum])
        axes[column + 2].set_title(f"{SPECTRA[spectrum]}, relative")
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
    from matplotlib.lines import Line2D

    figure, axes = panels(1, 2, height=2.6)
    titles = ("MNIST, digits 1 against 7", "California housing")
    for panel, data, title in zip(axes, (mnist, housing), titles, strict=True):
        for at, schedule in enumerate(data.schedule.values):
            here, look = data.sel(schedule=schedule), _look(data, at)
            # Beside each other, so that the bars of five schedules do not hide one another.
            sizes = here.sample_size * (1 + 0.05 * (at - 2))
            error = here.loss_standard_error
            panel.errorbar(sizes, here.loss, yerr=error, capsize=1.5, elinewidth=0.7, **look)
            panel.plot(sizes, here.loss_median, color=look["color"], lw=0.6, ls=":")
        excluded = int(data.excluded.max())
        stability = f"at most {excluded} of {data.sizes['trial']} runs" if excluded else "no run"
        spread = f"{float(data.loss_spread.min()):.2g} to {float(data.loss_spread.max()):.2g}"
        panel.set(
            title=f"{title} ({stability} left out)\nstandard deviation of a run {spread}",
            xlabel="training samples $n$",
            xscale="log",
        )
    axes[0].set_yscale("log")
    axes[0].set_yticks([0.04, 0.06, 0.1], ["0.04", "0.06", "0.1"])
    axes[0].set_yticks([], minor=True)
    axes[0].set_ylabel(r"validation loss $\mathcal{P}(\theta^p)$")
    axes[1].legend(loc="upper right", ncols=2)
    kinds = [
        Line2D([], [], color="0.3", lw=0.9, label="mean over stable runs, standard error"),
        Line2D([], [], color="0.3", lw=0.6, ls=":", label="median over all runs"),
    ]
    axes[0].legend(handles=kinds, loc="upper right")
    return figure


def _look(data: Dataset, at: int) -> dict[str, Any]:
    """The harmonic schedule is the last one, blue as in the paper."""
    name = str(data.schedule.values[at])
    last = at == data.sizes["schedule"] - 1
    return {
        "color": BLUE if last else COLOURS[at % len(COLOURS)],
        "marker": MARKERS[at % len(MARKERS)],
        "ms": 2.5,
        "lw": 1.3 if last else 0.9,
        "label": name if last else name.replace("alpha=", r"$\alpha = $"),
    }


def band(
    panel: Axes,
    abscissa: np.ndarray,
    mean: DataArray,
    spread: DataArray,
    *,
    alpha: float = 0.25,
    **look: Any,
) -> None:
    """A curve with one standard deviation on either side."""
    panel.plot(abscissa, mean, **({"lw": 0.8} | look))
    low, high = mean - spread, mean + spread
    panel.fill_between(abscissa, low, high, color=look["color"], alpha=alpha, lw=0)
