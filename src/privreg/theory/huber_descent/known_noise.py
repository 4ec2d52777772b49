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
    """`shrink_to` a multiple of the identity, by default the mean of the diagonal.

    Parameters
    ----------
    noisy : array_like, shape (p, p)
        Symmetric.
    noise_std : float
        At least 0.
    scale : float, optional
        The multiple.

    Examples
    --------
    >>> shrink_to_identity([[1.0, 0.1], [0.1, 3.0]], noise_std=10.0)
    Shrunk(matrix=array([[2., 0.],
           [0., 2.]]), weight=0.0)
    """
    matrix = require_array("noisy", noisy, shape=(None, None))
    p = len(matrix)
    centre = np.trace(matrix) / p if scale is None else require_number("scale", scale)
    return shrink_to(centre * np.eye(p), matrix, noise_std=noise_std)


def shrink_to(target: ArrayLike, noisy: ArrayLike, *, noise_std: float) -> Shrunk:
    r"""Linear shrinkage of a noisy matrix to a target when the noise is known.

    .. math::
        \hat M = T + \omega (Y - T), \qquad
        \omega = \Big(1 - \frac{s^2\,p(p+1)/2}{\|Y - T\|_F^2}\Big)_+

    where Y = M + E, with E of `symmetric_noise`, whose mean squared Frobenius norm is s²p(p+1)/2.
    The weight estimates the one of least mean squared error.

    Parameters
    ----------
    target : array_like, shape (p, p)
        T.
    noisy : array_like, shape (p, p)
        Y, symmetric.
    noise_std : float
        s, at least 0.

    Returns
    -------
    Shrunk

    Source
    ------
    Ledoit and Wolf (2004), with the noise known instead of estimated.
    """
    matrix = require_array("noisy", noisy, shape=(None, None))
    centre = require_array("target", target, shape=matrix.shape)
    noise = require_number("noise_std", noise_std, least=0)
    p = len(matrix)
    deviation = matrix - centre
    observed = float(np.sum(deviation**2))
    expected = noise**2 * p * (p + 1) / 2
    weight = max(0.0, 1.0 - expected / observed) if observed > 0 else 0.0
    return Shrunk(centre + weight * deviation, weight)


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
