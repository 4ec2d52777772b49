"""The figure of docs/comparison.md: error against budget, a panel for each table."""

from __future__ import annotations

from pathlib import Path

from judge import LEAST_SQUARES, OURS

from reproduction.experiment import plotting
from reproduction.experiment.plotting import BLACK, BLUE, GREEN, ORANGE, RED
from reproduction.studies.figures.comparison import Curve, curves_by_table

STYLES = {
    OURS: (BLUE, "o", "-", OURS),
    "AdaSSP": (ORANGE, "s", "-", "AdaSSP"),
    "OpenDP, ridge": (GREEN, "^", "-", "OpenDP, ridge"),
    "OpenDP, solved": (GREEN, "v", ":", "OpenDP, solved"),
    "diffprivlib": (RED, "D", "-", "diffprivlib"),
    LEAST_SQUARES: (BLACK, "", "--", f"{LEAST_SQUARES} (not private)"),
}


def draw(found: dict, output: Path) -> None:
    """Save the figure of a summary."""
    curves = {}
    for table, block in found["tables"].items():
        size = f"{block['training_rows']:,} rows × {block['features']}"
        budgets = [float(rho) for rho in block["budgets"]]
        curves[f"{table}: {size}"] = {
            name: Curve(
                budgets, *zip(*(at[name]["error"] for at in block["budgets"].values()), strict=True)
            )
            for name in STYLES
        }
    with plotting.style():
        figure = curves_by_table(curves, STYLES, height=2.3, columns=4)
        figure.savefig(output, metadata={"Software": None})
