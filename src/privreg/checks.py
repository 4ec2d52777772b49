"""Checks of arguments, the domain of every number that a user sets, and immutable types.

Scales, norms, budgets, rates and standard deviations lie in [1e-12, 1e12]. Signed settings are at
most 1e12 in absolute value, counts at most 2^53. Data may be any finite numbers; they are clipped
to declared bounds. An error reads "name must be ..., got ...". It quotes one number or text, never
the contents of a list, an array or an object. An error about data names columns and counts rows.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from math import inf
from types import EllipsisType
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)
FloatArray = NDArray[np.float64]
Shape = tuple[int | EllipsisType | None, ...]

LEAST, MOST = 1e-12, 1e12
# Every whole number up to here is a double.
LARGEST_COUNT = 2**53
# For at most this many numbers, the overhead of a call exceeds the work on the numbers.
FEW = 4096
# What an error quotes, and how many columns it lists.
PLAIN = (str, bytes, int, float, complex, np.generic, type, type(None))
MOST_COLUMNS = 5
# The one native double; byte-swapped ones are other types.
_DOUBLE = np.dtype(np.float64)
_ENDS = {
    "above": ("more than", np.greater),
    "least": ("at least", np.greater_equal),
    "below": ("less than", np.less),
    "most": ("at most", np.less_equal),
}


def frozen(array: NDArray[Number]) -> NDArray[Number]:
    """Copy an array into read-only memory, in the same memory order.

    A read-only flag is not enough, since the owner of the memory may allow writing again. The
    memory of `bytes` stays read-only. An array that already lies in `bytes` is copied, too: NumPy
    may unpickle a large array into `bytes` and leave it writable.
    """
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    order: Any = "F" if fortran else "C"
    return np.ndarray(array.shape, array.dtype, array.tobytes(order), order=order)


class Rebuilt:
    """Dataclass that is copied and unpickled by calling its constructor with the fields."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        parts = [part.name for part in fields(self) if part.init]  # type: ignore[arg-type]
        return _rebuild, (type(self), {name: getattr(self, name) for name in parts})


class _OwnCopy:
    __slots__ = ()

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, _: dict[int, Any]) -> T:
        return self


class Immutable(_OwnCopy, Rebuilt):
    """Frozen dataclass of numbers and `frozen` arrays; copying returns the object itself."""

    __slots__ = ()


class Computed(_OwnCopy):
    """Object with computed results; a copy is the object itself; a pickle stores the results."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, frozen(value) if isinstance(value, np.ndarray) else value)


class OneProcess:
    """Object valid only in the process that made it, since it holds noise, a choice or a count."""

    _process: int | None

    def __new__(cls, *_: Any, **__: Any) -> Self:
        new = super().__new__(cls)
        object.__setattr__(new, "_process", os.getpid())
        return new

    def _require_process(self, remedy: str = "make a new one") -> None:
        """Refuse use in another process, which would repeat the noise or the choice."""
        if self._process != os.getpid():
            raise ValueError(
                f"{_a(type(self))} must be used in the process that made it, got a copy from a "
                f"pickle or another process: {remedy}"
            )


class Uncopied(OneProcess):
    """Source of noise that cannot be copied, since a copy would draw the same noise again."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{_a(type(self))} must be neither copied nor pickled: a copy would draw the same noise"
        )


def _rebuild(kind: type[T], values: dict[str, Any]) -> T:
    return kind(**values)


class AccuracyWarning(UserWarning):
    """Warning: the estimated error of a result exceeds the requested tolerance."""


def warn_beyond(result: str, *, error: float, tolerance: float) -> None:
    """Warn the caller's caller if a result's estimated error exceeds a tolerance or is NaN."""
    if not error <= tolerance:
        warnings.warn(
            f"{result} has an estimated error of {error:.2g}, "
            f"more than the tolerance of {tolerance:.2g}",
            AccuracyWarning,
            stacklevel=3,
        )


