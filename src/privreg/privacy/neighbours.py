"""Neighbouring relations, and how far one record can move a bounded mean or sum."""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_count, require_number, require_real, short


class Neighbours(Enum):
    """Which pairs of data sets privacy must make indistinguishable.

    REPLACE_ONE: the same number of records, one differs. ADD_REMOVE: one has a record more; its own
    number of records enters no output, shape or error, and a mean divides by a declared one, the
    same for both (`shared_sample_size`). ZERO_OUT: the same number of records, one of which is
    blank in one of the two, with features and label 0, the entry of an intercept included. A blank
    contributes 0 to every release, counts included; the other records keep their places, which
    algorithms that visit records in an order need.

    Every function that takes a relation also takes its value as text; `Neighbours(value)` makes
    either a member, and refuses anything else.
    """

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    ZERO_OUT = "zero-out"

    @classmethod
    def _missing_(cls, value: object) -> None:
        listed = ", ".join(repr(member.value) for member in cls)
        raise ValueError(f"neighbours must be one of {listed}, got {short(value)}")


def shared_sample_size(
    sample_size: float | None, *, records: int, neighbours: Neighbours | str
) -> float:
    """Number that sums over records are divided by, from 1 to 1e15: the same for two neighbours.

    Guarantee
    ---------
    It is declared, public or released before, or the data set's own number of records where the
    relation shares it. Under add-remove, which does not, one that is not declared is refused.
    """
    relation = Neighbours(neighbours)
    if sample_size is None and relation is Neighbours.ADD_REMOVE:
        raise ValueError("sample_size must be given under add-remove, which does not share it")
    count = require_count("records", records, least=0)
    size = count if sample_size is None else sample_size
    return require_number("sample_size", size, least=1, most=1e15)


def sum_sensitivity(
    bound: ArrayLike, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
) -> NDArray[np.float64]:
    r"""ℓ2 sensitivity of a sum of vectors of norm at most b; divided by n, that of a mean.

    .. math:: \Delta = 2b \text{ (replace-one)}, \qquad \Delta = b \text{ (add-remove, zero-out)}

    brown2024, Claim A.5 (replace-one).
    """
    return _change(bound, 2.0, Neighbours(neighbours))


def gram_sensitivity(
    bound: ArrayLike, *, neighbours: Neighbours | str = Neighbours.REPLACE_ONE
) -> NDArray[np.float64]:
    r"""ℓ2 sensitivity of a sum of terms of norm at most b, no two of which point apart.

    .. math::
        \Delta = \sqrt2\, b \text{ (replace-one)}, \qquad
        \Delta = b \text{ (add-remove, zero-out)}

    Matrices xxᵀ (norm of Frobenius) and the counts of a histogram are such terms: an inner product
    of two is not negative, so ‖u - v‖² is at most ‖u‖² + ‖v‖². Wang (2018), Algorithm 2, has the
    add-remove case.
    """
    return _change(bound, np.sqrt(2.0), Neighbours(neighbours))


def _change(bound: ArrayLike, replaced: float, neighbours: Neighbours) -> NDArray[np.float64]:
    norm = require_real("bound", bound, least=0, infinite=True)
    with np.errstate(over="ignore"):
        return norm * (replaced if neighbours is Neighbours.REPLACE_ONE else 1.0)
