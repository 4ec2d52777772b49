"""A table of real data, and what can be wrong with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privreg.checks import Rebuilt, frozen


class DataError(ValueError):
    """A file of a data set is wrong or cannot be had; one line says which and what to do."""


class StandInWarning(UserWarning):
    """A bundled table stands in for a data set that could not be downloaded."""


@dataclass(frozen=True, eq=False)
class Table(Rebuilt):
    r"""Features and labels of one data set, before any split or standardisation.

    .. math:: X \in \mathbb R^{n \times d},\qquad y \in \mathbb R^n

    Parameters
    ----------
    name : str
        The data set asked for, one of `privreg.data.NAMES`; a stand-in keeps it.
    features : ndarray, shape (n, d)
        Features in raw units and in their own dtype (MNIST: `uint8` grey values).
    labels : ndarray, shape (n,), float64
        Labels in raw units (MNIST: +1 for the digit 1, -1 for the digit 7).
    feature_names : tuple of d str
    official_test : ndarray, shape (n,), bool
        The rows that the publishers set aside as a test set (MNIST's 10,000 images).
    source : str
        Origin of the data; the same words wherever the files came from.
    checksums : mapping from file name to SHA-256
    stand_in : bool
        Whether a bundled table takes the place of the data set `name`.
    stand_in_reason : str
        Why, as one of a few fixed sentences, so that artifacts do not differ between machines.
    feature_scale : float
        Largest value that a feature can take where all share one bounded scale (grey values),
        otherwise 1. `splits.standardise` divides by it first.

    The arrays are copied to read-only memory, because trials share them.
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
                raise ValueError(f"{key}: not all finite, expected numbers without gaps")
        if not (np.isfinite(self.feature_scale) and self.feature_scale > 0):
            raise ValueError(f"feature_scale must be more than 0, got {self.feature_scale}")
        for key in ("features", "labels", "official_test"):
            object.__setattr__(self, key, frozen(getattr(self, key)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features, (n, d)."""
        rows, columns = self.features.shape
        return rows, columns
