"""A symmetric matrix seen through Gaussian noise of known size: shrinkage, floor, inverse root."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.noise.normals import standard_normal
from privreg.validation import require_number

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
    """Symmetric Gaussian noise E = s (Z + Zᵀ)/2, (p, p), isotropic in the Frobenius norm.

    Its diagonal has standard deviation s, the rest s/√2, and uᵀEu has s for every unit vector u.
    Noise of this law is the Gaussian mechanism on symmetric matrices at Frobenius sensitivity.
    """
    std = require_number("noise_std", noise_std, least=0, most=1e300)
    normals = standard_normal(rng, (dimension, dimension))
    return std * (normals + normals.T) / 2


def shrink_to_identity(
    noisy: FloatArray, *, noise_std: float, scale: float | None = None
) -> Shrunk:
    """`shrink_to` a multiple of the identity, by default the mean of the diagonal."""
    p = len(noisy)
    centre = np.trace(noisy) / p if scale is None else scale
    return shrink_to(centre * np.eye(p), noisy, noise_std=noise_std)


def shrink_to(target: FloatArray, noisy: FloatArray, *, noise_std: float) -> Shrunk:
    r"""Linear shrinkage of a noisy matrix to a target when the noise is known.

    .. math::
        \hat M = T + \omega (Y - T), \qquad
        \omega = \Big(1 - \frac{s^2\,p(p+1)/2}{\|Y - T\|_F^2}\Big)_+

    where Y = M + E, with E of `symmetric_noise`, whose mean squared Frobenius norm is s²p(p+1)/2.
    The weight estimates the one of least mean squared error (Ledoit and Wolf, 2004, with the noise
    known instead of estimated).
    """
    p = len(noisy)
    deviation = noisy - target
    largest = float(np.max(np.abs(deviation), initial=0.0))
    # By a power of two, so that no square of a small entry vanishes, and no digit changes.
    unit = float(np.ldexp(1.0, np.frexp(max(largest, 1e-300))[1]))
    observed = float(np.sum((deviation / unit) ** 2))
    expected = min(noise_std / unit, LARGEST) ** 2 * p * (p + 1) / 2
    weight = max(0.0, 1.0 - expected / observed) if observed > 0 else 0.0
    return Shrunk(target + weight * deviation, weight)


def inverse_root(matrix: FloatArray, *, floor: float) -> FloatArray:
    """Inverse root of a symmetric matrix whose eigenvalues are raised to a floor."""
    values, vectors = np.linalg.eigh(matrix)
    root: FloatArray = (vectors / np.sqrt(np.maximum(values, floor))) @ vectors.T
    return root


def noise_edge(dimension: int, *, noise_std: float) -> float:
    """Edge s √(2p) of the spectrum of `symmetric_noise` for large p."""
    return float(noise_std * np.sqrt(2.0 * dimension))
