"""Scales from noisy histograms on geometric grids: bounds may be loose."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.immutable import frozen

FloatArray = NDArray[np.float64]
SCALE_BINS = 34
QUANTILE_ABOVE = 0.1
# Noise of a count over the number of records from which a wrong scale often scores best.
HIDDEN = 0.08
# Squared length over p up to which whitened rows are left alone where the budget allows it.
LONGEST = 20.0


def scale_edges(label_bound: float) -> FloatArray:
    """Grid of residual scales, 4 label bounds and 34 factors √2 down from there."""
    return label_bound * 4.0 * 2.0 ** (np.arange(-SCALE_BINS, 1) / 2)


def length_edges(feature_norm: float) -> FloatArray:
    """Grid of row lengths, quarter powers of 2 from below 1/256 to 2 times the declared bound."""
    return feature_norm * 2.0 ** (np.arange(-32, 5) / 4)


def white_cap(dimension: int, *, sample_size: float, rho: float, longest: float = 0.0) -> float:
    """Length at which a whitened row is shortened for a second moment that costs rho.

    It is chosen from public numbers alone: as long as the noise allows, so that few rows are
    shortened, and a little over the typical length otherwise. It grows with the budget up to
    `longest`, the length that bounds allow a row, and up to √(20p) where that is more.
    """
    affordable = 0.2 / sqrt(2 * dimension) * sample_size * sqrt(rho)
    most = max(LONGEST * dimension, longest**2)
    return sqrt(min(max(affordable, 1.2 * dimension + 3), most))


def scale_candidates(edges: FloatArray) -> FloatArray:
    """All that `residual_scale` can find on a grid, increasing; edges as there."""
    return np.asarray(edges[-1] * _normal_masses(tuple((edges / edges[-1]).tolist()))[0])


def residual_scale(counts: FloatArray, edges: FloatArray, *, sample_size: float) -> float:
    r"""Scale of the normal law whose bin probabilities are nearest to a noisy histogram.

    .. math::
        \hat s = \arg\min_s \sum_k \Big(\frac{h_k}n - p_k(s)\Big)^2, \qquad
        p_k(s) = \Pr(|\xi| s \in \text{bin } k),\ \xi \sim N(0, 1)

    The noise of bins that a scale does not reach enters every candidate alike, so that the whole
    grid costs no accuracy; outliers lie in such bins. Edges are the upper ends of all bins but the
    last; the scale is between the second and the last of them.
    """
    candidates, mass = _normal_masses(tuple((edges / edges[-1]).tolist()))
    score = mass @ (counts / sample_size) - 0.5 * np.sum(mass**2, axis=1)
    return float(edges[-1] * candidates[np.argmax(score)])


def scale_is_hidden(*, noise_std: float, sample_size: float) -> bool:
    """Whether the noise of a histogram hides the scale, by public numbers alone.

    The right scale leads a distant one by ‖p - p'‖²/2, about 0.18, through noise of
    ‖p - p'‖ s/n, about 0.6 s/n; among some 17 distant ones the largest draw is near 2 of these,
    and 3.5 leave a margin: s/n of 0.085.
    """
    return noise_std > HIDDEN * sample_size


def length_cap(
    counts: FloatArray, edges: FloatArray, *, noise_std: float, sample_size: float
) -> float:
    """Length that about a tenth of the records exceed, from a noisy histogram.

    Where the noise is more than that tenth, so many may exceed it as the noise cannot hide; the
    largest length where it hides all of them.
    """
    above = np.cumsum(counts[::-1])[::-1]
    # above[k] counts lengths over edges[k - 1]; the last bin is empty by the records' bound.
    noise = 2 * noise_std * np.sqrt(np.arange(len(counts), 0, -1))
    found = np.flatnonzero(above > np.maximum(QUANTILE_ABOVE * sample_size, noise))
    # Nothing seen: too long a cap costs noise, too short a one would stretch the rows for good.
    return float(edges[min(int(found[-1]), len(edges) - 1)] if found.size else edges[-1])


@lru_cache(maxsize=4)
def _normal_masses(edges: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """Candidate scales, and the probabilities of the bins under each."""
    grid = np.array(edges)
    candidates = np.geomspace(grid[1], grid[-1], 8 * len(grid))
    below = 2 * ndtr(grid / candidates[:, None]) - 1
    return frozen(candidates), frozen(np.diff(below, axis=1, prepend=0.0, append=1.0))
