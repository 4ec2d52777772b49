"""Which pair of observed records loses most: the search over all ordered pairs.

The losses are those of `renyi_loss`: approximations by a conjecture over observed pairs, not a
guarantee. A supremum over the observed pairs bounds nothing over records that were not observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.accuracy import warn_beyond
from privreg.immutable import Computed, frozen
from privreg.privacy.gaussian import RELATIVE
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
from privreg.theory.noisy_sgd.release_geometry import (
    ReleaseGeometry,
    Variant,
    release_geometries,
)
from privreg.theory.noisy_sgd.renyi_loss import Record, pair_divergence
from privreg.theory.noisy_sgd.shuffled_position import position_quadrature, shuffled_loss
from privreg.theory.noisy_sgd.worst_pairs_kernel import pair_divergences
from privreg.validation import (
    require_answer,
    require_array,
    require_broadcast,
    require_instance,
    require_number,
    require_real,
)

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
    time and position. Inner products keep half the digits of nearly parallel factors: a pair that
    they may not tell as precisely as `average_divergence` is computed like there, in O(d).

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
        self.features = frozen(require_array("features", features, shape=shape))
        self.labels = frozen(require_array("labels", labels, shape=self.features.shape[:1]))
        groups = law.distinct_eigenvalues.size
        self._grams: NDArray[np.float64] | None = None
        if groups <= _STORED_GROUPS:
            # A weight is a function of the eigenvalue alone, so one coordinate of each serves.
            self._representative = np.unique(law.group, return_index=True)[1]
            grams = np.empty((groups, self.labels.size, self.labels.size))
            for group, gram in enumerate(grams):
                block = self.features[:, law.group == group]
                with np.errstate(over="ignore", invalid="ignore"):
                    np.matmul(block, block.T, out=gram)
            self._grams = require_answer("features", grams)
            self._squares = np.diagonal(grams, axis1=1, axis2=2).copy()

    def divergences(
        self,
        *,
        times: ArrayLike,
        position: ArrayLike,
        order: ArrayLike,
        variant: Variant = "exact",
    ) -> NDArray[np.float64]:
        """D(i ‖ j) of the averaged iterates at `times` (one time: the last iterate), (..., n, n).

        `inf` where the mixture covariance of the pair is not positive definite, or where double
        precision cannot tell whether it is. Other values are right to 1e-6 of themselves or to
        1e-9.

        Parameters
        ----------
        times : array_like, shape (J,)
            Ascending times whose iterates are averaged, at least 0; one time for the last iterate.
        position : array_like, shape (...)
            Time of the differing step, at least 0.
        order : array_like, shape (...)
            Rényi order, more than 1; of a shape that broadcasts with the position's.
        variant : {"exact", "paper"}
            "paper" has the printed covariance of an average, in the true direction too.

        Warns
        -----
        AccuracyWarning
            If a divergence may be less accurate than that.
        """
        places, orders = require_real("position", position), require_real("order", order, above=1)
        shape = require_broadcast(position=places, order=orders)
        which = np.broadcast_to(np.arange(places.size).reshape(places.shape), shape)
        orders = np.broadcast_to(orders, shape)
        result = np.empty((*shape, self.labels.size, self.labels.size))
        for k, matrix in enumerate(self._matrices(times, places.ravel(), variant)):
            for at in map(tuple, np.argwhere(which == k)):
                result[at] = 0.0 if matrix is None else matrix(float(orders[at]))
        return result

    def worst(self, *, times: ArrayLike, position: float, order: float) -> WorstPair:
        """The ordered pair of distinct records with the largest divergence.

        Parameters
        ----------
        times, position, order
            As for `divergences`, of one position and order; the largest may be `inf`.
        """
        position = require_number("position", position, least=0)
        order = require_number("order", order, above=1)
        values = self.divergences(times=times, position=position, order=order)
        first, second = np.unravel_index(np.argmax(self._of_pairs(values)), values.shape)
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
        order = require_number("order", order, above=1)
        matrices = self._matrices(times, positions)
        suprema = [self._of_pairs(matrix(order)).max() if matrix else 0.0 for matrix in matrices]
        return float(shuffled_loss(suprema, weights, horizon=self.law.horizon, order=order))

    def _of_pairs(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of distinct records, -inf elsewhere."""
        if self.labels.size < 2:
            raise ValueError("features must have at least 2 rows to make a pair, got 1")
        np.fill_diagonal(values, -np.inf)
        return values

    def _matrices(
        self, times: ArrayLike, positions: NDArray[np.float64], variant: Variant = "exact"
    ) -> Iterator[Callable[[float], NDArray[np.float64]] | None]:
        """For each position the divergences of all pairs as a function of the order, if any."""
        for geometry in release_geometries(
            self.law, times=times, position=positions, variant=variant
        ):
            if geometry is None:
                yield None
                continue
            carry, cross = geometry.carry, geometry.cross
            parts = np.array([carry**2, carry * cross, cross**2]) / geometry.base
            if self._grams is None:
                grams, weights = np.array([self._gram(part) for part in parts]), np.eye(3)
                kappa = self.features**2 @ geometry.prior
            else:
                grams, weights = self._grams, np.take(parts, self._representative, axis=1)
                kappa = geometry.prior[self._representative] @ self._squares
            residuals = self.features @ geometry.mean - self.labels
            yield partial(self._divergences, geometry, grams, weights, residuals, kappa)

    def _divergences(
        self,
        geometry: ReleaseGeometry,
        grams: NDArray[np.float64],
        weights: NDArray[np.float64],
        residuals: NDArray[np.float64],
        kappa: NDArray[np.float64],
        order: float,
    ) -> NDArray[np.float64]:
        # Of a sum of products, beside that of few operations on it.
        rounding = (self.features.shape[1] + 8) * np.finfo(float).eps
        result, errors = pair_divergences(
            grams, weights, residuals, kappa, geometry.step, order, rounding
        )
        if not np.any(errors):
            return result
        for i, j in np.argwhere(errors):
            first, second = (Record(self.features[k], self.labels[k]) for k in (i, j))
            try:
                result[i, j] = pair_divergence(geometry, first, second, order=order)
                errors[i, j] = 0.0
            except ValueError:
                if np.isinf(errors[i, j]):
                    result[i, j] = np.inf
        warn_beyond("divergence of a pair", error=float(errors.max()), tolerance=RELATIVE)
        return result

    def _gram(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        if np.any(weight < 0):
            return (self.features * weight) @ self.features.T
        scaled = self.features * np.sqrt(weight)
        return scaled @ scaled.T
