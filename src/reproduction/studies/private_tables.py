"""Populations on which a private fit is tried: laws of the features and of the errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
LABEL_BOUND = 12.0


class Rows(NamedTuple):
    """Features within their bounds (n, p) and labels (n,)."""

    features: FloatArray
    labels: FloatArray


def _normal(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    return np.clip(rng.standard_normal((n, p)), -4, 4)


def _correlated(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))))
    return np.clip(rng.standard_normal((n, p)) @ root.T, -4, 4)


def _uniform(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    return np.sqrt(3) * rng.uniform(-1, 1, (n, p))


def _student(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    return np.clip(np.sqrt(3 / 5) * rng.standard_t(5, (n, p)), -6, 6)


def _one_hot(rng: np.random.Generator, n: int, p: int) -> FloatArray:
    weights = np.arange(2 * p + 2, p + 1, -1, dtype=np.float64)
    drawn = rng.choice(p + 1, n, p=weights / weights.sum())
    return np.eye(p + 1)[drawn][:, 1:]


FEATURES: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "normal": _normal,
    "correlated": _correlated,
    "uniform": _uniform,
    "Student t5": _student,
    "one-hot": _one_hot,
}
BOUNDS = {
    "normal": (-4.0, 4.0),
    "correlated": (-4.0, 4.0),
    "uniform": (-(3.0**0.5), 3.0**0.5),
    "Student t5": (-6.0, 6.0),
    "one-hot": (0.0, 1.0),
}


def _size(features: FloatArray) -> FloatArray:
    """Size of the errors that depends on the first feature, of mean square near 1."""
    first = features[:, 0]
    return (0.5 + np.abs(first)) / np.sqrt(np.mean((0.5 + np.abs(first)) ** 2))


ERRORS: dict[str, Callable[[np.random.Generator, FloatArray], FloatArray]] = {
    "normal": lambda rng, x: rng.standard_normal(len(x)),
    "heteroskedastic": lambda rng, x: _size(x) * rng.standard_normal(len(x)),
    "Student t3": lambda rng, x: rng.standard_t(3, len(x)) / np.sqrt(3),
    "skewed": lambda rng, x: rng.standard_exponential(len(x)) - 1,
}


@dataclass(frozen=True)
class Population:
    """A law of rows with coefficients of norm 1 in units of the features' deviations.

    Parameters
    ----------
    features, errors : str
        Keys of `FEATURES` and `ERRORS`.
    dimension : int
        Number of features, beside an intercept of 0.2.
    """

    features: str
    errors: str
    dimension: int

    @property
    def coefficients(self) -> FloatArray:
        """Of the features, and the intercept after them."""
        return np.append(np.full(self.dimension, self.dimension**-0.5), 0.2)

    def draw(self, rng: np.random.Generator, sample_size: int) -> Rows:
        """Independent rows; labels are within ±12."""
        features = FEATURES[self.features](rng, sample_size, self.dimension)
        errors = ERRORS[self.errors](rng, features)
        labels = features @ self.coefficients[:-1] + self.coefficients[-1] + errors
        return Rows(features, np.clip(labels, -LABEL_BOUND, LABEL_BOUND))
