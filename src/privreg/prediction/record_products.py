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
from privreg.algorithms.least_squares_descent import LeastSquaresSettings, long_cap, product_edges
from privreg.immutable import frozen
from privreg.prediction import huber
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows, require_setting
from privreg.privacy.budget import Budget
from privreg.validation import require_choice, require_count, require_instance, require_number

FloatArray = NDArray[np.float64]
ErrorLaw = Literal["gaussian", "laplace", "student_t5", "student_t3", "exponential", "lognormal"]
ERROR_LAWS: tuple[ErrorLaw, ...] = get_args(ErrorLaw)
POINTS = 2**16


class ClippedMoments(NamedTuple):
    """Mean squares of a whitened coordinate, (groups,) each, for records that a clip leaves.

    Attributes
    ----------
    short, long : ndarray
        Of rows shortened to R₁ and to R, at the start.
    slope : ndarray
        Derivative of the mean clipped gradient at the end.
    second : ndarray
        Of clipped gradients at the end.
    """

    short: FloatArray
    long: FloatArray
    slope: FloatArray
    second: FloatArray


@dataclass(frozen=True, eq=False)
class RecordProducts:
    """Points of the law of records, in units of the errors' standard deviation.

    Attributes
    ----------
    row : ndarray, shape (points,)
        Whose row a point has.
    first, last : ndarray, shape (points,)
        q/√p at the start of the wide steps and at their end.
    short, leverage : ndarray, shape (rows,)
        What a row's square is multiplied by in the curvature of short rows, and in gradients.
    lengths, shrink : ndarray, shape (rows,)
        Whitened lengths over √p, and what the declared bound shortens a row by.
    energies : ndarray, shape (rows, groups)
        Whitened squares of a row, the mean of a group's coordinates.
    scale : float
        Robust scale of `first`.
    edges, shares : ndarray
        Of the histogram of `first`.
    short_cap, cap : float
        R₁ and R of the fit.
    """

    row: NDArray[np.intp]
    first: FloatArray
    last: FloatArray
    short: FloatArray
    leverage: FloatArray
    lengths: FloatArray
    shrink: FloatArray
    energies: FloatArray
    scale: float
    edges: FloatArray
    shares: FloatArray
    short_cap: float
    cap: float

    def moments(self, width: float) -> ClippedMoments:
        """What a clip leaves.

        Parameters
        ----------
        width : float
            Of q/√p, more than 0 and at most 1e100.
        """
        t = require_number("width", width, above=0, most=1e100)
        size, points = len(self.lengths), len(self.row)

        def mean(values: NDArray[Any], weights: FloatArray) -> FloatArray:
            by_row = np.bincount(self.row, weights=values, minlength=size)
            return np.asarray((by_row * weights / points) @ self.energies)

        early, late = self.first <= t, self.last <= t
        return ClippedMoments(
            short=mean(early, self.short),
            long=mean(early, self.leverage),
            slope=mean(late, self.leverage),
            # Of a row of length ℓ, ggᵀ is zzᵀ (q/ℓ)².
            second=mean(np.minimum(self.last, t) ** 2, np.maximum(self.lengths, 1e-150) ** -2.0),
        )

    def residual_widths(self, width: float) -> FloatArray:
        """Residual at which each row's gradient is clipped, shape (rows,).

        Parameters
        ----------
        width : float
            The clip of q/√p, at least 0 and at most 1e100.
        """
        t = require_number("width", width, least=0, most=1e100)
        return np.asarray(t / np.maximum(self.lengths * self.leverage * self.shrink, 1e-150))


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
    """Points that are spread evenly over errors, rows, labels and starts.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    start : huber.Outcome
        Of a robust fit with the same start.
    settings : LeastSquaresSettings
    budget : Budget
    errors : str
        Their law about their mean.
    thinning : int
        Of `POINTS` points one in so many is taken, at least 1 and at most 64.
    """
    require_setting(problem, rows, budget)
    require_instance("start", start, huber.Outcome)
    require_instance("settings", settings, LeastSquaresSettings)
    require_choice("errors", errors, ERROR_LAWS)
    thinned = slice(None, None, require_count("thinning", thinning, most=64))
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