def inside(array: FloatArray, **bounds: Any) -> bool:
    """True if all entries lie within the bounds; only the least and the largest are compared."""
    if not array.size:
        return True
    if array.size <= FEW:
        # It takes a quarter of the time of a reduction; the first NaN counts as either extreme.
        low, high = array.item(array.argmin()), array.item(array.argmax())
    else:
        # No array is made, however the entries lie in memory.
        low, high = (float(end.reduce(array, axis=None)) for end in (np.minimum, np.maximum))
    return _between(low, high, **bounds)


def _between(
    low: float,
    high: float,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> bool:
    # If an entry is NaN, both extremes are NaN, which compares as false.
    return (
        (low <= high if infinite else -inf < low <= high < inf)
        and (above is None or low > above)
        and (least is None or low >= least)
        and (below is None or high < below)
        and (most is None or high <= most)
    )


def places(wrong: NDArray[np.bool_]) -> str:
    """Describe wrong entries by number of rows and by columns, without quoting any."""
    if not wrong.ndim:
        return "another"
    rows = wrong.reshape(len(wrong), -1)
    found = f"other values in {int(rows.any(axis=1).sum())} of {len(rows)} rows"
    if wrong.ndim == 1:
        return found
    columns = np.flatnonzero(rows.any(axis=0))
    listed = ", ".join(map(str, columns[:MOST_COLUMNS]))
    return f"{found}, columns {listed}{', ...' if columns.size > MOST_COLUMNS else ''}"


def entry(array: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    """Quote a wrong number; for an array, which may be data, return only the `places`."""
    return places(wrong) if array.ndim else short(array[()])


def short(value: Any) -> str:
    """Quote a number or a text. A container may hold data: give only its type and size."""
    # A record of a structured array is a scalar too.
    value = value.item() if isinstance(value, np.generic) else value
    # Python writes no number of more than 4,300 digits.
    if isinstance(value, int) and value.bit_length() > 128:
        return f"one of {value.bit_length()} bits"
    text = repr(value) if isinstance(value, PLAIN) else sort(value)
    # In the form of the bounds, unless digits would be lost.
    if isinstance(value, float) and "e" in f"{value:g}" and float(f"{value:g}") == value:
        text = f"{value:g}"
    return text if len(text) < 60 else f"{text[:57]}..."


def sort(value: Any) -> str:
    """Describe a value other than a number or text, by its type and size."""
    if value is None:
        return "None"
    shape = getattr(value, "shape", None)
    size = f" of shape {shape}" if isinstance(shape, tuple) and shape else ""
    size = f" of {len(value)}" if isinstance(value, (list, tuple, dict, set)) else size
    return f"{_a(type(value))}{size}"


def _a(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'aeioAEIO' else 'a'} {kind.__name__}"


def rounded(value: float, digits: int = 2, mark: str = ",") -> str:
    """A number with some significant digits, without an exponent if it is large."""
    return f"{float(f'{value:.{digits}g}'):{mark}.15g}"


def require_real(name: str, value: ArrayLike, **bounds: Any) -> FloatArray:
    """Require real numbers of any shape, and return them in double precision.

    `above` and `below` are exclusive bounds, `least` and `most` inclusive bounds. NaN is refused.
    Infinities are refused, unless `infinite` is true and the range includes them.

    Examples
    --------
    >>> require_real("delta", 2.0, above=0, below=1)
    Traceback (most recent call last):
    ValueError: delta must be more than 0 and less than 1, got 2.0
    """
    array = _floats(name, value)
    if inside(array, **bounds):
        return array
    infinite = bounds.get("infinite", False)
    within = np.asarray(~np.isnan(array) if infinite else np.isfinite(array))
    ends = [end for end in _ENDS if bounds.get(end) is not None]
    expected = [f"{_ENDS[end][0]} {bounds[end]:g}" for end in ends]
    for end in ends:
        within = within & _ENDS[end][1](array, bounds[end])
    if not (infinite or ({"above", "least"} & {*ends} and {"below", "most"} & {*ends})):
        expected.insert(0, "finite")
    words = " and ".join(expected) or "a number"
    raise ValueError(f"{name} must be {words}, got {entry(array, np.asarray(~within))}")


def require_number(name: str, value: Any, **bounds: Any) -> float:
    """Require one real number, with bounds as in `require_real`."""
    if type(value) is float and _between(value, value, **bounds):
        return value
    return float(require_real(name, _one(name, value), **bounds))


def require_scale(
    name: str, value: Any, *, zero: bool = False, infinite: bool = False, least: float = LEAST
) -> float:
    """Require a number in [`least`, 1e12], or 0 or infinity if allowed."""
    if type(value) is float and least <= value <= MOST:
        return value
    number = float(_one(name, value))
    if least <= number <= MOST or (zero and number == 0) or (infinite and number == inf):
        return number
    raise ValueError(
        f"{name} must be {'0, or ' if zero else ''}at least {least:g} and at most {MOST:g}"
        f"{', or inf' if infinite else ''}, got {short(number)}"
    )


scale_or_zero = partial(require_scale, zero=True)
scale_or_infinity = partial(require_scale, infinite=True)


def require_scales(zero: bool = False, infinite: bool = False, **values: Any) -> tuple[float, ...]:
    """Apply `require_scale` to several numbers, given by name."""
    return require_each(partial(require_scale, zero=zero, infinite=infinite), **values)


def require_count(name: str, value: Any, *, least: int = 1, most: float = LARGEST_COUNT) -> int:
    """Require a whole number from `least` to `most` (default 2^53: doubles are exact up to it)."""
    if type(value) is int and least <= value <= most:
        return value
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if whole and least <= value <= most:
        return int(value)
    end = f"at most {most}" if whole and value > most else f"at least {least}"
    raise ValueError(f"{name} must be a whole number, {end}, got {short(value)}")


def require_counts(
    name: str, value: ArrayLike, *, least: int = 1, most: int | None = None
) -> NDArray[np.int64]:
    """Require whole numbers from `least` to `most`, in an array of any shape."""
    # Without a bound, what 64 bits hold.
    below = 2.0**63 if most is None else None
    array = require_real(name, value, least=least, most=most, below=below)
    broken = array != np.floor(array)
    if np.any(broken):
        raise ValueError(f"{name} must be whole numbers, got {entry(array, broken)}")
    # From the value itself, since doubles do not hold every whole number beyond 2^53.
    return np.asarray(value).astype(np.int64)


def require_array(name: str, value: ArrayLike, *, shape: Shape, **bounds: Any) -> FloatArray:
    """Require an array of a given shape; the result is contiguous and in double precision.

    Bounds are as in `require_real`. In `shape`, None stands for any length of at least 1, and a
    leading ellipsis for any number of axes.

    Examples
    --------
    >>> require_array("features", [[1.0, 2.0], [3.0, np.inf]], shape=(None, 2))
    Traceback (most recent call last):
    ValueError: features must be finite, got other values in 1 of 2 rows, columns 1
    """
    array = _floats(name, value)
    if array.shape != shape and not _fits(array.shape, shape):
        words = ("any" if each is None else "..." if each is ... else str(each) for each in shape)
        raise ValueError(f"{name} must have shape ({', '.join(words)}), got {array.shape}")
    array = require_real(name, array, **bounds)
    if array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array).reshape(array.shape)


def require_frozen(name: str, value: ArrayLike, *, shape: Shape, **bounds: Any) -> FloatArray:
    """Require an array as `require_array` does; copy it to read-only memory, so it stays valid."""
    return frozen(require_array(name, value, shape=shape, **bounds))


def require_each(check: Callable[[str, Any], T], **values: Any) -> tuple[T, ...]:
    """Apply one check to several values, given by name, and return its results."""
    return tuple(check(name, value) for name, value in values.items())


def require_fields(thing: Any, **checks: Callable[[str, Any], Any]) -> None:
    """Check fields of a frozen dataclass, and store the values that their checks return."""
    for name, check in checks.items():
        object.__setattr__(thing, name, check(name, getattr(thing, name)))


def require_unmasked(name: str, value: T) -> T:
    """Refuse a masked array, since its plain array would show the masked entries."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name} must be an array without a mask, got a masked one")
    return value


def plain_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """Convert a value to an array of any type; refuse a masked array."""
    require_unmasked(name, value)
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array, got rows of unequal length") from None


def require_instance(name: str, value: Any, kind: type[T]) -> T:
    """Require an instance of a type."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {_a(kind)}, got {sort(value)}")
    return value


