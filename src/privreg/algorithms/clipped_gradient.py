"""Sum of clipped least-squares gradients over a data set, for many parameter vectors at once.

A chunk of rows serves all parameter vectors while it is in cache: two matrix products with a
one-pass clipping of the residuals in between.
"""

from __future__ import annotations

from collections.abc import Iterator

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import ROWS_PER_CHUNK, Chunk

FloatArray = NDArray[np.float64]


def clipped_gradient_sum(
    chunks: Iterator[Chunk], parameters: ArrayLike, *, clip_norm: ArrayLike
) -> tuple[FloatArray, NDArray[np.int64]]:
    r"""Negative sum of clipped gradients, and how many were clipped.

    .. math::
        -\sum_i \mathrm{CLIP}_\gamma\big(-\mathbf x_i r_i\big)
        = \sum_i \mathbf x_i\, \mathrm{clip}\big(r_i, \pm\gamma / \|\mathbf x_i\|\big),
        \qquad r_i = y_i - \mathbf x_i^\top\theta

    The right-hand side is the negative gradient of a sum of Huber losses, one width a row; it needs
    no n × p array of gradients.

    Parameters
    ----------
    chunks : iterator of Chunk
        The data.
    parameters : array_like, shape (p, lanes)
        One parameter vector θ a column.
    clip_norm : array_like, shape (lanes,)
        Largest gradient norm γ, more than 0; `inf` clips nothing.

    Returns
    -------
    sums : ndarray, shape (p, lanes)
    clipped : ndarray, shape (lanes,)
        Number of rows whose gradient was longer than γ. A non-private diagnostic.

    Source
    ------
    brown2024, Algorithm 1 line 3 and section 2.5.
    """
    theta = np.ascontiguousarray(parameters, dtype=np.float64)
    bounds = np.ascontiguousarray(clip_norm, dtype=np.float64)
    lanes = theta.shape[1]
    sums = np.zeros_like(theta)
    clipped = np.zeros(lanes, dtype=np.int64)
    block = max(16, min(ROWS_PER_CHUNK, 32768 // lanes))
    buffer = np.empty((block, lanes))
    for features, labels, norms in chunks:
        for first in range(0, labels.size, block):
            rows = features[first : first + block]
            residuals = np.matmul(rows, theta, out=buffer[: len(rows)])
            stop = first + len(rows)
            _clip_residuals(residuals, labels[first:stop], norms[first:stop], bounds, clipped)
            sums += rows.T @ residuals
    return sums, clipped


@nb.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "nsz"})
def _clip_residuals(
    fitted: FloatArray,
    labels: FloatArray,
    norms: FloatArray,
    clip_norm: FloatArray,
    clipped: NDArray[np.int64],
) -> None:
    rows, lanes = fitted.shape
    for i in range(rows):
        # A row of zeros has no gradient to clip: its width is infinite.
        inverse = 1.0 / norms[i]
        for lane in range(lanes):
            width = clip_norm[lane] * inverse
            residual = labels[i] - fitted[i, lane]
            clipped[lane] += abs(residual) > width
            fitted[i, lane] = min(max(residual, -width), width)
