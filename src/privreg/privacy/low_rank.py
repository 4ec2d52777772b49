"""Symmetric matrices that are a positive diagonal plus a term of low rank k, in O(d k²)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.immutable import Immutable, frozen
from privreg.validation import (
    require_answer,
    require_array,
    require_real,
)

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class LowRankUpdate(Immutable):
    r"""A symmetric matrix, diagonal plus low rank.

    .. math:: S = \mathrm{diag}(v) + U K U^\top

    with `v` positive of shape (d,), `U` of shape (d, k) and `K` symmetric of shape (k, k). With
    :math:`\mathrm{diag}(v)^{-1/2}U = QR` the matrix is congruent to
    :math:`I + Q(RKR^\top)Q^\top`, so definiteness, determinant and inverse all follow from the k
    eigenvalues of :math:`RKR^\top`. The columns of `U` may be linearly dependent and `K` may be
    indefinite or singular.
    """

    diagonal: NDArray[np.float64]
    factors: NDArray[np.float64]
    core: NDArray[np.float64]

    def __init__(self, diagonal: ArrayLike, factors: ArrayLike, core: ArrayLike) -> None:
        v = require_array("diagonal", diagonal, shape=(None,), above=0)
        u = require_real("factors", factors)
        if u.ndim != 2 or u.shape[0] != v.size:
            raise ValueError(f"factors must have shape ({v.size}, k), got {u.shape}")
        k = require_real("core", core)
        if k.shape != (u.shape[1], u.shape[1]):
            raise ValueError(f"core must have shape {(u.shape[1],) * 2}, got {k.shape}")
        if k.size and np.abs(k / 2 - k.T / 2).max() > 1e-12 * np.abs(k / 2).max():
            raise ValueError("core must be symmetric, got another matrix")
        for name, value in (("diagonal", v), ("factors", u), ("core", k)):
            object.__setattr__(self, name, frozen(value))

    @property
    def dimension(self) -> int:
        """Number d of rows."""
        return self.diagonal.size

    def dense(self) -> NDArray[np.float64]:
        """The matrix itself, shape (d, d)."""
        return np.diag(self.diagonal) + self.factors @ self.core @ self.factors.T

    @property
    def is_positive_definite(self) -> bool:
        """Whether all eigenvalues are positive."""
        return bool(np.all(self._eigenvalues > -1.0))

    @property
    def uncertainty(self) -> float:
        """Bound on the relative rounding error of the least eigenvalue of I + Q(RKRᵀ)Qᵀ.

        From 1 on its sign is not known, nor whether the matrix is positive definite.
        """
        return float(self._factorisation[3])

    def log_determinant_ratio(self) -> float:
        """Logarithm of det S / det diag(v), `-inf` if S is not positive definite.

        Small values keep their relative accuracy, which ln det S - ln det diag(v) would lose.
        """
        if not self.is_positive_definite:
            return -np.inf
        return float(np.sum(np.log1p(self._eigenvalues)))

    def inverse_form(
        self, left: NDArray[np.float64], right: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        r"""Inverse form :math:`L^\top S^{-1} R` of vectors as columns, R being L unless given."""
        if not self.is_positive_definite:
            raise ValueError("left must come with a positive definite matrix, got another one")
        scale = np.sqrt(self.diagonal)[:, None]
        basis, directions = self._basis, self._directions
        white_left = left / scale
        white_right = white_left if right is None else right / scale
        inner_left = basis.T @ white_left
        inner_right = inner_left if right is None else basis.T @ white_right
        # The part outside the span of the factors and the part inside it are both sums of squares,
        # so a large update cancels no digits.
        with np.errstate(over="ignore", invalid="ignore"):
            outside = (white_left - basis @ inner_left).T @ (white_right - basis @ inner_right)
            shrink = (directions / (1.0 + self._eigenvalues)) @ directions.T
            form = outside + inner_left.T @ shrink @ inner_right
        return require_answer("left and right", form)

    @cached_property
    def _factorisation(self) -> tuple[NDArray[np.float64], ...]:
        if self.factors.shape[1] == 0:
            return np.empty((self.dimension, 0)), np.empty(0), np.empty((0, 0)), np.zeros(())
        with np.errstate(over="ignore", invalid="ignore"):
            basis, triangle = np.linalg.qr(self.factors / np.sqrt(self.diagonal)[:, None])
            middle = require_answer("factors and core", triangle @ self.core @ triangle.T)
            sizes = np.abs(triangle)
            size = np.linalg.norm(sizes @ np.abs(self.core) @ sizes.T)
        eigenvalues, directions = np.linalg.eigh(middle)
        rounding = 8 * EPS * self.core.shape[0] * (1 + size)
        with np.errstate(divide="ignore", over="ignore"):
            share = np.asarray(rounding / np.abs(1.0 + eigenvalues[0]))
        return frozen(basis), frozen(eigenvalues), frozen(directions), share

    @property
    def _basis(self) -> NDArray[np.float64]:
        return self._factorisation[0]

    @property
    def _eigenvalues(self) -> NDArray[np.float64]:
        return self._factorisation[1]

    @property
    def _directions(self) -> NDArray[np.float64]:
        return self._factorisation[2]


def diagonal_matrix(diagonal: NDArray[np.float64]) -> LowRankUpdate:
    """A positive diagonal as a `LowRankUpdate` of rank zero."""
    return LowRankUpdate(diagonal, np.empty((len(diagonal), 0)), np.empty((0, 0)))


def combine(
    first: LowRankUpdate, second: LowRankUpdate, *, first_weight: float, second_weight: float
) -> LowRankUpdate | None:
    """The weighted sum :math:`w_1S_1 + w_2S_2`, or None where its diagonal is not positive."""
    # Written with the difference so that equal diagonals stay equal to the last bit.
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = (first_weight + second_weight) * first.diagonal + second_weight * (
            second.diagonal - first.diagonal
        )
    require_answer("first_weight and second_weight", diagonal)
    if not np.all(diagonal > 0):
        return None
    rank = first.factors.shape[1]
    total = rank + second.factors.shape[1]
    core = np.zeros((total, total))
    core[:rank, :rank] = first_weight * first.core
    core[rank:, rank:] = second_weight * second.core
    return LowRankUpdate(diagonal, np.hstack([first.factors, second.factors]), core)
