r"""Quadrature for the eigenvalues of a sample's second moment, relative to the population's.

For rows of many coordinates they follow the law of Marchenko and Pastur with ratio κ, whose
orthogonal polynomials are shifted Chebyshev ones: the Jacobi matrix has diagonal 1, 1 + κ, 1 + κ,
... and off-diagonal √κ. An independent symmetric Gaussian error of relative size τ adds τ²p to the
off-diagonal's square, as for a semicircle, at least in the first three moments.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
NODES = 7


def sample_nodes(
    ratio: float, *, extra_variance: float = 0.0, nodes: int = NODES
) -> tuple[FloatArray, FloatArray]:
    """Nodes, of mean 1, and weights, shape (nodes,) each."""
    variance = ratio + extra_variance
    shift = ratio**2 / variance if variance > 0 else 0.0
    diagonal = np.concatenate([[1.0], np.full(nodes - 1, 1 + shift)])
    beside = np.full(nodes - 1, np.sqrt(variance))
    points, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return points, vectors[0] ** 2


def count_nodes(
    probability: FloatArray, sample_size: int, *, nodes: int = 15
) -> tuple[FloatArray, FloatArray]:
    """The same for a category's count over its mean: quantiles, shape (groups, nodes), weights."""
    from scipy.stats import binom  # a second, for one-hot rows alone

    levels = (np.arange(nodes) + 0.5) / nodes
    counts = binom.ppf(levels, sample_size, np.minimum(probability, 1.0)[:, None])
    means = np.maximum(counts.mean(axis=1, keepdims=True), 1 / nodes)
    return counts / means, np.full(nodes, 1 / nodes)
