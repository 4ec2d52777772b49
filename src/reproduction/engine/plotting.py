"""Common style of all figures, saved as the same bytes for the same content."""

from __future__ import annotations

import logging
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.style import context

from reproduction.engine import artifacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with any colour vision.
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
PAGE_WIDTH = 7.0  # inches


@contextmanager
def style() -> Iterator[None]:
    """Fonts that stay readable at column width, thin frames, no interactive backend."""
    mpl.use("agg")
    # Embedding a font without a date, for identical bytes, is no reason for a warning.
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    with context(
        {
            "figure.dpi": 200,
            "figure.constrained_layout.use": True,
            "font.size": 8,
            "axes.titlesize": 8,
            "axes.labelsize": 8,
            "legend.fontsize": 7,
            "legend.frameon": False,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "axes.linewidth": 0.6,
            "lines.linewidth": 1.2,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "mathtext.fontset": "cm",
            "pdf.fonttype": 42,
            "svg.hashsalt": "privreg",
        },
        # Whatever a user's matplotlibrc says.
        after_reset=True,
    ):
        yield


def panels(rows: int, columns: int, *, height: float, **options: Any) -> tuple[Figure, Any]:
    """A page-wide figure of rows × columns axes, each row `height` inches high."""
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(PAGE_WIDTH, rows * height), **options)


def heat_map(
    axes: Axes, columns: np.ndarray, rows: np.ndarray, values: np.ndarray, **options: Any
) -> Any:
    """Cells around settings on logarithmic axes; `values` has shape (rows, columns)."""
    defaults: dict[str, Any] = {"cmap": "viridis", "rasterized": True}
    # Matplotlib's own edges are arithmetic means, the first below 0 on a coarse grid.
    padded = (np.r_[x[0] ** 2 / x[1], x, x[-1] ** 2 / x[-2]] for x in (columns, rows))
    edges = (np.sqrt(x[1:] * x[:-1]) for x in padded)
    drawn = axes.pcolormesh(*edges, values, **(defaults | options))
    axes.set(xscale="log", yscale="log")
    return drawn


def ticks(panel: Axes, values: Any) -> None:
    """These values as the only ticks of a logarithmic axis."""
    panel.set(xscale="log")
    panel.set_xticks(values, [f"{value:g}" for value in values])
    panel.minorticks_off()


def numbers(axis: Axis, steps: Sequence[float] = (1, 2, 5)) -> None:
    """Plain numbers on a logarithmic axis with few powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def mark(figure: Figure, *, scale: str, stand_ins: Sequence[str]) -> None:
    """Say on the figure itself if it is not at the paper's scale, or drawn from stand-in data."""
    # Titles name the real table, and a stand-in's words begin with whose place it takes.
    for name in set(re.findall("stand-in for ([^:]+):", "\n".join(stand_ins))):
        for title in (panel.title for panel in figure.axes):
            title.set_text(re.sub(f"(?i){name}", f"stand-in for {name}", title.get_text()))
    notes = [textwrap.fill(f"Not the paper's data: {words}.", 110) for words in stand_ins]
    if scale == "quick":
        notes.append("Reduced scale (config/quick.yaml): not the paper's parameters.")
    if not notes:
        return
    # Above the panels where a legend stands below them: Matplotlib would write one over the other.
    if figure.legends:
        notes = [figure.get_suptitle(), *notes]
    place = figure.suptitle if figure.legends else figure.supxlabel
    place("\n".join(notes).lstrip(), color=RED, fontsize=7)


def save(figure: Figure, path: Path) -> None:
    """Save as the suffix says, without date, host or version in the file."""
    kind = path.suffix.removeprefix(".")
    metadata: dict[str, None] = {"pdf": {"CreationDate": None}, "png": {"Software": None}}.get(
        kind, {"Date": None}
    )
    with artifacts.atomic(path) as partial:
        figure.savefig(partial, format=kind, metadata=metadata)
