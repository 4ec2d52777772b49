"""The minimiser of the loss that clipped gradients descend, by reweighted least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples

REWEIGHTINGS = 2000


def clipped_minimiser(data: ArraySamples, *, clip_norm: float) -> np.ndarray:
    r"""Minimiser of the sum of Huber losses of width :math:`\gamma / \|\mathbf x_i\|`.

    Parameters
    ----------
    data : ArraySamples
    clip_norm : float
        Threshold gamma of each gradient.

    Returns
    -------
    ndarray, shape (p,)

    Raises
    ------
    RuntimeError
        If the gradients' sum does not vanish there.

    Source
    ------
    brown2024, section 2.5.
    """
    x, y = data.features, data.labels
    width = clip_norm / data.norms
    # Unlike Newton's method, reweighting descends from anywhere.
    found: np.ndarray = np.zeros(data.dimension)
    for _ in range(REWEIGHTINGS):
        weights = np.minimum(1, width / np.abs(y - x @ found))
        before, found = found, np.linalg.solve((x.T * weights) @ x, x.T @ (weights * y))
        if np.linalg.norm(found - before) < 1e-14:
            break
    gradient = x.T @ np.clip(y - x @ found, -width, width)
    if not np.linalg.norm(gradient) <= 1e-9 * clip_norm * len(y):
        raise RuntimeError("the clipped loss must have a minimiser that reweighting finds")
    return found
