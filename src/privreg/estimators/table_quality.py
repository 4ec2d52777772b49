"""How many records of a table were incomplete or clipped: shares with noise, by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privreg.algorithms.split_budget import require_budget
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.validation import (
    require_flag,
    require_instance,
    require_number,
    require_records,
    require_rng,
)

ABSENT = (
    "a record with a missing, unreadable or undeclared value in a used column counts as absent, "
    "record by record"
)


@dataclass(frozen=True)
class TableQuality:
    """Shares of records that could not be used as they are, with noise, by column.

    Attributes
    ----------
    incomplete : dict from str to float
        Of the records, those that are incomplete because of the column; empty where nothing was
        spent on the shares. Noise can take a share below 0.
    clipped : dict from str to float
        Those that the column's bounds clip, for columns that have some.
    noise_std : float
        Standard deviation of the noise of each.
    """

    incomplete: dict[str, float]
    clipped: dict[str, float]
    noise_std: float


def private_quality(
    counts: ArrayLike,
    columns: dict[str, bool],
    *,
    sample_size: float,
    budget: Budget,
    rng: np.random.Generator,
) -> Release[TableQuality]:
    r"""Shares of incomplete and clipped records, each column's, by the Gaussian mechanism.

    .. math:: \hat s = (c + \Delta\,\zeta/\sqrt{2\rho})/n, \qquad \zeta \sim N(0, I)

    Parameters
    ----------
    counts : array_like, shape (columns, 2)
        Missing and clipped cells, at most 1e15: a record adds 1 to at most one of a column's two.
    columns : dict from str to bool
        Whether each has bounds.
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
    if not require_instance("columns", columns, dict):
        raise ValueError("columns must be one or more, got none")
    bounded = np.array([require_flag(f"columns[{name!r}]", each) for name, each in columns.items()])
    exact = require_records("counts", counts, shape=(len(columns), 2), least=0, most=1e15)
    n = require_number("sample_size", sample_size, least=1, most=1e15)
    twice = require_budget(budget).neighbours is not Neighbours.ADD_REMOVE
    sensitivity = float(np.sqrt(np.sum(1 + bounded * twice)))
    std = float(gaussian_noise_std(sensitivity=sensitivity, rho=budget.rho))
    shares = (exact + std * require_rng("rng", rng).standard_normal(exact.shape)) / n
    incomplete, clipped = (dict(zip(columns, each, strict=True)) for each in shares.T.tolist())
    kept = {name: share for name, share in clipped.items() if columns[name]}
    return Release(TableQuality(incomplete, kept, std / n), budget, (ABSENT,))
