"""Noisy shares of incomplete and clipped records, by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privreg.algorithms.split_budget import require_budget
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.release import Release
from privreg.privacy.zcdp import gaussian_noise_std
from privreg.validation import require_array, require_number

ABSENT = (
    "a record with a missing, unreadable or undeclared value in a used column counts as absent, "
    "record by record"
)
WEIGHTS = (
    "the weight of a record is a function of that record and of what is public, and weights are "
    "clipped to [0, weight_bound], record by record"
)
# Shares that a warning is worth, by convention, and by how many deviations of noise beyond them.
WORTH_A_WARNING, MOST, SURE = 0.05, 0.5, 4.0


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
        lost = self._beyond(self.incomplete, MOST)
        absent = "" if lost else self._beyond(self.incomplete, WORTH_A_WARNING)
        clipped = self._beyond(self.clipped, WORTH_A_WARNING)
        said = {
            f"most records are incomplete because of {lost}, and the estimates are noise: look "
            "at the separator, quotes, decimal and thousands marks, blanks and categories": lost,
            f"records are left out as incomplete because of {absent}: where that goes with their "
            "values, as thousands separators do, the estimates are biased": absent,
            f"bounds clip many values of {clipped}: they are too narrow or of another unit, and "
            "the estimates are those for clipped values": clipped,
        }
        return [text for text, columns in said.items() if columns]

    def _beyond(self, shares: dict[str, float], least: float) -> str:
        """Columns whose share is beyond doubt more, with their shares; an empty text for none."""
        return ", ".join(
            f"{name!r} ({100 * min(share, 1.0):.0f} %)"
            for name, share in shares.items()
            if share - SURE * self.noise_std > least
        )


def require_share(quality_share: float) -> float:
    """Share of a budget for shares of records: 0, or at least 1e-10 and less than 1."""
    share = require_number("quality_share", quality_share, least=0, below=1)
    if 0 < share < 1e-10:
        raise ValueError(f"quality_share must be 0 or at least 1e-10, got {share:g}")
    return share


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

    Guarantee
    ---------
    The shares are ρ-zCDP under the budget's relation. `counts` are each column's missing and
    clipped cells, or of arrays, which have no missing cells, the clipped ones alone; a record adds
    1 to at most one of a column's two. `columns` says which have bounds. `sample_size` is public or
    was released before. Of m columns with bounds and c without, a record's counts have norm at most
    √(m + c), which is Δ under add-remove. Two records differ most where one is incomplete in every
    column and the other is clipped in all that have bounds: Δ = √(2m + c) under replace-one. So it
    is under zero-out, where the blank record of a file is one that is incomplete in every column.
    Without missing cells a record's counts are m zeros and ones, whether it is a row or a person,
    so that two records, or one and none, differ by at most Δ = √m under every relation.
    """
    kinds = 1 if np.shape(counts)[1:] == (1,) else 2
    exact = require_array("counts", counts, shape=(len(columns), kinds))
    twice = require_budget(budget).neighbours is not Neighbours.ADD_REMOVE and kinds == 2
    sensitivity = float(np.sqrt(np.sum(1 + np.array(list(columns.values())) * twice)))
    std = float(gaussian_noise_std(sensitivity=sensitivity, rho=budget.rho))
    shares = (exact + std * rng.standard_normal(exact.shape)) / sample_size
    *incomplete, clipped = (dict(zip(columns, each, strict=True)) for each in shares.T.tolist())
    kept = {name: share for name, share in clipped.items() if columns[name]}
    found = TableQuality(incomplete[0] if incomplete else {}, kept, std / sample_size)
    return Release(found, budget, (ABSENT,) if incomplete else ())
