"""Summaries of simulations: means with errors, log-log slopes, the jackknife."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reproduction.engine.artifacts import Release, variable

if TYPE_CHECKING:
    from xarray import DataArray


def mean_and_error(
    name: str,
    samples: ArrayLike,
    dims: Sequence[str],
    long_name: str,
    *,
    units: str = "1",
    release: Release | None = None,
    missing: str | None = None,
) -> dict[str, tuple[Any, ...]]:
    """Mean over the last axis (the trials) and its standard error, linked as two variables.

    The error is infinite for a single trial, and if the mean is infinite or missing.
    """
    samples = np.asarray(samples)
    mean, deviation = samples.mean(axis=-1), error_of_mean(samples)
    error = f"{name}_standard_error"
    return {
        name: variable(
            dims,
            mean,
            f"mean over trials of {long_name}",
            units=units,
            standard_error=error,
            release=release,
            missing=missing,
        ),
        error: variable(
            dims,
            deviation,
            f"standard error of the mean over trials of {long_name}",
            units=units,
            release=release,
            missing=missing,
        ),
    }


def trials_last(array: DataArray) -> np.ndarray:
    """Values with the trials on the last axis, contiguous, so that sums have one order."""
    return np.ascontiguousarray(array.transpose(..., "trial").values)


def standard_deviation(samples: ArrayLike, axis: int = -1) -> np.ndarray:
    """Standard deviation over trials; infinite for one trial, and if the mean is not finite."""
    samples = np.asarray(samples)
    with np.errstate(invalid="ignore"):
        found = samples.std(axis=axis, ddof=1) if samples.shape[axis] > 1 else np.inf
    return np.where(np.isfinite(samples.mean(axis=axis)), found, np.inf)


def error_of_mean(samples: ArrayLike) -> np.ndarray:
    """Standard error of the mean over the last axis."""
    return standard_deviation(samples) / np.sqrt(np.shape(samples)[-1])


def loglog_slope(abscissa: ArrayLike, samples: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Slope (...) of the log of the mean over trials, and its standard error by propagation.

    The abscissa, shape (points,), and the means of samples (..., points, trials) are positive.
    """
    values = np.asarray(samples, dtype=float)
    mean = values.mean(axis=-1)
    relative = error_of_mean(values) / mean
    logs = np.log(np.asarray(abscissa, dtype=float))
    centred = logs - logs.mean()
    weights = centred / np.sum(centred**2)
    slope = np.log(mean) @ weights
    if values.shape[-1] == 1:
        return slope, np.full_like(slope, np.inf)
    return slope, np.sqrt(relative**2 @ weights**2)


def jackknife(
    statistic: Callable[[np.ndarray], ArrayLike], trials: int
) -> tuple[np.ndarray, np.ndarray]:
    """Statistic and its standard error by leaving out one trial at a time, `inf` below three.

    The statistic takes the indices of the trials to use, shape (kept,). Efron and Stein (1981).
    """
    places = np.arange(trials)
    value = np.asarray(statistic(places), dtype=float)
    if trials < 3:
        return value, np.full_like(value, np.inf)
    others = np.stack([np.asarray(statistic(np.delete(places, k))) for k in places], axis=-1)
    with np.errstate(invalid="ignore"):
        spread = np.sqrt((trials - 1) * others.var(axis=-1))
    # A statistic that is infinite whichever trial is left out does not vary.
    return value, np.where(np.isfinite(value), spread, 0.0)
