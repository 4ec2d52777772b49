"""A symmetric matrix seen through Gaussian noise of known size: shrinkage, floor, inverse root."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.noise.normals import standard_normal
from privreg.validation import require_array, require_count, require_number, require_rng

FloatArray = NDArray[np.float64]
# Beyond it squares leave double precision.
LARGEST = 1e140


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
        s, at least 0 and at most 1e300.
    rng : Generator

    Returns
    -------
    ndarray, shape (p, p)
    """
    p = require_count("dimension", dimension)
    std = require_number("noise_std", noise_std, least=0, most=1e300)
    normals = standard_normal(require_rng("rng", rng), (p, p))
    return std * (normals + normals.T) / 2


def shrink_to_identity(noisy: ArrayLike, *, noise_std: float, scale: float | None = None) -> Shrunk:
    """`shrink_to` a multiple of the identity, by default the mean of the diagonal.

    Parameters
    ----------
    noisy : array_like, shape (p, p)
        Symmetric, of entries up to 1e140.
    noise_std : float
        At least 0 and at most 1e140.
    scale : float, optional
        The multiple, at least -1e140 and at most 1e140.

    Examples
    --------
    >>> shrink_to_identity([[1.0, 0.1], [0.1, 3.0]], noise_std=10.0)
    Shrunk(matrix=array([[2., 0.],
           [0., 2.]]), weight=0.0)
    """
    matrix = _symmetric("noisy", noisy)
    p = len(matrix)
    centre = (
        np.trace(matrix) / p
        if scale is None
        else require_number("scale", scale, least=-LARGEST, most=LARGEST)
    )
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
        T, symmetric, of entries up to 1e140.
    noisy : array_like, shape (p, p)
        Y, alike.
    noise_std : float
        s, at least 0 and at most 1e140.

    Returns
    -------
    Shrunk

    Source
    ------
    Ledoit and Wolf (2004), with the noise known instead of estimated.
    """
    matrix = _symmetric("noisy", noisy)
    centre = _symmetric("target", target)
    if centre.shape != matrix.shape:
        raise ValueError(f"target must have shape {matrix.shape}, got {centre.shape}")
    noise = require_number("noise_std", noise_std, least=0, most=LARGEST)
    p = len(matrix)
    deviation = matrix - centre
    largest = float(np.max(np.abs(deviation), initial=0.0))
    # By a power of two, so that no square of a small entry vanishes, and no digit changes.
    unit = float(np.ldexp(1.0, np.frexp(max(largest, 1e-300))[1]))
    observed = float(np.sum((deviation / unit) ** 2))
    expected = min(noise / unit, LARGEST) ** 2 * p * (p + 1) / 2
    weight = max(0.0, 1.0 - expected / observed) if observed > 0 else 0.0
    return Shrunk(centre + weight * deviation, weight)


def inverse_root(matrix: ArrayLike, *, floor: float) -> FloatArray:
    r"""Inverse root of a symmetric matrix whose eigenvalues are raised to a floor.

    Parameters
    ----------
    matrix : array_like, shape (p, p)
        Symmetric, of entries up to 1e140.
    floor : float
        Least eigenvalue, more than 0 and at most 1e140.

    Returns
    -------
    ndarray, shape (p, p)
    """
    symmetric = _symmetric("matrix", matrix)
    least = require_number("floor", floor, above=0, most=LARGEST)
    values, vectors = np.linalg.eigh(symmetric)
    root: FloatArray = (vectors / np.sqrt(np.maximum(values, least))) @ vectors.T
    return root


def noise_edge(dimension: int, *, noise_std: float) -> float:
    """Where the spectrum of `symmetric_noise` ends for large p, s √(2p).

    Parameters
    ----------
    dimension : int
        p.
    noise_std : float
        s, at least 0 and at most 1e300.
    """
    p = require_count("dimension", dimension)
    return float(require_number("noise_std", noise_std, least=0, most=1e300) * np.sqrt(2.0 * p))


def _symmetric(name: str, value: ArrayLike) -> FloatArray:
    matrix = require_array(name, value, shape=(None, None), least=-LARGEST, most=LARGEST)
    if len(matrix) != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}")
    if np.max(np.abs(matrix - matrix.T)) > 1e-8 * np.max(np.abs(matrix)):
        raise ValueError(f"{name} must be symmetric, got another matrix")
    return matrix
