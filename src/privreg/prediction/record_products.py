r"""Products of rows' lengths and residuals that private least squares will see.

Points of equal probability stand for records: a row of the law, its error, the label that is
clipped to its bound, and what the start of the steps is off by. Of them follow the histogram of
products q/√p, and how much of a curvature and of a second moment a clip leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gdtrix, ndtri, stdtrit

from privreg.algorithms.huber_scales import white_cap
from privreg.algorithms.least_squares_descent import long_cap, product_edges
from privreg.algorithms.least_squares_settings import LeastSquaresSettings
from privreg.immutable import frozen
from privreg.prediction import huber
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]
ErrorLaw = Literal["gaussian", "laplace", "student_t5", "student_t3", "exponential", "lognormal"]
ERROR_LAWS: tuple[ErrorLaw, ...] = get_args(ErrorLaw)
POINTS = 2**16


class ClippedMoments(NamedTuple):
    """Mean squares of a whitened coordinate, (groups,) each, for records that a clip leaves."""

    short: FloatArray  # of rows shortened to R₁, at the start
    long: FloatArray  # of rows shortened to R, at the start
    slope: FloatArray  # derivative of the mean clipped gradient at the end
    second: FloatArray  # of clipped gradients at the end


@dataclass(frozen=True, eq=False)
class RecordProducts:
    """Points of the law of records, in units of the errors' standard deviation."""

    row: NDArray[np.intp]  # whose row a point has, (points,)
    first: FloatArray  # q/√p at the start of the wide steps, (points,)
    last: FloatArray  # and at their end
    short: FloatArray  # factor of a row's square in the curvature of short rows, (rows,)
    leverage: FloatArray  # and in gradients
    lengths: FloatArray  # whitened, over √p
    shrink: FloatArray  # what the declared bound shortens a row by
    energies: FloatArray  # whitened squares, means over a group's coordinates, (rows, groups)
    scale: float  # robust scale of `first`
    edges: FloatArray  # of the histogram of `first`
    shares: FloatArray
    short_cap: float  # R₁
    cap: float  # R

    def moments(self, width: float) -> ClippedMoments:
        """Moments of the records that a clip of q/√p leaves."""
        size, points = len(self.lengths), len(self.row)

        def mean(values: NDArray[Any], weights: FloatArray) -> FloatArray:
            by_row = np.bincount(self.row, weights=values, minlength=size)
            return np.asarray((by_row * weights / points) @ self.energies)

        early, late = self.first <= width, self.last <= width
        return ClippedMoments(
            short=mean(early, self.short),
            long=mean(early, self.leverage),
            slope=mean(late, self.leverage),
            # Of a row of length ℓ, ggᵀ is zzᵀ (q/ℓ)².
            second=mean(
                np.minimum(self.last, width) ** 2, np.maximum(self.lengths, 1e-150) ** -2.0
            ),
        )

    def residual_widths(self, width: float) -> FloatArray:
        """Residual at which each row's gradient is clipped, shape (rows,)."""
        return np.asarray(width / np.maximum(self.lengths * self.leverage * self.shrink, 1e-150))


def record_products(
    problem: Problem,
    rows: Rows,
    start: huber.Outcome,
    settings: LeastSquaresSettings,
    budget: Budget,
    *,
    errors: ErrorLaw,
    thinning: int = 1,
) -> RecordProducts:
    """Points that are spread evenly over errors, rows, labels and starts."""
    thinned = slice(None, None, thinning)
    n, p, sigma = problem.sample_size, problem.dimension, problem.label_noise_std
    row_place, label_place, start_place = (each[thinned] for each in _places())
    mass = np.cumsum(rows.weights)
    row = np.minimum(np.searchsorted(mass, row_place * mass[-1]), len(mass) - 1)
    shrink = np.minimum(1.0, problem.feature_norm / np.maximum(rows.norms, 1e-300))
    energies = rows.energies * shrink[:, None] ** 2 * start.whitening.squares
    squares = energies.sum(axis=1)
    short_cap = white_cap(p, sample_size=n, rho=settings.curvature_share * budget.rho)
    cap = long_cap(
        p,
        sample_size=n,
        rho=settings.long_share * budget.rho,
        longest=problem.feature_norm * sqrt(float(np.max(start.whitening.squares))),
    )
    cap = max(cap, short_cap)
    leverage = cap**2 / np.maximum(squares, cap**2)
    lengths = np.sqrt(squares / p)
    bound = problem.label_bound / sigma
    mean = sqrt(2 * problem.null_risk) / sigma * label_place
    last = np.clip(mean + _quantiles(errors)[thinned], -bound, bound) - mean
    first = last + sqrt(max(start.arrival - 1.0, 0.0)) * start_place
    lever = (lengths * leverage * shrink)[row]
    first, last = lever * np.abs(first), lever * np.abs(last)
    scale = float(np.median(np.abs(first)) / ndtri(0.75))
    edges = product_edges(scale, bound, cap=cap, dimension=p)
    shares = np.bincount(np.searchsorted(edges, first), minlength=len(edges) + 1) / len(row)
    return RecordProducts(
        row=row,
        first=first,
        last=last,
        short=short_cap**2 / np.maximum(squares, short_cap**2),
        leverage=leverage,
        lengths=lengths,
        shrink=shrink,
        energies=energies / rows.multiplicities,
        scale=scale,
        edges=edges,
        shares=shares,
        short_cap=short_cap,
        cap=cap,
    )


@lru_cache(maxsize=1)
def _places() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Uniform places for rows, normal ones for labels and for starts: Roberts's sequence."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** 0.25
    numbers = np.arange(POINTS)
    uniform, *others = ((0.5 + numbers * root**-k) % 1.0 for k in (1, 2, 3))
    label, start = (np.asarray(ndtri(np.clip(each, 1e-9, 1 - 1e-9))) for each in others)
    return frozen(np.asarray(uniform, dtype=np.float64)), frozen(label), frozen(start)


@lru_cache(maxsize=8)
def _quantiles(law: ErrorLaw) -> FloatArray:
    """Equally likely errors of mean 0 and variance 1."""
    levels = (np.arange(POINTS) + 0.5) / POINTS
    sides = np.sign(levels - 0.5)
    found = {
        "gaussian": lambda: ndtri(levels),
        "laplace": lambda: -sides * np.log(2 * np.minimum(levels, 1 - levels)) / sqrt(2),
        "student_t5": lambda: stdtrit(5, levels) / sqrt(5 / 3),
        "student_t3": lambda: stdtrit(3, levels) / sqrt(3),
        "exponential": lambda: gdtrix(1.0, 1.0, levels) - 1.0,
        "lognormal": lambda: (np.exp(ndtri(levels)) - np.exp(0.5)) / sqrt(np.exp(2) - np.exp(1)),
    }[law]()
    return frozen(np.asarray(found))
