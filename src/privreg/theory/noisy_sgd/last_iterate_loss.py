"""Rényi loss of noisy SGD's last iterate: exact for records in fixed order, bounds if shuffled."""

from __future__ import annotations

from typing import Literal, get_args

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    require_array,
    require_choice,
    require_count,
    require_counts,
    require_scale,
    require_scales,
)
from privreg.kernels import inner_product
from privreg.privacy.renyi import RELATIVE, LowRankUpdate, diagonal_matrix, renyi_divergence
from privreg.theory.noisy_sgd.diffusion import WITHIN, require_records
from privreg.theory.noisy_sgd.renyi_loss import ascending_steps, shuffled_loss

EPS = float(np.finfo(float).eps)
Bound = Literal["reconstruction", "contraction"]


def fixed_order_divergence(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    initial: ArrayLike,
    positions: ArrayLike,
    replacement_features: ArrayLike,
    replacement_labels: ArrayLike,
    release_steps: ArrayLike,
    step_sizes: ArrayLike,
    gradient_noise_std: float,
    ridge: float,
    order: float,
) -> FloatArray:
    r"""Rényi divergence of the last iterate, of law N(m_k, V_k), if one record is replaced.

    .. math::
        m_{k+1} = C_km_k + \eta_kb_ka_k,\qquad V_{k+1} = C_kV_kC_k^\top + \eta_k^2\sigma^2I,\qquad
        C_k = (1-\eta_k\delta)I - \eta_ka_ka_k^\top

    Replacing the record changes the covariance by a matrix of rank four; only these four directions
    are propagated. The cost is O(n d²) for all positions, plus one factorisation per release.

    Parameters
    ----------
    features, labels : array_like, shapes (n, d) and (n,)
        Records (a_k, b_k) of step k. Records, start and replacements are at most 1e12 in size.
    initial : array_like, shape (d,)
        Deterministic start.
    positions : array_like of int, shape (p,)
        Step, counted from 0, at which each comparison replaces the record.
    replacement_features, replacement_labels : array_like, shapes (p, d) and (p,)
        Record that replaces the original one in each comparison.
    release_steps : array_like of int, shape (r,)
        Ascending step counts in [1, n] after which the iterate is released.
    step_sizes : array_like, shape (n,)
        Step sizes η.
    gradient_noise_std, ridge, order : float
        Standard deviation σ of the gradient noise, penalty δ, which may be 0, and Rényi order α.

    Returns
    -------
    ndarray, shape (r, p, 2)
        D(given ‖ replaced) and D(replaced ‖ given), accurate to a relative 1e-6 or an absolute
        1e-9; less accurate results are refused. Both are 0 for a release before the replaced step,
        and `inf` if the mixture covariance is not positive definite.

    Guarantee
    ---------
    None: the divergence is exact for these two data sets, but bounds no other pair of data sets.

    Source
    ------
    lin2025, Algorithm 1 with equation (26), conditional on the records.
    """
    rows, targets = require_records(features, labels)
    count, dimension = rows.shape
    start = require_array("initial", initial, shape=(dimension,), **WITHIN)
    steps = require_array("step_sizes", step_sizes, shape=(count,), least=LEAST, most=MOST)
    others, other_labels = require_records(
        replacement_features, replacement_labels, dimension, of="replacement_"
    )
    where = require_counts("positions", positions, least=0, most=count - 1)
    if where.shape != other_labels.shape:
        raise ValueError(f"positions must have shape {other_labels.shape}, got {where.shape}")
    releases = ascending_steps("release_steps", release_steps, most=count)
    # The comparison itself refuses no noise and order 0.
    std, ridge, order = require_scales(
        zero=True, gradient_noise_std=gradient_noise_std, ridge=ridge, order=order
    )
    mean, covariance, image = start, np.zeros((dimension, dimension)), np.empty(dimension)
    moves, cores = np.zeros((where.size, 5, dimension)), np.zeros((where.size, 4, 4))
    active = np.zeros(where.size, dtype=np.bool_)
    result = np.zeros((releases.size, where.size, 2))
    # Steps that are too large let the iterates grow exponentially.
    with np.errstate(all="ignore"):
        for k in range(int(releases[-1])):
            step, given = steps[k], (rows[k], targets[k])
            shrink = 1.0 - step * ridge
            for p in np.flatnonzero(where == k):
                moves[p], cores[p] = _replacement(
                    covariance, mean, given, (others[p], other_labels[p]), step, shrink
                )
            _propagate(moves, active, rows[k], step, shrink)
            active |= where == k
            _advance(covariance, image, rows[k], step, shrink, (step * std) ** 2)
            mean = shrink * mean - step * rows[k] * (rows[k] @ mean - targets[k])
            if k + 1 in releases and np.any(active):
                pairs = _compare(covariance, moves[active], cores[active], order)
                result[np.searchsorted(releases, k + 1), active] = pairs
    return result


