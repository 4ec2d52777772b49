r"""Inverses of decoders in floating point, with a bound on how far they are from the true inverse.

For an approximate inverse :math:`\tilde C` the residual :math:`R = I - B\tilde C` gives the true
one, :math:`C = \tilde C (I - R)^{-1}`, so that a residual of column sums r < 1 bounds each column:

.. math:: \lVert (C - \tilde C)_{:,t} \rVert_2 \le
    \max_s \lVert (\tilde C R)_{:,s} \rVert_2
    + \frac{r^2}{1 - r} \max_s \lVert \tilde C_{:,s} \rVert_2.

The bound is about the numbers found, however ill-conditioned the decoder; there is none from
r = 1/2 on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.fft import irfft, rfft
from scipy.linalg import solve_triangular

from privreg.sums import multiply_add
from privreg.units import ORDINARY, from_units
from privreg.validation import FloatArray, require_array, require_real

# Up to this many products, as for a full decoder of 16,384 steps, a Toeplitz inverse is found by
# forward substitution; beyond, in O(steps log steps).
DIRECT_PRODUCTS = 2**28
# Up to this length a plain product of power series is quicker than one by FFT.
SHORT = 256
_UNIT = 2.0**-53


class BoundedInverse(NamedTuple):
    """Approximate inverse, of the decoder's shape, and a bound on the 2-norm of a column's error.

    By forward substitution the error is some ulp of the column's norm, by Newton's iteration about
    1e-13 times the number of steps.
    """

    encoder: FloatArray
    column_error: float


def require_inverse(name: str, value: ArrayLike) -> BoundedInverse:
    """Inverse of a lower-triangular decoder whose diagonal is not 0, with a bound on its error.

    The decoder is Toeplitz coefficients, shape (steps,), or a matrix. One of another kind is
    refused, as is one with no inverse in double precision whose error can be bounded. Residual
    bound derived; the error of products by FFT from Brent, Percival and Zimmermann (2007), Error
    bounds on complex floating-point multiplication, Theorem 5.1.
    """
    given = require_real(name, value)
    if given.ndim == 2:
        given = require_array(name, given, shape=(len(given), len(given)))
        if np.any(np.triu(given, 1)) or np.any(np.diag(given) == 0):
            raise ValueError(
                f"{name} must be lower triangular with a diagonal other than 0, got another matrix"
            )
    else:
        given = require_array(name, given, shape=(None,))
        if given[0] == 0:
            raise ValueError(f"{name} must start with a number other than 0, got 0")
    unit = _unit(given)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = from_units(given, -unit)
        found = _dense(scaled) if scaled.ndim == 2 else _toeplitz(scaled)
    if unit:
        # Numbers beyond the least of double precision have been rounded away.
        error = float(from_units(found.column_error, -unit)) + len(given) * 2.0**-1073
        found = BoundedInverse(from_units(found.encoder, -unit), error)
    if not (np.all(np.isfinite(found.encoder)) and np.isfinite(found.column_error)):
        raise ValueError(
            f"{name} must have an inverse that double precision holds, got none: entries grow too "
            "fast or cancel"
        )
    return found


def forward_substitution(column: FloatArray) -> FloatArray:
    """Coefficients of the inverse in O(steps × bands); not finite where they overflow."""
    return np.asarray(_forward_substitution(_bands(column), column.size)[0])


def _bands(column: FloatArray) -> FloatArray:
    return column if column[-1] else np.trim_zeros(column, "b")


def _unit(decoder: FloatArray) -> int:
    """Power of two in which the inverse's largest column has squares that are numbers."""
    least = float(np.min(np.abs(np.diag(decoder)))) if decoder.ndim == 2 else abs(decoder[0])
    return 0 if ORDINARY[0] <= least <= ORDINARY[1] else int(np.frexp(least)[1])


def _dense(decoder: FloatArray) -> BoundedInverse:
    steps = len(decoder)
    encoder = solve_triangular(decoder, np.eye(steps), lower=True, check_finite=False)
    # The computed residual, and what rounding can have hidden in it.
    residual = np.abs(np.eye(steps) - decoder @ encoder)
    residual += 2 * (steps + 2) * _UNIT * (np.abs(decoder) @ np.abs(encoder))
    first = float(np.linalg.norm(np.abs(encoder) @ residual, axis=0).max())
    largest = float(np.linalg.norm(encoder, axis=0).max())
    return BoundedInverse(encoder, _column_error(first, float(residual.sum(axis=0).max()), largest))


