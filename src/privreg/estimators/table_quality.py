"""Noisy numbers of a table: shares of incomplete and clipped records, and the score of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import Chunk
from privreg.algorithms.whitened_descent import SplitBudget
from privreg.checks import MOST, require_array
from privreg.estimators.tables import TableSamples
from privreg.privacy.budget import Budget, Neighbours, gaussian_noise_std
from privreg.privacy.release import SECRET_STREAM, Release

FloatArray = NDArray[np.float64]
# What each sum is for, and its share of the budget.
SHARES = {"records": 0.1, "labels": 0.2, "squared labels": 0.2, "squared errors": 0.5}
CLIPPED = "features, labels and predictions are clipped to the declared bounds, row by row"
# Standard deviations of noise from which a divisor is told from 0.
VISIBLE = 4.0
ABSENT = (
    "a record with a missing, unreadable or undeclared value in a used column is ignored, record "
    "by record"
)
WEIGHTS = (
    "a record's weight depends on that record and public values alone, and is clipped to "
    "[0, weight_bound]"
)
# Shares that a warning is worth, by convention, and by how many deviations of noise beyond them.
WORTH_A_WARNING, MANY, SURE = 0.05, 0.5, 4.0


@dataclass(frozen=True)
class TableQuality:
    """Shares of records that could not be used as they are, with noise, by column.

    Attributes
    ----------
    incomplete : dict from str to float
        Records that are incomplete because of the column; empty where nothing was spent on the
        shares, and for arrays, which have no missing values. Noise can take a share below 0 or
        above 1.
    clipped : dict from str to float
        Those that the column's bounds clip, for columns that have some; a person in any row.
    noise_std : float
        Standard deviation of the noise of each.
    """

    incomplete: dict[str, float]
    clipped: dict[str, float]
    noise_std: float

    @property
    def warnings(self) -> list[str]:
        """Warnings about shares that are large beyond their noise."""
        lost = self._beyond(self.incomplete, MANY)
        absent = "" if lost else self._beyond(self.incomplete, WORTH_A_WARNING)
        clipped = self._beyond(self.clipped, WORTH_A_WARNING)
        said = {
            f"most records are incomplete because of {lost}, and the estimates are noise: check "
            "the separator, quotes, decimal and thousands marks, blanks and categories": lost,
            f"records are left out as incomplete because of {absent}: the estimates are biased if "
            "that depends on the value, as with thousands separators": absent,
            f"bounds clip many values of {clipped}: they are too narrow or in another unit, and "
            "the estimates are for clipped values": clipped,
        }
        return [text for text, columns in said.items() if columns]

    def _beyond(self, shares: dict[str, float], least: float) -> str:
        """Columns whose share is beyond doubt more, with their shares; an empty text for none."""
        return ", ".join(
            f"{name!r} ({100 * min(share, 1.0):.0f} %)"
            for name, share in shares.items()
            if share - SURE * self.noise_std > least
        )


def private_quality(
    counts: NDArray[Any],
    columns: dict[str, bool],
    *,
    sample_size: float,
    budget: Budget,
    rng: np.random.Generator,
) -> Release[TableQuality]:
    r"""Shares of incomplete and clipped records, each column's, by the Gaussian mechanism.

    .. math:: \hat s = (c + \Delta\,\zeta/\sqrt{2\rho})/n, \qquad \zeta \sim N(0, I)

    Guarantee
    ---------
    The shares are ρ-zCDP under the budget's relation. The counts c are each column's missing and
    clipped cells, or of arrays, which have no missing cells, the clipped ones alone; a record adds
    1 to at most one of a column's two. `columns` says which have bounds. `sample_size` is public or
    was released before. Of m columns with bounds and k without, a record's counts have norm at most
    √(m + k), which is Δ under add-remove. Two records differ most where one is incomplete in every
    column and the other is clipped in all that have bounds: Δ = √(2m + k) under replace-one. So it
    is under zero-out, where the blank record of a file is one that is incomplete in every column.
    Without missing cells a record's counts are m zeros and ones, whether it is a row or a person,
    so that two records, or one and none, differ by at most Δ = √m under every relation.
    """
    twice = budget.neighbours is not Neighbours.ADD_REMOVE and counts.shape[1] == 2
    sensitivity = float(np.sqrt(np.sum(1 + np.array(list(columns.values())) * twice)))
    std = float(gaussian_noise_std(sensitivity=sensitivity, rho=budget.rho))
    shares = (counts + std * rng.standard_normal(counts.shape)) / sample_size
    *incomplete, clipped = (dict(zip(columns, each, strict=True)) for each in shares.T.tolist())
    kept = {name: share for name, share in clipped.items() if columns[name]}
    found = TableQuality(incomplete[0] if incomplete else {}, kept, std / sample_size)
    return Release(found, budget, (ABSENT,) if incomplete else ())


@dataclass(frozen=True)
class TableScore:
    """Error of a prediction on a table; the noise is private noise alone, not that of sampling.

    The mean squared error, in squared units of the label, and R² are NaN where noise hides their
    divisors. `records` counts complete records, or sums their weights over the bound.
    """

    mean_squared_error: float
    mean_squared_error_noise: float
    r2: float
    r2_noise: float
    records: float
    records_noise: float


def private_score(
    samples: TableSamples,
    coefficients: ArrayLike,
    *,
    budget: Budget,
    rng: np.random.Generator,
    threads: int = 2,
) -> Release[TableScore]:
    r"""Mean squared error and R² of a linear prediction, by four Gaussian mechanisms.

    .. math::
        \mathrm{MSE} = w^2\frac{E}{N},\quad R^2 = 1 - \frac{E}{S_2 - S_1^2/N},\qquad
        (N, S_1, S_2, E) = \sum_i (1,\ v_i,\ v_i^2,\ (v_i - \hat v_i)^2) + \text{noise}

    over complete records, with v and its prediction the places of label and clipped prediction
    between the label's bounds, 0 to 1, and w the bounds' distance. Of a weighted table each
    record's part is multiplied by its weight over the bound of the weights.

    Guarantee
    ---------
    √(2ρ)-Gaussian DP, and so ρ-zCDP, under any of the relations. Each part of a record lies in
    [0, 1] and is 0 for an incomplete one, so that no sum moves by more than 1 with one record.
    Weights are clipped to their bound. The shares of ρ are fixed and add up to it (Dong, Roth and
    Su 2022, Corollary 3.3); the result is a function of the four noisy sums and of what is
    declared. The coefficients of the features and, after them, the intercept must be public or
    released before.
    """
    frame = samples.frame
    matrix, offset = frame.functionals()
    parameters = require_array(
        "coefficients in units of the bounds",
        np.linalg.solve(matrix, np.subtract(coefficients, offset)),
        shape=(frame.dimension,),
        least=-MOST,
        most=MOST,
    )
    shares = SplitBudget(budget, rng)
    found = samples.each_part(partial(record_sums, parameters), threads=threads)
    total = np.sum([np.zeros(len(SHARES)), *found], axis=0)
    noisy = [
        shares.number(what, share, part, 1.0, 1.0)
        for (what, share), part in zip(SHARES.items(), total, strict=True)
    ]
    width = float(np.ptp(frame.label))
    sums = [float(each.value) for each in noisy]
    score = score_of(sums, [each.noise_std for each in noisy], width=width)
    weights = (WEIGHTS,) if samples.weighted else ()
    return Release(score, budget, (CLIPPED, *weights, ABSENT, SECRET_STREAM))


def score_of(sums: Sequence[float], noise: Sequence[float], *, width: float) -> TableScore:
    """Score from the four noisy sums alone; NaN where noise hides a divisor."""
    records, first, second, errors = sums
    mse, mse_noise, r2, r2_noise = nan, nan, nan, nan
    if records > VISIBLE * noise[0] and records >= 1:
        mean = first / records
        mse = errors / records
        mse_noise = sqrt(noise[3] ** 2 + (mse * noise[0]) ** 2) / records
        spread = second - mean * first
        spread_noise = sqrt(noise[2] ** 2 + (2 * mean * noise[1]) ** 2 + (mean**2 * noise[0]) ** 2)
        if spread > VISIBLE * spread_noise and spread > 0:
            r2 = 1 - errors / spread
            r2_noise = sqrt(noise[3] ** 2 + ((1 - r2) * spread_noise) ** 2) / spread
    return TableScore(mse * width**2, mse_noise * width**2, r2, r2_noise, records, noise[0])


def record_sums(parameters: NDArray[Any], chunks: Iterable[Chunk]) -> FloatArray:
    """Sums N, S_1, S_2, E over the complete records of some chunks, without noise; (4,).

    The first feature is the root of a record's weight over the bound, 1 without weights and 0 for
    an incomplete record; it multiplies the other features and the label, in [-1, 1] up to rounding.
    """
    total = np.zeros(len(SHARES))
    for rows, labels, *_ in chunks:
        present = rows[:, 0] > 0
        root = rows[present, 0].astype(np.float64)
        # Clipped again: where bounds are narrow beside their size the frame's rounding leaves them.
        place = (np.clip(labels[present] / root, -1, 1) + 1) / 2
        predicted = (np.clip(rows[present] @ parameters / root, -1, 1) + 1) / 2
        parts = (np.ones_like(place), place, place**2, (place - predicted) ** 2)
        total += [np.sum(root**2 * part) for part in parts]
    return total
