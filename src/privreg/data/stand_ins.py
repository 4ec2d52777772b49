"""Tables bundled with scikit-learn that stand in for data that could not be downloaded."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

import numpy as np

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

    `reason` says why the table stands in for MNIST.
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    chosen = np.isin(bunch.target, (POSITIVE_DIGIT, NEGATIVE_DIGIT))
    return Table(
        name="mnist",
        features=np.asarray(bunch.data, dtype=np.float64)[chosen],
        labels=np.where(bunch.target[chosen] == POSITIVE_DIGIT, 1.0, -1.0),
        feature_names=tuple(str(name) for name in bunch.feature_names),
        official_test=np.zeros(int(chosen.sum()), dtype=bool),
        source=DIGITS_SOURCE,
        checksums=_bundled_checksums("digits.csv.gz"),
        stand_in=True,
        stand_in_reason=reason,
        feature_scale=LARGEST_GREY_VALUE,
    )


def mnist_digits(reason: str) -> Table:
    """All ten digits: 1797 rows of 64 pixels, 0 to 16, no official test set, labels 0 to 9.

    `reason` says why the table stands in for MNIST.
    """
    return _all_digits("mnist_digits", "MNIST", reason)


def cifar10(reason: str) -> Table:
    """The table of `mnist_digits`; `reason` says why it stands in for CIFAR-10."""
    return _all_digits("cifar10", "CIFAR-10", reason)


def diabetes(reason: str) -> Table:
    """Diabetes progression: 442 rows of 10 features in raw units, no official test set.

    `reason` says why the table stands in for California housing.
    """
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    return Table(
        name="california_housing",
        features=np.array(bunch.data, dtype=np.float64),
        labels=np.array(bunch.target, dtype=np.float64),
        feature_names=tuple(str(name) for name in bunch.feature_names),
        official_test=np.zeros(len(bunch.target), dtype=bool),
        source=DIABETES_SOURCE,
        checksums=_bundled_checksums("diabetes_data_raw.csv.gz", "diabetes_target.csv.gz"),
        stand_in=True,
        stand_in_reason=reason,
    )


def _all_digits(name: str, printed: str, reason: str) -> Table:
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return Table(
        name=name,
        features=np.asarray(bunch.data, dtype=np.float64),
        labels=np.asarray(bunch.target, dtype=np.float64),
        feature_names=tuple(str(column) for column in bunch.feature_names),
        official_test=np.zeros(len(bunch.target), dtype=bool),
        source=ALL_DIGITS_SOURCE.format(name=printed),
        checksums=_bundled_checksums("digits.csv.gz"),
        stand_in=True,
        stand_in_reason=reason,
        feature_scale=LARGEST_GREY_VALUE,
    )


def _bundled_checksums(*names: str) -> dict[str, str]:
    folder = resources.files("sklearn.datasets.data")
    return {name: sha256(folder.joinpath(name).read_bytes()) for name in names}


# Rows of each, none of them official test rows.
ROWS = {"mnist": 361, "california_housing": 442, "mnist_digits": 1797, "cifar10": 1797}
BUNDLED: dict[str, Callable[[str], Table]] = {
    "mnist": digits,
    "california_housing": diabetes,
    "mnist_digits": mnist_digits,
    "cifar10": cifar10,
}
