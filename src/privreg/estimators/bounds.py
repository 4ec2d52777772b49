"""Declared bounds, and the public affine maps that take a table into them and a fit back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privreg.validation import require_real

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Frame:
    r"""Units in which every feature and label lies in [-1, 1].

    .. math::
        x' = (\mathrm{clip}(x, a, b) - c)/h, \qquad
        c = (a + b)/2,\ h = (b - a)/2 \text{ with an intercept, else } c = 0,\ h = \max(|a|, |b|)

    Parameters
    ----------
    features : ndarray, shape (p, 2)
        Lower and upper bounds.
    label : ndarray, shape (2,)
        Lower and upper bound.
    intercept : bool
        Whether a column of ones comes first.
    """

    features: FloatArray
    label: FloatArray
    intercept: bool

    @property
    def dimension(self) -> int:
        """Number of columns of the mapped rows."""
        return len(self.features) + self.intercept

    @property
    def feature_norm(self) -> float:
        """Largest length of a mapped row."""
        return float(np.sqrt(self.dimension))

    def rows(self, features: NDArray[Any]) -> NDArray[Any]:
        """Mapped rows (n, dimension) in the precision of the features (n, p)."""
        kind = features.dtype if features.dtype.kind == "f" else np.dtype(np.float64)
        low, high = self.features.astype(kind).T
        centre, half = (each.astype(kind) for each in _scale(self.features, self.intercept))
        # In the order of the features, whichever it is: a column at a time is contiguous in a file.
        order: Literal["C", "F"] = "F" if features.flags.f_contiguous else "C"
        mapped = np.empty((len(features), self.dimension), dtype=kind, order=order)
        inside = mapped[:, int(self.intercept) :]
        np.clip(features, low, high, out=inside)
        inside -= centre
        inside *= 1 / half
        if self.intercept:
            mapped[:, 0] = 1
        return mapped

    def labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Mapped labels (n,)."""
        centre, half = _scale(self.label, self.intercept)
        kind = labels.dtype if labels.dtype.kind == "f" else np.dtype(np.float64)
        clipped = np.clip(labels, *self.label)
        return np.asarray((clipped - centre) / half, dtype=kind)

    def functionals(self) -> tuple[FloatArray, FloatArray]:
        """Matrix J and offset o with Jθ + o the coefficients, and the intercept after them."""
        centre, half = _scale(self.features, self.intercept)
        label_centre, label_half = _scale(self.label, self.intercept)
        slopes = np.diag(label_half / half)
        if not self.intercept:
            return slopes, np.zeros(len(slopes))
        matrix = np.zeros((self.dimension, self.dimension))
        matrix[:-1, 1:] = slopes
        matrix[-1] = np.concatenate([[label_half], -label_half * centre / half])
        return matrix, np.append(np.zeros(len(slopes)), label_centre)


def declared(
    name: str, bounds: Any, *, columns: int, names: Sequence[str] | None = None
) -> FloatArray:
    """Bounds (columns, 2) from one pair for all, a pair of arrays, or a mapping by column name.

    Parameters
    ----------
    name : str
        What the caller calls the bounds.
    bounds : (low, high) or mapping
        Numbers, arrays of one number a column, or {column: (low, high)} for every column.
    columns : int
        How many.
    names : sequence of str, optional
        Names of the columns, which a mapping needs.
    """
    if isinstance(bounds, Mapping):
        if names is None:
            raise ValueError(f"{name} must be a pair, got a mapping but columns without names")
        missing = [column for column in names if column not in bounds]
        if missing:
            raise ValueError(f"{name} must name every column, got none for {missing[0]!r}")
        unknown = [column for column in bounds if column not in set(names)]
        if unknown:
            raise ValueError(f"{name} must name columns of the table, got {unknown[0]!r}")
        pairs = [_pair(f"{name}[{column!r}]", bounds[column], 1)[0] for column in names]
        return np.array(pairs)
    return _pair(name, bounds, columns)


def _pair(name: str, bounds: Any, columns: int) -> FloatArray:
    if bounds is None or isinstance(bounds, str) or np.ndim(bounds) == 0 or len(bounds) != 2:
        raise ValueError(
            f"{name} must be declared as (low, high), got {bounds!r}: bounds are never read from "
            "the data in silence"
        )
    ends = [require_real(name, end, least=-1e15, most=1e15) for end in bounds]
    for end in ends:
        if end.shape not in ((), (columns,)):
            raise ValueError(f"{name} must hold numbers or {columns} each, got shape {end.shape}")
    pairs = np.stack([np.broadcast_to(end, (columns,)) for end in ends], axis=1)
    narrow = pairs[:, 1] - pairs[:, 0] < 1e-15
    if np.any(narrow):
        low, high = pairs[narrow][0]
        raise ValueError(f"{name} must have low less than high, got ({low:g}, {high:g})")
    return pairs


def _scale(bounds: FloatArray, intercept: bool) -> tuple[FloatArray, FloatArray]:
    low, high = bounds[..., 0], bounds[..., 1]
    if intercept:
        return (low + high) / 2, (high - low) / 2
    return np.zeros_like(low), np.maximum(np.abs(low), np.abs(high))