def shuffled_hidden_state_loss(
    steps: ArrayLike,
    *,
    records: int,
    clip_norm: float,
    gradient_noise_std: float,
    step_size: float,
    strong_convexity: float,
    order: float,
    bound: Bound = "reconstruction",
) -> FloatArray:
    r"""Bound on the Rényi loss of the last iterate if the differing record has a random position.

    .. math::
        \frac1{\alpha-1}\ln\Big(\frac{n-k}n
        + \frac1n\sum_{\ell<k}e^{(\alpha-1)D(\ell,k-1-\ell)}\Big)

    where D(ℓ, m), of `hidden_state_divergence`, is for ℓ steps before the differing record's step
    and m after it. "reconstruction" follows the recursion of the log-Sobolev constant from a
    deterministic start. "contraction" is the best bound for Gaussian noise and steps that contract
    by L = 1 - ηλ; it never exceeds "reconstruction".

    Parameters
    ----------
    steps : array_like of int, shape (p,)
        Steps k after which the iterate is released, from 0 to `records`.
    records : int
        Number n of records, one per step.
    clip_norm : float
        Clipping norm c of each gradient; replacing a record moves a gradient by up to 2c.
    gradient_noise_std : float
        Standard deviation σ of the noise on each coordinate of the gradient.
    step_size, strong_convexity : float
        Step size η and strong convexity λ of every record's loss, which may be 0; ηλ < 1.
    order : float
        Rényi order α, more than 1 and at most 1e12.
    bound : {"reconstruction", "contraction"}
        Form of D(ℓ, m), as described above.

    Guarantee
    ---------
    Neighbours are replace-one, only the last iterate is released, and the records' order is
    shuffled and secret. If, in addition, every record's step contracts by the factor L,
    "contraction" holds by privacy amplification by iteration. "reconstruction" is never smaller,
    and so holds too. Steps contract for a λ-strongly convex, β-smooth loss with η ≤ 2/(λ + β). A
    clipped gradient is in general not the gradient of such a loss: for clipped SGD the two bounds
    are no guarantees and serve only for comparison.

    Source
    ------
    Reconstruction of the bound of Ye and Shokri (2022) in Figure 3(b) of lin2025, without the text
    of their theorem. In their notation σ'² = ησ²/2: a step's noise ησ is √(2η)σ'.
    """
    records = require_count("records", records)
    counts = np.atleast_1d(require_counts("steps", steps, least=0, most=records))
    if counts.ndim != 1:
        raise ValueError(f"steps must have shape (p,), got {counts.shape}")
    clip_norm, std, step_size = require_scales(
        clip_norm=clip_norm, gradient_noise_std=gradient_noise_std, step_size=step_size
    )
    strong_convexity = require_scale("strong_convexity", strong_convexity, zero=True)
    require_choice("bound", bound, get_args(Bound))
    if not step_size * strong_convexity < 1:
        raise ValueError(
            f"strong_convexity must be in [0, {1 / step_size}), got {strong_convexity}"
        )
    log_square = 2.0 * np.log1p(-step_size * strong_convexity)
    single_step = 0.5 * order * (2.0 * clip_norm / std) ** 2
    losses = np.zeros(counts.size)
    for index, count in enumerate(counts):
        before = np.arange(count)
        later = count - 1 - before
        divergences = hidden_state_divergence(before, later, single_step, log_square, bound)
        losses[index] = shuffled_loss(divergences, np.ones(count), horizon=records, order=order)
    return losses


