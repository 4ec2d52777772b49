"""Second moments of one-pass SGD with Gaussian features.

All matrices are diagonal in H's eigenbasis, where second moments of Gaussian features obey a
closed recursion: 𝔼[xxᵀAxxᵀ] = 2HAH + tr(HA)H.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reproduction.papers.anon2024.setting import GAUSSIAN_SCALE, Problem, generator

# 16 σ_z⁴, and 16 σ_z² as Theorem B.5 and Lemma B.8 print it.
BETA, PRINTED_BETA = 16 * GAUSSIAN_SCALE**2, 16 * GAUSSIAN_SCALE
# Of the matrices in three dimensions.
SPECTRUM = np.diag([1.0, 0.3, 0.1])


def transport(moments: np.ndarray, lam: np.ndarray, eta: float) -> np.ndarray:
    """Second moments after one step without noise."""
    shrunk = (1 - 2 * eta * lam + 2 * (eta * lam) ** 2) * moments
    return shrunk + eta**2 * lam * (moments @ lam)[..., None]


def driven(lam: np.ndarray, source: np.ndarray, eta: float, size: int) -> np.ndarray:
    """Second moments of all iterates from 0 if each step adds η² times a source."""
    moments = [np.zeros_like(lam)]
    for _ in range(size - 1):
        moments.append(transport(moments[-1], lam, eta) + eta**2 * source)
    return np.array(moments)


def label_moments(problem: Problem, eta: float) -> np.ndarray:
    """Second moments of the iterates' part from label noise."""
    source = problem.label_noise_std**2 * problem.eigenvalues
    return driven(problem.eigenvalues, source, eta, problem.sample_size)


def tree_moments(lam: np.ndarray, shape: np.ndarray, eta: float, size: int) -> np.ndarray:
    """Second moments of the iterates' part from the tree's noise, node by node."""
    total = np.zeros((size, lam.size))
    for height in range((size - 1).bit_length()):
        span = 1 << height
        # A node of this height enters at its completion and is taken back one span later.
        square, with_node, path = np.zeros_like(lam), np.zeros_like(lam), np.zeros_like(total)
        for age in range(size - 1):
            kick = -eta * (1.0 if age == 0 else -1.0 if age == span else 0.0)
            carried = (1 - eta * lam) * with_node
            square = transport(square, lam, eta) + 2 * kick * carried + kick**2 * shape
            with_node = carried + kick * shape
            path[age + 1] = square
        for entry in range(span, size, 2 * span):
            total[entry:] += path[1 : size - entry + 1]
    return total


def by_averages(lam: np.ndarray, eta: float, moments: np.ndarray) -> float:
    """Lemma B.6: the sum over t and k of (1 - eta lambda)^(k - t) lambda, over N^2."""
    size = len(moments)
    left = size - np.arange(size)
    weights = (1 - (1 - eta * lam) ** left[:, None]) / eta
    return float(np.sum(weights * moments) / size**2)


def fourth_moments() -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Random matrices A, nearly of rank one, that do not commute with H; E[xx'Axx']; 16 tr(HA)."""
    rng = generator(0)
    for _ in range(100):
        root = rng.standard_normal((3, 3))
        matrix = root @ np.diag([1.0, *(rng.exponential(size=2) ** 4)]) @ root.T
        yield matrix, fourth_moment(SPECTRUM, matrix), 16 * np.trace(SPECTRUM @ matrix)


def fourth_moment(covariance: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return 2 * covariance @ matrix @ covariance + np.trace(covariance @ matrix) * covariance
