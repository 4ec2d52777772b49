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
    r"""A data set in memory whose rows have been weighted, with their roots √w̃ (n,) in [0, 1].

    .. math::
        (\sqrt{\tilde w}\,x, \sqrt{\tilde w}\,y), \qquad \tilde w = \mathrm{clip}(w, 0, W)/W

    Least squares of such rows is weighted least squares, and a row of weight 0 is one of zeros. The
    intercept's entry has been multiplied as well.
    """

    _norms_are_own: ClassVar[bool] = True
    weighted: ClassVar[bool] = True
    roots: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        roots = require_array("roots", self.roots, shape=self.labels.shape, least=0, most=1)
        object.__setattr__(self, "roots", frozen(roots))


def weight_roots(weights: ArrayLike, bound: float) -> FloatArray:
    r"""Roots of weights relative to their bound W, each of its own record alone.

    .. math:: \sqrt{\mathrm{clip}(w, 0, W)/W}

    Weights below 1e-30 W count as 0.
    """
    bound = require_number("bound", bound, least=1e-15, most=1e15)
    shares = np.clip(require_real("weights", weights, infinite=True), 0.0, bound) / bound
    return np.sqrt(np.where(shares < NEGLIGIBLE, 0.0, shares))
