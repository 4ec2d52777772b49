"""Divergences of all ordered pairs from Gram matrices of 4 x 4, with bounds of their errors.

What is called once or twice a pair is inlined: a call costs about as much as what it computes.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from numpy.typing import NDArray

from privreg.privacy.gaussian import ABSOLUTE, RELATIVE


@nb.njit(cache=True, nogil=True, error_model="numpy")
def pair_divergences(
    outer: NDArray[np.float64],
    mixed: NDArray[np.float64],
    inner: NDArray[np.float64],
    residuals: NDArray[np.float64],
    kappa: NDArray[np.float64],
    step: float,
    order: float,
    rounding: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Divergence of each ordered pair from the weighted Gram matrices of U = [carry·a, cross·a].

    Relative errors come second: 0 where the Gram matrices, right to `rounding`, tell a divergence
    to `RELATIVE` or `ABSOLUTE`, and `inf` where they do not tell whether it is finite. With W of
    unit columns, M = I + WKWᵀ and k the sum of the entries of |K|, a change of WᵀW by at most δ an
    entry changes

    .. math:: \ln\det M \text{ by } \delta\Big(k+\frac{k^2}{\lambda_{\min}(M)}\Big),\qquad
        q=(Wc)^\top M^{-1}Wc \text{ by } \delta\Big(|c|_1+k\sqrt{q/\lambda_{\min}(M)}\Big)^2.
    """
    count = residuals.size
    result, errors = np.zeros((count, count)), np.zeros((count, count))
    log_det, blur = np.empty(count), np.empty(count)
    reach, pull = np.empty(count), np.empty(count)
    lengths, norms = np.empty((count, 2)), np.empty(4)
    for i in range(count):
        corner = step**2 * kappa[i]
        minor = outer[i, i] * inner[i, i] - mixed[i, i] ** 2
        excess = corner * outer[i, i] - 2.0 * step * mixed[i, i] - step**2 * minor
        log_det[i] = np.log1p(excess)
        lengths[i, 0], lengths[i, 1] = np.sqrt(outer[i, i]), np.sqrt(inner[i, i])
        side = step * lengths[i, 0] * lengths[i, 1]
        reach[i] = corner * outer[i, i] + 2.0 * side
        blur[i] = rounding * (reach[i] + 2.0 * side**2) / (1.0 + excess)
        pull[i] = step * abs(residuals[i]) * lengths[i, 0]
    gram, factor = np.empty((4, 4)), np.empty((4, 4))
    turned, small = np.empty((4, 4)), np.empty((4, 4))
    core, move = np.empty((2, 2)), np.zeros(4)
    solution, spare = np.empty(4), np.empty(4)
    index, pivots = np.empty(2, np.int64), np.empty(4, np.int64)
    weight, half = np.array([1.0 - order, order]), 0.5 / (order - 1.0)
    for i in range(count):
        for j in range(i):
            index[0], index[1] = i, j
            for p in range(2):
                norms[2 * p], norms[2 * p + 1] = lengths[index[p], 0], lengths[index[p], 1]
                for q in range(2):
                    u, v = index[p], index[q]
                    gram[2 * p, 2 * q] = outer[u, v]
                    gram[2 * p, 2 * q + 1] = mixed[u, v]
                    gram[2 * p + 1, 2 * q] = mixed[u, v]
                    gram[2 * p + 1, 2 * q + 1] = inner[u, v]
            # Two columns of the factor tell most covariances that are not definite.
            least = 1e-15 * max(gram[0, 0], gram[1, 1], gram[2, 2], gram[3, 3])
            rank, stop = _factor(gram, factor, pivots, least, 0, 2), 2
            # The other order of the pair has the same factor, its rows in the other order.
            for k in range(4):
                for r in range(2):
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
                margin = _two_pivots(rows, min(rank, 2), core, small, solution)
                mixture = np.inf
                if margin > 0.0:
                    if rank == stop == 2:
                        rank, stop = _factor(gram, factor, pivots, least, 2, 4), 4
                        for k in range(4):
                            for r in range(2, 4):
                                turned[k, r] = factor[(k + 2) % 4, r]
                    mixture, quadratic, margin = _mixture(rows, rank, core, move, small, solution)
                if np.isinf(mixture):
                    doubt = _doubt(norms, rows, pivots, turn, margin, core, small, solution, spare)
                    result[first, second] = np.inf
                    if not rounding * doubt < 0.5:
                        errors[first, second] = np.inf
                else:
                    ratio = mixture - weight[0] * log_det[first] - weight[1] * log_det[second]
                    found = 0.5 * order * quadratic - 0.5 * ratio / (order - 1.0)
                    size = weight[1] * reach[second] - weight[0] * reach[first]
                    inverse = 1.0 / margin
                    spread = (size**2 + size + 4.0) * inverse
                    lost = rounding * (size + spread)
                    moved = rounding * ((pull[first] + pull[second]) ** 2 + spread * quadratic)
                    if rank < 4:
                        own, cross, shift = _left_out(gram, norms, turn, core, move)
                        lost += own + cross**2 * inverse
                        moved += shift**2 + cross**2 * quadratic * inverse
                    blurred = weight[1] * blur[second] - weight[0] * blur[first]
                    error = order * moved + (lost + blurred) * half
                    result[first, second] = found
                    if not lost < 0.1:
                        errors[first, second] = np.inf
                    elif not error <= max(RELATIVE * found, ABSOLUTE):
                        errors[first, second] = error / max(found, ABSOLUTE)
    return result, errors


