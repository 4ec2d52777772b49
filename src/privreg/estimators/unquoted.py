"""Errors of scikit-learn about data, without the values of the data."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privreg.ranges import MOST_COLUMNS, places, short

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
            r"Expected unique column names, got:\n- .*",
            r"Feature names are only supported if all input features have string names, but your "
            r"input has \[[\w', ]*\] as feature name / column name types",
            r"np\.matrix is not supported\. Please convert to a numpy array with np\.asarray",
        )
    )
)
# Of these there is more to say than where the cells are.
RESHAPE = "Reshape your data to rows and columns"
# Names of types of numbers in NumPy, pandas, Arrow and Polars; NumPy would make numbers of dates.
NUMERIC = re.compile(r"(sparse\[)?(u?int\d|float|double|halffloat|decimal|null|bool)")


def unquoted(call: Callable[[], T], **data: Any) -> T:
    """Result of a call; where it refuses the data, an error that names and quotes none of them."""
    try:
        found = call()
        message = _message("", data) if any(_types(*each) for each in data.items()) else ""
        if not message:
            return found
        kind: type[Exception] = ValueError
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _message(str(error), data)
    # Outside the handler, so that the error does not carry the one with the values.
    raise kind(message)


def _message(text: str, data: dict[str, Any]) -> str:
    names = " and ".join(data)
    faults = [fault for each in data.items() for fault in (*_types(*each), *_faults(*each))]
    known = KNOWN.search(text)
    if known is None:
        found = "; ".join(faults) or ", ".join(type(value).__name__ for value in data.values())
        return f"{names} must be finite numbers, got {found}"
    says = known[0].rstrip(" \n") + (f". {RESHAPE}" if known[0].startswith("Expected 2D") else "")
    says = says.replace(":\n-", "") if known[0].startswith("Expected unique") else says
    where = (
        f" ({'; '.join(faults)})" if faults and known[0].startswith(("Input", "argument")) else ""
    )
    return f"{names} must be what scikit-learn takes: {says}{where}"


def _faults(name: str, value: Any) -> list[str]:
    """Places of cells that are no finite numbers; none for what has no cells."""
    try:
        cells = np.asarray(value, dtype=object)
    except (TypeError, ValueError):
        return []
    if cells.ndim not in (1, 2) or not cells.size:
        return []
    wrong = np.column_stack([_wrong(column) for column in np.atleast_2d(cells.T)])
    if not np.any(wrong):
        return []
    if cells.ndim == 2 and _names(value) is not None:
        rows = places(np.asarray(wrong.any(axis=1)))
        return [f"{rows} of {name}{_columns(value, np.flatnonzero(wrong.any(axis=0)))}"]
    return [f"{places(wrong if cells.ndim == 2 else wrong[:, 0])} of {name}"]


def _types(name: str, value: Any) -> list[str]:
    """Types of cells that are no numbers: those that columns have, or those of objects in them."""
    found: Any = getattr(value, "dtypes", getattr(getattr(value, "schema", None), "types", None))
    if found is None:
        found = getattr(value, "dtype", getattr(value, "type", np.dtype(object)))
    framed = hasattr(value, "columns")
    texts = [getattr(each, "name", str(each)).lower() for each in (found if framed else [found])]
    columns: Any = texts
    if "object" in texts:
        try:
            cells = np.asarray(value, dtype=object)
        except (TypeError, ValueError):
            return []
        columns = cells.T if framed else [cells.ravel()]
    wrong = {}
    for k, (text, column) in enumerate(zip(texts, columns, strict=True)):
        kinds = {kind for kind in set(map(type, column)) if not _is_real(kind)}
        listed = [kind.__name__ for kind in kinds] if text == "object" else [text]
        wrong.update({k: listed} if listed and not NUMERIC.match(text) else {})
    if not wrong:
        return []
    words = sorted({re.sub(r"\W.*|\d+", "", text) for own in wrong.values() for text in own})
    return [f"{' and '.join(words)} in {name}{_columns(value, np.array(list(wrong)))}"]


def _is_real(kind: type) -> bool:
    numbers = issubclass(kind, (Real, Decimal, np.floating, np.integer, np.bool_))
    return numbers and not issubclass(kind, np.timedelta64)


def _names(value: Any) -> Any:
    # The columns of an Arrow table are its cells.
    arrow = hasattr(value, "column_names") and not hasattr(value, "dtypes")
    return value.column_names if arrow else getattr(value, "columns", None)


def _columns(value: Any, at: NDArray[np.intp]) -> str:
    named = _names(value)
    if named is None:
        return ""
    listed = ", ".join(short(named[place]) for place in at[:MOST_COLUMNS])
    return f", columns {listed}{', ...' if at.size > MOST_COLUMNS else ''}"


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
