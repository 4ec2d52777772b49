"""Whitening and Newton matrices from second moments whose noise is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.split_budget import NoisyValue
from privreg.theory.huber_descent.known_noise import inverse_root, noise_edge, shrink_to_identity

FloatArray = NDArray[np.float64]
# Least curvature along a direction, over the mean, that steps take it to have; and deviations of
# its noise that an interval adds to what is seen of a thinner one, and takes it to be at least.
THIN, SEEN = 0.2, 0.5


class Whitening(NamedTuple):
    """Inverse root of a second moment, and the weight that its noisy deviation was given."""

    root: FloatArray
    weight: float


def whiten(gram: NoisyValue) -> Whitening:
    """Inverse root of a noisy second moment, shrunk by its known noise and floored at its edge."""
    p = len(gram.value)
    shrunk = shrink_to_identity(gram.value, noise_std=gram.noise_std)
    centre = max(float(np.trace(gram.value)) / p, gram.noise_std / np.sqrt(p))
    # Shrinkage leaves a share of the noise; below its edge an eigenvalue is noise.
    floor = max(shrunk.weight * noise_edge(p, noise_std=gram.noise_std), 1e-9 * centre)
    floor = min(floor, centre) if shrunk.weight else centre
    return Whitening(inverse_root(shrunk.matrix, floor=floor), shrunk.weight)


def newton_matrix(curvature: NoisyValue, slope: float) -> FloatArray:
    """Inverse of a noisy curvature, shrunk by its known noise and kept within reach of its mean.

    `slope` is that mean under Gaussian residuals, in (0, 1].
    """
    matrix = (curvature.value + curvature.value.T) / 2
    mean = float(np.clip(np.trace(matrix) / len(matrix), 0.25 * slope, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    root = inverse_root(shrunk.matrix, floor=0.3 * mean)
    return root @ root


def shrunk_curvature(curvature: NoisyValue, *, thin: bool = False) -> FloatArray:
    """A noisy curvature of mean near 1, shrunk by its known noise and kept within reach of that.

    With `thin`, directions that are seen to be thinner than a fifth of the mean stay so: steps must
    not be longer than that, intervals along such directions are.
    """
    matrix = curvature.value
    mean = float(np.clip(np.trace(matrix) / len(matrix), 0.25, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    values, vectors = np.linalg.eigh(shrunk.matrix)
    least = np.full(len(values), THIN * mean)
    if thin:
        # The target is a multiple of the identity: the noisy matrix has the same eigenvectors.
        seen = np.einsum("ij,ik,kj->j", vectors, matrix, vectors)
        margin = max(SEEN * curvature.noise_std, 1e-9 * mean)
        least = np.minimum(least, np.maximum(seen, 0.0) + margin)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def raised(curvature: FloatArray, longer: NoisyValue, *, caution: float = 0.0) -> FloatArray:
    r"""A curvature A raised to that of longer rows, A₂, where that is seen to be more.

    .. math::
        v^\top A_2 v - 1.5 s_2 > v^\top A v \quad\text{or}\quad \lambda > 1.05 + s_2\sqrt{2p}

    for eigenvectors v of A, and for those of A₂ with eigenvalue λ. A is raised up to `caution`
    deviations s₂ below what is seen.
    """
    std = longer.noise_std
    edge = 1.05 + noise_edge(len(curvature), noise_std=std)
    first, second = np.linalg.eigh(curvature)[1], np.linalg.eigh(longer.value)
    lifted = np.array(curvature)
    for direction in first.T:
        seen = float(direction @ longer.value @ direction)
        if seen - 1.5 * std > float(direction @ curvature @ direction):
            lifted = _lifted_along(lifted, direction, seen - caution * std)
    for value, direction in zip(second.eigenvalues, second.eigenvectors.T, strict=True):
        if value > edge:
            lifted = _lifted_along(lifted, direction, float(value) - caution * std)
    return lifted


def _lifted_along(matrix: FloatArray, direction: FloatArray, least: float) -> FloatArray:
    missing = least - float(direction @ matrix @ direction)
    lifted: FloatArray = matrix + max(missing, 0.0) * np.outer(direction, direction)
    return lifted
