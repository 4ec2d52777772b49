"""The figure of docs/comparison.md: error against budget, a panel for each table."""

from __future__ import annotations

from pathlib import Path

from judge import LEAST_SQUARES, OURS

from privreg.experiment import plotting
from privreg.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED

STYLES = {
    OURS: (BLUE, "o", "-"),
    "AdaSSP": (ORANGE, "s", "-"),
    "OpenDP, ridge": (GREEN, "^", "-"),
    "OpenDP, solved": (GREEN, "v", ":"),
    "diffprivlib": (RED, "D", "-"),
    LEAST_SQUARES: (BLACK, "", "--"),
}


def draw(found: dict, output: Path) -> None:
    """Save the figure of a summary."""
    with plotting.style():
        figure, axes = plotting.panels(2, 3, height=2.3, sharex=True)
        for panel, (table, block) in zip(axes.flat, found["tables"].items(), strict=True):
            budgets = [float(rho) for rho in block["budgets"]]
            for name, (colour, marker, line) in STYLES.items():
                errors = [entries[name]["error"] for entries in block["budgets"].values()]
                panel.errorbar(
                    budgets,
                    [mean for mean, _ in errors],
                    [spread for _, spread in errors],
                    color=colour,
                    marker=marker,
                    ls=line,
                    ms=3.5,
                    lw=1.0,
                    label=name if name != LEAST_SQUARES else f"{name} (not private)",
                )
            panel.axhline(1.0, color=PURPLE, lw=0.7, ls="-.", label="predicting the mean")
            size = f"{block['training_rows']:,} rows × {block['features']}"
            panel.set(xscale="log", yscale="log", title=f"{table}: {size}")
        for panel in axes[-1]:
            panel.set_xlabel(r"budget $\rho$ (zCDP, replace-one)")
        for panel in axes[:, 0]:
            panel.set_ylabel("held-out error over variance")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.savefig(output, metadata={"Software": None})
