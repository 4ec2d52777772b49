"""Simulated risks of anon2024's algorithm, none of which the paper shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reproduction.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, panels

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

SHAPES = {
    "identity": (BLUE, "$I$"),
    "population": (ORANGE, r"$H + I/(N\eta)$"),
    "public x1": (GREEN, "public, $M = N$"),
    "public x4": (PURPLE, "public, $M = 4N$"),
}
CORRELATIONS = {
    "tree": "tree (Algorithm 3)",
    "independent": "independent (one-pass DP-SGD)",
    "square root": "square root (choquettechoo2024)",
}


def tuned_risk(slow: xr.Dataset, middle: xr.Dataset, steep: xr.Dataset) -> Figure:
    """Tuned excess risk against epsilon; one row a decay, one column a correlation."""
    figure, axes = panels(3, 3, height=1.9, sharex=True, sharey="row")
    for row, simulation in enumerate((slow, middle, steep)):
        arms = simulation.arm.values.tolist()
        for column, (correlation, title) in enumerate(CORRELATIONS.items()):
            panel = axes[row, column]
            for shape, (colour, name) in SHAPES.items():
                arm = f"{correlation}, {shape}"
                if arm not in arms:
                    continue
                at = simulation.sel(arm=arm)
                panel.errorbar(
                    simulation.epsilon,
                    at.tuned,
                    2 * at.tuned_standard_error,
                    fmt="o-",
                    ms=2.5,
                    color=colour,
                    label=rf"$\Sigma$: {name}",
                )
            panel.axhline(
                float(simulation.tuned_nonprivate), color=BLACK, lw=0.8, ls="--",
                label="without privacy",
            )  # fmt: skip
            panel.set(xscale="log", yscale="log")
            if row == 0:
                panel.set_title(title)
            if row == 2:
                panel.set_xlabel(r"privacy budget $\varepsilon$")
        axes[row, 0].set_ylabel(f"tuned excess risk\ndecay $r = {simulation.attrs['decay']:g}$")
    handles, labels = axes[1, 0].get_legend_handles_labels()
    axes[0, 2].legend(handles, labels, fontsize=6, loc="upper right")
    return figure


def simulation_below_bound(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Simulated risk, exact risk and Theorem 4.2 against the step size, for the tree."""
    figure, axes = panels(1, 2, height=2.7, sharey=True)
    for panel, shape in zip(axes, ("identity", "population"), strict=True):
        for colour, epsilon in zip((RED, ORANGE, SKY), (1.0, 8.0, 128.0), strict=True):
            if epsilon not in simulation.epsilon.values:
                continue
            at = simulation.sel(arm=f"tree, {shape}", epsilon=epsilon)
            exact = theory.sel(diagonal_arm=f"tree, {shape}", epsilon=epsilon)
            bound = theory.bound.sel(noise_shape=shape, epsilon=epsilon)
            panel.plot(at.step_size, at.risk, "o", ms=2.5, color=colour,
                       label=rf"simulated, $\varepsilon = {epsilon:g}$")  # fmt: skip
            panel.plot(at.step_size, exact.risk, color=colour, lw=0.8)
            panel.plot(at.step_size, bound, "--", color=colour)
        panel.set(xscale="log", yscale="log", xlabel=r"step size $\eta$")
        panel.set_title(rf"tree, $\Sigma$: {SHAPES[shape][1]}")
    axes[0].plot([], [], color="0.4", lw=0.8, label="exact, unclipped")
    axes[0].plot([], [], "--", color="0.4", label="Theorem 4.2, constants 1")
    axes[0].set_ylabel("excess risk")
    axes[0].set_ylim(None, 1e9)
    axes[0].legend(fontsize=6, loc="upper left")
    return figure


