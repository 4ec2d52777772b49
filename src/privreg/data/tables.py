"""A table of real data, disjoint random splits, and standardisation by one subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.checks import Rebuilt, frozen


class DataError(ValueError):
    """Wrong or missing file of a data set; one line names the file and the remedy."""


class StandInWarning(UserWarning):
    """A bundled table stands in for a data set that could not be downloaded."""


@dataclass(frozen=True, eq=False)
class Table(Rebuilt):
    r"""Features and labels of one data set, before any split or standardisation.

    .. math:: X \in \mathbb R^{n \times d},\qquad y \in \mathbb R^n

    The arrays are copied to read-only memory, because trials share them.

    Parameters
    ----------
    name : str
        Requested data set, one of `privreg.data.NAMES`; a stand-in keeps this name.
    features : ndarray, shape (n, d)
        Features in raw units and in their own dtype (MNIST: `uint8` grey values).
    labels : ndarray, shape (n,), float64
        Labels in raw units (MNIST: +1 for the digit 1, -1 for the digit 7).
    feature_names : tuple of d str
        Name of each feature.
    official_test : ndarray, shape (n,), bool
        True for the rows that the publishers set aside as a test set (MNIST's 10,000 images).
    source : str
        Origin of the data, in the same words for local and downloaded files.
    checksums : mapping from file name to SHA-256
        Digests of the files that were read.
    stand_in : bool
        True if a bundled table replaces the data set `name`.
    stand_in_reason : str
        Reason for the stand-in, a fixed sentence, so that artifacts are equal on all machines.
    feature_scale : float
        Largest possible value if all features share one bounded scale (grey values), else 1.
        `standardise` divides by this value first.
    """

    name: str
    features: NDArray[Any]
    labels: NDArray[np.float64]
    feature_names: tuple[str, ...]
    official_test: NDArray[np.bool_]
    source: str
    checksums: Mapping[str, str] = field(default_factory=dict)
    stand_in: bool = False
    stand_in_reason: str = ""
    feature_scale: float = 1.0

    def __post_init__(self) -> None:
        if self.features.ndim != 2:
            raise ValueError(f"features: shape {self.features.shape}, expected (n, d)")
        rows, columns = self.features.shape
        for key in ("labels", "official_test"):
            if getattr(self, key).shape != (rows,):
                raise ValueError(f"{key}: shape {getattr(self, key).shape}, expected ({rows},)")
        if len(self.feature_names) != columns:
            raise ValueError(f"feature_names: {len(self.feature_names)}, expected {columns}")
        for key in ("features", "labels"):
            if not np.all(np.isfinite(getattr(self, key))):
                raise ValueError(f"{key}: some are NaN or infinite, expected finite numbers")
        if not (np.isfinite(self.feature_scale) and self.feature_scale > 0):
            raise ValueError(f"feature_scale must be more than 0, got {self.feature_scale}")
        for key in ("features", "labels", "official_test"):
            object.__setattr__(self, key, frozen(getattr(self, key)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features, (n, d)."""
        rows, columns = self.features.shape
        return rows, columns


# Least number of rows of each part.
LEAST = {"train": 1, "normalisation": 2, "validation": 1}
# No part is shrunk below so many rows: with fewer, all labels may be equal.
KEPT = 30


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of three disjoint subsets of a table."""

    train: NDArray[np.intp]
    normalisation: NDArray[np.intp]
    validation: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Standardised:
    """Standardised rows, all float64, in the order of the split.

    `constant_features` (d,) is true for features that count as constant: they are divided by 1.
    """

    train_features: NDArray[np.float64]
    train_labels: NDArray[np.float64]
    validation_features: NDArray[np.float64]
    validation_labels: NDArray[np.float64]
    constant_features: NDArray[np.bool_]


def split(
    table: Table, *, train: int, normalisation: int, validation: int, rng: np.random.Generator
) -> Split:
    """Draw disjoint subsets for training, normalisation and validation, without replacement.

    If a table has official test rows (MNIST), validation uses only these rows, and training and
    normalisation share the others. Without test rows, all three come from one shuffled pool. For
    one state of `rng`, a smaller training set is the first part of a larger one.
    Source: bombari2025, Section 7; validation on MNIST's official test images is our choice.
    """
    pool, test = require_rows(
        table.name,
        available(table),
        {"train": train, "normalisation": normalisation, "validation": validation},
    )
    if test:
        rows = rng.permutation(np.flatnonzero(~table.official_test))
        held_out = rng.permutation(np.flatnonzero(table.official_test))[:validation]
    else:
        shuffled = rng.permutation(pool)
        held_out, rows = shuffled[:validation], shuffled[validation:]
    return Split(
        train=rows[normalisation : normalisation + train],
        normalisation=rows[:normalisation],
        validation=held_out,
    )


def require_rows(name: str, rows: tuple[int, int], sizes: Mapping[str, int]) -> tuple[int, int]:
    """Refuse sizes for `split` that are too small or exceed a table's rows."""
    for key, least in LEAST.items():
        if sizes[key] < least:
            raise ValueError(f"{key} must be at least {least} rows, got {sizes[key]}")
    pool, test = rows
    parts = (("validation",), ("train", "normalisation")) if test else (tuple(LEAST),)
    for keys, most in zip(parts, (test, pool) if test else (pool,), strict=True):
        wanted = sum(sizes[key] for key in keys)
        if wanted > most:
            raise ValueError(
                f"{' + '.join(keys)} must be at most the {most} rows of {name}, got {wanted}"
            )
    return rows


def sizes_that_fit(
    table: Table, *, train: int, normalisation: int, validation: int
) -> dict[str, int]:
    """Sizes for `split`, shrunk in proportion if the table is a stand-in too small for them."""
    sizes = {"train": train, "normalisation": normalisation, "validation": validation}
    return shrunk(sizes, table.shape[0]) if table.stand_in else sizes


def shrunk(sizes: Mapping[str, int], total: int) -> dict[str, int]:
    """Sizes for `split`, shrunk in proportion to `total` rows; no part below min(size, `KEPT`)."""
    excess = sum(sizes.values()) / total
    if excess <= 1:
        return dict(sizes)
    found = {key: max(int(size / excess), min(size, KEPT)) for key, size in sizes.items()}
    largest = max(found, key=lambda key: found[key])
    found[largest] -= max(sum(found.values()) - total, 0)
    return found


def standardise(split: Split, table: Table, *, minimum_std: float = 0.0) -> Standardised:
    r"""Centre and scale features and labels by the statistics of the normalisation subset alone.

    .. math::

        \tilde x_{ij} = \frac{x_{ij} / g - m_j}{s_j},\qquad
        m_j = \frac1{|N|} \sum_{i \in N} \frac{x_{ij}}{g},\qquad
        s_j^2 = \frac1{|N|} \sum_{i \in N} \Bigl(\frac{x_{ij}}{g} - m_j\Bigr)^2

    N is the set of normalisation rows and g the table's `feature_scale`. Labels are treated in the
    same way, but without g. A feature with :math:`s_j \le` `minimum_std` counts as constant and
    gets :math:`s_j = 1`. An MNIST pixel may be lit in a single normalisation image. In other images
    where it is lit, division by its tiny deviation would give values in the thousands.

    The result is not private. The rows of N must be public, or a later guarantee must exclude them.

    Source
    ------
    bombari2025, Section 7; the rule for constant features is ours, the paper gives none.
    """
    if not 0 <= minimum_std < np.inf:
        raise ValueError(f"minimum_std must be finite and at least 0, got {minimum_std}")
    reference = _scaled_rows(table, split.normalisation)
    mean, std = reference.mean(axis=0), reference.std(axis=0)
    lowest = reference.min(axis=0)
    # Rounding can give a constant column a deviation of 1e-17 and a wrong mean.
    exact = lowest == reference.max(axis=0)
    mean[exact] = lowest[exact]
    constant = exact | (std <= minimum_std)
    std[constant] = 1.0

    labels = table.labels[split.normalisation]
    if np.all(labels == labels[0]):
        raise ValueError(
            f"labels of {table.name}: all equal {labels[0]} in {labels.size} normalisation rows, "
            "expected at least two values; take more rows"
        )
    label_mean, label_std = labels.mean(), labels.std()

    def features(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        values = _scaled_rows(table, rows)
        values -= mean
        values /= std
        return values

    return Standardised(
        train_features=features(split.train),
        train_labels=(table.labels[split.train] - label_mean) / label_std,
        validation_features=features(split.validation),
        validation_labels=(table.labels[split.validation] - label_mean) / label_std,
        constant_features=constant,
    )


def available(table: Table) -> tuple[int, int]:
    """Number of rows outside the official test set, and number of rows in it."""
    test = int(table.official_test.sum())
    return table.shape[0] - test, test


def _scaled_rows(table: Table, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    values = table.features[rows].astype(np.float64)
    values /= table.feature_scale
    return values
