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
    """The same numbers in memory that nobody can write to; copied unless they are there already.

    A read-only array is not enough: who owns its memory may allow writing again. The memory of
    `bytes` has no such switch.

    Parameters
    ----------
    array : ndarray, shape (...)
        In any order, which is kept.

    Examples
    --------
    >>> held = frozen(np.ones(2))
    >>> held.flags.writeable = True
    Traceback (most recent call last):
    ValueError: cannot set WRITEABLE flag to True of this array
    >>> frozen(held) is held
    True
    """
    if type(array) is np.ndarray and _is_in_bytes(array):
        return array
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


def _is_in_bytes(array: NDArray[Any]) -> bool:
    owner: Any = array
    while type(owner) is np.ndarray:
        owner = owner.base
    # A part would keep the memory of the whole.
    return type(owner) is bytes and len(owner) == array.nbytes
