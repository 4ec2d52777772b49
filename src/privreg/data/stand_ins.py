"""Tables bundled with scikit-learn that stand in for data that could not be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privreg.data.fetch import sha256
from privreg.data.mnist import NEGATIVE_DIGIT, POSITIVE_DIGIT
from privreg.data.tables import Table

DIGITS_SOURCE = (
    "stand-in for MNIST: scikit-learn's bundled digits 1 and 7, 8 x 8 pixels "
    "(Alpaydin and Kaynak, UCI optical recognition of handwritten digits)"
)
ALL_DIGITS_SOURCE = (
    "stand-in for {name}: scikit-learn's ten bundled digits, 8 x 8 pixels "
    "(Alpaydin and Kaynak, UCI optical recognition of handwritten digits)"
)
DIABETES_SOURCE = (
    "stand-in for California housing: scikit-learn's bundled diabetes table "
    "(Efron, Hastie, Johnstone and Tibshirani 2004)"
)
# The digits table counts the dark points of 4 x 4 blocks.
LARGEST_GREY_VALUE = 16.0


def digits(reason: str) -> Table:
    """Digits 1 (label +1) and 7 (label -1): 361 rows of 64 pixels, 0 to 16, no official test set.

    `reason` says why a table stands in.
    """
    return _digits("mnist", DIGITS_SOURCE, reason, (POSITIVE_DIGIT, NEGATIVE_DIGIT))


def mnist_digits(reason: str) -> Table:
    """All ten digits: 1797 rows of 64 pixels, 0 to 16, no official test set, labels 0 to 9."""
    return _digits("mnist_digits", ALL_DIGITS_SOURCE.format(name="MNIST"), reason)


def cifar10(reason: str) -> Table:
    """The table of `mnist_digits`, in place of CIFAR-10."""
    return _digits("cifar10", ALL_DIGITS_SOURCE.format(name="CIFAR-10"), reason)


def diabetes(reason: str) -> Table:
    """Diabetes progression: 442 rows of 10 features in raw units, no official test set."""
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    files = ("diabetes_data_raw.csv.gz", "diabetes_target.csv.gz")
    return _table("california_housing", bunch, bunch.target, DIABETES_SOURCE, reason, files)


def _digits(name: str, source: str, reason: str, pair: tuple[int, int] | None = None) -> Table:
    """Digits with their numbers as labels, or two of them with labels +1 and -1."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    labels = bunch.target
    if pair is not None:
        chosen = np.isin(labels, pair)
        bunch.data, labels = bunch.data[chosen], np.where(labels[chosen] == pair[0], 1.0, -1.0)
    return _table(name, bunch, labels, source, reason, ("digits.csv.gz",), LARGEST_GREY_VALUE)


def _table(
    name: str,
    bunch: Any,
    labels: ArrayLike,
    source: str,
    reason: str,
    files: tuple[str, ...],
    scale: float = 1.0,
) -> Table:
    folder = resources.files("sklearn.datasets.data")
    return Table(
        name=name,
        features=np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(labels, dtype=np.float64),
        feature_names=tuple(str(column) for column in bunch.feature_names),
        official_test=np.zeros(len(bunch.data), dtype=bool),
        source=source,
        checksums={each: sha256(folder.joinpath(each).read_bytes()) for each in files},
        stand_in=True,
        stand_in_reason=reason,
        feature_scale=scale,
    )


# Rows of each, none of them official test rows.
ROWS = {"mnist": 361, "california_housing": 442, "mnist_digits": 1797, "cifar10": 1797}
BUNDLED: dict[str, Callable[[str], Table]] = {
    "mnist": digits,
    "california_housing": diabetes,
    "mnist_digits": mnist_digits,
    "cifar10": cifar10,
}
