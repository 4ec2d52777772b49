"""Bounds on columns of numbers, read from the data under privacy when nobody can declare them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.records import Persons, require_groups
from privreg.algorithms.split_budget import require_budget
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import gram_sensitivity
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.validation import require_array, require_rng

FloatArray = NDArray[np.float64]
# Sizes from a millionth to a thousand billion, in either direction.
SIZES = 2.0 ** np.arange(-20, 41)
GRID = np.concatenate([-SIZES[::-1], SIZES])
CELLS = 64
# Standard deviations above which a count is no noise, for all cells of a table together.
CERTAIN = 4.5


def private_bounds(
    columns: ArrayLike,
    *,
    budget: Budget,
    rng: np.random.Generator,
    groups: ArrayLike | Persons | None = None,
) -> Release[FloatArray]:
    r"""Lower and upper bounds that hold most of each column.

    Half of the budget counts values in cells between powers of two of either sign; the outermost
    cells whose noisy counts are no noise give a range, and the other half counts in 64 equal cells
    of it, which gives the bounds. Values that are rarer than the noise stay outside.

    Parameters
    ----------
    columns : array_like, shape (n, k)
        Finite values.
    budget : Budget
        Budget ρ in [1e-20, 1e20], and its neighbouring relation.
    rng : Generator
        Source of the noise.
    groups : array_like, shape (n,), optional
        The person whose row it is; each person's rows then count as one record.

    Returns
    -------
    Release of ndarray, shape (k, 2)
        Lower and upper bounds. A column in which nothing is certain gets (-1, 1).

    Guarantee
    ---------
    ρ-zCDP by composition. A record adds to each column's counts a vector of norm at most 1, so that
    it moves the k columns' counts by at most √k, and by √(2k) where a record is replaced, since
    counts are not negative.
    """
    values = require_array("columns", columns, shape=(None, None))
    require_budget(budget)
    require_rng("rng", rng)
    weights = _weights(groups, len(values))
    half = budget.share(0.5)
    sizes = [GRID] * values.shape[1]
    coarse = _ranges(_noisy_counts(values, weights, sizes, half, rng), sizes)
    grids = [np.linspace(low, high, CELLS + 1) for low, high in coarse]
    fine = _ranges(_noisy_counts(values, weights, grids, half, rng), grids)
    return Release(
        np.array(fine), budget, ("noise is drawn in floating point on counts of whole records",)
    )


def _noisy_counts(
    values: FloatArray,
    weights: FloatArray,
    grids: list[FloatArray],
    budget: Budget,
    rng: np.random.Generator,
) -> FloatArray:
    """Counts over their noise, (k, cells): what lies outside a grid counts in its end cells."""
    change = gram_sensitivity(np.sqrt(values.shape[1]), neighbours=budget.neighbours)
    std = float(gaussian_noise_std(sensitivity=change, rho=budget.rho))
    counts = np.array(
        [
            np.bincount(
                np.clip(np.searchsorted(grid, column, side="right") - 1, 0, len(grid) - 2),
                weights=weights,
                minlength=len(grid) - 1,
            )
            for grid, column in zip(grids, values.T, strict=True)
        ]
    )
    return counts / std + rng.standard_normal(counts.shape)


def _ranges(counts: FloatArray, grids: list[FloatArray]) -> list[tuple[float, float]]:
    ranges = []
    for row, grid in zip(counts, grids, strict=True):
        certain = np.flatnonzero(row > CERTAIN)
        # Where nothing is certain any range serves: the values are clipped to it.
        ends = (grid[certain[0]], grid[certain[-1] + 1]) if certain.size else (-1.0, 1.0)
        ranges.append((float(ends[0]), float(ends[1])))
    return ranges


def _weights(groups: ArrayLike | Persons | None, rows: int) -> FloatArray:
    if groups is None:
        return np.ones(rows)
    codes = require_groups(groups, rows).codes
    return np.asarray(1.0 / np.bincount(codes)[codes])
