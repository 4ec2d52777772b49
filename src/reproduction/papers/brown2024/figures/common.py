"""What the figures of brown2024 share."""

from __future__ import annotations

from typing import Any

from reproduction.engine.plotting import panels
from reproduction.engine.recipe import Axes, Dataset, Figure

HEIGHT = 2.6  # inches


def single() -> tuple[Figure, Axes]:
    """One panel over the page."""
    return panels(1, 1, height=HEIGHT)


def points(panel: Axes, dataset: Dataset, name: str, **style: Any) -> None:
    """A simulated quantity over its one axis, with two standard errors either way."""
    values = dataset[name]
    panel.errorbar(
        values[values.dims[0]],
        values,
        yerr=2 * dataset[values.attrs["ancillary_variables"]],
        **{"ms": 3.5, "elinewidth": 0.7, **style},
    )


def exact_line(panel: Axes) -> None:
    """Explain the lines of the exact law."""
    panel.plot([], [], color="0.4", lw=0.9, label="exact, without clipping")
