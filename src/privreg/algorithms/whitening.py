"""Whitening and Newton matrices from second moments whose noise is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.split_budget import NoisyValue
from privreg.theory.huber_descent.known_noise import inverse_root, noise_edge, shrink_to_identity
from privreg.validation import require_instance, require_number

FloatArray = NDArray[np.float64]


class Whitening(NamedTuple):
    """Inverse root of a second moment, and the weight that its noisy deviation was given."""

    root: FloatArray
    weight: float


def whiten(gram: NoisyValue) -> Whitening:
    """Inverse root of a noisy second moment, shrunk by its known noise and floored at its edge."""
    p = len(require_instance("gram", gram, NoisyValue).value)
    shrunk = shrink_to_identity(gram.value, noise_std=gram.noise_std)
    centre = max(float(np.trace(gram.value)) / p, gram.noise_std / np.sqrt(p))
    # Shrinkage leaves a share of the noise; below its edge an eigenvalue is noise.
    floor = max(shrunk.weight * noise_edge(p, noise_std=gram.noise_std), 1e-9 * centre)
    floor = min(floor, centre) if shrunk.weight else centre
    return Whitening(inverse_root(shrunk.matrix, floor=floor), shrunk.weight)


def newton_matrix(curvature: NoisyValue, slope: float) -> FloatArray:
    """Inverse of a noisy curvature, shrunk by its known noise and kept within reach of its mean.

    Parameters
    ----------
    curvature : NoisyValue
    slope : float
        Its mean under Gaussian residuals, more than 0 and at most 1.
    """
    p = len(require_instance("curvature", curvature, NoisyValue).value)
    slope = require_number("slope", slope, above=0, most=1)
    matrix = (curvature.value + curvature.value.T) / 2
    mean = float(np.clip(np.trace(matrix) / p, 0.25 * slope, 1.5))
    shrunk = shrink_to_identity(matrix, noise_std=curvature.noise_std, scale=mean)
    root = inverse_root(shrunk.matrix, floor=0.3 * mean)
    return root @ root
