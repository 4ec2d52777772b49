r"""Error of AdaSSP, from the deterministic equivalents of a Wigner-deformed matrix.

The estimate solves :math:`(D + \kappa I + \tau W)\,\tilde\theta = m + \nu z` with D the Gram matrix
of the capped rows and W symmetric Gaussian. For :math:`G = (D + \kappa I + \tau W)^{-1}`,

.. math:: \mathbb E\,G_{jj} = g_j = \frac{1}{d_j + \kappa - \tau^2\sum_k g_k},\qquad
    \mathbb E\,(G\Lambda G)_{jj} = g_j^2\Big(\lambda_j + \tau^2
    \frac{\sum_k g_k^2\lambda_k}{1 - \tau^2\sum_k g_k^2}\Big).

The ridge κ depends on a private smallest eigenvalue, whose noise is averaged over.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.adassp import RELEASES, Bounds, sensitivities
from privreg.prediction.clipping import noise_moments
from privreg.prediction.methods import AdaSSP
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows, require_setting
from privreg.privacy.budget import Budget
from privreg.validation import require_instance

FloatArray = NDArray[np.float64]
RIDGE_NODES = 9


def follow(problem: Problem, rows: Rows, method: AdaSSP, budget: Budget) -> ErrorMoments:
    """Moments of the estimate's error.

    Parameters
    ----------
    problem : Problem
        Its bounds are those of the algorithm.
    rows : Rows
        Those of the problem.
    method : AdaSSP
    budget : Budget
    """
    require_setting(problem, rows, budget)
    require_instance("method", method, AdaSSP)
    n, p = problem.sample_size, problem.dimension
    limits = sensitivities(
        Bounds(problem.feature_norm, problem.label_bound), neighbours=budget.neighbours
    )
    multiplier = sqrt(RELEASES / (2 * budget.rho))
    tau, nu = multiplier * limits.gram, multiplier * limits.moment
    shrink = np.minimum(1.0, problem.feature_norm / np.maximum(rows.norms, 1e-300))
    gram = n * rows.per_coordinate(shrink**2)
    explained = rows.quadratic(rows.squared_signal)
    kept, square = noise_moments(
        np.full_like(explained, problem.label_bound),
        label_noise_std=problem.label_noise_std,
        law=problem.label_noise_law,
        other_variance=explained,
    )
    moment = n * rows.per_coordinate(shrink * kept)
    # What is left of a clipped label beside its linear part, which a shortened row does not match.
    rest = np.maximum(square - kept**2 * explained, 0.0) + (kept - shrink) ** 2 * explained
    noise = n * rows.per_coordinate(shrink**2 * rest)
    smallest = float(gram.min()) * max(1 - sqrt(p / n), 0.0) ** 2
    wanted = tau * sqrt(p * log(2 * p**2 / method.ridge_failure))
    squared_bias, variance = np.zeros_like(gram), np.zeros_like(gram)
    points, weights = np.polynomial.hermite_e.hermegauss(RIDGE_NODES)
    for point, weight in zip(points, weights / weights.sum(), strict=True):
        shift = sqrt(-2 * log(method.ridge_failure))
        bound = max(0.0, smallest + multiplier * limits.eigenvalue * (point - shift))
        diagonal = gram + max(0.0, wanted - bound)
        resolvent, spread = _resolvent(diagonal, rows, tau)
        mean = resolvent * moment - 1
        squared_bias += weight * mean**2 * rows.squared_signal
        # The noise, and what the random part of G makes of the moment itself.
        through = resolvent**2 * (noise + nu**2)
        through += spread * (
            rows.total(resolvent**2 * moment**2 * rows.squared_signal)
            + rows.total(resolvent**2 * (noise + nu**2))
        )
        variance += weight * through
    return ErrorMoments(squared_bias[None], variance[None])


def _resolvent(diagonal: FloatArray, rows: Rows, tau: float) -> tuple[FloatArray, FloatArray]:
    """g, and the coordinates' share of what the random part spreads."""
    total = 0.0
    for _ in range(200):
        below = diagonal - tau**2 * total
        if np.any(below <= 0):
            return np.full_like(diagonal, np.inf), np.full_like(diagonal, np.inf)
        updated = float(rows.total(1 / below))
        if abs(updated - total) <= 1e-10 * updated:
            break
        total = updated
    else:
        # Slow where a solution hardly exists. From below, Newton's steps of a convex function do
        # not pass its first zero.
        for _ in range(100):
            gain = tau**2 * float(rows.total(1 / (diagonal - tau**2 * total) ** 2))
            move = float(rows.total(1 / (diagonal - tau**2 * total))) - total
            if gain >= 1 or abs(move) <= 1e-10 * total:
                break
            total += move / (1 - gain)
            if np.any(diagonal - tau**2 * total <= 0):
                return np.full_like(diagonal, np.inf), np.full_like(diagonal, np.inf)
    resolvent = 1 / (diagonal - tau**2 * total)
    gain = tau**2 * float(rows.total(resolvent**2))
    if gain >= 1:
        return np.full_like(diagonal, np.inf), np.full_like(diagonal, np.inf)
    return resolvent, tau**2 * resolvent**2 / (1 - gain)
