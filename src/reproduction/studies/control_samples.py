"""Rows of a problem and the sums over them that control variates are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.samples import ArraySamples
from privreg.prediction.problem import Problem
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]
# Rows per feature from which off-diagonal sums, of relative size √(p/n), are left out.
MANY_ROWS = 1000
NUMBERS_PER_BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a problem, with what is public of them.

    Attributes
    ----------
    problem : Problem
    budget : Budget
    rows, labels : ndarray
        Shapes (n, p) and (n,).
    """

    problem: Problem
    budget: Budget
    rows: FloatArray
    labels: FloatArray
    errors: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "errors", self.labels - self.rows @ self.problem.signal)

    @property
    def samples(self) -> ArraySamples:
        return ArraySamples(self.rows, self.labels)

    def control(
        self, bias: FloatArray, sampling: FloatArray, private: FloatArray, mean: FloatArray | float
    ) -> FloatArray:
        """Half the weighted square of the sum, shape (runs,), less its part that has a mean."""
        weights = self.problem.eigenvalues
        return np.asarray(
            ((bias + sampling + private) ** 2 @ weights - bias**2 @ weights - mean) / 2
        )


@dataclass(frozen=True, eq=False)
class Curvature:
    r"""Mean derivative and sum of the clipped gradients at θ*, with the sum of their squares.

    .. math:: \hat A = \frac1n\sum_i \ell_i x_i x_i^\top 1\{|\xi_i| \le w_i\},\qquad
        s = \frac1n\sum_i \psi_i x_i,\qquad Q = \frac1{n^2}\sum_i \psi_i^2 x_i x_i^\top,
        \qquad \psi_i = \ell_i\,\mathrm{clip}(\xi_i, \pm w_i)

    Where rows are many for the features only the diagonals are taken: so is the map from s to u,
    and the mean of its square needs no more of Q.
    """

    matrix: FloatArray
    score: FloatArray
    squares: FloatArray

    @classmethod
    def of(
        cls, sample: Sample, widths: FloatArray | float, leverage: FloatArray | float = 1.0
    ) -> Curvature:
        (n, p), rows = sample.rows.shape, sample.rows
        kept = np.asarray(leverage * (np.abs(sample.errors) <= widths), dtype=np.float64)
        scored = leverage * np.clip(sample.errors, -widths, widths)
        product = _diagonal if p * MANY_ROWS <= n else gram
        return cls(product(rows, kept) / n, scored @ rows / n, product(rows, scored**2) / n**2)

    def reached(self, reach: FloatArray, eigenvalues: FloatArray) -> tuple[FloatArray, float]:
        """u of a map from s, and the mean of its weighted square."""
        mean = np.sum((reach.T * eigenvalues) @ reach * self.squares)
        return reach @ self.score, float(mean)


def gram(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Sum over rows of w x xᵀ, shape (p, p), with weights that are not negative."""
    total, roots = np.zeros((rows.shape[1],) * 2), np.sqrt(weights)
    for block in blocks(*rows.shape):
        weighted = rows[block] * roots[block, None]
        total += weighted.T @ weighted
    return total


def squares(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Diagonal of `gram`, shape (p,)."""
    total = np.zeros(rows.shape[1])
    for block in blocks(*rows.shape):
        total += weights[block] @ rows[block] ** 2
    return total


def blocks(n: int, p: int) -> Iterator[slice]:
    """Consecutive rows whose numbers fit in a cache, and need no new memory each time."""
    size = max(1, NUMBERS_PER_BLOCK // p)
    return (slice(first, min(n, first + size)) for first in range(0, n, size))


def _diagonal(rows: FloatArray, weights: FloatArray) -> FloatArray:
    return np.diag(squares(rows, weights))