def hidden_state_divergence(
    before: NDArray[np.int64],
    later: NDArray[np.int64],
    single_step: float,
    log_square: float,
    bound: Bound,
) -> FloatArray:
    r"""Bound on the last iterate's divergence, ℓ steps before and m after the replaced record's.

    .. math::
        \frac{\alpha(2c)^2}{2\sigma^2}\,L^{2m}\,\frac{s_{\ell+1}}{s_{\ell+m+1}}
        \quad\text{(reconstruction)},\qquad
        \frac{\alpha(2c)^2}{2\sigma^2}\,\frac{L^{2m}}{s_{m+1}}\quad\text{(contraction)},\qquad
        s_k = \sum_{j<k}L^{2j},\quad L = 1-\eta\lambda

    `before` is ℓ, `later` m, and `log_square` ln L². `single_step`, the first factor, is the loss
    if all iterates are seen. `shuffled_hidden_state_loss` defines the other symbols.
    """

    def total(terms: NDArray[np.int64]) -> FloatArray:
        if log_square == 0.0:
            return terms.astype(np.float64)
        return np.asarray(np.expm1(log_square * terms) / np.expm1(log_square))

    if bound == "contraction":
        ratio = 1.0 / total(later + 1)
    else:
        ratio = total(before + 1) / total(before + later + 1)
    # In two factors: the power alone may be too small for a double.
    root = np.exp(0.5 * log_square * later)
    return np.asarray(single_step * root * root * ratio)


def _replacement(
    covariance: FloatArray,
    mean: FloatArray,
    given: tuple[FloatArray, float],
    other: tuple[FloatArray, float],
    step: float,
    shrink: float,
) -> tuple[FloatArray, FloatArray]:
    """Rows (mean shift, four factors) and core of the change that the replacement makes."""
    moves = np.zeros((5, mean.size))
    core = np.zeros((4, 4))
    for slot, (sign, (row, label)) in enumerate(((-1.0, given), (1.0, other))):
        image = covariance @ row
        moves[0] -= sign * step * row * (row @ mean - label)
        moves[1 + 2 * slot], moves[2 + 2 * slot] = row, image
        corner, side = step**2 * (row @ image), -step * shrink
        block = np.array([[corner, side], [side, 0.0]])
        core[2 * slot : 2 * slot + 2, 2 * slot : 2 * slot + 2] = sign * block
    return moves, core


def _compare(
    covariance: FloatArray, moves: FloatArray, cores: FloatArray, order: float
) -> FloatArray:
    """Divergences in both directions, (p, 2), for each change of a law with this covariance."""
    from scipy.linalg import solve_triangular

    dimension = covariance.shape[0]
    given = diagonal_matrix(np.ones(dimension))
    pairs = []
    try:
        factor = np.linalg.cholesky(covariance)
        # What of a variance the other coordinates do not tell must stand out of its rounding.
        if np.min(np.diag(factor) ** 2 / np.diag(covariance)) < dimension * EPS / RELATIVE:
            raise np.linalg.LinAlgError
        # White coordinates make the given covariance the identity, the other a low-rank update.
        white = solve_triangular(factor, moves.reshape(-1, dimension).T, lower=True)
        for p, core in enumerate(cores):
            shift, factors = white[:, 5 * p], white[:, 5 * p + 1 : 5 * p + 5]
            other = LowRankUpdate(given.diagonal, factors, core)
            both = (given, other), (other, given)
            pairs.append([renyi_divergence(shift, *laws, order=order) for laws in both])
    except (ValueError, np.linalg.LinAlgError):
        raise ValueError(
            "features, labels, step_sizes, gradient_noise_std, ridge and order must give means and "
            "variances that double precision can resolve, got some that are too large or too small"
        ) from None
    return np.array(pairs)


@nb.njit(cache=True, nogil=True)
def _propagate(
    moves: FloatArray, active: NDArray[np.bool_], row: FloatArray, step: float, shrink: float
) -> None:
    """Apply (shrink I - step a aᵀ) to each of the carried directions."""
    for p in range(moves.shape[0]):
        if not active[p]:
            continue
        for r in range(moves.shape[1]):
            vector = moves[p, r]
            total = step * inner_product(row, vector)
            for i in range(row.size):
                vector[i] = shrink * vector[i] - total * row[i]


@nb.njit(cache=True, nogil=True)
def _advance(
    covariance: FloatArray,
    image: FloatArray,
    row: FloatArray,
    step: float,
    shrink: float,
    noise: float,
) -> None:
    """V <- C V C + noise I in place; only products with one vector are formed."""
    dimension = row.size
    kappa = 0.0
    for i in range(dimension):
        image[i] = inner_product(covariance[i], row)
        kappa += image[i] * row[i]
    for i in range(dimension):
        line = covariance[i]
        own = step * step * kappa * row[i] - step * shrink * image[i]
        other = -step * shrink * row[i]
        for j in range(dimension):
            line[j] = shrink * shrink * line[j] + own * row[j] + other * image[j]
        line[i] += noise
