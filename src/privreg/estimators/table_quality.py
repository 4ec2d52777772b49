"""How many records of a table were incomplete or clipped: shares with noise, by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.split_budget import require_budget
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.validation import (
    require_counts,
    require_instance,
    require_number,
    require_rng,
)

FloatArray = NDArray[np.float64]
ABSENT = (
    "a record with a missing, unreadable or undeclared value in a used column counts as absent, "
    "record by record"
)


@dataclass(frozen=True)
class TableQuality:
    """Shares of records that could not be used as they are, with noise.

    Attributes
    ----------
    columns : tuple of str
        Columns that were used, the label last; none where nothing was spent on the shares.
    shares : ndarray, shape (columns, 2)
        Of the records, those that are incomplete because of the column, and those that its bounds
        clip, NaN for a column of categories. Noise can take a share below 0.
    noise_std : float
        Standard deviation of the noise of each.
    """

    columns: tuple[str, ...]
    shares: FloatArray
    noise_std: float


def private_quality(
    counts: ArrayLike,
    columns: tuple[str, ...],
    clips: tuple[bool, ...],
    *,
    sample_size: float,
    budget: Budget,
    rng: np.random.Generator,
) -> Release[TableQuality]:
    r"""Shares of incomplete and clipped records, each column's, by the Gaussian mechanism.

    .. math:: \hat s = (c + \Delta\,\zeta/\sqrt{2\rho})/n, \qquad \zeta \sim N(0, I)

    Parameters
    ----------
    counts : array_like of int, shape (columns, 2)
        Missing and clipped cells: a record adds 1 to at most one of a column's two.
    columns : tuple of str
    clips : tuple of bool
        Whether the column has bounds; the clipped count of one without is left out.
    sample_size : float
        n, at least 1: public, or released before.
    budget : Budget
        ρ in [1e-20, 1e20].
    rng : Generator
        Source of the noise.

    Guarantee
    ---------
    The shares are ρ-zCDP under the budget's relation. Of m columns with bounds and c without, a
    record's counts have norm at most √(m + c), which is Δ under add-remove. Two records differ
    most where one is incomplete in every column and the other is clipped in all that have bounds:
    Δ = √(2m + c) under replace-one. So it is under zero-out, where the blank record of a file is
    one that is incomplete in every column.
    """
    require_instance("columns", columns, tuple)
    bounded = np.array(require_instance("clips", clips, tuple))
    if bounded.shape != (len(columns),) or bounded.dtype != bool or not columns:
        raise ValueError(f"clips must be a truth value for each of {columns!r}, got {clips!r}")
    exact = require_counts("counts", counts, least=0)
    if exact.shape != (len(columns), 2):
        raise ValueError(f"counts must have shape ({len(columns)}, 2), got {exact.shape}")
    n = require_number("sample_size", sample_size, least=1, most=1e15)
    twice = require_budget(budget).neighbours is not Neighbours.ADD_REMOVE
    sensitivity = float(np.sqrt(np.sum(1 + bounded * twice)))
    std = float(gaussian_noise_std(sensitivity=sensitivity, rho=budget.rho))
    shares = (exact + std * require_rng("rng", rng).standard_normal(exact.shape)) / n
    shares[~bounded, 1] = np.nan
    return Release(TableQuality(columns, shares, std / n), budget, (ABSENT,))
