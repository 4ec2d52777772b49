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
from math import ceil, isqrt, sqrt
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import FloatArray, require_number, require_scale
from privreg.privacy import release
from privreg.privacy.budget import Neighbours

IntArray = NDArray[Any]
RESOLUTION = 1 << 20
LARGEST_SUM = 1 << 62
LARGEST_STD = 1 << 53
ASSUMPTIONS = (release.TIMES, release.PUBLIC_SIZE)


class Grid(NamedTuple):
    """Grid for vectors of at most `resolution` units and a `reach` of K units once rounded."""

    unit: float
    resolution: int
    reach: int


def grid(norm: float, *, dimension: int, resolution: int = RESOLUTION) -> Grid:
    """Grid on which vectors of norm at most C are rounded, with `resolution` units in C.

    Rounding adds √p / 2 + 2 of them to the sensitivity.
    """
    norm = require_scale("norm", norm)
    reach = resolution + ceil(sqrt(dimension) / 2) + 1
    # Squares of norms are summed in 64 bits.
    if dimension * (reach + 1) ** 2 >= LARGEST_SUM:
        raise ValueError(f"resolution must be smaller for dimension {dimension}, got {resolution}")
    return Grid(norm / resolution, resolution, reach)


def round_to_grid(vectors: ArrayLike, *, norm: float, resolution: int = RESOLUTION) -> IntArray:
    """Nearest grid points of finite rows, those longer than the norm shortened to it, in units.

    Guarantee
    ---------
    No point is further from 0 than the grid's reach, and each depends on its own row alone.
    """
    rows = np.ascontiguousarray(vectors, dtype=np.float64)
    return _round_rows(rows, *grid(norm, dimension=rows.shape[1], resolution=resolution))


def integer_noise_std(*, square_sensitivity: int, rho: float) -> int:
    r"""Least whole noise scale s with :math:`\Delta^2 / 2s^2 \le \rho`, decided exactly from Δ².

    The standard deviation of the discrete Gaussian is s or a little less (Canonne, Kamath and
    Steinke, 2020, Theorem 4). From 2⁵³ on the sampler's scale is not exact: a ValueError.
    """
    budget = Fraction(require_number("rho", rho, above=0))
    ratio = Fraction(square_sensitivity) / (2 * budget)
    least = -(-ratio.numerator // ratio.denominator)
    std = isqrt(least - 1) + 1
    if std >= LARGEST_STD:
        raise ValueError(f"rho must be larger at this resolution, got {rho}: s would be {std}")
    return std


def add_integer_noise(sums: NDArray[np.int64], *, std: int) -> IntArray:
    """Integers of 64 bits plus independent discrete Gaussian noise of scale `std` from secure bits.

    The noisy integers are saturated at the ends of the 64-bit range.
    """
    noisy = _discrete_gaussian(std)(sums.ravel().tolist()) if sums.size else []
    return np.array(noisy, dtype=np.int64).reshape(sums.shape)


def square_sum_sensitivity(
    reach: int, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
) -> int:
    """Exact square of `sum_sensitivity` for integer vectors of norm at most `reach`."""
    return (4 if Neighbours(neighbours) is Neighbours.REPLACE_ONE else 1) * reach**2


def limited(sums: ArrayLike) -> NDArray[np.int64]:
    """Python's integers with those beyond ±2⁶² set to it: no two get further apart."""
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
