"""Pairs of tables that are neighbours by a stated relation, for audits and comparisons."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.privacy.neighbours import Neighbours
from privreg.privacy.persons import require_names
from privreg.validation import require_array, require_count, require_rows

FloatArray = NDArray[np.float64]


class Table(NamedTuple):
    """Features (n, p), labels (n,), and whose row each is, (n,), where a record is a person."""

    features: FloatArray
    labels: FloatArray
    groups: NDArray[np.generic] | None = None


class NeighbouringTables(NamedTuple):
    """Two tables and the relation in which they are neighbours. Not private."""

    first: Table
    second: Table
    neighbours: Neighbours

    @property
    def not_private(self) -> bool:
        """True: a release refuses them."""
        return True


def neighbouring_tables(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    record: int,
    neighbours: Neighbours | str,
    replacement: tuple[ArrayLike, ArrayLike] | None = None,
    groups: ArrayLike | None = None,
) -> NeighbouringTables:
    """A table and the neighbour that it has by changing one record.

    Under replace-one the second table has the replacement instead of the record: its rows (m, p)
    and labels (m,), one row or a person's. Under add-remove it has fewer rows, and under zero-out
    the record's rows are all zero, an intercept's column included, and its labels are 0. The record
    is that of the row with this index; groups say whose row each is, by default every row is a
    record.

    Examples
    --------
    >>> pair = neighbouring_tables(np.eye(3), [1.0, 2.0, 3.0], record=1, neighbours="add-remove")
    >>> len(pair.first.labels), pair.second.labels.tolist()
    (3, [1.0, 3.0])
    """
    relation = Neighbours(neighbours)
    rows = require_rows("features", features).copy()
    values = require_array("labels", labels, shape=rows.shape[:1]).copy()
    at = require_count("record", record, least=0, most=len(rows) - 1)
    if (replacement is not None) != (relation is Neighbours.REPLACE_ONE):
        raise ValueError("replacement must be given for replace-one, and for no other relation")
    names = np.arange(len(rows)) if groups is None else require_names(groups, len(rows))
    first = Table(rows, values, None if groups is None else names)
    own = names == names[at]
    if relation is Neighbours.ZERO_OUT:
        blank = Table(np.where(own[:, None], 0.0, rows), np.where(own, 0.0, values), first.groups)
        return NeighbouringTables(first, blank, relation)
    others = np.flatnonzero(~own)
    place = int(np.count_nonzero(others < at))
    new, targets = np.empty((0, rows.shape[1])), np.empty(0)
    if replacement is not None:
        new, targets = _replacement(replacement, rows.shape[1], one=groups is None)
    second = Table(
        np.insert(rows[others], place, new, axis=0),
        np.insert(values[others], place, targets),
        None if groups is None else np.insert(names[others], place, [names[at]] * len(new)),
    )
    return NeighbouringTables(first, second, relation)


def _replacement(replacement: Any, dimension: int, *, one: bool) -> tuple[FloatArray, FloatArray]:
    if not isinstance(replacement, tuple) or len(replacement) != 2:
        raise ValueError("replacement must be a pair of rows and labels, got another value")
    rows = require_array("replacement", replacement[0], shape=(1 if one else None, dimension))
    return rows, require_array("replacement", replacement[1], shape=rows.shape[:1])
