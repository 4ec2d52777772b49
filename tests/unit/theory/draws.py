"""Numbers drawn over many decades, and their comparison with exact ones."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import numpy as np

Exact = Any
# Below it squares have lost digits.
LEAST = mp.mpf("1e-290")


def size(rng: np.random.Generator, low: float, high: float) -> float:
    """Log-uniform between two powers of ten."""
    return float(np.clip(10.0 ** rng.uniform(low, high), 10.0**low, 10.0**high))


def numbers(values: Any) -> list[Exact]:
    return [mp.mpf(float(value)) for value in np.ravel(values)]


def near(found: Any, wanted: Exact, rel: float, least: Exact = LEAST) -> bool:
    """Whether each double is the exact number, but for a relative error."""
    pairs = zip(np.ravel(found), np.ravel(wanted), strict=True)
    return all(abs(mp.mpf(float(x)) - y) <= rel * abs(y) + least for x, y in pairs)