def _toeplitz(decoder: FloatArray) -> BoundedInverse:
    kernel = _bands(decoder)
    if kernel.size * decoder.size <= DIRECT_PRODUCTS:
        return _direct(kernel, decoder.size)
    return _newton(decoder)


def _direct(kernel: FloatArray, steps: int) -> BoundedInverse:
    encoder, residual = _forward_substitution(kernel, steps)
    seen = float(np.linalg.norm(residual, 1))
    # Sums of n terms in twice double precision lose n² 2⁻¹⁰⁶ of what enters them.
    entered = float(np.linalg.norm(kernel, 1) * np.linalg.norm(encoder, 1))
    hidden = 2 * (kernel.size * _UNIT) ** 2 * entered
    largest = float(np.linalg.norm(encoder))
    if not seen + hidden < 0.5:
        return BoundedInverse(encoder, np.inf)
    # Rounding moves this product by less than 1e-9 of its factors' norms.
    product = np.convolve(encoder, residual) if steps <= SHORT else _product(encoder, residual)
    first = float(np.linalg.norm(product[:steps]))
    first += largest * (1e-9 * seen + hidden)
    return BoundedInverse(encoder, _column_error(first, seen + hidden, largest))


def _newton(decoder: FloatArray) -> BoundedInverse:
    """Newton's iteration on power series: each round doubles the number of coefficients."""
    encoder = 1.0 / decoder[:1]
    while encoder.size < decoder.size:
        known = encoder.size
        count = min(2 * known, decoder.size)
        missing = _product(decoder[:count], np.pad(encoder, (0, count - known)))[known:]
        tail = -_product(encoder[: count - known], missing)
        encoder = np.concatenate([encoder, tail])
    largest = float(np.linalg.norm(encoder))
    residual = -_product(decoder, encoder)
    residual[0] += 1.0
    size = _transform_size(decoder.size)
    # What rounding in the transforms can have hidden in an entry of the residual.
    hidden = 16 * float(np.log2(size)) * _UNIT * float(np.linalg.norm(decoder)) * largest
    total = float(np.abs(residual).sum()) + decoder.size * hidden
    return BoundedInverse(encoder, _column_error(largest * total, total, largest))


def _column_error(first: float, total: float, largest: float) -> float:
    """The module's bound, from the norm of C̃R, the residual's r and the norm of C̃."""
    return first + largest * total**2 / (1.0 - total) if total < 0.5 else np.inf


def _product(first: FloatArray, second: FloatArray) -> FloatArray:
    """Product of power series of one length, by FFT."""
    size = _transform_size(first.size)
    return np.asarray(irfft(rfft(first, size) * rfft(second, size), size))[: first.size]


def _transform_size(steps: int) -> int:
    """A power of two, which the bound on the transforms' rounding is for."""
    return 1 << (2 * steps - 1).bit_length()


@njit(nogil=True, cache=True)
def _forward_substitution(kernel: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """C and 1 - BC of power series, with sums in twice double precision."""
    bands = kernel.size
    lags = np.zeros(bands + 1)
    lags[:bands] = kernel
    inverse = np.zeros(steps)
    # What earlier coefficients add to each step, and what these sums have lost to rounding.
    total, lost = np.zeros(steps), np.zeros(steps)
    total[0] = -1.0
    # Two coefficients at a time halve the passes over the sums.
    for first in range(0, steps, 2):
        one = -(total[first] + lost[first]) / kernel[0]
        inverse[first] = one
        second = first + 1
        if second == steps:
            break
        total[second], rounded = _add_product(total[second], lags[1], one)
        lost[second] += rounded
        two = -(total[second] + lost[second]) / kernel[0]
        inverse[second] = two
        count = max(0, min(bands - 1, steps - first - 2))
        sums, losses = total[first + 2 :], lost[first + 2 :]
        nearer, farther = lags[1 : 1 + count], lags[2 : 2 + count]
        # Over steps, not over lags: the loop's turns do not wait for each other.
        for step in range(count):
            before, rounded_one = _add_product(sums[step], farther[step], one)
            sums[step], rounded_two = _add_product(before, nearer[step], two)
            losses[step] += rounded_one + rounded_two
    for step in range(steps):
        total[step] = -(multiply_add(kernel[0], inverse[step], total[step]) + lost[step])
    return inverse, total


@njit(nogil=True, cache=True)
def _add_product(total: float, first: float, second: float) -> tuple[float, float]:
    """The sum s + ab, and what rounding took from it."""
    product = first * second
    after = total + product
    added = after - total
    rounded = (total - (after - added)) + (product - added)
    return after, rounded + multiply_add(first, second, -product)