def noise_errors(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Simulated error of the noise over both formulas."""
    figure, axes = panels(1, 3, height=2.3, sharey=True)
    for panel, (correlation, title) in zip(axes, CORRELATIONS.items(), strict=True):
        for shape in ("identity", "population"):
            colour, name = SHAPES[shape]
            at = simulation.sel(correlation=correlation, noise_shape=shape)
            panel.errorbar(
                simulation.step_size,
                at.ratio_to_exact,
                2 * at.ratio_to_exact_standard_error,
                fmt="o",
                ms=3,
                color=colour,
                label=rf"$\Sigma$: {name}",
            )
            linear = theory.linear / theory.exact
            panel.plot(
                simulation.step_size,
                linear.sel(correlation=correlation, noise_shape=shape),
                "--",
                color=colour,
            )
        panel.axhline(1, color="0.5", lw=0.6)
        panel.set(xscale="log", xlabel=r"step size $\eta$", title=title)
    axes[0].plot([], [], "--", color="0.4", label="mean gradients, exact")
    axes[0].set_ylabel("error of the noise over its exact value")
    axes[0].legend(fontsize=6)
    return figure


def clip_feedback(theory: xr.Dataset, simulation: xr.Dataset) -> Figure:
    """Median excess risk with adaptive clipping; runs that overflow sit on the upper edge."""
    figure, axes = panels(1, 2, height=2.6, sharey=True)
    finite = simulation.median_risk.values[np.isfinite(simulation.median_risk.values)]
    top, bottom = 1e3 * float(simulation.risk_at_start), 0.5 * float(np.min(finite))
    # The two shapes nearly coincide: open rings around filled points keep both visible.
    marks = {"identity": (6, "none"), "population": (3, None)}
    for panel, constant in zip(axes, ("paper", "practical"), strict=True):
        for shape in ("identity", "population"):
            colour, name = SHAPES[shape]
            at = simulation.sel(noise_shape=shape, constant=constant)
            steps, risk = at.relative_step.values, at.median_risk.values
            size, face = marks[shape]
            panel.plot(
                steps,
                np.where(risk < top, risk, np.nan),
                "o-",
                color=colour,
                ms=size,
                mfc=face,
                label=rf"$\Sigma$: {name}",
            )
            above = risk >= top
            overflow = at.diverged.values >= 0.5
            panel.plot(steps[above & ~overflow], np.full(np.sum(above & ~overflow), top), "^",
                       ms=4, mfc="white", color=colour)  # fmt: skip
            panel.plot(steps[overflow], np.full(np.sum(overflow), 2 * top), "x", color=colour)
            gain = theory.gain.sel(noise_shape=shape, constant=constant).values
            crossing = np.exp(np.interp(0.0, np.log(gain), np.log(steps)))
            panel.axvline(crossing, color=colour, lw=0.7, ls=":")
        start = panel.axhline(float(simulation.risk_at_start), color="0.5", lw=0.6)
        cap = panel.axvline(1.0, color=RED, lw=0.8)
        panel.set(xscale="log", yscale="log", xlabel="step size over the cap of Theorem 4.2")
        panel.set_ylim(bottom, 5 * top)
        panel.set_title(f"{constant} constant $C$")
    # The right panel has room above its curves.
    start.set_label("risk at the start")
    cap.set_label("largest step of Theorem 4.2")
    axes[1].plot([], [], "^", mfc="white", color="0.4", label="median off the scale")
    axes[1].plot([], [], "x", color="0.4", label="median infinite")
    axes[1].plot([], [], ":", color="0.4", label="the loop of clip norm and noise has gain 1")
    axes[0].set_ylabel("median excess risk")
    axes[1].legend(fontsize=6, loc="upper left", bbox_to_anchor=(0.0, 0.97))
    return figure


def dimensions(simulation: xr.Dataset) -> Figure:
    """Tuned excess risk against the dimension."""
    figure, axes = panels(1, 2, height=2.5)
    styles = {
        "non-private": (BLACK, "without privacy"),
        "tree, identity": (BLUE, rf"tree, $\Sigma$: {SHAPES['identity'][1]}"),
        "tree, population": (ORANGE, rf"tree, $\Sigma$: {SHAPES['population'][1]}"),
    }
    for arm, (colour, name) in styles.items():
        at = simulation.sel(arm=arm)
        for panel, quantity in zip(axes, ("tuned", "relative"), strict=True):
            panel.errorbar(
                simulation.ratio,
                at[quantity],
                2 * at[f"{quantity}_standard_error"],
                fmt="o-",
                ms=3,
                color=colour,
                label=name,
            )
    for panel in axes:
        panel.set(xscale="log", xlabel="dimension over sample size, $d / N$")
        panel.set_xticks(simulation.ratio.values, [f"{int(r)}" for r in simulation.ratio.values])
        panel.minorticks_off()
    axes[0].set(yscale="log", ylabel="tuned excess risk")
    axes[1].set_ylabel("tuned excess risk over that at $d = N$")
    axes[0].legend(fontsize=6)
    return figure
