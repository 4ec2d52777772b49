"""Candidates of a search: settings to start from, and moves from the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import isclose
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Settings = TypeVar("Settings")
# Of values that rounding alone may tell apart, relative to either.
EQUAL = 1e-9


def _itself(point: Any) -> Any:
    return point


@dataclass(frozen=True, eq=False)
class Candidates(Generic[Settings]):
    """Points of a search, each of which stands for settings."""

    name: str  # under which a plan lists the best of them
    starts: Sequence[Any]  # points that are tried first, at least one
    # From the best point so far to others that are tried next, in this order.
    moves: Sequence[Callable[[Any], Sequence[Any]]] = ()
    settings: Callable[[Any], Settings] = _itself
    clip: str | None = None  # setting that bounds gradients; a plan widens it if that costs little

    @classmethod
    def zoomed(
        cls,
        name: str,
        settings: Callable[[Any], Settings],
        grids: Sequence[NDArray[np.float64]],
        *,
        zooms: int,
        clip: str | None = None,
    ) -> Candidates[Settings]:
        """A product of grids, then ever smaller crosses about the best point."""
        widths = [float(np.max(np.diff(grid))) if grid.size > 1 else 0.0 for grid in grids]
        crosses = [
            partial(_cross, widths=[width / 2**zoom for width in widths])
            for zoom in range(1, zooms + 1)
        ]
        return cls(name, list(product(*grids)), crosses, settings, clip)

    def best(self, values: Callable[[list[Settings]], Sequence[float]]) -> Settings:
        """Settings of least value; of values that are equal but for rounding, the first."""

        def least_of(points: Sequence[Any]) -> tuple[Any, float]:
            found = values([self.settings(point) for point in points])
            least = min(found)
            at = next(at for at, each in enumerate(found) if isclose(each, least, rel_tol=EQUAL))
            return points[at], found[at]

        best, least = least_of(self.starts)
        for move in self.moves:
            point, found = least_of(move(best))
            if found < least and not isclose(found, least, rel_tol=EQUAL):
                best, least = point, found
        return self.settings(best)


def _cross(point: Any, *, widths: Sequence[float]) -> list[Any]:
    steps = np.eye(len(widths))
    return [
        np.array(point) + sign * width * steps[axis]
        for axis, width in enumerate(widths)
        if width > 0
        for sign in (-1, 1)
    ]
