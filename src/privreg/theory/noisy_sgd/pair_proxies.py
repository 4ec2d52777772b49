"""Proxies for the pair of records that loses most, which spare the search over all pairs.

None of them bounds the loss: a proxy orders pairs, and a supremum over the pairs that it picks may
fall short of the supremum over all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.units import from_units, in_units
from privreg.validation import (
    require_answer,
    require_array,
    require_broadcast,
    require_count,
    require_real,
)

# Share of the sum of squares below which a difference of inner products is computed anew.
NEAR = 1e-7


def pair_gradient_gap(
    features: ArrayLike, labels: ArrayLike, reference: ArrayLike, *, ridge: ArrayLike = 0.0
) -> NDArray[np.float64]:
    r"""Proxy for the loss of each ordered pair (i, j), (..., n, n): the gap of its gradients.

    .. math::
        \|g_{ij}\|,\qquad g_{ij} = (b_ia_i - b_ja_j) - (a_ia_i^\top - a_ja_j^\top + \delta I)\,z

    With z the mean of the iterate at the differing step and δ = 0, η times it is the true gap
    of the means. The paper's g takes the vector of ones for z and keeps δ, which has no
    counterpart in that gap and makes the norm depend on the order of the pair.

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
    reference : array_like, shape (..., d)
        z, in the same basis as the features; several cost one matrix product together.
    ridge : array_like, shape (...)
        δ, at least 0; of a shape that broadcasts to the references'.

    Source
    ------
    lin2025, section 5, Figure 1(b).
    """
    a = require_array("features", features, shape=(None, None))
    b = require_array("labels", labels, shape=a.shape[:1])
    points = require_array("reference", reference, shape=(..., a.shape[1]))
    ridge = require_real("ridge", ridge, least=0)
    if require_broadcast(reference=points[..., 0], ridge=ridge) != points.shape[:-1]:
        raise ValueError(f"ridge must broadcast to {points.shape[:-1]}, got {ridge.shape}")
    names = "features, labels, reference and ridge"
    # No square leaves double precision in units of each row.
    units = np.frexp(np.max(np.abs(a), axis=1))[1]
    rows = np.ldexp(a, -units[:, None])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        factors = require_answer(names, np.ldexp(b - points @ a.T, units))
        pulls = require_answer(names, ridge[..., None] * points)
        gram = rows @ rows.T
        result = np.empty((*factors.shape, b.size))
        for at in np.ndindex(factors.shape[:-1]):
            result[at] = _gap(rows, gram, factors[at], pulls[at])
    return require_answer(names, result)


def _gap(
    rows: NDArray[np.float64],
    gram: NDArray[np.float64],
    factors: NDArray[np.float64],
    pull: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Distances of rows times factors, shape (n,), moved by a pull."""
    scaled, unit = in_units(np.append(factors, pull))
    factors, pull = scaled[: factors.size], scaled[factors.size :]
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
    return from_units(gap, unit)


def largest_pairs(proxy: ArrayLike, count: int) -> NDArray[np.intp]:
    """Ordered pairs of distinct records with the largest proxy, largest first, shape (count, 2).

    Parameters
    ----------
    proxy : array_like, shape (n, n)
        A proxy for each ordered pair, more than -inf; `inf` allowed.
    count : int
        Number of pairs, from 1 to n (n - 1).
    """
    limits = {"above": -np.inf, "infinite": True}
    values = require_array("proxy", proxy, shape=(None, None), **limits).copy()
    if values.shape[0] != values.shape[1]:
        raise ValueError(f"proxy must have shape (n, n), got {values.shape}")
    np.fill_diagonal(values, -np.inf)
    count = _at_most("count", count, values.size - values.shape[0])
    flat = values.ravel()
    top = np.argpartition(flat, -count)[-count:]
    top = top[np.lexsort((top, -flat[top]))]
    return np.stack(np.unravel_index(top, values.shape), axis=1)


def candidate_records(
    features: ArrayLike, labels: ArrayLike, references: ArrayLike, *, count: int
) -> NDArray[np.intp]:
    r"""Ascending indices of records of large gradient or norm, for a search for the worst pair.

    .. math:: \|a_i\|\,|a_i^\top z - b_i| \quad\text{at each reference } z,\qquad \|a_i\|

    Soon after the differing step the gap of the means rules the loss, later the gap of the
    covariances, which grows with the norms. In high dimension features are nearly orthogonal, so
    the pairs with the widest gap consist of the records with the largest gradients.

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
    references : array_like, shape (r, d) or (d,)
        Points z at which gradients are taken, in the same basis as the features.
    count : int
        Records taken by each of the r + 1 criteria, from 1 to n.

    Source
    ------
    A correction of lin2025, section 5, which takes one criterion only, at the vector of ones.
    """
    a = require_array("features", features, shape=(None, None))
    b = require_array("labels", labels, shape=a.shape[:1])
    points = require_real("references", references)
    points = require_array("references", np.atleast_2d(points), shape=(None, a.shape[1]))
    count = _at_most("count", count, a.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        # In units of each row and of the largest, so that no square or product vanishes.
        units = np.max(np.abs(a), axis=1)
        rows = a / np.where(units > 0, units, 1.0)[:, None]
        norms = units / (np.max(units) or 1.0) * np.sqrt(np.sum(rows**2, axis=1))
        residuals = np.abs(points @ a.T - b)
        residuals /= np.maximum(np.max(residuals, axis=1, keepdims=True), 1e-300)
        criteria = np.vstack([norms * residuals, norms])
    require_answer("features, labels and references", criteria)
    top = np.argsort(-criteria, axis=1, kind="stable")[:, :count]
    return np.asarray(np.unique(top))


def _at_most(name: str, count: int, most: int) -> int:
    if require_count(name, count) > most:
        raise ValueError(f"{name} must be from 1 to {most}, got {count}")
    return int(count)