def require_rng(name: str, value: Any) -> np.random.Generator:
    """Require NumPy's `Generator`; seeds, `RandomState` and subclasses are refused."""
    if type(value) is not np.random.Generator:
        raise ValueError(f"{name} must be a numpy.random.Generator, got {short(value)}")
    return value


def instance_of(kind: type[Any]) -> Callable[[str, Any], Any]:
    """Return a check for `require_fields`: `require_instance` for one type."""
    return partial(require_instance, kind=kind)


def require_flag(name: str, value: Any) -> bool:
    """Require True or False; numbers and texts are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {short(value)}")
    return bool(value)


def require_broadcast(**arrays: ArrayLike) -> tuple[int, ...]:
    """Return the broadcast shape of arrays; an error names the arrays and their shapes."""
    shapes = [np.shape(array) for array in arrays.values()]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        names, listed = " and ".join(arrays), " and ".join(map(str, shapes))
        raise ValueError(f"{names} must have shapes that broadcast, got {listed}") from None


def require_answer(names: str, answer: FloatArray, *, infinite: bool = False) -> FloatArray:
    """Require an answer without NaN or, unless allowed, infinity; an error names the arguments."""
    sound = np.asarray(~np.isnan(answer) if infinite else np.isfinite(answer))
    if not np.all(sound):
        raise ValueError(
            f"{names} must give results within the range of double precision, "
            f"got {np.asarray(answer)[~sound].flat[0]}"
        )
    return answer


def require_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Require one of the choices; an error suggests the nearest name."""
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{name} must be {expected_choice(value, names)}")
    return str(value)


