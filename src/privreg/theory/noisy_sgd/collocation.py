"""Radau collocation on panels: nodes, the matrix that integrates, and interpolation."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from privreg.immutable import frozen
from privreg.validation import require_answer, require_array, require_count, require_real, short

# Of the panels of `diffusion`: order 23 at their ends.
STAGES = 12


def radau_nodes(stages: int) -> NDArray[np.float64]:
    """The right Radau nodes on (0, 1], ascending, the last of them 1, shape (stages,).

    Parameters
    ----------
    stages : int
        From 1 to 20, beyond which the companion matrix of the polynomial loses its digits.

    Source
    ------
    The zeros of the difference of the Legendre polynomials of degree `stages` and `stages` - 1.
    """
    return _nodes(_stages(stages))


@cache
def _nodes(stages: int) -> NDArray[np.float64]:
    coefficients = np.zeros(stages + 1)
    coefficients[stages - 1 :] = -1.0, 1.0
    roots = np.sort(legendre.legroots(coefficients).real)
    derivative = legendre.legder(coefficients)
    for _ in range(3):
        roots -= legendre.legval(roots, coefficients) / legendre.legval(roots, derivative)
    roots[-1] = 1.0
    return frozen(0.5 * (roots + 1.0))


def integration_matrix(stages: int) -> NDArray[np.float64]:
    """Matrix from values at the Radau nodes to integrals from 0 to each, (stages, stages).

    It is the coefficient matrix of the implicit Runge-Kutta method Radau IIA of order 2
    `stages` - 1.

    Parameters
    ----------
    stages : int
        From 1 to 20, as for `radau_nodes`.
    """
    return _matrix(_stages(stages))


@cache
def _matrix(stages: int) -> NDArray[np.float64]:
    x = 2.0 * radau_nodes(stages) - 1.0
    values = legendre.legvander(x, stages - 1)
    integrals = np.column_stack(
        [legendre.legval(x, legendre.legint(row, lbnd=-1)) for row in np.eye(stages)]
    )
    return frozen(0.5 * integrals @ np.linalg.inv(values))


def interpolate(
    time: NDArray[np.float64], edges: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Value of a panelwise polynomial.

    Parameters
    ----------
    time : ndarray, shape (...)
        Times within the edges.
    edges : ndarray, shape (panels + 1,)
        Ascending panel boundaries, at least two.
    values : ndarray, shape (panels, stages + 1, g)
        Values at each panel's left edge and its Radau nodes.

    Returns
    -------
    ndarray, shape (..., g)

    Source
    ------
    The barycentric formula, which is stable at any node set as close to Chebyshev's as Radau's is.
    """
    breaks = require_array("edges", edges, shape=(None,))
    if breaks.size < 2 or not np.all(np.diff(breaks) > 0):
        raise ValueError(f"edges must be ascending and two at least, got {short(breaks)}")
    table = require_array("values", values, shape=(breaks.size - 1, None, None))
    if table.shape[1] < 2:
        raise ValueError(f"values must have shape (panels, stages + 1, g), got {table.shape}")
    moments = require_real("time", time, least=breaks[0], most=breaks[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        result = _interpolate(moments, breaks, table)
    return require_answer("edges and values", result)


def _interpolate(
    time: NDArray[np.float64], edges: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    nodes = np.concatenate([[0.0], radau_nodes(values.shape[1] - 1)])
    flat = np.atleast_1d(time).ravel()
    panel = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, edges.size - 2)
    position = (flat - edges[panel]) / (edges[panel + 1] - edges[panel])
    offset = position[:, None] - nodes
    # Nearer than this the weight overflows, and the polynomial is its value at the node.
    hit = np.abs(offset) < 1e-290
    weights = _barycentric_weights(nodes.size - 1) / np.where(hit, 1.0, offset)
    exact = hit.any(axis=1)
    weights[exact] = hit[exact]
    weights /= weights.sum(axis=1, keepdims=True)
    result = np.einsum("tj,tjg->tg", weights, values[panel])
    return result.reshape(*np.shape(time), values.shape[2])


def _stages(stages: int) -> int:
    stages = require_count("stages", stages)
    if stages > 20:
        raise ValueError(f"stages must be at most 20, got {stages}")
    return stages


@cache
def _barycentric_weights(stages: int) -> NDArray[np.float64]:
    nodes = np.concatenate([[0.0], radau_nodes(stages)])
    gaps = nodes[:, None] - nodes + np.eye(nodes.size)
    return frozen(1.0 / np.prod(gaps, axis=1))
