"""Numbers over whole ranges of sizes, and how near a double is to an exact number."""

from __future__ import annotations

import mpmath as mp
import numpy as np

LEAST, MOST = 1e-12, 1e12


def magnitude(rng: np.random.Generator, least: float = LEAST, most: float = MOST) -> float:
    """Even in the logarithm; one in three is of ordinary size, one in ten at an end."""
    kind = rng.random()
    if kind < 0.1:
        return float(rng.choice([least, most]))
    low, high = np.log10(least), np.log10(most)
    if kind < 0.4 and least < 0.1 < 10 < most:
        low, high = -1.0, 1.0
    return float(np.clip(10.0 ** rng.uniform(low, high), least, most))


def magnitudes(rng: np.random.Generator, least: float, most: float, count: int) -> np.ndarray:
    """All of one size, or each of its own."""
    if rng.random() < 0.5:
        return np.array([magnitude(rng, least, most) for _ in range(count)])
    spread = 10.0 ** rng.uniform(-1, 1, count)
    return np.clip(magnitude(rng, least, most) * spread, least, most)


def near(found: float, wanted: mp.mpf, relative: float) -> bool:
    """Whether a double is an exact number to a relative error."""
    return bool(abs(mp.mpf(float(found)) - wanted) <= relative * abs(wanted))
