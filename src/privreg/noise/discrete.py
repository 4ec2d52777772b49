r"""Gaussian mechanism on sums that is private as computed, not only in real arithmetic.

A guarantee for real numbers does not survive floating point: the last bits of a sum depend on every
record, and the sum plus noise takes values for one data set that it cannot take for its neighbour
(Mironov, 2012). Here the sum and its noise are integers.

Proof. Let C be the bound on a record's vector, g = C / `resolution` the grid's unit and

.. math:: K = \mathtt{resolution} + \lceil\sqrt p / 2\rceil + 1

the reach. (1) Record i enters as an integer vector k_i that is computed from record i and public
values alone, by whatever rounding; a record of zeros enters as 0. The code compares the integers
:math:`\sum_j k_{ij}^2` and K², and where the first is larger it puts k_i = 0. So
:math:`\|k_i\| \le K` holds as computed. (In real arithmetic the nearest grid point to a vector of
length C lies within :math:`\mathtt{resolution} + \sqrt p/2`, so this happens to no record.)
(2) The sum :math:`S = \sum_i k_i` is exact, in integers of any size, for any number of records.
Neighbours therefore move S by an integer vector of length at most Δ = 2K (replace-one) or K
(add-remove, zero-out). Entries of S beyond ±2⁶² are set to it, which moves no two vectors further
apart. (3) The released S + Z has independent Z_j with
:math:`P(Z_j = z) \propto e^{-z^2/2s^2}`. In one coordinate
:math:`D_\alpha(S_j + Z_j\,\|\,S'_j + Z_j) \le \alpha(S_j - S'_j)^2 / 2s^2` (Canonne, Kamath and
Steinke, 2020, Theorem 4), and over independent coordinates divergences add. (4) s is the least
whole number with :math:`\Delta^2 \le 2\rho s^2`, decided in rational arithmetic, and the sampler is
exact for it. (5) Everything after, saturation at the ends of the 64-bit range and the product with
g included, is post-processing.

The noise comes from OpenDP, which draws it exactly from a cryptographic generator that the
operating system seeds; there is no seed to set. What the proof does not cover is time: the sampler
and the sum take a little longer for some values than for others.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil, inf, isqrt, sqrt
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.privacy import assumptions
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.validation import (
    require_count,
    require_instance,
    require_number,
    require_rows,
    require_unmasked,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[Any]
RESOLUTION = 1 << 20
LARGEST_SUM = 1 << 62
LARGEST_STD = 1 << 53
ASSUMPTIONS = (assumptions.TIMES, assumptions.PUBLIC_SIZE)


class Grid(NamedTuple):
    """Grid for vectors of bounded norm.

    Attributes
    ----------
    unit : float
        Distance g of neighbouring points.
    resolution : int
        The bound on the vectors, in units.
    reach : int
        The bound K on the rounded vectors, in units.
    """

    unit: float
    resolution: int
    reach: int


def grid(norm: float, *, dimension: int, resolution: int = RESOLUTION) -> Grid:
    """Grid on which vectors of at most this norm are rounded.

    Parameters
    ----------
    norm : float
        Largest norm C of a record's vector, at least 1e-250 and at most 1e250.
    dimension : int
        Number p of its coordinates.
    resolution : int
        Units in C, at most 2³⁰; what rounding adds to the sensitivity is √p / 2 + 2 of them.
    """
    norm = require_number("norm", norm, least=1e-250, most=1e250)
    dimension = require_count("dimension", dimension)
    resolution = require_count("resolution", resolution)
    reach = resolution + ceil(sqrt(dimension) / 2) + 1
    # Squares of norms are summed in 64 bits.
    if dimension * (reach + 1) ** 2 >= LARGEST_SUM:
        raise ValueError(f"resolution must be smaller for dimension {dimension}, got {resolution}")
    return Grid(norm / resolution, resolution, reach)


def round_to_grid(vectors: ArrayLike, *, norm: float, resolution: int = RESOLUTION) -> IntArray:
    """Nearest grid points of vectors, of which those longer than the norm are shortened to it.

    Parameters
    ----------
    vectors : array_like, shape (n, p)
        One finite vector a record, may be empty.
    norm, resolution : float and int
        As for `grid`.

    Returns
    -------
    ndarray of int, shape (n, p)
        Vectors in units of the grid, none longer than its reach.
    """
    rows = require_rows("vectors", vectors)
    return _round_rows(rows, *grid(norm, dimension=rows.shape[1], resolution=resolution))


def integer_noise_std(*, square_sensitivity: int, rho: float) -> int:
    r"""Least whole noise scale s with :math:`\Delta^2 / 2s^2 \le \rho`, decided exactly.

    Parameters
    ----------
    square_sensitivity : int
        Δ², the largest squared distance between the integer vectors of neighbours, at least 1.
    rho : float
        Budget ρ, more than 0 and finite.

    Returns
    -------
    int
        s, all but exactly the standard deviation of the discrete Gaussian, which is no larger.

    Raises
    ------
    ValueError
        If s would be 2⁵³ or more, where the sampler's scale is no longer exact.

    Source
    ------
    Canonne, Kamath and Steinke (2020), Theorem 4.
    """
    square = require_count("square_sensitivity", square_sensitivity, most=inf)
    budget = Fraction(require_number("rho", rho, above=0))
    ratio = Fraction(square) / (2 * budget)
    least = -(-ratio.numerator // ratio.denominator)
    std = isqrt(least - 1) + 1
    if std >= LARGEST_STD:
        raise ValueError(f"rho must be larger at this resolution, got {rho}: s would be {std}")
    return std


def add_integer_noise(sums: ArrayLike, *, std: int) -> IntArray:
    """Integers plus independent discrete Gaussian noise from secure bits.

    Parameters
    ----------
    sums : array_like of int, shape (...)
        Exact integers.
    std : int
        Scale s, at least 1 and below 2⁵³.

    Returns
    -------
    ndarray of int, shape (...)
        The noisy integers, saturated at the ends of the 64-bit range.

    Raises
    ------
    ImportError
        If OpenDP is not installed.
    """
    require_unmasked("sums", sums)
    try:
        exact = np.asarray(sums)
    except ValueError:
        raise ValueError("sums must be integers, got rows of unequal length") from None
    if exact.dtype.kind not in "iu" or (exact.dtype.kind == "u" and exact.dtype.itemsize == 8):
        raise ValueError(f"sums must be integers of 64 bits, got {exact.dtype}")
    std = require_count("std", std, most=inf)
    if std >= LARGEST_STD:
        raise ValueError(f"std must be less than 2**53, got {std}")
    noisy = _discrete_gaussian(std)(exact.ravel().tolist()) if exact.size else []
    return np.array(noisy, dtype=np.int64).reshape(exact.shape)


def release_sum(vectors: ArrayLike, *, norm: float, budget: Budget) -> Release[FloatArray]:
    """Sum of the records' vectors with noise, private as computed.

    Parameters
    ----------
    vectors : array_like, shape (n, p)
        One finite vector a record, may be empty; longer ones are shortened to the norm.
    norm : float
        Bound C on a record's vector, at least 1e-250 and at most 1e250, chosen without looking at
        the data.
    budget : Budget
        What the release may cost, and the neighbouring relation.

    Returns
    -------
    Release
        Of the noisy sum, shape (p,), with standard deviation Δ / √(2ρ) in each coordinate up to
        one part in 10⁵, where Δ is 2C (replace-one) or C (add-remove, zero-out).

    Guarantee
    ---------
    ρ-zCDP under the budget's relation, in the arithmetic of the machine: see the module's proof.
    """
    rows = require_rows("vectors", vectors)
    require_instance("budget", budget, Budget)
    lattice = grid(norm, dimension=rows.shape[1])
    std = integer_noise_std(
        square_sensitivity=square_sum_sensitivity(lattice.reach, neighbours=budget.neighbours),
        rho=budget.rho,
    )
    total: IntArray = np.zeros(rows.shape[1], dtype=object)
    for first in range(0, len(rows), 1 << 20):
        total = total + _round_rows(rows[first : first + (1 << 20)], *lattice).sum(axis=0)
    noisy = add_integer_noise(limited(total), std=std)
    return Release(np.asarray(lattice.unit * noisy, dtype=np.float64), budget, ASSUMPTIONS)


def square_sum_sensitivity(
    reach: int, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
) -> int:
    """Exact square of `sum_sensitivity` for integer vectors of norm at most `reach`."""
    reach = require_count("reach", reach, most=inf)
    return (4 if Neighbours(neighbours) is Neighbours.REPLACE_ONE else 1) * reach**2


def limited(sums: ArrayLike) -> NDArray[np.int64]:
    """Exact integers of any size, those beyond ±2⁶² set to it: no two get further apart.

    Parameters
    ----------
    sums : array_like of int, shape (...)
        Python's integers, or those of 64 bits.
    """
    require_unmasked("sums", sums)
    exact = np.asarray(sums, dtype=object)
    if not all(type(entry) is int for entry in exact.flat):
        raise ValueError("sums must be integers, got other entries")
    return np.clip(exact, -LARGEST_SUM, LARGEST_SUM).astype(np.int64)


@lru_cache(maxsize=64)
def _discrete_gaussian(std: int) -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise ImportError(
            "noise that is sound in floating point needs OpenDP: pip install opendp"
        ) from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(std))


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _round_rows(rows: FloatArray, unit: float, resolution: int, reach: int) -> IntArray:
    n, p = rows.shape
    rounded = np.zeros((n, p), dtype=np.int64)
    vector = np.empty(p)
    for i in range(n):
        length = unit_vector(rows[i], vector)
        if length > 0.0:
            round_vector(vector, length, unit, resolution, reach, rounded[i])
    return rounded


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def unit_vector(row: FloatArray, out: FloatArray) -> float:
    """Write the direction of a finite row into `out` and return its length, which may be `inf`."""
    largest = 0.0
    for j in range(row.size):
        largest = max(largest, abs(row[j]))
    if largest == 0.0:
        return 0.0
    square = 0.0
    for j in range(row.size):
        out[j] = row[j] / largest
        square += out[j] * out[j]
    root = np.sqrt(square)
    for j in range(row.size):
        out[j] /= root
    return largest * root


@nb.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def round_vector(
    direction: FloatArray, length: float, unit: float, resolution: int, reach: int, out: IntArray
) -> None:
    """Write direction × length in units of the grid into `out`, zeros if that is beyond reach.

    A length of more than `resolution` units is shortened to it.
    """
    units = min(length / unit, float(resolution))
    square = 0
    within = True
    for j in range(direction.size):
        value = np.rint(direction[j] * units)
        # Written so that NaN is outside.
        if not abs(value) <= reach:
            within = False
            value = 0.0
        out[j] = np.int64(value)
        square += out[j] * out[j]
    if not within or square > reach * reach:
        out[:] = 0