@nb.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _factor(
    left: NDArray[np.float64],
    factor: NDArray[np.float64],
    pivots: NDArray[np.int64],
    least: float,
    start: int,
    stop: int,
) -> int:
    """Columns `start` to `stop` of a Gram matrix's pivoted Cholesky factor, or up to its rank.

    The columns may be parallel (they are if Σ is isotropic), so it stops at the rank, with what it
    leaves out in `left`, which is the matrix itself before the first column.
    """
    for r in range(start, stop):
        pivot = 0
        for k in range(4):
            if left[k, k] > left[pivot, pivot]:
                pivot = k
        if not left[pivot, pivot] > least:
            return r
        pivots[r] = pivot
        root = np.sqrt(left[pivot, pivot])
        for k in range(4):
            factor[k, r] = left[k, pivot] / root
        for k in range(4 if r < 3 else 0):
            for m in range(4):
                left[k, m] -= factor[k, r] * factor[m, r]
        left[pivot, pivot] = 0.0
    return stop


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _left_out(
    left: NDArray[np.float64],
    norms: NDArray[np.float64],
    turn: int,
    core: NDArray[np.float64],
    move: NDArray[np.float64],
) -> tuple[float, float, float]:
    """What a factor leaves out of W, l of the columns' lengths g: l|K|l, l|K|g and l|move|."""
    own, cross, shift = 0.0, 0.0, 0.0
    for block in range(2):
        k = 2 * ((block + turn) % 2)
        one, two = np.sqrt(max(left[k, k], 0.0)), np.sqrt(max(left[k + 1, k + 1], 0.0))
        corner, side = abs(core[block, 0]), abs(core[block, 1])
        own += one * (corner * one + 2.0 * side * two)
        cross += one * (corner * norms[k] + side * norms[k + 1]) + two * side * norms[k]
        shift += one * abs(move[2 * block])
    return own, cross, shift


@nb.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _two_pivots(
    factor: NDArray[np.float64],
    rank: int,
    core: NDArray[np.float64],
    small: NDArray[np.float64],
    solution: NDArray[np.float64],
) -> float:
    """The first of `_mixture`'s first two pivots that is not positive, or else a positive one."""
    total = 1.0
    for r in range(rank):
        a, b = factor[0, r] * core[0, 0], factor[0, r] * core[0, 1]
        c, d = factor[1, r] * core[0, 1], factor[2, r] * core[1, 0]
        e, f = factor[2, r] * core[1, 1], factor[3, r] * core[1, 1]
        for s in range(r + 1):
            total = 1.0 if r == s else 0.0
            total += a * factor[0, s]
            total += b * factor[1, s]
            total += c * factor[0, s]
            total += d * factor[2, s]
            total += e * factor[3, s]
            total += f * factor[2, s]
            if s < r:
                small[r, s] = total / small[s, s]
            elif r == 1:
                total -= small[1, 0] * small[1, 0]
        if not total > 0.0:
            solution[0] = r
            return total
        small[r, r] = np.sqrt(total)
    return total


