"""Search for the ordered pair of observed records with the largest privacy loss.

As in `renyi_loss`, losses are approximations that rest on a conjecture and guarantee nothing. A
maximum over observed pairs does not bound the loss of records that were not observed.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    MOST,
    Computed,
    FloatArray,
    frozen,
    require_array,
    require_count,
    require_real,
    warn_beyond,
)
from privreg.privacy.renyi import ABSOLUTE, RELATIVE
from privreg.theory.noisy_sgd.diffusion import WITHIN, HomogenisedSGD, require_records
from privreg.theory.noisy_sgd.renyi_loss import (
    Record,
    ReleaseGeometry,
    Variant,
    pair_divergence,
    release_geometries,
)

# Share of the sum of squares below which a difference of inner products is computed anew.
NEAR = 1e-7
_STORED_GROUPS = 4  # distinct eigenvalues, up to which Gram matrices are kept


class WorstPair(NamedTuple):
    """Largest divergence D(first ‖ second) over ordered pairs of records, and its two indices."""

    divergence: float
    first: int
    second: int


class PairSearch(Computed):
    """Divergences of all ordered pairs of the given records, from their Gram matrices.

    A divergence depends on a pair only through weighted inner products of the two records. If the
    second moment Σ has few distinct eigenvalues, these products are sums of Gram matrices. The
    matrices are formed once; a divergence then costs O(1) for any d. If Σ has many, three matrix
    products are formed for each time and position. Inner products of nearly parallel vectors lose
    half their digits. If too few are left, a pair is computed in O(d) as in `average_divergence`.

    Parameters
    ----------
    law : HomogenisedSGD
        Law with gradient noise, and with all multiplicities equal to 1.
    features : array_like, shape (n, d)
        Features of the records in the eigenbasis of Σ, at most 1e12 in size.
    labels : array_like, shape (n,)
        Labels, at most 1e12 in size.

    Guarantee
    ---------
    None: the divergences are approximations that rest on a conjecture, for observed pairs only.

    Source
    ------
    lin2025, Theorems 4.3 and 4.5, in the correct direction D(first ‖ second).
    """

    def __init__(self, law: HomogenisedSGD, features: ArrayLike, labels: ArrayLike) -> None:
        self.law = law
        rows, targets = require_records(features, labels, law.problem.eigenvalues.size)
        self.features, self.labels = frozen(rows), frozen(targets)
        groups = law.distinct_eigenvalues.size
        self._grams: FloatArray | None = None
        if groups <= _STORED_GROUPS:
            # A weight is a function of the eigenvalue alone, so one coordinate of each serves.
            self._representative = np.unique(law.group, return_index=True)[1]
            grams = np.empty((groups, self.labels.size, self.labels.size))
            for group, gram in enumerate(grams):
                block = self.features[:, law.group == group]
                np.matmul(block, block.T, out=gram)
            self._grams = grams
            self._squares = np.diagonal(grams, axis1=1, axis2=2).copy()

    def divergences(
        self, *, times: ArrayLike, position: ArrayLike, order: ArrayLike, variant: Variant = "exact"
    ) -> FloatArray:
        """Divergence D(i ‖ j) of an average of iterates, for ordered pairs of records: (..., n, n).

        D is accurate to a relative 1e-6 or an absolute 1e-9. It is `inf` if the mixture covariance
        of the pair is not positive definite, or if double precision cannot decide this.

        Parameters
        ----------
        times : array_like, shape (J,)
            Ascending times of the iterates to average; a single time for the last iterate.
        position : array_like, shape (...)
            Time of the step that uses record i or j.
        order : array_like, shape (...)
            Rényi order, more than 1 and at most 1e12; it broadcasts with `position`.
        variant : {"exact", "paper"}
            "paper" uses the printed covariance of an average; the direction is always D(i ‖ j).

        Warns
        -----
        AccuracyWarning
            If a divergence may be less accurate than stated.
        """
        places = np.asarray(position, dtype=np.float64)
        orders = require_real("order", order, above=1, most=MOST)
        shape = np.broadcast_shapes(places.shape, orders.shape)
        which = np.broadcast_to(np.arange(places.size).reshape(places.shape), shape)
        orders = np.broadcast_to(orders, shape)
        result = np.zeros((*shape, self.labels.size, self.labels.size))
        positions = places.ravel()
        for k, geometry in enumerate(
            release_geometries(self.law, times=times, position=positions, variant=variant)
        ):
            if geometry is None:
                continue
            carry, cross = geometry.carry, geometry.cross
            parts = np.array([carry**2, carry * cross, cross**2]) / geometry.base
            if self._grams is None:
                grams, weights = np.array([self._gram(part) for part in parts]), np.eye(3)
                kappa = self.features**2 @ geometry.prior
            else:
                grams, weights = self._grams, np.take(parts, self._representative, axis=1)
                kappa = geometry.prior[self._representative] @ self._squares
            for at in map(tuple, np.argwhere(which == k)):
                result[at] = self._divergences(geometry, grams, weights, kappa, float(orders[at]))
        return result

    def worst(self, *, times: ArrayLike, position: float, order: float) -> WorstPair:
        """Ordered pair of distinct records with the largest of the `divergences`."""
        values = self.divergences(times=times, position=position, order=order)
        if self.labels.size < 2:
            raise ValueError("features must have at least 2 rows to make a pair, got 1")
        np.fill_diagonal(values, -np.inf)
        first, second = np.unravel_index(np.argmax(values), values.shape)
        return WorstPair(float(values[first, second]), int(first), int(second))

    def _divergences(
        self,
        geometry: ReleaseGeometry,
        grams: FloatArray,
        weights: FloatArray,
        kappa: FloatArray,
        order: float,
    ) -> FloatArray:
        """Divergences at one position and order; pairs that lose digits are computed one by one."""
        residuals = self.features @ geometry.mean - self.labels
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

    def _gram(self, weight: FloatArray) -> FloatArray:
        if np.any(weight < 0):
            return (self.features * weight) @ self.features.T
        scaled = self.features * np.sqrt(weight)
        return scaled @ scaled.T


def candidate_records(
    features: ArrayLike, labels: ArrayLike, references: ArrayLike, *, count: int
) -> NDArray[np.intp]:
    r"""Ascending indices of records with large gradients or norms, to search for the worst pair.

    .. math:: \|a_i\|\,|a_i^\top z - b_i| \quad\text{at each reference } z,\qquad \|a_i\|

    Soon after the replaced record's step, the gap between the iterate's two means dominates the
    loss. Later the gap between its covariances dominates. This gap grows with the records' norms.
    In high dimension features are nearly orthogonal, so large gradients move the mean most.

    Parameters
    ----------
    features, labels : array_like, shapes (n, d) and (n,)
        Records. Features, labels and references are at most 1e12 in absolute value.
    references : array_like, shape (r, d) or (d,)
        Points z at which gradients are computed, in the same basis as the features.
    count : int
        Number of records taken by each of the r + 1 criteria, from 1 to n.

    Source
    ------
    A correction of lin2025, section 5, which uses only the gradient at the vector of ones.
    """
    a, b, points = _at(features, labels, "references", references)
    points = points.reshape(-1, a.shape[1])
    count = require_count("count", count, most=a.shape[0])
    norms = np.linalg.norm(a, axis=1)
    criteria = np.vstack([norms * np.abs(points @ a.T - b), norms])
    top = np.argsort(-criteria, axis=1, kind="stable")[:, :count]
    return np.asarray(np.unique(top))


def pair_gradient_gap(
    features: ArrayLike, labels: ArrayLike, reference: ArrayLike, *, ridge: ArrayLike = 0.0
) -> FloatArray:
    r"""Norm of each ordered pair's gradient difference, a proxy for its loss, shape (..., n, n).

    .. math::
        \|g_{ij}\|,\qquad g_{ij} = (b_ia_i - b_ja_j) - (a_ia_i^\top - a_ja_j^\top + \delta I)\,z

    Let z be the mean of the iterate before the step that uses record i or j, and η the step size.
    After this step the runs' means differ by η times the proxy with δ = 0: both have one penalty.
    The paper takes the vector of ones for z, and keeps δ. At δ > 0, the order of the pair matters.

    Parameters
    ----------
    features, labels : array_like, shapes (n, d) and (n,)
        Records. Features, labels and points are at most 1e12 in absolute value.
    reference : array_like, shape (..., d)
        Points z, in the same basis as the features. All points together cost one matrix product.
    ridge : array_like, shape (...)
        Penalty δ, from 0 to 1e12; it broadcasts to the leading dimensions of `reference`.

    Source
    ------
    lin2025, section 5, Figure 1(b).
    """
    a, b, points = _at(features, labels, "reference", reference)
    ridge = np.broadcast_to(require_real("ridge", ridge, least=0, most=MOST), points.shape[:-1])
    factors, pulls, gram = b - points @ a.T, ridge[..., None] * points, a @ a.T
    result = np.empty((*factors.shape, b.size))
    for at in np.ndindex(factors.shape[:-1]):
        result[at] = _gap(a, gram, factors[at], pulls[at])
    return result


def largest_pairs(proxy: ArrayLike, count: int) -> NDArray[np.intp]:
    """Ordered pairs of distinct records with the largest proxy, largest first, shape (count, 2).

    Parameters
    ----------
    proxy : array_like, shape (n, n)
        Proxy for the loss of each ordered pair, more than -inf; `inf` allowed.
    count : int
        Number of pairs, from 1 to n (n - 1).
    """
    values = require_array("proxy", proxy, shape=(None, None), above=-np.inf, infinite=True).copy()
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"proxy must have shape (n, n), got {values.shape}")
    np.fill_diagonal(values, -np.inf)
    count = require_count("count", count, most=values.size - values.shape[0])
    flat = values.ravel()
    top = np.argpartition(flat, -count)[-count:]
    top = top[np.lexsort((top, -flat[top]))]
    return np.stack(np.unravel_index(top, values.shape), axis=1)


def _at(
    features: ArrayLike, labels: ArrayLike, name: str, points: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Records, and points (..., d) at which to compute their gradients."""
    rows, targets = require_records(features, labels)
    return rows, targets, require_array(name, points, shape=(..., rows.shape[1]), **WITHIN)


