"""The one way to refuse a value: "name must be what is expected, got what was found".

Every room passes numbers and arrays of its callers through these functions. NaN is never in range,
an infinity only where `infinite` allows it, and a truth value or text is no number.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


def require_real(
    name: str,
    value: ArrayLike,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> FloatArray:
    """Real numbers in a range.

    Parameters
    ----------
    name : str
        What the caller calls the value.
    value : array_like, shape (...)
        Integers or floats.
    above, least, below, most : float, optional
        Open and closed ends of the range.
    infinite : bool
        Whether an infinity inside the range is allowed.

    Returns
    -------
    ndarray, shape (...)
        The value in double precision.

    Raises
    ------
    ValueError
        "name must be ..., got ...", with the first entry that is out of range.

    Examples
    --------
    >>> require_real("rho", [0.5, 1], above=0)
    array([0.5, 1. ])
    >>> require_real("delta", 2.0, above=0, below=1)
    Traceback (most recent call last):
    ValueError: delta must be more than 0 and less than 1, got 2.0
    """
    array = _floats(name, value)
    within = ~np.isnan(array) if infinite else np.isfinite(array)
    for bound, compare in (
        (above, np.greater),
        (least, np.greater_equal),
        (below, np.less),
        (most, np.less_equal),
    ):
        if bound is not None:
            within &= compare(array, bound)
    if not np.all(within):
        found = array[~within].flat[0]
        expected = _range(above, least, below, most, infinite)
        raise ValueError(f"{name} must be {expected}, got {found}")
    return array


def require_number(name: str, value: Any, **bounds: Any) -> float:
    """One real number in a range; the bounds are those of `require_real`."""
    array = require_real(name, value, **bounds)
    if array.ndim:
        raise ValueError(f"{name} must be one number, got shape {array.shape}")
    return float(array)


def require_count(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number that is at least `least`.

    Examples
    --------
    >>> require_count("steps", 0)
    Traceback (most recent call last):
    ValueError: steps must be a whole number, at least 1, got 0
    """
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}")
    return int(value)


def require_array(name: str, value: ArrayLike, *, shape: tuple[int | None, ...]) -> FloatArray:
    """A finite array of a given shape, contiguous and in double precision.

    Parameters
    ----------
    name : str
        What the caller calls the array.
    value : array_like
        Its entries.
    shape : tuple
        Expected length of each axis; None for any length that is at least 1.
    """
    array = np.ascontiguousarray(_floats(name, value))
    fits = array.ndim == len(shape) and all(
        found >= 1 if wanted is None else found == wanted
        for found, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits:
        words = ", ".join("any" if wanted is None else str(wanted) for wanted in shape)
        raise ValueError(f"{name} must have shape ({words}), got {array.shape}")
    if not np.all(np.isfinite(array)):
        found = array[~np.isfinite(array)].flat[0]
        raise ValueError(f"{name} must be finite, got {found}")
    return array


def require_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """One of the names; the error names the nearest.

    Examples
    --------
    >>> require_choice("method", "adasp", ["adassp", "ols"])
    Traceback (most recent call last):
    ValueError: method must be one of 'adassp', 'ols', got 'adasp'; did you mean 'adassp'?
    """
    names = list(choices)
    if value not in names:
        raise ValueError(f"{name} must be {expected_choice(value, names)}")
    return str(value)


def expected_choice(value: Any, choices: Iterable[str]) -> str:
    """The end of an error line: the names, what was found, and the nearest name if one is near."""
    names = sorted(choices)
    listed = ", ".join(map(repr, names)) or "nothing"
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"one of {listed}, got {value!r}{hint}"


def _floats(name: str, value: ArrayLike) -> FloatArray:
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must be an array of numbers, got rows of unequal length"
        ) from None
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be real numbers, got {_short(value)}")
    # A wider type may hold finite numbers that double precision does not.
    with np.errstate(over="ignore"):
        return array.astype(np.float64)


def _range(
    above: float | None,
    least: float | None,
    below: float | None,
    most: float | None,
    infinite: bool,
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


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:57]}..."