@nb.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _mixture(
    factor: NDArray[np.float64],
    rank: int,
    core: NDArray[np.float64],
    move: NDArray[np.float64],
    small: NDArray[np.float64],
    solution: NDArray[np.float64],
) -> tuple[float, float, float]:
    """ln det(I + WKWᵀ) and its inverse form at W `move`, WᵀW the factor's; `inf` if not definite.

    K has two blocks [[a, b], [b, 0]], whose a and b are the rows of `core`. Last comes a lower
    bound of the least eigenvalue: by the means of the others, from their product and sum. If it is
    not definite that is the pivot which is not positive, and `solution[0]` its number.
    """
    log_det = 0.0
    quadratic = 0.0
    trace, det = 0.0, 1.0
    for r in range(rank):
        # Written out, since a compiler must take stores for changes of the factor.
        a, b = factor[0, r] * core[0, 0], factor[0, r] * core[0, 1]
        c, d = factor[1, r] * core[0, 1], factor[2, r] * core[1, 0]
        e, f = factor[2, r] * core[1, 1], factor[3, r] * core[1, 1]
        for s in range(r + 1):
            total = 1.0 if r == s else 0.0
            total += a * factor[0, s]
            total += b * factor[1, s]
            total += c * factor[0, s]
            total += d * factor[2, s]
            total += e * factor[3, s]
            total += f * factor[2, s]
            if r == s:
                trace += total
            for m in range(s):
                total -= small[r, m] * small[s, m]
            if r == s:
                if not total > 0.0:
                    solution[0] = r
                    return np.inf, np.inf, total
                log_det += np.log(total)
                det *= total
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
    least, share = det, (rank - 1) / trace
    for _ in range(rank - 1):
        least *= share
    return log_det, quadratic, min(least, 1.0)


@nb.njit(cache=True, nogil=True, error_model="numpy")
def _doubt(
    norms: NDArray[np.float64],
    factor: NDArray[np.float64],
    pivots: NDArray[np.int64],
    turn: int,
    pivot: float,
    core: NDArray[np.float64],
    small: NDArray[np.float64],
    solution: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> float:
    """How far a change of the Gram matrix can lift a negative pivot of I + WKWᵀ, over the pivot.

    The pivot is vᵀ(I + FᵀKF)v of the factor F, which is cᵀ(G + GKG)c with Fᵀc = v.
    """
    last = int(solution[0])
    v, c = solution, weights
    v[last] = 1.0
    for r in range(last - 1, -1, -1):
        total = -small[last, r]
        for s in range(r + 1, last):
            total -= small[s, r] * v[s]
        v[r] = total / small[r, r]
    for r in range(last, -1, -1):
        total = v[r]
        for s in range(r + 1, last + 1):
            total -= factor[(pivots[s] + 2 * turn) % 4, r] * c[s]
        c[r] = total / factor[(pivots[r] + 2 * turn) % 4, r]
    near, far, own = 0.0, 0.0, 0.0
    for r in range(last + 1):
        near += abs(c[r]) * norms[pivots[r]]
        own += v[r] ** 2
    for block in range(2):
        k, m = 2 * block, 2 * block + 1
        first, second = 0.0, 0.0
        for r in range(last + 1):
            first += abs(factor[k, r] * v[r])
            second += abs(factor[m, r] * v[r])
        one = 2 * ((block + turn) % 2)
        corner, side = abs(core[block, 0]), abs(core[block, 1])
        far += norms[one] * (corner * first + side * second) + norms[one + 1] * side * first
        own += corner * first**2 + 2.0 * side * first * second
    return (near * (near + 2.0 * far) + own) / abs(pivot)