def expected_choice(value: Any, choices: Iterable[str]) -> str:
    """End of an error message: the choices, the value found, and a similar choice if any."""
    names = sorted(choices)
    found = short(value) if isinstance(value, str) else sort(value)
    found += nearest(value, names)
    return f"one of {', '.join(map(repr, names)) or 'nothing'}, got {found}"


def nearest(value: Any, names: Iterable[str]) -> str:
    """End of an error message: the most similar name, if any is similar."""
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _floats(name: str, value: ArrayLike) -> FloatArray:
    if type(value) is np.ndarray and value.dtype is _DOUBLE:
        return value
    array = plain_array(name, value)
    if array.dtype is _DOUBLE:
        return array
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be real numbers, got {short(value)}")
    # A wider type may hold finite numbers that double precision does not.
    with np.errstate(over="ignore"):
        return array.astype(np.float64, copy=False)


def _one(name: str, value: Any) -> FloatArray:
    array = _floats(name, value)
    if array.ndim:
        raise ValueError(f"{name} must be one number, got shape {array.shape}")
    return array


def _fits(found: tuple[int, ...], wanted: Shape) -> bool:
    if wanted[:1] == (...,):
        ahead = len(found) - len(wanted) + 1
        if ahead < 0 or 0 in found[:ahead]:
            return False
        found, wanted = found[ahead:], wanted[1:]
    return len(found) == len(wanted) and all(
        length == expected or (expected is None and length > 0)
        for length, expected in zip(found, wanted, strict=True)
    )
