"""Hostile values for a parameter, from a valid one: every way to be wrong that callers find."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import strategies as st

NUMBERS = (
    np.nan,
    np.inf,
    -np.inf,
    -1.0,
    -0.5,
    -5e-324,
    0.0,
    5e-324,
    1e-300,
    1.0,
    2.0,
    1e155,
    1.7e308,
    -1.7e308,
)
COUNTS = (-1, 0, 2.5, np.nan, np.inf, True, -(2**63), np.int64(-3), 10**18, 10**400)
WRONG_TYPES = ("text", None, 1j, b"1", {}, object(), [[1.0], [1.0, 2.0]], np.datetime64("2020"))


def hostile(valid: Any) -> st.SearchStrategy[Any]:
    """Values in place of a valid one; most are invalid, some are valid extremes."""
    return st.one_of(st.sampled_from(_indexed(fixed(valid))), _drawn(valid)).map(_unwrap)


def fixed(valid: Any) -> list[Any]:
    """The same list for every run."""
    if isinstance(valid, bool):
        return ["text", None, 2.5, np.nan]
    if isinstance(valid, (int, np.integer)):
        return [*COUNTS, *WRONG_TYPES, [valid, valid], []]
    if isinstance(valid, (float, np.floating)):
        return [*NUMBERS, *WRONG_TYPES, [], [[valid, valid], [valid, np.nan]], True]
    if isinstance(valid, (list, tuple)) and _is_numeric(valid):
        valid = np.asarray(valid)
    if isinstance(valid, np.ndarray) and valid.dtype.kind in "iuf":
        return [*_arrays(valid), *WRONG_TYPES]
    if isinstance(valid, str):
        return ["text", "", None, 1.0, np.nan, valid.upper()]
    return [*WRONG_TYPES, np.nan, 1.0, []]


def holds_nan(value: Any) -> bool:
    """Whether a hostile value is or contains NaN."""
    try:
        return bool(np.any(np.isnan(np.asarray(value, dtype=np.float64))))
    except (TypeError, ValueError, OverflowError):
        return False


def numbers(value: Any) -> np.ndarray | None:
    """The numbers in a value, None where it holds anything else."""
    if isinstance(value, (str, bytes)) or value is None:
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    if isinstance(value, int) and array.dtype.kind == "O":
        # Beyond 64 bits, and beyond doubles.
        return np.array(1.7e308 if value > 0 else -1.7e308)
    return array.astype(np.float64) if array.dtype.kind in "iufb" else None


def _arrays(valid: np.ndarray) -> list[Any]:
    changed = []
    for number in (np.nan, np.inf, -np.inf, -1.0, 0.0, 5e-324, 1e155, 1.7e308):
        if valid.size:
            one = valid.astype(np.float64)
            one.flat[-1] = number
            changed.append(one)
        changed.append(np.full(valid.shape, number))
    changed += [
        np.empty(0),
        np.empty((0, *valid.shape[1:])),
        valid[..., None],
        valid[None],
        np.array(valid, dtype=object),
        valid.astype(np.complex128),
        valid.astype(np.float32),
        valid.tolist(),
    ]
    if valid.ndim and len(valid):
        changed += [valid[:-1], np.concatenate([valid, valid]), valid[::-1], valid[0]]
    if valid.ndim == 2:
        changed += [valid[:, :-1], np.asfortranarray(valid)]
    return changed


def _drawn(valid: Any) -> st.SearchStrategy[Any]:
    if isinstance(valid, bool) or not _is_numeric(valid):
        return st.sampled_from([(0, None)]).map(lambda pair: pair)
    if isinstance(valid, int):
        return st.integers(-(2**40), 0).map(lambda value: (0, value))
    if isinstance(valid, float):
        return st.floats(width=64).map(lambda value: (0, value))
    array = np.asarray(valid, dtype=np.float64)

    def entries(draws: list[float]) -> tuple[int, Any]:
        changed = array.copy()
        changed.flat[: min(len(draws), changed.size)] = draws[: changed.size]
        return 0, changed

    return st.lists(st.floats(width=64), min_size=1, max_size=4).map(entries)


def _indexed(values: list[Any]) -> list[tuple[int, Any]]:
    # Hypothesis compares samples; arrays do not compare to one truth value.
    return list(enumerate(values))


def _unwrap(pair: tuple[int, Any]) -> Any:
    return copy.copy(pair[1])


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except ValueError:
        return False
