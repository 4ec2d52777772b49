r"""Lower-triangular Toeplitz matrices that correlate noise, with their inverses and errors.

A mechanism adds the noise :math:`\tilde w = B w` with independent normal w to the gradients. The
*decoder* B has first column :math:`\beta`; the *encoder* :math:`C = B^{-1}` determines the size of
w. Both are stored as first columns, shape (steps,); B's first entry is usually 1. A product of two
matrices is a convolution of first columns, so that memory is linear in the number of steps.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.fft import irfft, rfft
from scipy.linalg import solve_triangular, toeplitz

from privreg.checks import (
    MOST,
    FloatArray,
    require_array,
    require_count,
    require_number,
    require_scale,
)
from privreg.kernels import multiply_add

# Up to this many products, as for a full decoder of 16,384 steps, a Toeplitz inverse is found by
# forward substitution; beyond, in O(steps log steps).
DIRECT_PRODUCTS = 2**28
# Up to this length a plain product of power series is quicker than one by FFT.
SHORT = 256
_UNIT = 2.0**-53  # relative error of one rounding


class BoundedInverse(NamedTuple):
    """Approximate inverse in the decoder's shape, and a bound on the 2-norm of each column's error.

    After forward substitution, the error is a few ulp of the column's norm. After Newton's
    iteration, the relative error is about 1e-13 times the number of steps.
    """

    encoder: FloatArray
    column_error: float


def bounded_inverse(name: str, value: ArrayLike) -> BoundedInverse:
    """Inverse of a lower-triangular decoder with nonzero diagonal, and a bound on its error.

    The decoder is given by Toeplitz coefficients, shape (steps,), or as a matrix. A decoder is
    refused if the error of its computed inverse cannot be bounded. The residual bound is derived
    here. The error bound for products by FFT is from Brent, Percival and Zimmermann (2007), Error
    bounds on complex floating-point multiplication, Theorem 5.1.
    """
    given = require_coefficients(name, value, least=-MOST, most=MOST)
    if given.ndim == 2:
        square = given.shape[0] == given.shape[1]
        if not square or np.any(np.triu(given, 1)) or np.any(np.diag(given) == 0):
            raise ValueError(
                f"{name} must be lower triangular with no 0 on its diagonal, got another matrix"
            )
    elif given[0] == 0:
        raise ValueError(f"{name} must start with a number other than 0, got 0")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if given.ndim == 2:
            found = _dense(given)
        elif _bands(given).size * given.size <= DIRECT_PRODUCTS:
            found = _direct(_bands(given), given.size)
        else:
            found = _newton(given)
    if not (np.all(np.isfinite(found.encoder)) and np.isfinite(found.column_error)):
        raise ValueError(
            f"{name} must have an inverse that double precision can represent, got none: entries "
            "grow too fast or cancel"
        )
    return found


def forward_substitution(column: FloatArray) -> FloatArray:
    """Coefficients of the inverse, in O(steps × bands) products; not finite after an overflow."""
    return np.asarray(_forward_substitution(_bands(column), column.size)[0])


def _bands(column: FloatArray) -> FloatArray:
    return column if column[-1] else np.trim_zeros(column, "b")


def _dense(decoder: FloatArray) -> BoundedInverse:
    steps = len(decoder)
    encoder = solve_triangular(decoder, np.eye(steps), lower=True, check_finite=False)
    # The computed residual, and what rounding can have hidden in it.
    residual = np.abs(np.eye(steps) - decoder @ encoder)
    residual += 2 * (steps + 2) * _UNIT * (np.abs(decoder) @ np.abs(encoder))
    first = float(np.linalg.norm(np.abs(encoder) @ residual, axis=0).max())
    largest = float(np.linalg.norm(encoder, axis=0).max())
    return BoundedInverse(encoder, _column_error(first, float(residual.sum(axis=0).max()), largest))


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
    """Bound on a column of C - C̃ = C̃(R + R² + …), R = I - BC̃, from norms of C̃R, R and C̃."""
    return first + largest * total**2 / (1.0 - total) if total < 0.5 else np.inf


def _product(first: FloatArray, second: FloatArray) -> FloatArray:
    size = _transform_size(first.size)
    return np.asarray(irfft(rfft(first, size) * rfft(second, size), size))[: first.size]


def _transform_size(steps: int) -> int:
    """A power of two, as the bound on rounding in transforms requires."""
    return 1 << (2 * steps - 1).bit_length()


@njit(nogil=True, cache=True)
def _forward_substitution(kernel: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """C = 1/B and 1 - BC for a power series B, with sums in double-double precision."""
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
    """The sum s + ab, and its rounding error."""
    product = first * second
    after = total + product
    added = after - total
    rounded = (total - (after - added)) + (product - added)
    return after, rounded + multiply_add(first, second, -product)


def identity(steps: int) -> FloatArray:
    """Decoder 1, 0, 0, ... of independent noise, as in DP-SGD (choquettechoo2024, Table 3)."""
    coefficients = np.zeros(require_count("steps", steps))
    coefficients[0] = 1.0
    return coefficients


def damped_square_root(steps: int, *, damping: float) -> FloatArray:
    r"""Decoder with generating function :math:`\sqrt{1 - (1-\nu)x}`, the paper's ν-DP-FTRL.

    .. math:: \beta_t = (-1)^t \binom{1/2}{t} (1-\nu)^t

    The damping ν is in [0, 1]: 0 is `square_root`, 1 is `identity`.

    Examples
    --------
    >>> damped_square_root(4, damping=0.5)
    array([ 1.       , -0.25     , -0.03125  , -0.0078125])

    Source
    ------
    choquettechoo2024, equation (7).
    """
    return _binomial_series(steps, 1.5, damping)


def damped_square_root_encoder(steps: int, *, damping: float) -> FloatArray:
    r"""Inverse of `damped_square_root` in closed form, non-negative and non-increasing.

    .. math:: \alpha_t = \binom{2t}{t} 4^{-t} (1-\nu)^t

    The damping ν is in [0, 1].

    Examples
    --------
    >>> damped_square_root_encoder(4, damping=0.0)
    array([1.    , 0.5   , 0.375 , 0.3125])

    Source
    ------
    choquettechoo2024, appendix B.
    """
    return _binomial_series(steps, 0.5, damping)


def square_root(steps: int) -> FloatArray:
    """Toeplitz decoder that minimises the largest prefix-sum error; generating function √(1-x).

    The encoder equals the matrix of prefix sums times the decoder.

    Source
    ------
    Fichtenberger, Henzinger and Upadhyay (2023); choquettechoo2024, Table 3 ("optimal CC").
    """
    return damped_square_root(steps, damping=0.0)


def mean_estimation_optimal(steps: int, *, step_size: float) -> FloatArray:
    """Decoder with the least limiting error for mean estimation: `damped_square_root` at ν = η.

    The step size η is in (0, 1] (choquettechoo2024, Theorem 2.1).
    """
    rate = require_number("step_size", step_size, above=0, most=1)
    return damped_square_root(steps, damping=rate)


def anti_pgd(steps: int) -> FloatArray:
    """Decoder 1, -1, 0, 0, ...: each step cancels the noise of the previous step.

    The encoder is a matrix of ones, of sensitivity √steps (choquettechoo2024, Table 2).
    """
    return damped_anti_pgd(steps, damping=0.0)


def damped_anti_pgd(steps: int, *, damping: float) -> FloatArray:
    """Decoder 1, -(1-ν), 0, 0, ...: each step cancels most of the noise of the previous step.

    Damping ν in [0, 1]: 0 is `anti_pgd`, 1 `identity` (choquettechoo2024, Proposition C.24).
    """
    coefficients = identity(steps)
    coefficients[1:2] = checked_damping(damping) - 1.0
    return coefficients


def inverse_coefficients(coefficients: ArrayLike) -> FloatArray:
    """First column of the inverse of a lower-triangular Toeplitz matrix with nonzero first entry.

    Forward substitution takes steps × bands products, with an error of a few ulp of the inverse's
    norm. Above 2^28 products, Newton's iteration is used: O(steps log steps), with an error of
    1e-13 × steps × norm. A result whose error may exceed 1e-4 of its largest entry is refused.

    Examples
    --------
    >>> inverse_coefficients([1.0, -1.0, 0.0, 0.0])
    array([1., 1., 1., 1.])
    """
    inverse, error = bounded_inverse("coefficients", coefficients)
    relative = error / float(np.abs(inverse).max())
    if relative > 1e-4:
        raise ValueError(
            "coefficients must have an inverse that double precision can represent, got one "
            f"with a relative error of {relative:.1g}"
        )
    return inverse


def require_coefficients(name: str, value: ArrayLike, **bounds: float) -> FloatArray:
    """Toeplitz coefficients, shape (steps,), or a matrix, after checks."""
    array = require_array(name, value, shape=(..., None), **bounds)
    if array.ndim > 2:
        raise ValueError(f"{name} must have one or two dimensions, got shape {array.shape}")
    return array


def dense_matrix(coefficients: ArrayLike) -> FloatArray:
    """Lower-triangular Toeplitz matrix, shape (steps, steps), with first column `coefficients`."""
    column = require_array("coefficients", coefficients, shape=(None,))
    return np.asarray(toeplitz(column, np.zeros_like(column)))


def restarted(matrix: ArrayLike, *, copies: int) -> FloatArray:
    """Block-diagonal matrix of a mechanism that restarts after each block ("× S" in the paper).

    Each of the `copies` blocks is `matrix`, a dense encoder or decoder (`dense_matrix`).

    Examples
    --------
    >>> restarted([[1.0], [2.0]], copies=2)
    array([[1., 0.],
           [2., 0.],
           [0., 1.],
           [0., 2.]])

    Source
    ------
    choquettechoo2024, section 4 and Figure 4.
    """
    block = np.asarray(matrix, dtype=np.float64)
    return np.asarray(np.kron(np.eye(require_count("copies", copies)), block))


def _binomial_series(steps: int, offset: float, damping: float) -> FloatArray:
    """Coefficients of (1 - (1-ν)x)^(offset - 1); neighbours have ratios (1-ν)(t - offset)/t."""
    index = np.arange(1, require_count("steps", steps))
    kept = 1.0 - checked_damping(damping)
    return np.cumprod(np.concatenate([[1.0], (index - offset) / index * kept]))


def checked_damping(damping: float) -> float:
    """Damping ν, checked to be in [0, 1]."""
    return require_number("damping", damping, least=0, most=1)


class Errors(NamedTuple):
    """Root mean square errors per coordinate, at a noise multiplier of 1.

    `mean` is the root mean square over all steps; `largest` and `last` are errors of one step.
    """

    mean: float
    largest: float
    last: float


def step_variances(decoder: ArrayLike, *, workload: ArrayLike | None = None) -> FloatArray:
    r"""Variance of the workload's noise at each step, shape (steps,), for unit white noise.

    .. math:: V_t = \lVert (A B)_{t,:} \rVert_2^2

    Parameters
    ----------
    decoder : array_like, shape (steps,) or (steps, rows)
        Toeplitz coefficients of B, or B itself. Entries of B and A are at most 1e12 in size.
    workload : array_like, shape (steps,), optional
        Toeplitz coefficients of A; prefix sums by default.

    Examples
    --------
    >>> step_variances([1.0, -1.0, 0.0])
    array([1., 1., 1.])
    """
    matrix = require_coefficients("decoder", decoder, least=-MOST, most=MOST)
    steps = matrix.shape[0]
    kernel = None
    if workload is not None:
        kernel = require_array("workload", workload, shape=(steps,), least=-MOST, most=MOST)
    if matrix.ndim == 1:
        sums = np.cumsum(matrix) if kernel is None else np.convolve(kernel, matrix)[:steps]
        return np.cumsum(sums**2)
    if kernel is None:
        return np.array([sums @ sums for sums in accumulate(matrix)])
    return np.sum((dense_matrix(kernel) @ matrix) ** 2, axis=1)


def workload_errors(
    decoder: ArrayLike, *, sensitivity: float, workload: ArrayLike | None = None
) -> Errors:
    """Mean, largest and last error of a mechanism at a noise multiplier of 1.

    `sensitivity` is the encoder's sensitivity, from a function of `privreg.noise.sensitivity`.
    `decoder` and `workload` are as for `step_variances`.

    Examples
    --------
    >>> workload_errors([1.0, 0.0, 0.0, 0.0], sensitivity=1.0).last
    2.0

    Source
    ------
    choquettechoo2024, equation (3), whose objective is steps times the square of `mean`.
    """
    scale = require_scale("sensitivity", sensitivity, zero=True)
    variances = step_variances(decoder, workload=workload)
    sizes = (variances.mean(), variances.item(variances.argmax()), variances[-1])
    return Errors(*(scale * float(np.sqrt(size)) for size in sizes))
