"""Radau collocation on panels: nodes, the matrix that integrates, and interpolation."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray


@cache
def radau_nodes(stages: int) -> NDArray[np.float64]:
    """The right Radau nodes on (0, 1], ascending, the last of them 1, shape (stages,).

    Source
    ------
    The zeros of the difference of the Legendre polynomials of degree `stages` and `stages` - 1.
    """
    coefficients = np.zeros(stages + 1)
    coefficients[stages - 1 :] = -1.0, 1.0
    roots = np.sort(legendre.legroots(coefficients).real)
    derivative = legendre.legder(coefficients)
    for _ in range(3):
        roots -= legendre.legval(roots, coefficients) / legendre.legval(roots, derivative)
    roots[-1] = 1.0
    return 0.5 * (roots + 1.0)


@cache
def integration_matrix(stages: int) -> NDArray[np.float64]:
    """Matrix from values at the Radau nodes to integrals from 0 to each, (stages, stages).

    It is the coefficient matrix of the implicit Runge-Kutta method Radau IIA of order 2
    `stages` - 1.
    """
    x = 2.0 * radau_nodes(stages) - 1.0
    values = legendre.legvander(x, stages - 1)
    integrals = np.column_stack(
        [legendre.legval(x, legendre.legint(row, lbnd=-1)) for row in np.eye(stages)]
    )
    return 0.5 * integrals @ np.linalg.inv(values)


def interpolate(
    time: NDArray[np.float64], edges: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Value of a panelwise polynomial.

    Parameters
    ----------
    time : ndarray, shape (...)
        Times within the edges.
    edges : ndarray, shape (panels + 1,)
        Ascending panel boundaries.
    values : ndarray, shape (panels, stages + 1, g)
        Values at each panel's left edge and its Radau nodes.

    Returns
    -------
    ndarray, shape (..., g)

    Source
    ------
    The barycentric formula, which is stable at any node set as close to Chebyshev's as Radau's is.
    """
    nodes = np.concatenate([[0.0], radau_nodes(values.shape[1] - 1)])
    flat = np.atleast_1d(time).ravel()
    panel = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, edges.size - 2)
    position = (flat - edges[panel]) / (edges[panel + 1] - edges[panel])
    offset = position[:, None] - nodes
    hit = offset == 0.0
    weights = _barycentric_weights(nodes.size - 1) / np.where(hit, 1.0, offset)
    exact = hit.any(axis=1)
    weights[exact] = hit[exact]
    weights /= weights.sum(axis=1, keepdims=True)
    result = np.einsum("tj,tjg->tg", weights, values[panel])
    return result.reshape(*np.shape(time), values.shape[2])


@cache
def _barycentric_weights(stages: int) -> NDArray[np.float64]:
    nodes = np.concatenate([[0.0], radau_nodes(stages)])
    gaps = nodes[:, None] - nodes + np.eye(nodes.size)
    return 1.0 / np.prod(gaps, axis=1)
