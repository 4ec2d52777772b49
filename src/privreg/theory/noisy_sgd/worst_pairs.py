"""Which pair of observed records loses most: the search over all ordered pairs.

The losses are those of `renyi_loss`: approximations by a conjecture over observed pairs, not a
guarantee. A supremum over the observed pairs bounds nothing over records that were not observed.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.immutable import Computed, frozen
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
from privreg.theory.noisy_sgd.renyi_loss import ReleaseGeometry, release_geometry
from privreg.theory.noisy_sgd.shuffled_position import position_quadrature, shuffled_loss
from privreg.validation import require_answer, require_instance, require_number, require_records

_STORED_GROUPS = 4


class WorstPair(NamedTuple):
    """The largest divergence D(first ‖ second) over ordered pairs, and the indices of that pair."""

    divergence: float
    first: int
    second: int


class PairSearch(Computed):
    """Divergences over all ordered pairs of the given records, from their Gram matrices.

    A divergence depends on a pair only through weighted inner products of the two records. If Σ
    has few distinct eigenvalues those are sums of Gram matrices that are formed once; a
    divergence then costs O(1) at any d. Otherwise three matrix products are formed for each
    time and position.

    Parameters
    ----------
    law : HomogenisedSGD
        With noise and unit multiplicities.
    features : array_like, shape (n, d)
        Records in the eigenbasis of Σ.
    labels : array_like, shape (n,)

    Guarantee
    ---------
    None: an approximation by a conjecture, over observed pairs.

    Source
    ------
    lin2025, Theorems 4.3 and 4.5, in the true direction D(first ‖ second).
    """

    def __init__(self, law: HomogenisedSGD, features: ArrayLike, labels: ArrayLike) -> None:
        self.law = require_instance("law", law, HomogenisedSGD)
        shape = None, law.problem.eigenvalues.size
        self.features = frozen(require_records("features", features, shape=shape))
        self.labels = frozen(require_records("labels", labels, shape=self.features.shape[:1]))
        self._grams: list[NDArray[np.float64]] = []
        groups = law.distinct_eigenvalues.size
        if groups <= _STORED_GROUPS:
            for group in range(groups):
                block = self.features[:, law.group == group]
                with np.errstate(over="ignore", invalid="ignore"):
                    self._grams.append(require_answer("features", block @ block.T))

    def divergences(
        self, *, times: ArrayLike, position: float, order: float
    ) -> NDArray[np.float64]:
        """D(i ‖ j) of the averaged iterates at `times` (one time: the last iterate), shape (n, n).

        `inf` where the mixture covariance of the pair is not positive definite.

        Parameters
        ----------
        times : array_like, shape (J,)
            Ascending times whose iterates are averaged, at least 0; one time for the last iterate.
        position : float
            Time of the differing step, at least 0.
        order : float
            Rényi order, more than 1.
        """
        order = require_number("order", order, above=1)
        count = self.labels.size
        geometry = release_geometry(self.law, times=times, position=position)
        if geometry is None:
            return np.zeros((count, count))
        base, carry, cross = geometry.base, geometry.carry, geometry.cross
        outer, mixed, inner = (
            self._weighted_gram(weight / base) for weight in (carry**2, carry * cross, cross**2)
        )
        result: NDArray[np.float64] = _pairwise(
            outer,
            mixed,
            inner,
            self._residuals(geometry),
            self.features**2 @ geometry.prior,
            geometry.step,
            order,
        )
        return require_answer("features, labels and order", result, infinite=True)

    def worst(self, *, times: ArrayLike, position: float, order: float) -> WorstPair:
        """The ordered pair of distinct records with the largest divergence.

        Parameters
        ----------
        times, position, order
            As for `divergences`; the largest may be `inf`.
        """
        if self.labels.size < 2:
            raise ValueError("features must have at least 2 rows to make a pair, got 1")
        values = self.divergences(times=times, position=position, order=order)
        np.fill_diagonal(values, -np.inf)
        first, second = np.unravel_index(np.argmax(values), values.shape)
        return WorstPair(float(values[first, second]), int(first), int(second))

    def shuffled_loss(
        self, *, times: ArrayLike, order: float, finest: float | None = None
    ) -> float:
        """Loss at a random position, the worst ordered pair taken at each position.

        Parameters
        ----------
        times : array_like, shape (J,)
            Ascending times whose iterates are averaged, more than 0 and at most 1e50; one time for
            the last iterate.
        order : float
            Rényi order, more than 1; `inf` is the loss where some pair's divergence is infinite.
        finest : float, optional
            Panel width next to 0 and the release times; 1/d unless given.

        Source
        ------
        lin2025, equations (15) and (24).
        """
        width = 1.0 / self.law.problem.dimension if finest is None else finest
        positions, weights = position_quadrature(times, finest=width, schedule=self.law.schedule)
        suprema = [self.worst(times=times, position=s, order=order).divergence for s in positions]
        return float(shuffled_loss(suprema, weights, horizon=self.law.horizon, order=order))

    def _residuals(self, geometry: ReleaseGeometry) -> NDArray[np.float64]:
        return self.features @ geometry.mean - self.labels

    def _weighted_gram(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._grams:
            # A weight is a function of the eigenvalue alone, so one coordinate serves.
            _, representative = np.unique(self.law.group, return_index=True)
            total = np.zeros_like(self._grams[0])
            for gram, index in zip(self._grams, representative, strict=True):
                total += weight[index] * gram
            return total
        scaled = self.features * np.sqrt(weight)
        return scaled @ scaled.T


@nb.njit(cache=True, nogil=True)
def _pairwise(
    outer: NDArray[np.float64],
    mixed: NDArray[np.float64],
    inner: NDArray[np.float64],
    residuals: NDArray[np.float64],
    kappa: NDArray[np.float64],
    step: float,
    order: float,
) -> NDArray[np.float64]:
    """Divergence of each ordered pair from the weighted Gram matrices of U = [carry·a, cross·a]."""
    count = residuals.size
    result = np.zeros((count, count))
    log_det = np.empty(count)
    for i in range(count):
        corner = step**2 * kappa[i]
        minor = outer[i, i] * inner[i, i] - mixed[i, i] ** 2
        log_det[i] = np.log1p(corner * outer[i, i] - 2.0 * step * mixed[i, i] - step**2 * minor)
    gram, left, factor = np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4))
    turned, small = np.empty((4, 4)), np.empty((4, 4))
    core, move, solution = np.empty((2, 2)), np.zeros(4), np.empty(4)
    index = np.empty(2, np.int64)
    weight = np.array([1.0 - order, order])
    for i in range(count):
        for j in range(i):
            index[0], index[1] = i, j
            for p in range(2):
                for q in range(2):
                    u, v = index[p], index[q]
                    gram[2 * p, 2 * q] = outer[u, v]
                    gram[2 * p, 2 * q + 1] = mixed[u, v]
                    gram[2 * p + 1, 2 * q] = mixed[u, v]
                    gram[2 * p + 1, 2 * q + 1] = inner[u, v]
            rank = _factor(gram, left, factor)
            # The other order of the pair has the same factor, its rows in the other order.
            for k in range(4):
                for r in range(rank):
                    turned[k, r] = factor[(k + 2) % 4, r]
            for turn in range(2):
                first, second = (i, j) if turn == 0 else (j, i)
                core[0, 0], core[1, 0] = (
                    weight[0] * step**2 * kappa[first],
                    weight[1] * step**2 * kappa[second],
                )
                core[0, 1], core[1, 1] = -weight[0] * step, -weight[1] * step
                move[0], move[2] = -step * residuals[first], step * residuals[second]
                rows = factor if turn == 0 else turned
                mixture, quadratic = _mixture(rows, rank, core, move, small, solution)
                if np.isinf(mixture):
                    result[first, second] = np.inf
                else:
                    ratio = mixture - weight[0] * log_det[first] - weight[1] * log_det[second]
                    result[first, second] = 0.5 * order * quadratic - 0.5 * ratio / (order - 1.0)
    return result


@nb.njit(cache=True, nogil=True)
def _factor(
    gram: NDArray[np.float64], left: NDArray[np.float64], factor: NDArray[np.float64]
) -> int:
    """Rank of a Gram matrix, and its pivoted Cholesky factor in as many columns of `factor`.

    The columns may be parallel (they are if Σ is isotropic), so it stops at the rank.
    """
    left[:] = gram
    scale = max(gram[0, 0], gram[1, 1], gram[2, 2], gram[3, 3])
    for r in range(4):
        pivot = 0
        for k in range(4):
            if left[k, k] > left[pivot, pivot]:
                pivot = k
        if not left[pivot, pivot] > 1e-15 * scale:
            return r
        root = np.sqrt(left[pivot, pivot])
        for k in range(4):
            factor[k, r] = left[k, pivot] / root
        for k in range(4):
            for m in range(4):
                left[k, m] -= factor[k, r] * factor[m, r]
        left[pivot, pivot] = 0.0
    return 4


@nb.njit(cache=True, nogil=True)
def _mixture(
    factor: NDArray[np.float64],
    rank: int,
    core: NDArray[np.float64],
    move: NDArray[np.float64],
    small: NDArray[np.float64],
    solution: NDArray[np.float64],
) -> tuple[float, float]:
    """ln det(I + WKWᵀ) and its inverse form at W `move`, WᵀW the factor's; `inf` if not definite.

    K has two blocks [[a, b], [b, 0]], whose a and b are the rows of `core`.
    """
    log_det = 0.0
    quadratic = 0.0
    for r in range(rank):
        for s in range(r + 1):
            total = 1.0 if r == s else 0.0
            for block in range(2):
                k, m = 2 * block, 2 * block + 1
                total += factor[k, r] * core[block, 0] * factor[k, s]
                total += factor[k, r] * core[block, 1] * factor[m, s]
                total += factor[m, r] * core[block, 1] * factor[k, s]
            for m in range(s):
                total -= small[r, m] * small[s, m]
            if r == s:
                if not total > 0.0:
                    return np.inf, np.inf
                log_det += np.log(total)
                small[r, r] = np.sqrt(total)
            else:
                small[r, s] = total / small[s, s]
        right = 0.0
        for k in range(4):
            right += factor[k, r] * move[k]
        for m in range(r):
            right -= small[r, m] * solution[m]
        solution[r] = right / small[r, r]
        quadratic += solution[r] ** 2
    return log_det, quadratic
