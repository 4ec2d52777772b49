"""The figure of docs/comparison.md: squared error over least squares', a panel for each ε."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from judge import OURS, PEERS, ROBUST

from reproduction.engine import plotting
from reproduction.engine.plotting import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY

STYLES = {
    "diffprivlib": (RED, "D"),
    "bins": (SKY, "P"),
    "OpenDP": (GREEN, "^"),
    "AdaSSP": (ORANGE, "s"),
    "AdaSSP, boosted": (ORANGE, "x"),
    "standardised": (PURPLE, "v"),
    ROBUST: (BLACK, "o"),
    OURS: (BLUE, "o"),
}
# Ratios beyond are drawn at the edge.
FARTHEST = 1e5


def draw(found: dict, output: Path) -> None:
    """Save the figure of a summary."""
    blocks = {name: block for name, block in found["tables"].items() if block["sampled"]}
    assert set(STYLES) == set(PEERS[:-1])
    with plotting.style():
        figure, axes = plotting.panels(1, 3, height=4.6, sharey=True)
        places = np.arange(len(blocks))[::-1]
        for number, panel in enumerate(axes.flat):
            cells = [list(block["budgets"].items())[number] for block in blocks.values()]
            for name, (colour, marker) in STYLES.items():
                ratios = [min(entries[name]["ratio"][0], FARTHEST) for _, entries in cells]
                filled = {} if name != ROBUST else {"mfc": "white"}
                size = 5.0 if name == OURS else 3.6
                panel.plot(
                    ratios,
                    places,
                    ls="",
                    marker=marker,
                    color=colour,
                    ms=size,
                    label=name,
                    **filled,
                )
            panel.axvline(1.0, color=BLACK, lw=0.7, ls="--")
            panel.set(xscale="log", title=f"ε = {cells[0][0]}", yticks=places)
            panel.set_xlabel("squared error over least squares'")
            panel.grid(axis="y", lw=0.3)
        axes.flat[0].set_yticklabels(blocks)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        figure.savefig(output, metadata={"Software": None})
