"""Numbers over whole ranges of sizes, and how near a double is to an exact number."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np

# Below this double precision thins out.
SMALLEST = 1e-300


def magnitude(rng: np.random.Generator, least: float, most: float) -> float:
    """Even in the logarithm; one in three is of ordinary size, one in ten at an end."""
    kind = rng.random()
    if kind < 0.1:
        return float(rng.choice([least, most]))
    low, high = np.log10(least), np.log10(most)
    if kind < 0.4 and least < 0.1 < 10 < most:
        low, high = -1.0, 1.0
    return float(np.clip(10.0 ** rng.uniform(low, high), least, most))


def magnitudes(rng: np.random.Generator, least: float, most: float, count: int) -> np.ndarray:
    """All equal, of one size, or each of its own."""
    if rng.random() < 0.2:
        return np.full(count, magnitude(rng, least, most))
    if rng.random() < 0.5:
        return np.array([magnitude(rng, least, most) for _ in range(count)])
    centre = magnitude(rng, least, most)
    return np.clip(centre * 10.0 ** rng.uniform(-1, 1, count), least, most)


def rational(value: float | Fraction | mp.mpf) -> mp.mpf:
    if isinstance(value, Fraction):
        return mp.mpf(value.numerator) / value.denominator
    return mp.mpf(value)


def near(found: float, wanted: float | Fraction | mp.mpf, relative: float) -> bool:
    """Whether a double is an exact number to a relative error; beyond its range, its end."""
    exact = rational(wanted)
    if abs(exact) > 1.7e308:
        return bool(abs(found) > 1.7e308)
    return bool(abs(mp.mpf(float(found)) - exact) <= relative * abs(exact) + SMALLEST)
