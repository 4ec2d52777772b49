"""A grid's best that lies at its edge is no best yet: the search goes on beyond it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Point = TypeVar("Point")
# A further step is worth a gain of a hundredth; no grid is left by more than so many.
GAIN, MOST_STEPS = 0.99, 40


def beyond(
    best: Point,
    least: float,
    *,
    further: Callable[[Point], Point | None],
    value: Callable[[Point], float],
) -> tuple[Point, float]:
    """The best on the way out of a grid, and its value.

    The way ends where a step gains less than a hundredth: beyond the best, or near a limit.
    """
    for _ in range(MOST_STEPS):
        point = further(best)
        if point is None or not (found := value(point)) < GAIN * least:
            break
        best, least = point, found
    return best, least


def next_on(ladder: Sequence[float], value: float) -> float | None:
    """The next value outwards, of one at or beyond an end of a ladder; None of one inside.

    A ladder of whole numbers goes on by their difference, another one by their ratio.
    """
    for end, inner in ((ladder[0], ladder[1]), (ladder[-1], ladder[-2])):
        if (value - end) * (end - inner) >= 0:
            return value + end - inner if isinstance(end, int) else value * end / inner
    return None
