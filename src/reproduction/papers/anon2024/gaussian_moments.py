"""Second moments of one-pass SGD with Gaussian features, and the bounds that the paper prints.

All matrices are diagonal in H's eigenbasis, where second moments of Gaussian features move by
themselves: 𝔼[xxᵀAxxᵀ] = 2HAH + tr(HA)H. Bounds have tau = psi = 1 and constants 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.papers.anon2024.setting import GAUSSIAN_SCALE, generator

if TYPE_CHECKING:
    from reproduction.papers.anon2024.setting import Problem

# 16 σ_z⁴, and 16 σ_z² as Theorem B.5 and Lemma B.8 print it.
BETA, PRINTED_BETA = 16 * GAUSSIAN_SCALE**2, 16 * GAUSSIAN_SCALE
# Of the matrices in three dimensions.
SPECTRUM = np.diag([1.0, 0.3, 0.1])
STEP = 0.1
# From where their powers are numbers, to where N eta of the largest eigenvalue is below 1.
RelativeStep = Annotated[q.Real, Field(ge=1e-6, le=16)]


class RelativeSteps(q.LogAxis):
    """Log-spaced step sizes over the largest one of Theorem 4.2."""

    low: RelativeStep = Field(description="Smallest step size.")
    high: RelativeStep = Field(description="Largest step size, more than the smallest.")


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
    """Of the iterates that the label noise makes."""
    source = problem.label_noise_std**2 * problem.eigenvalues
    return driven(problem.eigenvalues, source, eta, problem.sample_size)


def start_moments(problem: Problem, eta: float) -> np.ndarray:
    """Of all iterates less w* that the start leaves, without noise."""
    moments = [problem.target**2]
    for _ in range(problem.sample_size - 1):
        moments.append(transport(moments[-1], problem.eigenvalues, eta))
    return np.array(moments)


def tree_moments(lam: np.ndarray, shape: np.ndarray, eta: float, size: int) -> np.ndarray:
    """Of the iterates that the tree's noise makes, node by node."""
    total = np.zeros((size, lam.size))
    steps = size - 1
    for height in range(steps.bit_length()):
        span = 1 << height
        # A node of this height enters at its completion and is taken back one span later.
        square, with_node = np.zeros_like(lam), np.zeros_like(lam)
        path = np.zeros((size, lam.size))
        for age in range(size - 1):
            kick = -eta * (1.0 if age == 0 else -1.0 if age == span else 0.0)
            square = transport(square, lam, eta)
            carried = (1 - eta * lam) * with_node
            square = square + 2 * kick * carried + kick**2 * shape
            with_node = carried + kick * shape
            path[age + 1] = square
        for entry in range(span, steps + 1, 2 * span):
            total[entry:] += path[1 : size - entry + 1]
    return total


def recursion(problem: Problem, shape: np.ndarray, eta: float) -> np.ndarray:
    """C_t of Theorem B.5, without its sum over shared steps, which only adds."""
    lam, size = problem.eigenvalues, problem.sample_size
    log = np.log2(size)
    lost = 1 - (1 - eta * lam) ** size
    source = problem.label_noise_std**2 * lam + 2 * log * shape
    source = source + log * eta * PRINTED_BETA * log * (lam @ shape) * lost
    return driven(lam, source, eta, size)


def by_averages(lam: np.ndarray, eta: float, moments: np.ndarray) -> float:
    """Lemma B.6: the sum over t and k of (1 - eta lambda)^(k - t) lambda, over N^2."""
    size = len(moments)
    left = size - np.arange(size)
    weights = (1 - (1 - eta * lam) ** left[:, None]) / eta
    return float(np.sum(weights * moments) / size**2)


def variance_bound(problem: Problem, shape: np.ndarray, eta: float) -> float:
    """Lemma B.8 at the k with the least bound."""
    lam, size = problem.eigenvalues, problem.sample_size
    log, least = np.log2(size), np.inf
    for head, weight in _heads(problem, eta):
        source = problem.label_noise_std**2 * lam + 3 * log * shape
        source = source + PRINTED_BETA * log**2 * eta * (lam @ shape) * head
        spread = float(np.sum(head**2))
        first = PRINTED_BETA * eta / size * (head @ source) * spread
        least = min(least, float(first + weight @ source / size))
    return least


def middle_bound(problem: Problem, source: np.ndarray, eta: float) -> float:
    """Right side of (B.18) with G the source."""
    lam, size = problem.eigenvalues, problem.sample_size
    lost = 1 - (1 - eta * lam) ** size
    first = 2 * BETA * eta / size * (lost @ source) * (lost @ lost)
    return float(first + np.sum(lost**2 / lam * source) / size)


def bias_bound(problem: Problem, eta: float) -> float:
    """Lemma B.9 at the k with the least bound."""
    lam, size, beta = problem.eigenvalues, problem.sample_size, PRINTED_BETA
    squares, least = problem.target**2, np.inf
    for k, (head, _) in enumerate(_heads(problem, eta), start=1):
        first = squares[:k] @ (1 / lam[:k]) / (eta * size) ** 2 + squares[k:] @ lam[k:]
        spread = k / size + size * eta**2 * np.sum(lam[k:] ** 2)
        rest = 2 * beta * (head @ squares) / (size * eta * (1 - beta * eta * lam.sum())) * spread
        least = min(least, float(first + rest))
    return least


def _heads(problem: Problem, eta: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each k: 1 then N eta lambda, and 1/lambda then N^2 eta^2 lambda."""
    lam, horizon = problem.eigenvalues, problem.sample_size * eta
    places = np.arange(lam.size)
    return [
        (np.where(places < k, 1.0, horizon * lam), np.where(places < k, 1 / lam, horizon**2 * lam))
        for k in range(1, lam.size + 1)
    ]


def fourth_moments() -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """Random matrices A, nearly of rank one, that do not commute with H; moments; 16 tr(HA)."""
    rng = generator(0)
    for _ in range(100):
        root = rng.standard_normal((3, 3))
        matrix = root @ np.diag([1.0, *(rng.exponential(size=2) ** 4)]) @ root.T
        yield matrix, fourth_moment(SPECTRUM, matrix), 16 * np.trace(SPECTRUM @ matrix)


def fourth_moment(covariance: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return 2 * covariance @ matrix @ covariance + np.trace(covariance @ matrix) * covariance


def operator_error(factor: float) -> float:
    """Of Definition B.4's identity between the operators, for a matrix that does not commute."""
    root, covariance = generator(1).standard_normal((3, 3)), np.diag([1.0, 0.5, 0.2])
    matrix = root @ root.T
    fourth = fourth_moment(covariance, matrix)
    left = matrix - STEP * (covariance @ matrix + matrix @ covariance) + STEP**2 * fourth
    shrink = np.eye(3) - STEP * covariance
    fluctuation = fourth - covariance @ matrix @ covariance
    error = np.abs(shrink @ matrix @ shrink + factor * fluctuation - left).max()
    return float(error / np.abs(left).max())
