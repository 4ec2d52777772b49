"""Figures of brown2024 over the sample size, drawn from artifacts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproduction.experiment.plotting import BLACK, BLUE, ORANGE, RED, panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP_COLOURS = (ORANGE, RED)


def fig2(simulation: xr.Dataset, theory: xr.Dataset) -> Figure:
    """Error due to privacy and due to sampling at a large budget."""
    figure, panel = panels(1, 1, height=2.6)
    figure.set_size_inches(4.2, 2.6)
    for colour, marker, steps in zip(
        STEP_COLOURS, ("v", "o"), simulation.steps.values, strict=False
    ):
        _privacy(panel, simulation, theory, int(steps), colour, marker)
    _sampling(panel, simulation, theory)
    _exact(panel)
    panel.legend(loc="lower left")
    panel.set_ylabel(r"mean $\ell_2$ error")
    return figure


def fig8(
    ten: xr.Dataset, ten_law: xr.Dataset, hundred: xr.Dataset, hundred_law: xr.Dataset
) -> Figure:
    """The same at the standard budget, for 10 and 100 features."""
    figure, axes = panels(1, 2, height=2.6)
    cases = ((10, ten, ten_law), (100, hundred, hundred_law))
    for panel, (dimension, simulation, theory) in zip(axes, cases, strict=True):
        steps = simulation.steps.values
        _privacy(panel, simulation, theory, int(steps[0]), RED, "o")
        if len(steps) > 1:
            _privacy(panel, simulation, theory, int(steps[1]), ORANGE, "s")
        _sampling(panel, simulation, theory)
        crossing = theory.crossing.sel(steps=steps[0])
        for kind, line, label in (
            ("noise_alone", ":", f"its noise alone crosses, $T = {steps[0]}$"),
            ("whole", "--", f"the whole error crosses, $T = {steps[0]}$"),
        ):
            place = float(crossing.sel(kind=kind))
            panel.axvline(place, color=BLACK, ls=line, lw=0.8, label=label)
        _exact(panel)
        panel.set_title(f"$p = {dimension}$, {simulation.sizes['trial']} trials")
    axes[0].set_ylabel(r"mean $\ell_2$ error")
    shown, names = axes[0].get_legend_handles_labels()
    lines = [at for at, name in enumerate(names) if "cross" in name]
    rest = [at for at in range(len(names)) if at not in lines]
    axes[0].legend([shown[at] for at in rest], [names[at] for at in rest], loc="lower left")
    axes[1].legend([shown[at] for at in lines], [names[at] for at in lines], loc="lower left")
    return figure


def _exact(panel: Axes) -> None:
    panel.plot([], [], color="0.4", lw=0.9, label="exact, without clipping")


def _privacy(
    panel: Axes, simulation: xr.Dataset, theory: xr.Dataset, steps: int, colour: str, marker: str
) -> None:
    at = simulation.sel(steps=steps)
    panel.errorbar(
        at.sample_size,
        at.privacy_error,
        yerr=2 * at.privacy_error_standard_error,
        color=colour,
        marker=marker,
        ms=3.5,
        ls="none",
        elinewidth=0.7,
        label=rf"privacy $\|\theta_T - \hat\theta\|$, $T = {steps}$",
    )
    panel.plot(theory.sample_size, theory.privacy_rms.sel(steps=steps), color=colour, lw=0.9)


def _sampling(panel: Axes, simulation: xr.Dataset, theory: xr.Dataset) -> None:
    panel.errorbar(
        simulation.sample_size,
        simulation.sampling_error,
        yerr=2 * simulation.sampling_error_standard_error,
        color=BLUE,
        marker="^",
        ms=3.5,
        ls="none",
        elinewidth=0.7,
        label=r"sampling $\|\hat\theta - \theta^*\|$",
    )
    panel.plot(theory.sample_size, theory.sampling_rms, color=BLUE, lw=0.9)
    panel.set(xscale="log", yscale="log", xlabel="samples $n$")
