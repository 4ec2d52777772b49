"""Intervals for the label of a new record, from the private histogram of a least-squares fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.least_squares_descent import LeastSquaresFit
from privreg.algorithms.product_tail import ProductTail
from privreg.inference.least_squares_intervals import UNSEEN
from privreg.validation import require_array, require_instance, require_number

FloatArray = NDArray[np.float64]
# Deviations of their noise by which counts must reach the level.
CAUTION = 1.0


@dataclass(frozen=True)
class NewObservations:
    """Intervals for labels of new records, in the units of the rows.

    Attributes
    ----------
    centre, half_width : ndarray, shape (k,)
        The robust fit before the wide steps, about which the histogram was taken, and half-widths.
    level : float
        Nominal coverage, on average over records of the population.
    reason : str
        Why the half-widths are infinite; empty where they are not.
    """

    centre: FloatArray
    half_width: FloatArray
    level: float
    reason: str = ""


def new_observations(
    fit: LeastSquaresFit, rows: ArrayLike, *, level: float = 0.95
) -> NewObservations:
    r"""Intervals for labels of new records, whatever the law of the errors is.

    .. math::
        x^\top\theta_H \pm t\,\frac{\sqrt p}{\min(\|z\|s^2, \sqrt p)}\sqrt{\frac{n + p}{n - p}},
        \qquad z = W^\top x,\ s = \min(1, R_2/\|z\|)

    with t the ℓ-quantile of q/√p, q = ‖z‖s²|y - xᵀθ_H|, by its private histogram: of the records,
    a share ℓ has ‖z‖s²|y - xᵀθ_H| at most t√p. Shorter rows get longer intervals, and longer rows
    no shorter ones, which only adds coverage.

    Parameters
    ----------
    fit : LeastSquaresFit
        Of rows, not of persons, whose products are sums over their rows.
    rows : array_like, shape (k, p)
        Of entries up to 1e100.
    level : float
        ℓ in (0, 1).

    Returns
    -------
    NewObservations
        Infinite where noise hides that a share ℓ of the records lies below any edge of the
        histogram.

    Notes
    -----
    Coverage ℓ is that of a record drawn anew from the population of the fitted ones: an average
    over rows x, as in conformal prediction, and not the coverage at a stated x. The factor for the
    rows' own part in θ_H is that of least squares. Counts must reach ℓ by a deviation of their
    noise; within a bin they are taken as even in log q, which adds coverage in a tail.

    Source
    ------
    Ours; scores over a length are those of normalised conformal prediction (Lei et al. 2018).
    """
    require_instance("fit", fit, LeastSquaresFit)
    level = require_number("level", level, above=0, below=1)
    p, n = fit.parameters.size, fit.sample_size
    points = require_array("rows", rows, shape=(None, p), least=-1e100, most=1e100)
    quantile = _quantile(fit.tail, level) if n > p else np.inf
    lengths = np.linalg.norm(points @ fit.whitening, axis=1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # Beyond the cap a row of length ‖z‖ counts as one of R²/‖z‖.
        counted = np.minimum(np.minimum(lengths, fit.cap**2 / lengths), np.sqrt(p))
        grown = np.sqrt((n + p) / (n - p)) if n > p else np.inf
        half = np.where(counted > 0, quantile * grown * np.sqrt(p) / counted, np.inf)
    return NewObservations(
        centre=points @ fit.start,
        half_width=half,
        level=level,
        reason="" if np.isfinite(quantile) else UNSEEN,
    )


def _quantile(tail: ProductTail, level: float) -> float:
    """Least t below which a share of the records lies for all that noise hides; `inf` for none."""
    counts, edges = tail.counts.value, tail.edges
    below = np.cumsum(counts)[:-1]
    beyond = counts.sum() - below
    bins = np.arange(1, len(counts))
    hidden = np.hypot((1 - level) * np.sqrt(bins), level * np.sqrt(len(counts) - bins))
    spare = (1 - level) * below - level * beyond - CAUTION * tail.counts.noise_std * hidden
    reached = np.flatnonzero(spare >= 0)
    if not reached.size:
        return float(np.inf)
    first = int(reached[0])
    if first == 0:
        return float(edges[0])
    share = spare[first - 1] / (spare[first - 1] - spare[first])
    return float(edges[first - 1] * (edges[first] / edges[first - 1]) ** share)
