"""Objects that stay what their constructor checked, however they are copied, pickled or replaced.

Copying and unpickling call no constructor by default, and give back arrays that can be written to:
what was checked and what was derived would no longer be that of the numbers. A `Rebuilt` dataclass
goes through its constructor instead, and an `Immutable` one is its own copy.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)


def frozen(array: NDArray[Number]) -> NDArray[Number]:
    """A copy of the numbers in read-only memory.

    A read-only array is not enough: who owns its memory may allow writing again. The memory of
    `bytes` has no such switch. Nor is what lies in bytes taken as it is, for NumPy unpickles large
    arrays into bytes that it lets callers write to.

    Parameters
    ----------
    array : ndarray, shape (...)
        In any order, which is kept.

    Examples
    --------
    >>> frozen(np.ones(2)).flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    order: Any = "F" if fortran else "C"
    return np.ndarray(array.shape, array.dtype, array.tobytes(order), order=order)


class Rebuilt:
    """A dataclass whose copies and pickles are made by its constructor.

    The constructor is given the fields that it takes, by name. For dataclasses that may hold
    objects of others; those that hold nothing but numbers are `Immutable`.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        values = {
            part.name: getattr(self, part.name)
            for part in fields(self)  # type: ignore[arg-type]
            if part.init
        }
        return _rebuild, (type(self), values)


class Immutable(Rebuilt):
    """A frozen dataclass of numbers and `frozen` arrays: its own copy, rebuilt from a pickle."""

    __slots__ = ()

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, _: dict[int, Any]) -> T:
        return self


class Computed:
    """An object that computes once in its constructor: its own copy, as computed in a pickle."""

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, _: dict[int, Any]) -> T:
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, frozen(value) if isinstance(value, np.ndarray) else value)


class Uncopied:
    """What draws noise as it goes: a copy would draw the same noise a second time."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} must be neither copied nor pickled: "
            "the copy would draw the same noise"
        )


def _rebuild(kind: type[T], values: dict[str, Any]) -> T:
    return kind(**values)
