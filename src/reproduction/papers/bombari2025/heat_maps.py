"""What the text reads off the heat-maps over clipping constants and initial rates."""

from __future__ import annotations

import numpy as np

ONE_SIDE = "all settings lie on one side"
NO_VALLEY = "fewer than two constants below 1 have their best rate inside the grid"
REGIONS = ("large_clip", "large_rate")


def region(name: str, clip_constants: np.ndarray, rates: np.ndarray, gamma: float) -> np.ndarray:
    """Settings with a constant above 1, or a rate above 2 / gamma, shape (constants, rates)."""
    shape = (len(clip_constants), len(rates))
    inside = clip_constants[:, None] > 1 if name == "large_clip" else rates > 2 / gamma
    return np.broadcast_to(inside, shape)


def best_in_and_out(values: np.ndarray, scores: np.ndarray, region: np.ndarray) -> np.ndarray:
    """Log ratio of the values at the least score inside a region to those at the least outside.

    Parameters
    ----------
    values : ndarray, shape (constants, rates, ...)
    scores, region : ndarray, shape (constants, rates)

    Returns
    -------
    ndarray, shape (...)
        NaN where all settings lie on one side.
    """
    every = values.reshape(scores.size, *values.shape[2:])
    if region.all() or not region.any():
        return np.full(every.shape[1:], np.nan)
    inside, outside = (
        every[np.argmin(np.where(part, scores, np.inf))] for part in (region, ~region)
    )
    return np.log(inside / outside)


def valley(
    values: np.ndarray, clip_constants: np.ndarray, rates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the constants below 1 whose best rate lies inside the grid, and of that rate.

    Parameters
    ----------
    values : ndarray, shape (constants, rates)
    """
    small = clip_constants < 1
    if not small.any():
        return np.array([]), np.array([])
    best = np.argmin(values[small], axis=1)
    inside = (best > 0) & (best < len(rates) - 1)
    return np.log(clip_constants[small][inside]), np.log(rates[best[inside]])


def slope(abscissa: np.ndarray, ordinate: np.ndarray) -> float:
    """Of a straight line, NaN through fewer than two points."""
    if len(abscissa) < 2:
        return np.nan
    return float(np.polyfit(abscissa, ordinate, 1)[0])
