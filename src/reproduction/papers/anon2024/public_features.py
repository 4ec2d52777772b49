"""Leave-one-out forms and traces of the design from public features, with the bounds on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Cutoff(NamedTuple):
    """k of Lemmas B.10 and B.16, and the sum of the eigenvalues after it."""

    place: int
    tail: float


def cutoff(lam: np.ndarray, rows: int, ridge: float) -> Cutoff:
    """Least k at which M times the next eigenvalue is at most lambda plus the sum after k."""
    tails = np.append(np.cumsum(lam[::-1])[::-1], 0.0)
    place = int(np.argmax(np.append(lam, 0.0) * rows <= ridge + tails))
    return Cutoff(place, float(tails[place]))


def forms(lam: np.ndarray, normals: np.ndarray, ridge: float) -> np.ndarray:
    """z_i' A_{-i}^-1 z_i of all directions i, by Sherman and Morrison; normals (M, d)."""
    matrix = np.eye(len(normals)) + (normals * (lam / ridge)) @ normals.T
    whole = np.einsum("mi,mi->i", normals, np.linalg.solve(matrix, normals))
    return np.asarray(whole / (1 - lam / ridge * whole))


def form_bound(lam: np.ndarray, rows: int, ridge: float) -> float:
    """Lemma B.16 at C = 1."""
    return ridge * rows / (ridge + cutoff(lam, rows, ridge).tail)


def trace_bound(lam: np.ndarray, rows: int, ridge: float) -> float:
    """Lemma B.10 at constant 1."""
    place, tail = cutoff(lam, rows, ridge)
    return place * (ridge + tail) / ridge + rows * tail / ridge
