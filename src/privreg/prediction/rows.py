r"""Rows of the features' law: how their energy is spread over the eigenvalues.

Clipping sees a row through its norm alone, and the residual's variance given the row is
:math:`\sum_j x_j^2 C_{jj} + \sigma^2` for errors with covariance C. So a weighted list of rows, in
which coordinates of nearly equal eigenvalues are summed, is all that the predictions need, and
their cost does not grow with the dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from privreg.immutable import frozen
from privreg.noise.normals import standard_normal
from privreg.prediction.problem import FeatureLaw, Problem
from privreg.validation import require_instance

FloatArray = NDArray[np.float64]
ROWS, SEED = 2048, 20250516
# Modes of one group differ by at most this factor; more groups only for wider spectra.
GROUP_WIDTH, MOST_GROUPS = 1.2, 24


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the features' law, coordinates summed by groups of eigenvalues."""

    weights: FloatArray  # of sum 1, (rows,)
    energies: FloatArray  # sums of x_j² over a group, (rows, groups), of mean multiplicity times λ
    norms: FloatArray  # (rows,)
    eigenvalues: FloatArray  # mean of each group, (groups,)
    multiplicities: FloatArray  # number of coordinates of each group
    squared_signal: FloatArray  # mean of θ*_j² over a group, weighted by the eigenvalue

    def per_coordinate(self, values: FloatArray) -> FloatArray:
        """Mean of x_j² times `values`, shape (..., rows), per coordinate: shape (..., groups)."""
        return (self.weights * values) @ self.energies / self.multiplicities

    def quadratic(self, variances: FloatArray) -> FloatArray:
        """x' diag(C) x of every row for variances C, shape (..., groups): shape (..., rows)."""
        return variances @ self.energies.T

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over all coordinates of a value per group, shape (..., groups): shape (...)."""
        return values @ self.multiplicities


def rows_of(problem: Problem, *, count: int = ROWS) -> Rows:
    """Rows of a problem's law; the same for the same problem."""
    order = np.argsort(problem.eigenvalues)
    values, signal = problem.eigenvalues[order], problem.signal[order]
    # Equal widths in the logarithm.
    span = np.log(values[-1] / values[0])
    width = max(np.log(GROUP_WIDTH), span / MOST_GROUPS * (1 + 1e-9))
    labels = np.unique(np.floor(np.log(values / values[0]) / width + 1e-9), return_inverse=True)[1]
    counts = np.bincount(labels).astype(float)
    means = np.bincount(labels, weights=values) / counts
    energy = np.bincount(labels, weights=values * signal**2) / (counts * means)
    weights, energies = _energies(
        problem.feature_law, tuple(counts.astype(int).tolist()), tuple(means.tolist()), count
    )
    norms = np.sqrt(energies.sum(axis=1))
    return Rows(weights, energies, norms, means, counts, energy)


def require_rows_of(problem: Problem, rows: Rows) -> None:
    """Refuse rows of another dimension than the problem's."""
    require_instance("rows", rows, Rows)
    if rows.multiplicities.sum() != problem.dimension:
        raise ValueError(
            f"rows must be those of the problem in {problem.dimension} dimensions, "
            f"got {rows.multiplicities.sum():g}"
        )


@lru_cache(maxsize=64)
def _energies(
    law: FeatureLaw, counts: tuple[int, ...], means: tuple[float, ...], rows: int
) -> tuple[FloatArray, FloatArray]:
    number, scales = np.array(counts), np.array(means)
    if law == "one_hot":
        return frozen(number * scales), frozen(np.eye(len(counts)))
    rng = np.random.Generator(np.random.SFC64(SEED))
    starts = np.concatenate([[0], np.cumsum(number)[:-1]])
    coordinates = _coordinates(law, (rows, int(number.sum())), rng)
    squares = np.add.reduceat(coordinates**2, starts, axis=1)
    # The second moments are exact; only the shape of the law is sampled.
    squares *= number * scales / squares.mean(axis=0)
    return frozen(np.full(rows, 1 / rows)), frozen(squares)


def _coordinates(law: FeatureLaw, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    if law == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)
    if law == "student_t5":
        return np.sqrt(3 / 5) * rng.standard_t(5, shape)
    return standard_normal(rng, shape)
