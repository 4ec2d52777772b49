"""Neighbouring relations, and how far one record can move a bounded mean or sum."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.privacy.zcdp import require_at_least


class Neighbours(Enum):
    """Which pairs of data sets privacy must make indistinguishable.

    REPLACE_ONE: equal size, one record differs. ADD_REMOVE: one has a record more; a mean then
    divides by a public number of records, the same for both.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"


def sum_sensitivity(bound: ArrayLike, *, neighbours: Neighbours) -> NDArray[np.float64]:
    r"""ℓ2 sensitivity of a sum of vectors of bounded norm.

    .. math:: \Delta = 2b \text{ (replace-one)}, \qquad \Delta = b \text{ (add-remove)}

    Parameters
    ----------
    bound : array_like, shape (...)
        Largest norm b of a record's vector, at least 0.
    neighbours : Neighbours
        Neighbouring relation.

    Returns
    -------
    ndarray, shape (...)

    Source
    ------
    brown2024, Claim A.5 (replace-one). Divide by n for a mean: 2γ/n for the mean clipped gradient.
    """
    norm = require_at_least("bound", bound, 0.0)
    return (2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0) * norm
