"""A symmetric matrix seen through Gaussian noise of known size: shrinkage, floor, inverse root."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_array, require_number

FloatArray = NDArray[np.float64]


class Shrunk(NamedTuple):
    """A shrunk matrix (p, p), and the weight in [0, 1] that the noisy one has in it."""

    matrix: FloatArray
    weight: float


def symmetric_noise(
    dimension: int, *, noise_std: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    r"""Symmetric Gaussian noise that is isotropic in the Frobenius norm.

    .. math:: E = s\,(Z + Z^\top)/2, \qquad Z_{ij} \sim N(0, 1)

    Its diagonal has standard deviation s, the rest s/√2, and uᵀEu has s for every unit vector u.
    Noise of this law is the Gaussian mechanism on symmetric matrices at Frobenius sensitivity.

    Parameters
    ----------
    dimension : int
        p.
    noise_std : float
        s, at least 0.
    rng : Generator

    Returns
    -------
    ndarray, shape (p, p)
    """
    normals = rng.standard_normal((dimension, dimension))
    return noise_std * (normals + normals.T) / 2


def shrink_to_identity(noisy: ArrayLike, *, noise_std: float, scale: float | None = None) -> Shrunk:
    r"""Linear shrinkage to a multiple of the identity when the noise is known.

    .. math::
        \hat M = \mu I + \omega (Y - \mu I), \qquad
        \omega = \Big(1 - \frac{s^2\,p(p+1)/2}{\|Y - \mu I\|_F^2}\Big)_+

    where Y = M + E, with E of `symmetric_noise`, whose mean squared Frobenius norm is s²p(p+1)/2.
    The weight estimates the one of least mean squared error.

    Parameters
    ----------
    noisy : array_like, shape (p, p)
        Y, symmetric.
    noise_std : float
        s, at least 0.
    scale : float, optional
        μ; the mean of the diagonal by default.

    Returns
    -------
    Shrunk

    Source
    ------
    Ledoit and Wolf (2004), with the noise known instead of estimated.

    Examples
    --------
    >>> shrink_to_identity([[1.0, 0.1], [0.1, 3.0]], noise_std=10.0)
    Shrunk(matrix=array([[2., 0.],
           [0., 2.]]), weight=0.0)
    """
    matrix = require_array("noisy", noisy, shape=(None, None))
    noise = require_number("noise_std", noise_std, least=0)
    p = len(matrix)
    centre = np.trace(matrix) / p if scale is None else require_number("scale", scale)
    target = centre * np.eye(p)
    deviation = matrix - target
    observed = float(np.sum(deviation**2))
    expected = noise**2 * p * (p + 1) / 2
    weight = max(0.0, 1.0 - expected / observed) if observed > 0 else 0.0
    return Shrunk(target + weight * deviation, weight)


def inverse_root(matrix: ArrayLike, *, floor: float) -> FloatArray:
    r"""Inverse root of a symmetric matrix whose eigenvalues are raised to a floor.

    Parameters
    ----------
    matrix : array_like, shape (p, p)
        Symmetric.
    floor : float
        Least eigenvalue, more than 0.

    Returns
    -------
    ndarray, shape (p, p)
    """
    symmetric = require_array("matrix", matrix, shape=(None, None))
    least = require_number("floor", floor, above=0)
    values, vectors = np.linalg.eigh(symmetric)
    root: FloatArray = (vectors / np.sqrt(np.maximum(values, least))) @ vectors.T
    return root


def noise_edge(dimension: int, *, noise_std: float) -> float:
    """Where the spectrum of `symmetric_noise` ends for large p, s √(2p)."""
    return float(noise_std * np.sqrt(2.0 * dimension))
