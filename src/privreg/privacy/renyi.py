"""Rényi divergence of Gaussian laws with dense, diagonal, or diagonal plus low-rank covariance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    FloatArray,
    Immutable,
    frozen,
    require_answer,
    require_real,
    require_scale,
)

EPS = float(np.finfo(np.float64).eps)


class _Factorisation(NamedTuple):
    basis: FloatArray
    eigenvalues: FloatArray
    directions: FloatArray
    uncertainty: float


@dataclass(frozen=True, eq=False)
class LowRankUpdate(Immutable):
    r"""Symmetric matrix: diagonal plus low rank.

    .. math:: S = \mathrm{diag}(v) + U K U^\top

    where `v` > 0 has shape (d,), `U` shape (d, k), and the symmetric `K` shape (k, k). With
    :math:`\mathrm{diag}(v)^{-1/2}U = QR`, the matrix is congruent to :math:`I + Q(RKR^\top)Q^\top`.
    Definiteness, determinant and inverse then follow from the k eigenvalues of :math:`RKR^\top`.
    The columns of `U` may be linearly dependent, and `K` may be indefinite or singular.
    """

    diagonal: FloatArray
    factors: FloatArray
    core: FloatArray

    def __init__(self, diagonal: ArrayLike, factors: ArrayLike, core: ArrayLike) -> None:
        for name, value in (("diagonal", diagonal), ("factors", factors), ("core", core)):
            object.__setattr__(self, name, frozen(np.asarray(value, dtype=np.float64)))

    @property
    def dimension(self) -> int:
        """Number d of rows."""
        return self.diagonal.size

    def dense(self) -> FloatArray:
        """The matrix itself, shape (d, d)."""
        return np.diag(self.diagonal) + self.factors @ self.core @ self.factors.T

    @property
    def is_positive_definite(self) -> bool:
        """True if all eigenvalues are positive."""
        return bool(np.all(self.diagonal > 0) and np.all(self._factorisation.eigenvalues > -1.0))

    @property
    def uncertainty(self) -> float:
        """Bound on the relative rounding error of the least eigenvalue of I + Q(RKRᵀ)Qᵀ.

        If the bound is 1 or more, the eigenvalue's sign and positive definiteness are unknown.
        """
        return self._factorisation.uncertainty

    def log_determinant_ratio(self) -> float:
        """Logarithm of det S / det diag(v); `-inf` if S is not positive definite.

        Small values keep their relative accuracy, which ln det S - ln det diag(v) would lose.
        """
        if not self.is_positive_definite:
            return -np.inf
        return float(np.sum(np.log1p(self._factorisation.eigenvalues)))

    def inverse_form(self, vectors: FloatArray) -> FloatArray:
        r"""Matrix :math:`L^\top S^{-1} L` for L = `vectors` and a positive definite S."""
        basis, eigenvalues, directions, _ = self._factorisation
        white = vectors / np.sqrt(self.diagonal)[:, None]
        inner = basis.T @ white
        # Sums of squares outside and inside the factors' span: a large update cancels no digits.
        outside = (white - basis @ inner).T @ (white - basis @ inner)
        shrink = (directions / (1.0 + eigenvalues)) @ directions.T
        return np.asarray(outside + inner.T @ shrink @ inner)

    @cached_property
    def _factorisation(self) -> _Factorisation:
        if self.factors.shape[1] == 0:
            none = np.empty(0)
            return _Factorisation(np.empty((self.dimension, 0)), none, np.empty((0, 0)), 0.0)
        basis, triangle = np.linalg.qr(self.factors / np.sqrt(self.diagonal)[:, None])
        eigenvalues, directions = np.linalg.eigh(triangle @ self.core @ triangle.T)
        sizes = np.abs(triangle)
        size = np.linalg.norm(sizes @ np.abs(self.core) @ sizes.T)
        rounding = 8 * EPS * self.core.shape[0] * (1 + size)
        with np.errstate(divide="ignore"):
            share = float(rounding / np.abs(1.0 + eigenvalues[0]))
        return _Factorisation(basis, eigenvalues, directions, share)


def diagonal_matrix(diagonal: FloatArray) -> LowRankUpdate:
    """Diagonal matrix with positive entries, as a `LowRankUpdate` of rank zero."""
    return LowRankUpdate(diagonal, np.empty((len(diagonal), 0)), np.empty((0, 0)))


def combine(
    first: LowRankUpdate, second: LowRankUpdate, *, first_weight: float, second_weight: float
) -> LowRankUpdate | None:
    """The weighted sum :math:`w_1S_1 + w_2S_2`, or None if its diagonal is not positive."""
    # Written with the difference so that equal diagonals stay equal to the last bit.
    diagonal = (first_weight + second_weight) * first.diagonal + second_weight * (
        second.diagonal - first.diagonal
    )
    if not np.all(diagonal > 0):
        return None
    rank = first.factors.shape[1]
    total = rank + second.factors.shape[1]
    core = np.zeros((total, total))
    core[:rank, :rank] = first_weight * first.core
    core[rank:, rank:] = second_weight * second.core
    return LowRankUpdate(diagonal, np.hstack([first.factors, second.factors]), core)


Covariance = ArrayLike | LowRankUpdate
# Next to order 1 differences of logarithms are divided by it less 1.
NEAR_ONE = 1e-3
# Rounding errors that a divergence may have, relative or absolute.
RELATIVE, ABSOLUTE = 1e-6, 1e-9


def renyi_divergence(
    mean_difference: ArrayLike, covariance_p: Covariance, covariance_q: Covariance, *, order: float
) -> float:
    r"""Rényi divergence D(P‖Q) of Gaussian law P from Gaussian law Q, with Δ = μ_P - μ_Q.

    .. math::
        D_\alpha(P\|Q) = \frac\alpha2\,\Delta^\top M^{-1}\Delta
        - \frac1{2(\alpha-1)}\ln\frac{\det M}{(\det\Sigma_P)^{1-\alpha}(\det\Sigma_Q)^{\alpha}},
        \qquad M = (1-\alpha)\Sigma_P + \alpha\Sigma_Q

    D is infinite if M is not positive definite. For α > 1 this can happen if P has more variance
    than Q in some direction. At α = 1, D is the Kullback–Leibler divergence. Covariances are
    d x d matrices, diagonals or `LowRankUpdate`s. The cost is O(d³) if one is a full matrix or
    α = 1, else O(d k²) for a total rank of k. In the latter case, a result is refused if its error
    exceeds both 1e-9 and 1e-6 times the result.

    Source
    ------
    lin2025, Lemma C.2 (Gil, Alajaji and Linder, 2013). The printed formula, with
    M = αΣ_1 + (1-α)Σ_2, is D(N_2‖N_1), not D(N_1‖N_2). This function uses the correct order.
    """
    delta = np.asarray(mean_difference, dtype=np.float64)
    order = require_scale("order", order)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        divergence = _divergence(delta, covariance_p, covariance_q, order)
    names = "mean_difference, covariance_p and covariance_q"
    require_answer(names, np.asarray(divergence), infinite=True)
    # Rounding can leave a divergence of 0 a little below it.
    return max(0.0, divergence)


def _divergence(
    delta: FloatArray, covariance_p: Covariance, covariance_q: Covariance, order: float
) -> float:
    p = _structured(covariance_p, "covariance_p", delta.size)
    q = _structured(covariance_q, "covariance_q", delta.size)
    if isinstance(p, LowRankUpdate) and isinstance(q, LowRankUpdate):
        for name, covariance in (("covariance_p", p), ("covariance_q", q)):
            if not covariance.is_positive_definite:
                raise ValueError(f"{name} must be positive definite, got another matrix")
        if order == 1.0:
            return _dense_kullback_leibler(delta, p.dense(), q.dense())
        if abs(order - 1.0) < NEAR_ONE and np.array_equal(p.diagonal, q.diagonal):
            found = _shared_diagonal_divergence(delta, p, q, order)
            if not np.isnan(found):
                return found
        mixture = combine(p, q, first_weight=1.0 - order, second_weight=order)
        if mixture is not None:
            return _low_rank_divergence(delta, p, q, mixture, order)
        # A mixture whose diagonal is not positive is definite only if the low-rank part repairs
        # every such entry, which takes at least as many directions as there are entries.
        shortfall = np.sum((1.0 - order) * p.diagonal + order * q.diagonal <= 0)
        if shortfall > p.factors.shape[1] + q.factors.shape[1]:
            return np.inf
    dense_p = p.dense() if isinstance(p, LowRankUpdate) else p
    dense_q = q.dense() if isinstance(q, LowRankUpdate) else q
    if order == 1.0:
        return _dense_kullback_leibler(delta, dense_p, dense_q)
    return _dense_divergence(delta, dense_p, dense_q, order)


def _structured(covariance: Covariance, name: str, dimension: int) -> LowRankUpdate | FloatArray:
    if isinstance(covariance, LowRankUpdate):
        if covariance.dimension != dimension:
            raise ValueError(f"{name} must have dimension {dimension}, got {covariance.dimension}")
        return covariance
    array = require_real(name, covariance)
    if array.shape == (dimension,):
        return diagonal_matrix(array)
    if array.shape != (dimension, dimension):
        raise ValueError(
            f"{name} must have shape {(dimension,)} or {(dimension,) * 2}, got {array.shape}"
        )
    if np.max(np.abs(array / 2 - array.T / 2)) > 1e-9 * np.max(np.abs(array)):
        raise ValueError(f"{name} must be symmetric, got an asymmetric matrix")
    return array


def _low_rank_divergence(
    delta: FloatArray, p: LowRankUpdate, q: LowRankUpdate, mixture: LowRankUpdate, order: float
) -> float:
    if mixture.uncertainty >= 1.0:
        return np.nan
    if not mixture.is_positive_definite:
        return np.inf
    excess = (p.diagonal - q.diagonal) / q.diagonal
    diagonal_part = np.sum(np.log1p((1.0 - order) * excess) - (1.0 - order) * np.log1p(excess))
    low_rank_part = (
        mixture.log_determinant_ratio()
        - (1.0 - order) * p.log_determinant_ratio()
        - order * q.log_determinant_ratio()
    )
    quadratic = mixture.inverse_form(delta[:, None])[0, 0]
    found = 0.5 * order * quadratic - 0.5 * (diagonal_part + low_rank_part) / (order - 1.0)
    logarithms = abs(order - 1.0) * p.uncertainty + order * q.uncertainty + mixture.uncertainty
    error = order * quadratic * mixture.uncertainty + logarithms / abs(order - 1.0)
    return float(found) if error <= max(RELATIVE * found, ABSOLUTE) else np.nan


def _shared_diagonal_divergence(
    delta: FloatArray, p: LowRankUpdate, q: LowRankUpdate, order: float
) -> float:
    """Divergence in an orthonormal basis of all factors, outside of which covariances are equal."""
    scale = np.sqrt(p.diagonal)
    basis, triangle = np.linalg.qr(np.hstack([p.factors, q.factors]) / scale[:, None])
    first, second = np.split(triangle, [p.factors.shape[1]], axis=1)
    p_core, q_core = first @ p.core @ first.T, second @ q.core @ second.T
    inside = basis.T @ (delta / scale)
    outside = delta / scale - basis @ inside
    if max(p.uncertainty, q.uncertainty) > RELATIVE:
        return np.nan
    core = _divergence_near_one(inside, p_core - q_core, np.eye(len(q_core)) + q_core, order)
    return core + 0.5 * order * float(outside @ outside)


def _divergence_near_one(
    delta: FloatArray, difference: FloatArray, q: FloatArray, order: float
) -> float:
    r"""Divergence from the eigenvalues x of Q^{-1/2}(P - Q)Q^{-1/2}, with g(x) = x - ln(1 + x).

    .. math:: \tfrac\alpha2\sum_i\frac{y_i^2}{1+(1-\alpha)x_i}
        + \tfrac12\sum_i\Big(g(x_i) + \frac{g((1-\alpha)x_i)}{\alpha-1}\Big)

    The result is NaN if the relative rounding error may exceed `RELATIVE`.
    """
    factor, _ = _cholesky(q, "covariance_q")
    white = _solve_lower(factor, _solve_lower(factor, difference).T)
    excess, axes = np.linalg.eigh((white + white.T) / 2)
    mixed = (1.0 - order) * excess
    rounding = 8 * np.finfo(float).eps * excess.size * (1.0 + np.max(np.abs(excess)))
    # A P that is far narrower than Q in some direction is lost in their difference.
    near = min(np.min(np.abs(1.0 + excess)), np.min(np.abs(1.0 + mixed)) / abs(order - 1.0))
    if rounding > RELATIVE * near:
        return np.nan
    if np.any(excess <= -1.0):
        raise ValueError("covariance_p must be positive definite, got another matrix")
    if np.any(mixed <= -1.0):
        return np.inf
    image = axes.T @ _solve_lower(factor, delta)
    logarithms = _curved(excess) + _curved(mixed) / (order - 1.0)
    return float(0.5 * order * np.sum(image**2 / (1.0 + mixed)) + 0.5 * np.sum(logarithms))


def _curved(x: FloatArray) -> FloatArray:
    """x - ln(1 + x), which is of order x² at 0; the plain difference would lose digits there."""
    near = np.where(np.abs(x) < 0.01, x, 0.0)
    series = sum((-near) ** n / n for n in range(2, 11))
    return np.where(np.abs(x) < 0.01, series, x - np.log1p(x))


def _dense_divergence(delta: FloatArray, p: FloatArray, q: FloatArray, order: float) -> float:
    # A congruence that leaves the divergence alone: with a unit diagonal the logarithms of the
    # determinants are small, so that their difference keeps its digits.
    scale = np.sqrt(np.abs(np.diag(q)))
    scale = np.where(scale > 0, scale, 1.0)
    delta = delta / scale
    p, q = p / np.outer(scale, scale), q / np.outer(scale, scale)
    if abs(order - 1.0) < NEAR_ONE:
        return _divergence_near_one(delta, p - q, q, order)
    _, log_det_p = _cholesky(p, "covariance_p")
    _, log_det_q = _cholesky(q, "covariance_q")
    try:
        factor, log_det = _cholesky((1.0 - order) * p + order * q, "mixture")
    except ValueError:
        return np.inf
    white = _solve_lower(factor, delta)
    log_ratio = log_det - (1.0 - order) * log_det_p - order * log_det_q
    return float(0.5 * order * (white @ white) - 0.5 * log_ratio / (order - 1.0))


def _dense_kullback_leibler(delta: FloatArray, p: FloatArray, q: FloatArray) -> float:
    factor_p, log_det_p = _cholesky(p, "covariance_p")
    factor_q, log_det_q = _cholesky(q, "covariance_q")
    white = _solve_lower(factor_q, np.column_stack([delta, factor_p]))
    return float(0.5 * (np.sum(white**2) - delta.size + log_det_q - log_det_p))


def _cholesky(matrix: FloatArray, name: str) -> tuple[FloatArray, float]:
    try:
        factor: FloatArray = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{name} must be positive definite, got another matrix") from error
    return factor, float(2.0 * np.sum(np.log(np.diag(factor))))


def _solve_lower(factor: FloatArray, right: FloatArray) -> FloatArray:
    from scipy.linalg import solve_triangular  # only the dense path pays for the import

    solution: FloatArray = solve_triangular(factor, right, lower=True)
    return solution
