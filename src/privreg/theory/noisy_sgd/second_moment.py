"""The eigenbasis of a second moment that is a multiple of the identity plus a rank-one mean."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.units import from_units, in_units
from privreg.validation import require_answer, require_array, require_number


class SecondMomentBasis(NamedTuple):
    """Eigenvalues of Σ, shape (d,), and the reflection that takes vectors to its eigenbasis.

    `normal`, shape (d,), is the unit normal of the reflecting hyperplane; zero for the identity.
    """

    eigenvalues: NDArray[np.float64]
    normal: NDArray[np.float64]

    def coordinates(self, vectors: ArrayLike) -> NDArray[np.float64]:
        """Vectors in the eigenbasis, (..., d) -> (..., d); its own inverse, at a cost of O(d)."""
        values = np.asarray(vectors, dtype=np.float64)
        return values - 2.0 * (values @ self.normal)[..., None] * self.normal


def second_moment_basis(mean: ArrayLike, *, std: float) -> SecondMomentBasis:
    r"""Eigenbasis of the second moment of features with a mean and equal deviations.

    .. math::
        \Sigma = \mathbb E[aa^\top] = s^2I + \mu\mu^\top,\qquad
        H = I - 2nn^\top,\quad H\mu = \|\mu\|e_1,\qquad
        H\Sigma H = s^2I + \|\mu\|^2e_1e_1^\top

    Parameters
    ----------
    mean : array_like, shape (d,)
        μ, mean of the features.
    std : float
        s, standard deviation of each coordinate, at least 0.

    Source
    ------
    A Householder reflection. lin2025 takes Σ as diagonal, which its own uniform design is not.
    """
    centre = require_array("mean", mean, shape=(None,))
    std = require_number("std", std, least=0)
    # No square of a small mean vanishes in its units.
    scaled, exponent = in_units(centre)
    square = float(scaled @ scaled)
    eigenvalues = np.full(centre.size, std * std)
    eigenvalues[0] = std * std + float(from_units(square, 2 * exponent))
    require_answer("mean and std", eigenvalues)
    length = sqrt(square)
    normal = scaled.copy()
    normal[0] -= length
    gap = sqrt(normal @ normal)
    # Along the first axis already, within rounding: nothing to reflect.
    if gap <= 1e-14 * length:
        return SecondMomentBasis(eigenvalues, np.zeros(centre.size))
    return SecondMomentBasis(eigenvalues, normal / gap)
