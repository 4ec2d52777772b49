"""Rational arithmetic: every double is a fraction, so that sums and inverses have no rounding."""

from fractions import Fraction
from itertools import product

import numpy as np

ULP = 2.0**-52


def fractions(values: np.ndarray) -> np.ndarray:
    """The same numbers, of any shape, exactly."""
    return np.frompyfunc(lambda value: Fraction(float(value)), 1, 1)(np.asarray(values))


def inverse(decoder: np.ndarray) -> np.ndarray:
    """Exact inverse of a lower-triangular Toeplitz matrix (its coefficients) or of any matrix."""
    exact = fractions(decoder)
    if exact.ndim == 1:
        found = [1 / exact[0]]
        for step in range(1, exact.size):
            found.append(-sum(exact[1 : step + 1] * np.array(found[::-1])) / exact[0])
        return np.array(found)
    return solved(exact)


def solved(matrix: np.ndarray) -> np.ndarray:
    """Inverse of a matrix of fractions, by elimination."""
    size = len(matrix)
    work = np.concatenate([matrix, fractions(np.eye(size))], axis=1)
    for pivot in range(size):
        chosen = pivot + int(np.argmax(np.abs(work[pivot:, pivot])))
        work[[pivot, chosen]] = work[[chosen, pivot]]
        work[pivot] = work[pivot] / work[pivot, pivot]
        for row in range(size):
            if row != pivot:
                work[row] = work[row] - work[row, pivot] * work[pivot]
    return work[:, size:]


def dense(coefficients: np.ndarray) -> np.ndarray:
    """Lower-triangular Toeplitz matrix of exact coefficients."""
    steps = len(coefficients)
    matrix = np.full((steps, steps), Fraction(0))
    for lag in range(steps):
        matrix[np.arange(lag, steps), np.arange(steps - lag)] = coefficients[lag]
    return matrix


def largest_square(matrix: np.ndarray, chosen_sets) -> Fraction:
    """Largest squared norm of a signed sum of columns, over sets of steps."""
    return max(
        sum((matrix[:, list(chosen)] @ fractions(np.array([1, *signs]))) ** 2)
        for chosen in chosen_sets
        for signs in product((1, -1), repeat=len(chosen) - 1)
    )


def shortfall(found: float, square: Fraction) -> float:
    """How much less a found norm is than the root of an exact square, relative to it."""
    return 0.0 if square == 0 else float((1 - Fraction(found) ** 2 / square) / 2)


def decoders(rng: np.random.Generator, *, dense: bool) -> np.ndarray:
    """From well conditioned to hopeless, in any unit."""
    steps = int(rng.integers(1, 9))
    growth = 10.0 ** rng.uniform(-3, rng.choice([0.0, 3.0, 9.0]), steps)
    decoder = rng.standard_normal((steps, steps) if dense else steps) * growth
    decoder *= rng.random(decoder.shape) < rng.choice([0.5, 1.0])
    if dense:
        diagonal = rng.choice([-1.0, 1.0], steps) * 10.0 ** rng.uniform(-3, 3, steps)
        decoder = np.tril(decoder, -1) + np.diag(diagonal)
    else:
        decoder[0] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3, 3)
    if not dense and rng.random() < 0.3:
        # The inverse of a geometric sequence is its first two entries, and what rounding left.
        decoder = (10.0 ** rng.uniform(0, 9)) ** np.arange(steps)
    return np.clip(decoder * 10.0 ** rng.uniform(-3, 3), -1e12, 1e12)
