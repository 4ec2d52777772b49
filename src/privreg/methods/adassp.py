r"""AdaSSP: runs, and their error predicted by deterministic equivalents of a noisy matrix.

The estimate solves :math:`(D + \kappa I + \tau W)\,\tilde\theta = m + \nu z`. D, with eigenvalues
d_j, is the expected Gram matrix of shortened rows; m is their expected product with clipped labels.
κ is the ridge; τW, νz are noise. With :math:`G = (D + \kappa I + \tau W)^{-1}` and Λ diagonal,

.. math:: \mathbb E\,G_{jj} = g_j = \frac{1}{d_j + \kappa - \tau^2\sum_k g_k},\qquad
    \mathbb E\,(G\Lambda G)_{jj} = g_j^2\Big(\lambda_j + \tau^2
    \frac{\sum_k g_k^2\lambda_k}{1 - \tau^2\sum_k g_k^2}\Big).

κ depends on a noisy smallest eigenvalue; predictions average over this noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import log, sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.adassp import RELEASES, Bounds, adassp_zcdp, clipped_sums, sensitivities
from privreg.algorithms.samples import Samples
from privreg.checks import require_number
from privreg.methods.clipping import clipped_rows, clipped_slopes
from privreg.methods.method import Candidates, Declared, Fit, Method
from privreg.methods.problem import MOST_RATIO, ErrorMoments, Prediction, Problem, Regime, Rows
from privreg.privacy.budget import Budget, Neighbours

FloatArray = NDArray[np.float64]
LARGE = "an error near or above that of predicting the mean may be predicted 30 % too small"
RIDGE_NODES = 9  # of a Gauss–Hermite rule for the noise in the smallest eigenvalue


@dataclass(frozen=True)
class AdaSSP(Method):
    """AdaSSP: ridge regression from noisy sufficient statistics of bounded rows and labels.

    Parameters
    ----------
    ridge_failure : float
        Probability, in (0, 1), that the ridge is too small for a stable inverse.

    Guarantee
    ---------
    Releasing the estimate spends the budget, as for `adassp_zcdp` with the declared bounds.

    Examples
    --------
    >>> problem = Problem(10_000, [1.0] * 10, signal=1.0, label_noise_std=1.0)
    >>> AdaSSP().predict(problem, Budget.zcdp(0.5)).holds
    True

    Source
    ------
    Wang (2018), Algorithm 2.
    """

    name: ClassVar[str] = "adassp"
    relations: ClassVar[frozenset[Neighbours]] = frozenset(Neighbours)
    takes_weights: ClassVar[bool] = True
    gaussian_dp: ClassVar[bool] = True
    is_exact: ClassVar[bool] = True
    # The bias from shortened rows is a small difference of means, so it needs many rows.
    most_rows: ClassVar[int] = 2**15
    ridge_failure: float = 0.05

    def __post_init__(self) -> None:
        require_number("ridge_failure", self.ridge_failure, above=0, below=1)

    @classmethod
    def candidates(
        cls, problem: Problem, budget: Budget, *, intervals: bool = True
    ) -> list[Candidates[Self]]:
        return [Candidates(cls.name, [cls()])]

    def _prepare(
        self, samples: Samples, budget: Budget, declared: Declared
    ) -> Callable[[np.random.Generator | None], Fit]:
        bounds = declared.require_bounds(self.name)
        # Read when the first run needs them, after its budget is counted.
        sums = cache(partial(clipped_sums, samples, bounds=bounds))
        options: Any = {"bounds": bounds, "budget": budget, "ridge_failure": self.ridge_failure}
        part = budget.share(1 / RELEASES)
        names = ("smallest eigenvalue", "Gram matrix", "moment")

        def fit(rng: np.random.Generator | None) -> Fit:
            estimate = adassp_zcdp(samples if rng is None else sums(), rng=rng, **options)
            return Fit(estimate[None], tuple((name, part) for name in names))

        return fit

    @classmethod
    def _predict(
        cls, settings: Sequence[Self], problem: Problem, rows: Rows, budget: Budget
    ) -> Callable[[Problem], list[Prediction]]:
        followed = [_follow(problem, rows, method, budget) for method in settings]
        return lambda each: [
            _regime(each, moments.predictions(each, rows)[0]) for moments in followed
        ]


def _regime(problem: Problem, found: Prediction) -> Prediction:
    """Regime of AdaSSP: the noise must leave the Gram matrix invertible.

    The prediction uses only the mean of the rows' Gram matrix. Without noise, the error of least
    squares is 1/(1 - κ) times the predicted one, with κ = p/n: 18 % more at κ = `MOST_RATIO`. The
    error from privacy noise, which dominates in practice, has no such factor.
    """
    if not np.isfinite(found.excess_risk):
        return found.with_doubt("the noise may make the Gram matrix singular")
    if problem.dimension / problem.sample_size > MOST_RATIO:
        return found.with_doubt(
            f"too few rows: {problem.sample_size} for {problem.dimension} features"
        )
    marked = found.marked(Regime.EXTENDED, "deterministic equivalent of a deformed Wigner matrix")
    # The equivalent is for many features; with few, errors are larger than predicted sooner.
    small = marked.excess_risk < marked.null_risk / (4 if problem.dimension < 50 else 1)
    return marked if small else replace(marked, warnings=(LARGE,))


def _follow(problem: Problem, rows: Rows, method: AdaSSP, budget: Budget) -> ErrorMoments:
    """Moments of the estimate's error."""
    n, p = problem.sample_size, problem.dimension
    limits = sensitivities(
        Bounds(problem.feature_norm, problem.label_bound), neighbours=budget.neighbours
    )
    multiplier = sqrt(RELEASES / (2 * budget.rho))
    tau, nu = multiplier * limits.gram, multiplier * limits.moment
    shrink = np.minimum(1.0, problem.feature_norm / rows.norms)
    gram = n * rows.per_coordinate(shrink**2)
    # A label is clipped as a residual at the start of a descent is.
    of_rows, still = clipped_rows(problem, rows), np.zeros_like(gram)
    # The mixture for labels 0 and 1 extends beyond them; the labels are within their bound.
    bound = np.inf if problem.label_noise_law.startswith("binary") else problem.label_bound
    bounds = np.full_like(shrink, bound)
    of_all = np.empty((1 + len(gram), 3, len(gram)))
    for factors, found in zip([shrink, *shrink**3 * rows.energies.T], of_all, strict=True):
        clipped_slopes(of_rows, bounds, factors, rows.squared_signal, still, found)
    slopes, crossed = of_all[0], of_all[1:, 0]
    moment = n * slopes[0]
    # Marchenko and Pastur's lower edge.
    smallest = float(gram.min()) * max(1 - sqrt(p / n), 0.0) ** 2
    wanted = tau * sqrt(p * log(2 * p**2 / method.ridge_failure))
    squared_bias, variance = np.zeros_like(gram), np.zeros_like(gram)
    points, weights = np.polynomial.hermite_e.hermegauss(RIDGE_NODES)
    for point, weight in zip(points, weights / weights.sum(), strict=True):
        shift = sqrt(-2 * log(method.ridge_failure))
        bound = max(0.0, smallest + multiplier * limits.eigenvalue * (point - shift))
        diagonal = gram + max(0.0, wanted - bound)
        resolvent, spread = _resolvent(diagonal, rows, tau)
        limit = resolvent * moment
        squared_bias += weight * (limit - 1) ** 2 * rows.squared_signal
        # Mean square of s x_j (y - s xᵀθ): s is the row's factor, y a clipped label, θ the limit.
        energy = limit * rows.squared_signal
        square = rows.per_coordinate(shrink**4 * rows.quadratic(limit * energy))
        cross = crossed @ (rows.multiplicities * energy) / rows.multiplicities
        noise = n * np.maximum(slopes[2] - 2 * cross + square, 0.0)
        # The noise, and the effect of G's random part on the moment itself.
        through = resolvent**2 * (noise + nu**2)
        through += spread * rows.total(limit * energy + resolvent**2 * (noise + nu**2))
        variance += weight * through
    return ErrorMoments(squared_bias[None], variance[None])


def _resolvent(diagonal: FloatArray, rows: Rows, tau: float) -> tuple[FloatArray, FloatArray]:
    """g_j and τ²g_j²/(1 - τ²Σ g_k²), a factor of the random part; `inf` if there is no solution.

    Newton's steps start below the first zero of a convex function and do not pass it.
    """
    total, lost = 0.0, np.full_like(diagonal, np.inf)
    for _ in range(100):
        below = diagonal - tau**2 * total
        if np.any(below <= 0):
            return lost, lost
        resolvent = 1 / below
        gain = tau**2 * float(rows.total(resolvent**2))
        if gain >= 1:
            return lost, lost
        move = float(rows.total(resolvent)) - total
        if abs(move) <= 1e-10 * total:
            break
        total += move / (1 - gain)
    return resolvent, tau**2 * resolvent**2 / (1 - gain)
