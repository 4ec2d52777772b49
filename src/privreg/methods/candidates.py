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

from privreg.ranges import short
from privreg.validation import require_array, require_callable, require_count, require_instance

Settings = TypeVar("Settings")
# Of values that rounding alone may tell apart, relative to either.
EQUAL = 1e-9


def _itself(point: Any) -> Any:
    return point


@dataclass(frozen=True, eq=False)
class Candidates(Generic[Settings]):
    """Points of a search, each of which stands for settings.

    Parameters
    ----------
    name : str
        Under which a plan lists the best of them.
    starts : sequence
        Points that are tried first, at least one, none of them a list.
    moves : sequence of callable
        Each maps the best point so far to others that are tried next, in this order; may be empty.
    settings : callable
        From a point to settings; points are settings by default.
    clip : str, optional
        The setting that bounds gradients, which a plan widens where that costs little.

    Examples
    --------
    >>> candidates = Candidates("halves", [1.0, 2.0], [lambda best: [best / 2]])
    >>> candidates.best(lambda tried: [abs(each - 0.6) for each in tried])
    0.5
    """

    name: str
    starts: Sequence[Any]
    moves: Sequence[Callable[[Any], Sequence[Any]]] = ()
    settings: Callable[[Any], Settings] = _itself
    clip: str | None = None

    def __post_init__(self) -> None:
        require_instance("name", self.name, str)
        if not isinstance(self.starts, (list, tuple)) or not self.starts:
            raise ValueError(f"starts must be a list of points, got {short(self.starts)}")
        if any(isinstance(point, list) for point in self.starts):
            raise ValueError("starts must hold points, none of them a list")
        if not isinstance(self.moves, (list, tuple)):
            raise ValueError(f"moves must be a list of functions, got {short(self.moves)}")
        for move in self.moves:
            require_callable("moves", move)
        require_callable("settings", self.settings)
        if self.clip is not None:
            require_instance("clip", self.clip, str)

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
        """A product of grids, then ever smaller crosses about the best point.

        Parameters
        ----------
        name, settings, clip
            As for the class.
        grids : list of ndarray, shape (k,)
            Values of each coordinate of a point.
        zooms : int
            Number of crosses, each half as wide as the one before, at least 0.
        """
        require_count("zooms", zooms, least=0)
        if not isinstance(grids, (list, tuple)):
            raise ValueError(f"grids must be a list of arrays, got {short(grids)}")
        for grid in grids:
            require_instance("grids", grid, np.ndarray)
        axes = [require_array("grids", grid, shape=(None,)) for grid in grids]
        widths = [float(np.max(np.diff(axis))) if axis.size > 1 else 0.0 for axis in axes]
        crosses = [
            partial(_cross, widths=[width / 2**zoom for width in widths])
            for zoom in range(1, zooms + 1)
        ]
        return cls(name, list(product(*axes)), crosses, settings, clip)

    def best(self, values: Callable[[list[Settings]], Sequence[float]]) -> Settings:
        """Settings of least value; of values that are equal but for rounding, the first.

        Parameters
        ----------
        values : callable
            From a list of settings to a value of each, no NaN.
        """
        require_callable("values", values)

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
