"""Ranges of numbers: whether an array lies inside, and words for what does not."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Up to this many numbers a call costs more than looking at them.
FEW = 4096
# What an error quotes, and how many columns it lists.
PLAIN = (str, bytes, int, float, complex, np.generic, type, type(None))
MOST_COLUMNS = 5


def inside(
    array: FloatArray,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> bool:
    """Whether no entry is out of range, from the two extremes alone."""
    size = array.size
    if size == 0:
        return True
    if size <= FEW:
        # A quarter of a reduction's time; the first NaN counts as either extreme.
        low, high = array.item(array.argmin()), array.item(array.argmax())
    else:
        # No array is made, however the entries lie in memory.
        low = float(np.minimum.reduce(array, axis=None))
        high = float(np.maximum.reduce(array, axis=None))
    return between(low, high, above, least, below, most, infinite)


def outside(
    array: FloatArray,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> NDArray[np.bool_]:
    """Which entries are out of range."""
    within = ~np.isnan(array) if infinite else np.isfinite(array)
    for bound, compare in (
        (above, np.greater),
        (least, np.greater_equal),
        (below, np.less),
        (most, np.less_equal),
    ):
        if bound is not None:
            within &= compare(array, bound)
    return np.asarray(~within)


def between(
    low: float,
    high: float,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> bool:
    # Both extremes are NaN where an entry is one, and NaN compares as false.
    return (
        (low <= high if infinite else -inf < low <= high < inf)
        and (above is None or low > above)
        and (least is None or low >= least)
        and (below is None or high < below)
        and (most is None or high <= most)
    )


def range(
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> str:
    parts = [
        f"{words} {bound:g}"
        for words, bound in (
            ("more than", above),
            ("at least", least),
            ("less than", below),
            ("at most", most),
        )
        if bound is not None
    ]
    words = " and ".join(parts)
    if infinite or ((below is not None or most is not None) and (above, least) != (None, None)):
        return words or "a number"
    return f"finite and {words}" if words else "finite"


def places(wrong: NDArray[np.bool_]) -> str:
    """How many rows of an array hold wrong entries, and in which columns: none of its values.

    Parameters
    ----------
    wrong : ndarray, shape (n, ...)
        Where the entries are wrong.

    Examples
    --------
    >>> places(np.array([[False, True], [False, False]]))
    'others in 1 of 2 rows, columns 1'
    """
    if wrong.ndim == 0:
        return "another"
    rows = wrong.reshape(len(wrong), -1)
    found = f"others in {int(rows.any(axis=1).sum())} of {len(rows)} rows"
    if wrong.ndim == 1:
        return found
    columns = np.flatnonzero(rows.any(axis=0))
    listed = ", ".join(map(str, columns[:MOST_COLUMNS]))
    return f"{found}, columns {listed}{', ...' if columns.size > MOST_COLUMNS else ''}"


def entry(array: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    """A wrong number; where there are several, none of them: a misplaced array may be data."""
    return places(wrong) if array.ndim else str(array)


def short(value: Any) -> str:
    """A number or a text; of anything that holds others its type and size, since it may be data."""
    if isinstance(value, np.generic):
        # A record of a structured array is such a scalar.
        value = value.item()
    if isinstance(value, int) and value.bit_length() > 128:
        # Python writes none of more than 4,300 digits.
        return f"one of {value.bit_length()} bits"
    if not isinstance(value, PLAIN):
        return sort(value)
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def sort(value: Any) -> str:
    """Type and size, where what was expected is no number and no text."""
    if value is None:
        return "None"
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    size = f" of shape {shape}" if isinstance(shape, tuple) and shape else ""
    size = f" of {len(value)}" if isinstance(value, (list, tuple, dict, set)) else size
    return f"{'an' if kind[0] in 'aeioAEIO' else 'a'} {kind}{size}"
