"""Errors of scikit-learn about data, without the values of the data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privreg.ranges import places

T = TypeVar("T")
# What is passed on of scikit-learn's messages: sizes, types and names of columns.
KNOWN = re.compile(
    "|".join(
        (
            r"Found array with \d+ (sample|feature)\(s\) \(shape=\([\d, ]*\)\) while a minimum of "
            r"\d+ is required( by \w+)?\.",
            r"Found array with dim \d+",
            r"Found input variables with inconsistent numbers of samples: \[[\d, ]+\]",
            r"Input \w+ contains (NaN|infinity or a value too large for dtype\('float64'\))",
            r"Complex data not supported",
            r"Expected 2D array, got (1D|scalar) array instead",
            r"Sparse data was passed for \w+, but dense data is required",
            r"The feature names should match those that were passed during fit\.[\s\S]*",
            r"X has \d+ features, but \w+ is expecting \d+ features as input",
            r"argument must be a string or a (real )?number, not '\w+'",
            r"requires y to be passed, but the target y is None",
            r"y should be a 1d array, got an array of shape \([\d, ]*\) instead",
        )
    )
)
# Of these there is more to say than where the cells are.
RESHAPE = "Reshape your data to rows and columns"


def unquoted(call: Callable[[], T], **data: Any) -> T:
    """What a call gives; where it refuses the data, an error that quotes none of them.

    Parameters
    ----------
    call : callable
    data : array_like
        The arguments that an error names, as the caller passed them.

    Raises
    ------
    TypeError, ValueError
        With what is known of scikit-learn's message, and the rows and columns at fault.
    """
    try:
        return call()
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _message(str(error), data)
    # Outside the handler, so that the error does not carry the one with the values.
    raise kind(message)


def _message(text: str, data: dict[str, Any]) -> str:
    names = " and ".join(data)
    faults = [fault for name, value in data.items() for fault in _faults(name, value)]
    known = KNOWN.search(text)
    if known is None:
        found = "; ".join(faults) or ", ".join(type(value).__name__ for value in data.values())
        return f"{names} must be finite numbers, got {found}"
    says = known[0].rstrip(" \n") + (f". {RESHAPE}" if known[0].startswith("Expected") else "")
    where = f" ({'; '.join(faults)})" if faults and known[0].startswith("Input") else ""
    return f"{names} must be what scikit-learn takes: {says}{where}"


def _faults(name: str, value: Any) -> list[str]:
    """Where cells are no finite numbers, by columns; nothing for what has no cells."""
    try:
        cells = np.asarray(value, dtype=object)
    except (TypeError, ValueError):
        return []
    if cells.ndim not in (1, 2) or not cells.size:
        return []
    wrong = np.column_stack([_wrong(column) for column in np.atleast_2d(cells.T)])
    if not np.any(wrong):
        return []
    named = getattr(value, "columns", None)
    if cells.ndim == 2 and named is not None and len(named) == wrong.shape[1]:
        at = np.flatnonzero(wrong.any(axis=0))
        listed = ", ".join(repr(named[place]) for place in at[:5])
        rows = places(np.asarray(wrong.any(axis=1)))
        return [f"{rows} of {name}, columns {listed}{', ...' if at.size > 5 else ''}"]
    return [f"{places(wrong if cells.ndim == 2 else wrong[:, 0])} of {name}"]


def _wrong(column: NDArray[Any]) -> NDArray[np.bool_]:
    try:
        return ~np.isfinite(column.astype(np.float64))
    except (TypeError, ValueError, OverflowError):
        return np.array([not _is_number(cell) for cell in column])


def _is_number(cell: Any) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except (TypeError, ValueError, OverflowError):
        return False
