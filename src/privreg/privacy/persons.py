"""Names of persons, one a row, where a record is all rows of a person."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_unmasked

# Scalars that are names like Python's own; a date's own value would be a number.
PLAIN = (np.number, np.character)


def require_names(groups: ArrayLike, rows: int) -> NDArray[Any]:
    """Names that tell persons apart, each as it is given, whatever names are beside it.

    A list is never made an array of one type, in which 1 and "1" are one name, as are 2^53 and
    2^53 + 1 beside a fraction. Names are of one kind that can be ordered, `inf` among them, none
    missing; an error quotes none.
    """
    require_unmasked("groups", groups)
    names: NDArray[Any] = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    if names.shape != (rows,):
        raise ValueError(f"groups must have shape ({rows},), got {names.shape}")
    if names.dtype == object:
        names = _of_one_kind(names)
    # NaN is unequal to itself: a missing name. Two such rows could be one person's.
    elif np.any(names != names):
        raise ValueError("groups must name a person in every row, got a missing name")
    return names


def _of_one_kind(names: NDArray[Any]) -> NDArray[Any]:
    values = [name.item() if isinstance(name, PLAIN) else name for name in names.tolist()]
    kinds = {type(value) for value in values}
    try:
        # A name is at most itself; None and pandas' NA are not, and raise.
        named = len(kinds) <= 1 and all(value <= value for value in values)
    except TypeError:
        named = False
    if not named or any(kind.__hash__ is None for kind in kinds):
        listed = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"groups must be names of one kind, none missing, got {listed}")
    if kinds not in ({int}, {float}):
        return names
    packed = np.asarray(values)
    # Whole numbers that no type of 64 bits holds together would lose their last digits.
    return packed if packed.dtype.kind in "iu" or kinds == {float} else names
