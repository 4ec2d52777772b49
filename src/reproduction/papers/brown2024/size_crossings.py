"""Sample sizes at which the error due to privacy equals the error due to sampling."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np

from reproduction.engine.recipe import Dataset
from reproduction.engine.summaries import jackknife

# Which error due to privacy, and whether it has the bias of the start.
KINDS = {"whole": True, "noise_alone": False}
CROSSING_RANGE = 5.0
GRID_POINTS = 4001


class Setting(Protocol):
    """What the crossings depend on, as the recipe's parameters state it."""

    dimension: int
    steps: list[int]
    step_size: float
    sample_sizes: list[int]

    def gradient_noise_std(self, size: int) -> np.ndarray: ...


def privacy_square(parameters: Setting, size: np.ndarray, bias: bool) -> np.ndarray:
    """Mean squared distance to the empirical minimiser at identity covariance, (steps, size)."""
    steps = np.asarray(parameters.steps, dtype=float)[:, None]
    contraction = 1 - parameters.step_size
    noise = np.array([parameters.gradient_noise_std(1)]).T / size
    gain = (1 - contraction ** (2 * steps)) / (1 - contraction**2)
    square = parameters.dimension * (parameters.step_size * noise) ** 2 * gain
    if bias:
        square = square + contraction ** (2 * steps) * (1 + sampling_square(parameters, size))
    return np.asarray(square)


def sampling_square(parameters: Setting, size: np.ndarray) -> np.ndarray:
    """Mean squared error of least squares, from the mean of an inverse Wishart matrix."""
    return np.asarray(parameters.dimension / (size - parameters.dimension - 1))


def law_crossing(parameters: Setting, bias: bool, shift: np.ndarray) -> np.ndarray:
    """Least n, by steps, at which log rms privacy error + shift = log rms sampling error.

    With a bias the privacy error is larger again at very large n. `inf` where they never meet.
    """
    logs = np.linspace(np.log(2.0 * parameters.dimension + 4), np.log(1e12), GRID_POINTS)
    sizes = np.exp(logs)
    ratio = privacy_square(parameters, sizes, bias) / sampling_square(parameters, sizes)
    gap = 0.5 * np.log(ratio) + shift[:, None]
    found = np.full(len(gap), np.inf)
    for row, values in enumerate(gap):
        at = int(np.argmax(values < 0))
        if at > 0:
            # The gap is smooth in log n: interpolation on this grid is good to six digits.
            share = values[at - 1] / (values[at - 1] - values[at])
            found[row] = np.exp(logs[at - 1] + share * (logs[at] - logs[at - 1]))
    return found


def simulated_crossing(
    parameters: Setting, simulation: Dataset, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """The law's crossing moved by the mean log ratio of simulated to exact relative errors.

    The mean runs over the sizes within a factor of five of the law's crossing: one size alone would
    leave twice the Monte-Carlo error. With the jackknife's standard error, by steps.
    """
    bias = KINDS[kind]
    ordered = simulation.transpose("trial", "steps", "sample_size", missing_dims="ignore")
    square = ordered["privacy_error" if bias else "noise_error"].values ** 2
    sampling = ordered.sampling_error.values**2
    sizes = np.asarray(parameters.sample_sizes, dtype=float)
    exact = privacy_square(parameters, sizes, bias) / sampling_square(parameters, sizes)
    centre = law_crossing(parameters, bias, np.zeros(len(parameters.steps)))
    near = np.abs(np.log(sizes) - np.log(centre)[:, None]) <= np.log(CROSSING_RANGE)
    moved = partial(_crossing, parameters, bias, square / exact, sampling, near)
    return jackknife(moved, len(sampling))


def _crossing(
    parameters: Setting,
    bias: bool,
    relative_square: np.ndarray,
    sampling: np.ndarray,
    near: np.ndarray,
    kept: np.ndarray,
) -> np.ndarray:
    """Crossings by steps from the trials that are kept."""
    gap = 0.5 * np.log(relative_square[kept].mean(axis=0) / sampling[kept].mean(axis=0))
    shift = np.array(
        [row[use].mean() if use.any() else 0.0 for row, use in zip(gap, near, strict=True)]
    )
    return law_crossing(parameters, bias, shift)
