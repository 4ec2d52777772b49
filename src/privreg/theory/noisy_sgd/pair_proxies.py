"""Proxies for the pair of records that loses most, which spare the search over all pairs.

None of them bounds the loss: a proxy orders pairs, and a supremum over the pairs that it picks may
fall short of the supremum over all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pair_gradient_gap(
    features: ArrayLike, labels: ArrayLike, reference: ArrayLike, *, ridge: float = 0.0
) -> NDArray[np.float64]:
    r"""Proxy for the loss of each ordered pair: the gap of its gradients at a reference.

    .. math::
        \|g_{ij}\|,\qquad g_{ij} = (b_ia_i - b_ja_j) - (a_ia_i^\top - a_ja_j^\top + \delta I)\,z

    With z the mean of the iterate at the differing step and δ = 0, η times it is the true gap
    of the means. The paper's g takes the vector of ones for z and keeps δ, which has no
    counterpart in that gap and makes the norm depend on the order of the pair.

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
    reference : array_like, shape (d,)
        z, in the same basis as the features.
    ridge : float
        δ, at least 0.

    Returns
    -------
    ndarray, shape (n, n)
        Row i, column j for the pair (i, j).

    Source
    ------
    lin2025, section 5, Figure 1(b).
    """
    a = np.asarray(features, dtype=np.float64)
    z = np.asarray(reference, dtype=np.float64)
    pulls = a * (np.asarray(labels, dtype=np.float64) - a @ z)[:, None]
    gram = pulls @ pulls.T
    square = np.diag(gram)
    along = pulls @ z
    total = square[:, None] + square - 2.0 * gram
    total += ridge**2 * (z @ z) - 2.0 * ridge * (along[:, None] - along)
    return np.sqrt(np.maximum(total, 0.0))


def largest_pairs(proxy: ArrayLike, count: int) -> NDArray[np.intp]:
    """Ordered pairs of distinct records with the largest proxy, largest first, shape (count, 2)."""
    values = np.array(proxy, dtype=np.float64)
    np.fill_diagonal(values, -np.inf)
    if not 1 <= count <= values.size - values.shape[0]:
        raise ValueError(f"count must lie in [1, {values.size - values.shape[0]}], got {count}")
    flat = values.ravel()
    top = np.argpartition(flat, -count)[-count:]
    top = top[np.lexsort((top, -flat[top]))]
    return np.stack(np.unravel_index(top, values.shape), axis=1)


def candidate_records(
    features: ArrayLike, labels: ArrayLike, references: ArrayLike, *, count: int
) -> NDArray[np.intp]:
    r"""Records that a search for the worst pair should hold: large gradients and large norms.

    .. math:: \|a_i\|\,|a_i^\top z - b_i| \quad\text{at each reference } z,\qquad \|a_i\|

    Soon after the differing step the gap of the means rules the loss, later the gap of the
    covariances, which grows with the norms. In high dimension features are nearly orthogonal, so
    the pairs with the widest gap consist of the records with the largest gradients.

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
    references : array_like, shape (r, d)
        Points z at which gradients are taken, in the same basis as the features.
    count : int
        Records taken by each criterion, from 1 to n.

    Returns
    -------
    ndarray of int
        Ascending indices, without repetition, at most (r + 1) `count` of them.

    Raises
    ------
    ValueError
        If the count is out of range.

    Source
    ------
    A correction of lin2025, section 5, which takes one criterion only, at the vector of ones.
    """
    a = np.asarray(features, dtype=np.float64)
    points = np.atleast_2d(np.asarray(references, dtype=np.float64))
    if not 1 <= count <= a.shape[0]:
        raise ValueError(f"count must lie in [1, {a.shape[0]}], got {count}")
    norms = np.sqrt(np.sum(a**2, axis=1))
    residuals = points @ a.T - np.asarray(labels, dtype=np.float64)
    criteria = np.vstack([norms * np.abs(residuals), norms])
    top = np.argsort(-criteria, axis=1, kind="stable")[:, :count]
    return np.asarray(np.unique(top))
