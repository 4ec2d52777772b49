"""Declared bounds, and the public affine maps that take a table into them and a fit back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privreg.immutable import Immutable, frozen
from privreg.ranges import places, short
from privreg.validation import require_real, require_unmasked

FloatArray = NDArray[np.float64]
LARGEST, NARROWEST = 1e15, 1e-15


@dataclass(frozen=True)
class Frame(Immutable):
    r"""Units in which every feature and label lies in [-1, 1].

    .. math::
        x' = (\mathrm{clip}(x, a, b) - c)/h, \qquad
        c = (a + b)/2,\ h = (b - a)/2 \text{ with an intercept, else } c = 0,\ h = \max(|a|, |b|)

    `features` (p, 2) and `label` (2,) are declared bounds; with an intercept a column of ones comes
    first. Where bounds are narrow beside their size rounding leads out of [-1, 1], and is clipped.
    """

    features: FloatArray
    label: FloatArray
    intercept: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozen(self.features))
        object.__setattr__(self, "label", frozen(self.label))

    @property
    def dimension(self) -> int:
        """Number of columns of the mapped rows."""
        return len(self.features) + self.intercept

    @property
    def feature_norm(self) -> float:
        """Largest length of a mapped row."""
        return float(np.sqrt(self.dimension))

    def rows(self, features: NDArray[Any]) -> NDArray[Any]:
        """Mapped rows (n, dimension) of features (n, p), of which none may be missing."""
        low, high = self.features.T
        centre, half = _scale(self.features, self.intercept)
        # In the order of the features, whichever it is: a column at a time is contiguous in a file.
        order: Literal["C", "F"] = "F" if features.flags.f_contiguous else "C"
        mapped = np.empty((len(features), self.dimension), order=order)
        inside = mapped[:, int(self.intercept) :]
        np.clip(features, low, high, out=inside)
        _require_present("features", inside)
        inside -= centre
        inside *= 1 / half
        np.clip(inside, -1, 1, out=inside)
        if self.intercept:
            mapped[:, 0] = 1
        return mapped

    def rows_of(self, columns: Sequence[NDArray[Any]], absent: NDArray[np.bool_]) -> NDArray[Any]:
        """Rows of p columns, equal to those of `rows` to the bit; absent records are zeros.

        Each column is mapped while it is in a cache.
        """
        some = bool(np.any(absent))
        mapped = np.empty((len(absent), self.dimension), order="F")
        if self.intercept:
            mapped[:, 0] = ~absent
        low, high = self.features.T
        centre, half = _scale(self.features, self.intercept)
        for k, values in enumerate(columns):
            inside = mapped[:, k + self.intercept]
            np.clip(values, low[k], high[k], out=inside)
            inside -= centre[k]
            inside *= 1 / half[k]
            np.clip(inside, -1, 1, out=inside)
            if some:
                inside[absent] = 0
            _require_present("columns", inside)
        return mapped

    def labels(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Mapped labels (n,), of which none may be missing."""
        centre, half = _scale(self.label, self.intercept)
        clipped = np.clip(labels, *self.label)
        _require_present("labels", clipped)
        return np.clip((clipped - centre) / half, -1, 1)

    def features_of(self, rows: FloatArray) -> FloatArray:
        """Features (n, p) of mapped rows (n, p), without the column of ones."""
        centre, half = _scale(self.features, self.intercept)
        return np.asarray(centre + half * rows)

    def labels_of(self, values: FloatArray) -> FloatArray:
        """Labels of mapped values, of any shape."""
        centre, half = _scale(self.label, self.intercept)
        return np.asarray(centre + half * values)

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
    """Bounds (columns, 2) from one pair for all, a pair of arrays, or a mapping by column name."""
    if isinstance(bounds, Mapping) and bounds:
        if names is None:
            raise ValueError(
                f"{name} must be (low, high) for columns without names in text, got {short(bounds)}"
            )
        for column in bounds:
            require_column(f"{name}: a name", column, names)
        missing = [column for column in names if column not in bounds]
        if missing:
            raise ValueError(f"{name} must name every column, got none for {missing[0]!r}")
        pairs = [_pair(f"{name}[{column!r}]", bounds[column], 1)[0] for column in names]
        return np.array(pairs)
    return _pair(name, bounds, columns)


def require_column(name: str, value: Any, available: Sequence[str]) -> str:
    """One of a table's columns; an error lists none, for a first line without names is a record."""
    count = list(available).count(value) if isinstance(value, str) else 0
    if count != 1:
        twice = " that it has once" if count else ""
        has = f"({len(available)} columns){twice}"
        raise ValueError(f"{name} must be a column of the table {has}, got {short(value)}")
    return str(value)


def _pair(name: str, bounds: Any, columns: int) -> FloatArray:
    listed = isinstance(bounds, Sequence) and not isinstance(bounds, (str, bytes))
    if not (listed or (isinstance(bounds, np.ndarray) and bounds.ndim)) or len(bounds) != 2:
        raise ValueError(
            f"{name} must be declared as (low, high), got {short(bounds)}: bounds are never read "
            "from the data in silence"
        )
    require_unmasked(name, bounds)
    if isinstance(bounds, np.ndarray) and bounds.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be numbers, got {bounds.dtype}")
    ends = [require_real(name, end, least=-LARGEST, most=LARGEST) for end in bounds]
    for end in ends:
        if end.shape not in ((), (columns,)):
            raise ValueError(f"{name} must hold numbers or {columns} each, got shape {end.shape}")
    pairs = np.stack([np.broadcast_to(end, (columns,)) for end in ends], axis=1)
    _require_width(name, pairs)
    return pairs


def _require_width(name: str, pairs: FloatArray) -> None:
    narrow = pairs[:, 1] - pairs[:, 0] < NARROWEST
    if np.any(narrow):
        found = "({:g}, {:g})".format(*pairs[0]) if len(pairs) == 1 else places(narrow)
        raise ValueError(f"{name} must have low less than high, got {found}")


def _require_present(name: str, values: NDArray[Any]) -> None:
    # The least of some numbers is NaN if one of them is.
    if np.isnan(np.min(values, initial=0.0)):
        raise ValueError(f"{name} must hold no missing values, got NaN")


def _scale(bounds: FloatArray, intercept: bool) -> tuple[FloatArray, FloatArray]:
    low, high = bounds[..., 0], bounds[..., 1]
    if intercept:
        return (low + high) / 2, (high - low) / 2
    return np.zeros_like(low), np.maximum(np.abs(low), np.abs(high))
