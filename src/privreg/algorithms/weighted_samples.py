"""Rows with weights: a record of weight w is the row (√w x, √w y), no longer than (x, y)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import ArraySamples
from privreg.immutable import frozen
from privreg.validation import require_array, require_number, require_real

FloatArray = NDArray[np.float64]
# Shares of the bound below which a weight counts as 0: roots stay far from the ends of precision.
NEGLIGIBLE = 1e-30


class WeightedChunk(NamedTuple):
    """Some weighted rows as in `Chunk`, with the roots (rows,) that they have been multiplied by.

    Records that know the roots can clip a residual as the record has it.
    """

    features: FloatArray
    labels: FloatArray
    norms: FloatArray
    roots: FloatArray


@dataclass(frozen=True)
class WeightedSamples(ArraySamples):
    r"""A data set in memory whose rows have been weighted.

    .. math::
        (\sqrt{\tilde w}\,x, \sqrt{\tilde w}\,y), \qquad \tilde w = \mathrm{clip}(w, 0, W)/W

    Least squares of such rows is weighted least squares, and a row of weight 0 is one of zeros.

    Parameters
    ----------
    features : array_like, shape (n, p)
        Rows that have been multiplied by their roots, the intercept's entry as well.
    labels : array_like, shape (n,)
        Labels likewise.
    roots : array_like, shape (n,)
        √w̃, in [0, 1].

    Attributes
    ----------
    norms : ndarray, shape (n,)
        Euclidean norms of the weighted rows; `inf` beyond double precision.
    """

    _norms_are_own: ClassVar[bool] = True
    weighted: ClassVar[bool] = True
    roots: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        roots = require_array("roots", self.roots, shape=self.labels.shape, least=0, most=1)
        object.__setattr__(self, "roots", frozen(roots))


def weight_roots(weights: ArrayLike, bound: float) -> FloatArray:
    r"""Roots of weights relative to their bound, each of its own record alone.

    .. math:: \sqrt{\mathrm{clip}(w, 0, W)/W}

    Parameters
    ----------
    weights : array_like, shape (n,)
        w, none of them missing; `inf` is beyond the bound, and weights below 1e-30 W count as 0.
    bound : float
        W, at least 1e-15 and at most 1e15.

    Examples
    --------
    >>> weight_roots(np.array([-1.0, 0.0, 0.5, 2.0, np.inf]), 2.0).tolist()
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    bound = require_number("bound", bound, least=1e-15, most=1e15)
    shares = np.clip(require_real("weights", weights, infinite=True), 0.0, bound) / bound
    return np.sqrt(np.where(shares < NEGLIGIBLE, 0.0, shares))
