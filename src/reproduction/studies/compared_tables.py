"""Tables on which estimators are compared, with bounds declared from public knowledge."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privreg.data.tables import Table
from privreg.estimators.columns import Frame
from reproduction.studies.private_tables import BOUNDS, Population

FloatArray = NDArray[np.float64]
SYNTHETIC = ("normal", "correlated", "flats")
# Four in five rows are for training; errors are measured on the others.
TRAINING_SHARE = 0.8
# Side of the blocks of pixels that are averaged; the map does not depend on the data.
POOL = {28: 4, 8: 2}


class Drawn(NamedTuple):
    """Training rows, and held-out rows that no method sees, in the table's own units."""

    features: FloatArray
    labels: FloatArray
    held_out_features: FloatArray
    held_out_labels: FloatArray


@dataclass(frozen=True)
class Declared:
    """Public bounds of features (p, 2) and label (2,), and flags of one-hot columns."""

    feature_bounds: FloatArray
    label_bounds: FloatArray
    categories: NDArray[np.bool_]

    @property
    def frame(self) -> Frame:
        """The public map into [-1, 1], and its inverse."""
        return Frame(self.feature_bounds, self.label_bounds, True)


@dataclass(frozen=True)
class Synthetic:
    """A known population: one of `private_tables`, or made-up flats and their rents.

    Flats have a size, a year and one of four places; errors of their rents are skewed. The bounds
    are as wide as one would declare them before seeing the table.
    """

    name: str
    training_rows: int
    held_out_rows: int
    declared: Declared = field(init=False)
    coefficients: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        if self.name == "flats":
            bounds = np.array([(10, 300), (1900, 2030), (0, 1), (0, 1), (0, 1)], dtype=np.float64)
            declared = Declared(bounds, np.array([0.0, 4000.0]), bounds[:, 1] == 1)
            truth = np.array([9.0, 2.0, 80.0, -40.0, 150.0, 200.0 - 2.0 * 1985])
        else:
            reach = 6.0 if self.name == "normal" else 12.0
            declared = _boxes(np.array([BOUNDS[self.name]] * 10), (-reach, reach))
            truth = self._population.coefficients
        object.__setattr__(self, "declared", declared)
        object.__setattr__(self, "coefficients", truth)

    @property
    def _population(self) -> Population:
        return Population(self.name, "normal" if self.name == "normal" else "Student t3", 10)

    def draw(self, rng: np.random.Generator) -> Drawn:
        total = self.training_rows + self.held_out_rows
        if self.name == "flats":
            features, labels = self._flats(rng, total)
        else:
            features, labels = self._population.draw(rng, total)
        n = self.training_rows
        return Drawn(features[:n], labels[:n], features[n:], labels[n:])

    def _flats(self, rng: np.random.Generator, rows: int) -> tuple[FloatArray, FloatArray]:
        size, year = rng.uniform(20, 200, rows), rng.integers(1950, 2020, rows)
        place = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
        features = np.column_stack([size, year, np.eye(4)[place][:, 1:]])
        errors = 150 * (rng.standard_exponential(rows) - 1)
        return features, features @ self.coefficients[:-1] + self.coefficients[-1] + errors


@dataclass(frozen=True, eq=False)
class Split:
    """A real table, cut at random into training and held-out rows in each trial.

    If there are official test rows, these are held out.
    """

    name: str
    features: FloatArray
    labels: FloatArray
    official_test: NDArray[np.bool_]
    declared: Declared
    coefficients: FloatArray | None = None

    def draw(self, rng: np.random.Generator) -> Drawn:
        order = rng.permutation(len(self.labels))
        train, test = np.split(order, [int(TRAINING_SHARE * len(order))])
        if self.official_test.any():
            train, test = np.flatnonzero(~self.official_test), np.flatnonzero(self.official_test)
        return Drawn(
            self.features[train], self.labels[train], self.features[test], self.labels[test]
        )


ComparedTable = Synthetic | Split
HOUSING_BOUNDS = {
    "MedInc": (0, 15),
    "HouseAge": (0, 60),
    "AveRooms": (1, 15),
    "AveBedrms": (0.5, 3),
    "Population": (0, 6000),
    "AveOccup": (1, 8),
    "Latitude": (32, 42),
    "Longitude": (-125, -114),
}
DIABETES_BOUNDS = {
    "age": (18, 90),
    "sex": (1, 2),
    "bmi": (15, 50),
    "bp": (60, 140),
    "s1": (80, 320),
    "s2": (30, 250),
    "s3": (20, 110),
    "s4": (1, 10),
    "s5": (3, 7),
    "s6": (50, 150),
}


def real_table(table: Table) -> Split:
    """California housing, MNIST's ones and sevens, or diabetes, with the bounds declared for them.

    Images are averaged over blocks of 4 × 4 pixels, so that 784 pixels become 49.
    """
    if table.name == "mnist":
        side = round(table.shape[1] ** 0.5)
        pool = POOL[side]
        blocks = table.features.reshape(-1, side // pool, pool, side // pool, pool)
        features = blocks.mean(axis=(2, 4)).reshape(len(blocks), -1)
        declared = _boxes(np.array([(0.0, table.feature_scale)] * features.shape[1]), (-1, 1))
    else:
        features = np.asarray(table.features, dtype=np.float64)
        of_persons = "bmi" in table.feature_names
        bounds, labels = (DIABETES_BOUNDS, (0, 350)) if of_persons else (HOUSING_BOUNDS, (0, 5))
        pairs = np.array([bounds[name] for name in table.feature_names], dtype=np.float64)
        declared = _boxes(pairs, labels)
    return Split(table.name, features, table.labels, table.official_test, declared)


def diabetes() -> Split:
    """scikit-learn's diabetes table: 442 persons, too few for most budgets."""
    from privreg.data.sources import SOURCES

    table = SOURCES["california_housing"].stand_in("wanted for itself")
    return replace(real_table(table), name="diabetes")


def _boxes(pairs: FloatArray, label: tuple[float, float]) -> Declared:
    return Declared(pairs, np.array(label, dtype=np.float64), np.zeros(len(pairs), dtype=bool))
