"""Schedule, clip and noise of a run of one-pass DP-GD, with its budget."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.immutable import Immutable
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import Neighbours
from privreg.privacy.zcdp import one_pass_zcdp_root
from privreg.schedules import Schedule, noise_multipliers, step_shape
from privreg.validation import (
    require_broadcast,
    require_count,
    require_frozen,
    require_instance,
    require_real,
)

# Steps, norms and their products up to here stay far from overflow in every intermediate.
LARGEST, LARGEST_STEP = 1e50, 1e30


@dataclass(frozen=True)
class Mechanism(Immutable):
    """A family of runs of one-pass DP-GD that share a schedule's shape: all but the data.

    Setting g takes steps `amplitude[g] * step_shape`, clips gradients to norm `clip_norm[g]` and
    adds noise of standard deviation `2 * clip_norm[g] * amplitude[g] * noise_shape`.

    Parameters
    ----------
    step_shape, noise_shape : array_like, shape (sample_size,)
        Step sizes and noise multipliers at unit amplitude, at least 0 and at most 1e50; kept as
        read-only copies.
    amplitude, clip_norm : array_like, shape (settings,)
        At least 1e-50 and at most 1e50, with products with the largest step and noise of at
        most 1e30.
    budget : Budget
        The promise; an infinite one promises nothing.

    Raises
    ------
    ValueError
        The noise does not keep the promise.

    Guarantee
    ---------
    Each setting's output keeps `budget` for data sets that differ in one sample (replace one), when
    features are scaled and one setting is chosen without looking at these data, and only the last
    iterate is released. The budget is computed from the steps and the noise that will be used
    (equation (4.1)), and a mechanism over its budget is refused. Settings share noise directions:
    only one of them may be released. Risks along the path, and comparisons of many settings, are
    not private.

    Source
    ------
    bombari2025, Algorithm 1 and Proposition 4.1.
    """

    step_shape: NDArray[np.float64]
    noise_shape: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    clip_norm: NDArray[np.float64]
    budget: Budget

    def __post_init__(self) -> None:
        require_instance("budget", self.budget, Budget)
        limits = {"least": 0.0, "most": LARGEST}
        # What was checked is what will be used: these arrays are read-only.
        steps = require_frozen("step_shape", self.step_shape, shape=(None,), **limits)
        noise = require_frozen("noise_shape", self.noise_shape, shape=steps.shape, **limits)
        limits = {"least": 1 / LARGEST, "most": LARGEST}
        amplitude = require_frozen("amplitude", self.amplitude, shape=(None,), **limits)
        norms = require_frozen("clip_norm", self.clip_norm, shape=amplitude.shape, **limits)
        if np.max(amplitude) * np.max(norms) * max(np.max(steps), np.max(noise)) > LARGEST_STEP:
            raise ValueError(
                f"amplitude must make steps of clipped gradients at most {LARGEST_STEP:g}"
            )
        for name, array in (
            ("step_shape", steps),
            ("noise_shape", noise),
            ("amplitude", amplitude),
            ("clip_norm", norms),
        ):
            object.__setattr__(self, name, array)
        if self.budget.neighbours is not Neighbours.REPLACE_ONE:
            raise ValueError(f"budget must be for replace-one neighbours, got {self.budget}")
        # The amplitude scales steps and noise alike, so the budget is the same for all settings.
        spent = float(one_pass_zcdp_root(self.step_shape, self.noise_shape))
        if isfinite(self.budget.root) and not spent <= self.budget.root * (1 + 1e-9):
            raise ValueError(
                f"noise_shape must keep {self.budget}, got noise that spends a root of {spent:g}"
            )

    @classmethod
    def from_schedule(
        cls,
        schedule: Schedule,
        *,
        sample_size: int,
        dimension: int,
        budget: Budget,
        clip_constant: ArrayLike,
    ) -> Mechanism:
        """The noise that spends the whole budget on every sample, equation (4.2).

        Parameters
        ----------
        schedule : Schedule
            Learning rate; its amplitudes are broadcast with `clip_constant`, and flattened.
        sample_size, dimension : int
            At least 1.
        budget : Budget
            For replace-one neighbours.
        clip_constant : array_like
            Clipping constant c in units of the residual, at least 1e-40 and at most 1e40: the norm
            is c sqrt(dimension).
        """
        steps = step_shape(schedule, sample_size)
        dimension = require_count("dimension", dimension)
        require_instance("budget", budget, Budget)
        initial = require_real("schedule", schedule.amplitude, above=0)
        constant = require_real("clip_constant", clip_constant, least=1e-40, most=1e40)
        if constant.size == 0:
            raise ValueError("clip_constant must have at least one entry, got none")
        require_broadcast(schedule=initial, clip_constant=constant)
        amplitude, constant = np.broadcast_arrays(initial, constant)
        noise = noise_multipliers(steps, zcdp_root=budget.root)
        norm = constant.ravel() * np.sqrt(dimension)
        return cls(steps, noise, amplitude.ravel().copy(), norm, budget)

    @property
    def sample_size(self) -> int:
        return len(self.step_shape)

    @property
    def settings(self) -> int:
        return len(self.amplitude)
