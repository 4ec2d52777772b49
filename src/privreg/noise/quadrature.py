"""Gauss-Legendre panels that are bisected until two levels agree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from privreg.validation import FloatArray

# Relative agreement of a panel with its halves; the halves are far closer.
AGREEMENT = 1e-9
_MOST_LEVELS = 46
_MOST_PANELS = 10_000
# Finding nodes takes longer than most integrals.
_legendre = cache(np.polynomial.legendre.leggauss)


def panel_rule(edges: FloatArray, *, nodes_per_panel: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre panels with increasing edges, one array each."""
    nodes, weights = _gauss(edges[:-1], edges[1:], nodes_per_panel)
    return nodes.ravel(), weights.ravel()


def resolved_edges(
    integrands: Callable[[FloatArray], FloatArray],
    edges: FloatArray,
    *,
    nodes_per_panel: int,
) -> FloatArray:
    """Panels bisected where an integrand is not resolved; unchanged where all are.

    `integrands` takes nodes, shape (n,), to positive functions of them, shape (k, n). A feature
    much narrower than a panel is found by what it adds elsewhere in it; a pole, a jump or noise is
    refused.
    """
    left, right = edges[:-1], edges[1:]
    whole = _panel_integrals(integrands, left, right, nodes_per_panel)
    settled, panels = [edges[-1:]], 0
    for _ in range(_MOST_LEVELS):
        middle = (left + right) / 2.0
        starts, ends = np.concatenate([left, middle]), np.concatenate([middle, right])
        parts = _panel_integrals(integrands, starts, ends, nodes_per_panel)
        first, second = parts[:, : left.size], parts[:, left.size :]
        halves = first + second
        open_ = np.any(np.abs(halves - whole) > AGREEMENT * halves, axis=0)
        settled.append(left[~open_])
        panels += int(np.sum(~open_))
        if not np.any(open_):
            return np.sort(np.concatenate(settled))
        left, middle, right = left[open_], middle[open_], right[open_]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        whole = np.concatenate([first[:, open_], second[:, open_]], axis=1)
        if panels + left.size > _MOST_PANELS:
            break
    raise ValueError(
        "power must be resolved by double precision, got one with a zero, a jump or noise: damp it "
        "there, or take the sensitivity of a finite number of steps"
    )


def _panel_integrals(
    integrands: Callable[[FloatArray], FloatArray],
    left: FloatArray,
    right: FloatArray,
    nodes_per_panel: int,
) -> FloatArray:
    nodes, weights = _gauss(left, right, nodes_per_panel)
    values = integrands(nodes.ravel()).reshape(-1, *nodes.shape)
    return np.asarray(np.sum(values * weights, axis=-1))


def _gauss(
    left: FloatArray, right: FloatArray, nodes_per_panel: int
) -> tuple[FloatArray, FloatArray]:
    points, weights = _legendre(nodes_per_panel)
    half = (right - left)[:, None] / 2.0
    return left[:, None] + half * (1.0 + points), half * weights
