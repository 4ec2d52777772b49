"""Powers of two taken out of numbers, so that squares and products of them stay numbers.

A power of two changes no digit but those of numbers that are 2^1000 times smaller than the largest:
what is computed in units and brought back is the plain computation up to rounding, wherever that
neither underflows nor overflows.
"""

from __future__ import annotations

from math import frexp
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
# Squares of numbers in between, and products of four, are far from the ends of double precision.
ORDINARY = 2.0**-200, 2.0**200


def in_units(values: ArrayLike) -> tuple[FloatArray, int]:
    r"""Numbers :math:`v/2^k` with the largest of ordinary size, and k.

    Parameters
    ----------
    values : array_like, shape (...)
        Finite; may be empty.

    Returns
    -------
    scaled : ndarray, shape (...)
        Between -2^200 and 2^200; the values themselves, with k = 0, where they are of ordinary
        size or all 0.
    exponent : int
        k.

    Examples
    --------
    >>> in_units([3.0, 1.0])[1], in_units([2.0**-1000, 0.0])[1]
    (0, -999)
    """
    array = np.asarray(values, dtype=np.float64)
    # Quicker than extremes of few numbers, and without an array of their sizes.
    largest = max(array.item(array.argmax()), -array.item(array.argmin())) if array.size else 0.0
    if largest == 0 or ORDINARY[0] <= largest <= ORDINARY[1]:
        return array, 0
    exponent = int(np.frexp(largest)[1])
    return np.asarray(np.ldexp(array, -exponent)), exponent


def in_unit(value: float) -> tuple[float, int]:
    """`in_units` of one number.

    Parameters
    ----------
    value : float
        Finite.
    """
    if value == 0 or ORDINARY[0] <= abs(value) <= ORDINARY[1]:
        return value, 0
    return frexp(value)


def from_units(values: ArrayLike, exponent: int) -> FloatArray:
    r"""The numbers :math:`2^k v`, infinite or 0 where double precision ends.

    Parameters
    ----------
    values : array_like, shape (...)
    exponent : int
        k.
    """
    if exponent == 0:
        return np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(values, exponent), dtype=np.float64)


@overload
def squared_times(scale: float, values: float) -> float: ...
@overload
def squared_times(scale: float, values: FloatArray) -> FloatArray: ...
def squared_times(scale: float, values: float | FloatArray) -> float | FloatArray:
    """The product s² v, right also where s² by itself is not a number of full precision.

    Parameters
    ----------
    scale : float
        s.
    values : float or ndarray, shape (...)
        v: all other factors.
    """
    if ORDINARY[0] <= abs(scale) <= ORDINARY[1]:
        return scale**2 * values
    return scale * (scale * values)


def rows_in_units(matrix: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
    r"""Rows :math:`x_i/2^{k_i}` of ordinary size, and each row's k.

    Parameters
    ----------
    matrix : ndarray, shape (n, p)

    Returns
    -------
    scaled : ndarray, shape (n, p)
    exponents : ndarray of int, shape (n,)
        0 for rows of ordinary size, or of 0.
    """
    largest = np.max(np.abs(matrix), axis=1, initial=0.0)
    plain = (largest == 0) | ((largest >= ORDINARY[0]) & (largest <= ORDINARY[1]))
    exponents = np.where(plain, 0, np.frexp(largest)[1]).astype(np.int64)
    return (matrix if plain.all() else np.ldexp(matrix, -exponents[:, None])), exponents
