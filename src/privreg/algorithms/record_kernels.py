"""Compiled passes over a block of records, each a row: the numbers that NumPy would give."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def bounded_residuals(fitted, labels, norms, squares, square_cap, root):  # type: ignore[no-untyped-def]
    """Residuals, leverages and what clips look at, (rows,) each, as in `record_gradients`.

    A cap comes before a common width, of `root` √p; a value of 0 is for none.
    """
    size = len(labels)
    residuals, leverage, lengths = np.empty(size), np.empty(size), np.empty(size)
    for i in range(size):
        residual = labels[i] - fitted[i]
        residuals[i] = residual
        if square_cap > 0:
            leverage[i] = square_cap / max(squares[i], square_cap)
            lengths[i] = leverage[i] * norms[i] * abs(residual)
        elif root > 0:
            leverage[i] = root / max(norms[i], root)
            lengths[i] = root * abs(residual)
        else:
            leverage[i] = 1.0
            lengths[i] = norms[i] * abs(residual)
    return residuals, leverage, lengths


@njit(cache=True, nogil=True, error_model="numpy")
def clipped_weights(residuals, leverage, lengths, clip_norm):  # type: ignore[no-untyped-def]
    """Weights (rows,) of rows in the sum of their gradients, which are clipped to a length."""
    weights = np.empty(len(lengths))
    for i in range(len(lengths)):
        weights[i] = clip_norm / max(lengths[i], clip_norm) * residuals[i] * leverage[i]
    return weights


@njit(cache=True, nogil=True)
def count_up_to(values, edges):  # type: ignore[no-untyped-def]
    """How many values are at most each edge; each block of values stays in the nearest cache."""
    counts = np.zeros(len(edges), dtype=np.int64)
    for first in range(0, len(values), 2048):
        block = values[first : first + 2048]
        for k in range(len(edges)):
            edge, count = edges[k], 0
            for i in range(len(block)):
                count += block[i] <= edge
            counts[k] += count
    return counts
