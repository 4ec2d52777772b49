r"""Lower-triangular Toeplitz matrices that correlate noise, each as the list of its coefficients.

A mechanism adds the noise :math:`\tilde w = B w` with independent normal w to the gradients. The
*decoder* B has first column :math:`\beta`; the *encoder* :math:`C = B^{-1}` decides how much w is
needed. Both are arrays of shape (steps,) here, B's first entry being 1, so that a product of two
matrices is a convolution and nothing quadratic in the number of steps is ever stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import toeplitz

from privreg.noise.inverse import require_inverse
from privreg.validation import (
    FloatArray,
    require_array,
    require_count,
    require_number,
    require_real,
)


def identity(steps: int) -> FloatArray:
    """Decoder of independent noise (DP-SGD), 1, 0, 0, ...: choquettechoo2024, Table 3."""
    coefficients = np.zeros(require_count("steps", steps))
    coefficients[0] = 1.0
    return coefficients


def damped_square_root(steps: int, *, damping: float) -> FloatArray:
    r"""Decoder with generating function :math:`\sqrt{1 - (1-\nu)x}`, the paper's ν-DP-FTRL.

    .. math:: \beta_t = (-1)^t \binom{1/2}{t} (1-\nu)^t

    Parameters
    ----------
    steps : int
        Number of coefficients.
    damping : float
        ν in [0, 1]: 0 is `square_root`, 1 is `identity`.

    Returns
    -------
    ndarray, shape (steps,)
        1, then negative numbers of size about t^(-3/2) (1-ν)^t / (2 √π).

    Examples
    --------
    >>> damped_square_root(4, damping=0.5)
    array([ 1.       , -0.25     , -0.03125  , -0.0078125])

    Source
    ------
    choquettechoo2024, equation (7).
    """
    return _binomial_series(steps, 1.5, require_number("damping", damping, least=0, most=1))


def damped_square_root_encoder(steps: int, *, damping: float) -> FloatArray:
    r"""Inverse of `damped_square_root` in closed form, non-negative and non-increasing.

    .. math:: \alpha_t = \binom{2t}{t} 4^{-t} (1-\nu)^t

    Parameters
    ----------
    steps : int
        Number of coefficients.
    damping : float
        ν in [0, 1].

    Examples
    --------
    >>> damped_square_root_encoder(4, damping=0.0)
    array([1.    , 0.5   , 0.375 , 0.3125])

    Source
    ------
    choquettechoo2024, appendix B.
    """
    return _binomial_series(steps, 0.5, require_number("damping", damping, least=0, most=1))


def square_root(steps: int) -> FloatArray:
    """Decoder with generating function √(1-x), Fichtenberger's ("optimal CC").

    Encoder and decoded prefix sums are one and the same matrix, which gives the least largest
    prefix error of all Toeplitz mechanisms.

    Source
    ------
    Fichtenberger, Henzinger and Upadhyay (2023); choquettechoo2024, Table 3.
    """
    return damped_square_root(steps, damping=0.0)


def mean_estimation_optimal(steps: int, *, step_size: float) -> FloatArray:
    """Decoder with the least limiting error for mean estimation: `damped_square_root` at ν = η.

    The step size η is in (0, 1].

    Source
    ------
    choquettechoo2024, Theorem 2.1.
    """
    damping = require_number("step_size", step_size, above=0, most=1)
    return damped_square_root(steps, damping=damping)


def anti_pgd(steps: int) -> FloatArray:
    """Decoder 1, -1, 0, 0, ...: each step takes back the noise of the one before.

    Its encoder is the matrix of ones, so its sensitivity grows as √steps.

    Source
    ------
    choquettechoo2024, Table 2.
    """
    return damped_anti_pgd(steps, damping=0.0)


def damped_anti_pgd(steps: int, *, damping: float) -> FloatArray:
    """Decoder 1, -(1-ν), 0, 0, ...: each step takes back most of the noise of the one before.

    The damping ν is in [0, 1]: 0 is `anti_pgd`, 1 is `identity`.

    Source
    ------
    choquettechoo2024, Proposition C.24.
    """
    coefficients = identity(steps)
    coefficients[1:2] = require_number("damping", damping, least=0, most=1) - 1.0
    return coefficients


def inverse_coefficients(coefficients: ArrayLike) -> FloatArray:
    """First column of the inverse of a lower-triangular Toeplitz matrix.

    Parameters
    ----------
    coefficients : array_like, shape (steps,)
        First column; its first entry is not 0.

    Returns
    -------
    ndarray, shape (steps,)
        By forward substitution in O(steps × bands), with an error of some ulp of its norm; beyond
        2^28 products by Newton's iteration in O(steps log steps), to about 1e-13 × steps of the
        norm.

    Raises
    ------
    ValueError
        If the bound on its relative error in the 2-norm (`privreg.noise.inverse`) is more than
        1e-4.

    Examples
    --------
    >>> inverse_coefficients([1.0, -1.0, 0.0, 0.0])
    array([1., 1., 1., 1.])
    """
    column = require_array("coefficients", coefficients, shape=(None,))
    inverse, error = require_inverse("coefficients", column)
    relative = error / float(np.abs(inverse).max())
    if relative > 1e-4:
        raise ValueError(
            "coefficients must have an inverse that double precision holds, got one with a "
            f"relative error of {relative:.1g}"
        )
    return inverse


def require_coefficients(name: str, value: ArrayLike) -> FloatArray:
    """Toeplitz coefficients, or a matrix, from -1e50 to 1e50: their squares can be summed."""
    array = require_real(name, value, least=-1e50, most=1e50)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must be coefficients or a matrix, got shape {array.shape}")
    return require_array(name, array, shape=(None,) * array.ndim)


def dense_matrix(coefficients: ArrayLike) -> FloatArray:
    """The lower-triangular Toeplitz matrix itself, shape (steps, steps)."""
    column = require_array("coefficients", coefficients, shape=(None,))
    return np.asarray(toeplitz(column, np.zeros_like(column)))


def restarted(matrix: ArrayLike, *, copies: int) -> FloatArray:
    """Block-diagonal matrix of a mechanism that starts anew `copies` times (the paper's × S).

    Parameters
    ----------
    matrix : array_like, shape (rows, columns)
        Encoder or decoder of one stretch of steps (`dense_matrix` of coefficients).
    copies : int
        Number of stretches.

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
    block = require_array("matrix", matrix, shape=(None, None))
    return np.asarray(np.kron(np.eye(require_count("copies", copies)), block), dtype=np.float64)


def _binomial_series(steps: int, offset: float, damping: float) -> FloatArray:
    """Coefficients of (1 - (1-ν)x)^(offset - 1), by their ratio (t - offset)/t (1-ν)."""
    index = np.arange(1, require_count("steps", steps))
    ratios = np.concatenate([[1.0], (index - offset) / index * (1.0 - damping)])
    return np.cumprod(ratios)