def _gap(rows: FloatArray, gram: FloatArray, factors: FloatArray, pull: FloatArray) -> FloatArray:
    """Distances ‖f_i a_i - f_j a_j - pull‖, (n, n), with rows a and `factors` f, shape (n,)."""
    square = factors**2 * np.diag(gram)
    parts = square[:, None] + (square + pull @ pull)
    gap = np.multiply.outer(-2.0 * factors, factors)
    gap *= gram
    gap += parts
    if np.any(pull):
        along = 2.0 * factors * (rows @ pull)
        gap -= along[:, None] - along
    # Inner products keep half the digits of a gap that is far smaller than what it is between.
    parts *= NEAR
    near = gap < parts
    np.fill_diagonal(near, False)
    np.sqrt(np.maximum(gap, 0.0, out=gap), out=gap)
    np.fill_diagonal(gap, np.linalg.norm(pull))
    for i in np.flatnonzero(np.any(near, axis=1)):
        others = factors[near[i], None] * rows[near[i]]
        gap[i, near[i]] = np.linalg.norm(factors[i] * rows[i] - others - pull, axis=1)
    return gap


@nb.njit(cache=True, nogil=True, error_model="numpy")
def pair_divergences(
    grams: FloatArray,
    weights: FloatArray,
    residuals: FloatArray,
    kappa: FloatArray,
    step: float,
    order: float,
    rounding: float,
) -> tuple[FloatArray, FloatArray]:
    r"""Divergence of each ordered pair, from weighted Gram matrices of the columns of U.

    The columns of U are carry·a and cross·a, as in `ReleaseGeometry`. The three weighted Gram
    matrices (outer: carry with carry; mixed; inner) are sums over g of `grams`, shape (g, n, n),
    with `weights`, shape (3, g). With W_i = U_i / √base, the mixture covariance is

    .. math:: M = N + W_jBW_j^\top,\quad N = I + W_iAW_i^\top,\quad A = (1-\alpha)K_i,\;
        B = \alpha K_j,\qquad N^{-1} = I - W_iTW_i^\top,\quad
        T = (A^{-1}+G_{ii})^{-1} = \frac{A+\det A\;\mathrm{adj}\,G_{ii}}{\det(I+AG_{ii})}

    It follows, with :math:`S = W_j^\top N^{-1}W_j = G_{jj} - G_{ji}TG_{ij}`, that

    .. math:: \det M = \det(I+AG_{ii})\det(I+BS),\qquad
        M^{-1} = N^{-1} - N^{-1}W_j\frac{B+\det B\;\mathrm{adj}\,S}{\det(I+BS)}W_j^\top N^{-1}.

    A and B have one eigenvalue of each sign. M is therefore positive definite exactly if both
    determinants are positive, or if both determinants and :math:`S_{11}` are negative.

    The second result holds relative errors, for Gram matrices with relative error δ = `rounding`.
    An error is 0 if the divergence is right to `RELATIVE` or `ABSOLUTE`, and `inf` if rounding
    leaves open whether the divergence is finite. Columns of W are scaled to length 1, so that
    entries of Gram matrices are at most 1. Let k be :math:`4|\det A|` plus the sum of the entries
    of :math:`|A|`. Entries of T are at most :math:`t = k/|\det(I+AG_{ii})|`. To first order, this
    determinant has the relative error :math:`\rho = \delta(1+k)/|\det(I+AG_{ii})|`. Let F be the
    fraction in :math:`M^{-1}`, m the gap between the means, π its coefficients in the columns of W,
    and :math:`y = FW_j^\top N^{-1}m`. Entries of S and products with m have the error

    .. math:: \Delta = \delta(1+5t)+t\rho,\qquad \ln\det M \text{ changes by } \rho+\Delta|F|,
        \qquad \text{the quadratic form by } \Delta(|\pi|+|y|)^2,

    with :math:`|\cdot|` for sums of entries. The rounding of the last sums is added.
    """
    count = residuals.size
    result, errors = np.empty((count, count)), np.zeros((count, count))
    diagonal = np.zeros((3, count))
    for g in range(len(grams)):
        diagonal += np.outer(weights[:, g], np.diag(grams[g]))
    outer, mixed, inner = diagonal[0], diagonal[1], diagonal[2]
    corner, move = step**2 * kappa, step * residuals
    length, width = np.sqrt(outer), np.sqrt(inner)
    area, pull = length * width, np.abs(move) * length
    side = step * area
    reach = corner * outer + 2.0 * side
    linear = corner * outer - 2.0 * step * mixed
    minor = step**2 * (outer * inner - mixed**2)
    log_det = np.log1p(linear - minor)
    blur = rounding * (reach + 2.0 * side**2) / (1.0 + (linear - minor))
    a, b, c = order * corner, order * step, (order * step) ** 2
    weight, half = 1.0 - order, 0.5 / (order - 1.0)
    products, found = np.empty((3, count)), np.empty((5, count))
    p, q, r = products[0], products[1], products[2]
    det, square, lead, lost, moved = found[0], found[1], found[2], found[3], found[4]
    for i in range(count):
        products[:] = 0.0
        for g in range(len(grams)):
            w0, w1, w2 = weights[0, g], weights[1, g], weights[2, g]
            for j in range(count):
                value = grams[g, i, j]
                p[j] += w0 * value
                q[j] += w1 * value
                r[j] += w2 * value
        first = 1.0 + (weight * linear[i] - weight**2 * minor[i])
        t11 = (weight * corner[i] - (weight * step) ** 2 * inner[i]) / first
        t12 = ((weight * step) ** 2 * mixed[i] - weight * step) / first
        t22 = -((weight * step) ** 2) * outer[i] / first
        size = 4.0 * (weight * side[i]) ** 2 - weight * reach[i]
        t, rho = size / abs(first), rounding * (1.0 + size) / abs(first)
        delta = rounding * (1.0 + 5.0 * t) + t * rho
        x, own_outer, own_mixed, own_pull = -move[i], outer[i], mixed[i], pull[i]
        # Without a branch or a call, so that it is compiled for several pairs at once.
        for j in range(count):
            y, pj, qj, rj = move[j], p[j], q[j], r[j]
            tp, tq = t11 * pj + t12 * qj, t12 * pj + t22 * qj
            s11 = outer[j] - (pj * tp + qj * tq)
            s12 = mixed[j] - (qj * tp + rj * tq)
            s22 = inner[j] - (qj * (t11 * qj + t12 * rj) + rj * (t12 * qj + t22 * rj))
            second = 1.0 + (a[j] * s11 - 2.0 * b * s12 - c * (s11 * s22 - s12 * s12))
            inverse = 1.0 / second
            # What remains of B, as N^-1 takes the columns of j to S, is f / det(I + BS).
            f11, f12, f22 = a[j] - c * s22, c * s12 - b, -c * s11
            # The gap of the means is x and y of the columns: its products with all four, then
            # with the columns of j in the inverse of N.
            g1, g2 = x * own_outer + y * pj, x * own_mixed + y * qj
            h1, h2 = x * pj + y * outer[j], x * qj + y * mixed[j]
            u1, u2 = t11 * g1 + t12 * g2, t12 * g1 + t22 * g2
            v1, v2 = h1 - (pj * u1 + qj * u2), h2 - (qj * u1 + rj * u2)
            n1, n2 = f11 * v1 + f12 * v2, f12 * v1 + f22 * v2
            form = (n1 * v1 + n2 * v2) * inverse
            det[j], lead[j] = second, s11
            square[j] = x * g1 + y * h1 - (g1 * u1 + g2 * u2) - form
            share = abs(inverse)
            size = 1.0 + a[j] * abs(s11) + 2.0 * b * abs(s12) + c * (abs(s11 * s22) + s12 * s12)
            whole = abs(f11) * outer[j] + 2.0 * abs(f12) * area[j] + abs(f22) * inner[j]
            lost[j] = (rounding * size + delta * whole) * share
            reached = own_pull + pull[j] + (abs(n1) * length[j] + abs(n2) * width[j]) * share
            parts = (a[j] + c * abs(s22)) * v1 * v1 + c * abs(s11) * v2 * v2
            parts += 2.0 * (b + c * abs(s12)) * abs(v1 * v2)
            moved[j] = delta * reached * reached + rounding * share * (parts + size * abs(form))
        own_log, own_blur = np.log(abs(first)) - weight * log_det[i], rho - weight * blur[i]
        for j in range(count):
            finite, sure = det[j] > 0.0, rho < 0.5 and lost[j] < 0.5
            if first < 0.0:
                finite = not finite and lead[j] < 0.0
                sure = sure and abs(lead[j]) > 2.0 * delta * outer[j]
            result[i, j] = np.inf
            if not (sure and finite):
                errors[i, j] = 0.0 if sure else np.inf
                continue
            logs = np.log(abs(det[j])) + own_log - order * log_det[j]
            value = 0.5 * order * square[j] - half * logs
            doubt = lost[j] + own_blur + order * blur[j]
            error = order * moved[j] + half * doubt
            # Not so where one of them is not a number.
            if not (lost[j] + rho < 0.1 and error < np.inf and abs(value) < np.inf):
                errors[i, j] = np.inf
                continue
            # Rounding can leave a divergence of 0 a little below it.
            result[i, j] = max(0.0, value)
            if error > max(RELATIVE * value, ABSOLUTE):
                errors[i, j] = error / max(value, ABSOLUTE)
        result[i, i] = errors[i, i] = 0.0
    return result, errors
