"""Mean squared error and R² of a linear prediction on a table, with noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import Chunk
from privreg.algorithms.split_budget import SplitBudget
from privreg.estimators.table_quality import ABSENT, WEIGHTS
from privreg.estimators.tables import TableSamples
from privreg.privacy.assumptions import SECRET_STREAM
from privreg.privacy.budget import Budget
from privreg.privacy.release import Release
from privreg.validation import require_array, require_count

FloatArray = NDArray[np.float64]
# What each sum is for, and its share of the budget.
SHARES = {"records": 0.1, "labels": 0.2, "squared labels": 0.2, "squared errors": 0.5}
CLIPPED = "features, labels and predictions are clipped to the declared bounds, row by row"
# Standard deviations of noise from which a divisor is told from 0.
VISIBLE = 4.0


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
    [0, 1] and is 0 for an incomplete one, so that no sum moves by more than 1 with one record. The
    weights, if there are any, are clipped to their bound. The
    shares of ρ are fixed and add up to it (Dong, Roth and Su 2022, Corollary 3.3); the result is a
    function of the four noisy sums and of what is declared. The coefficients of the features and,
    after them, the intercept must be public or released before.
    """
    frame = samples.frame
    matrix, offset = frame.functionals()
    beta = require_array(
        "coefficients", coefficients, shape=(frame.dimension,), least=-1e15, most=1e15
    )
    shares = SplitBudget(budget, rng)
    task = partial(record_sums, np.asarray(np.linalg.solve(matrix, beta - offset)))
    found = samples.each_part(task, threads=require_count("threads", threads))
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
