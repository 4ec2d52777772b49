"""Sample paths of the nonlinear diffusion against its mean risk in closed equations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.diffusion import RidgeRegression
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, Trials, means, per, stage
from reproduction.papers.lin2025.setting import Scaled

PLACE = "Equation (1), Theorem 4.2"


class Parameters(Scaled):
    """Euler-Maruyama paths; a trial is a batch of them."""

    dimension: q.Plural[q.Dimension] = Field(description="Dimension d.")
    paths: q.Plural[q.Count] = Field(description="Paths a trial.")
    steps: q.Steps = Field(description="Time steps.")
    times: q.Count = Field(description="Times at which the risk is compared.")

    _times_are_steps = q.at_most("times", "steps")
    _steps_are_short = q.at_most("horizon", "steps")

    @property
    def stops(self) -> np.ndarray:
        """Steps after which the risk is compared."""
        return self.steps * np.arange(1, self.times + 1) // self.times

    @property
    def stop_times(self) -> np.ndarray:
        return self.stops * self.horizon / self.steps


AXES = {"time": Axis("time t = k / d", "stop_times")}


@per(ratio=Quantity("mean risk of the paths divided by the theory's", "time"))
def batches(parameters: Parameters, trials: Trials) -> Iterator[np.ndarray]:
    problem = parameters.spread_problem(parameters.dimension)
    law = parameters.law(problem)
    expected = [law.risk(time) for time in parameters.stop_times]
    for trial in trials:
        yield np.array(list(_mean_risks(parameters, problem, trial.rng))) / expected


simulate = stage(AXES, batches)
summarise = stage(AXES, means(batches))


def _mean_risks(
    parameters: Parameters, problem: RidgeRegression, rng: np.random.Generator
) -> Iterator[float]:
    """Mean risk over a batch of paths at each time, extrapolated from full and half steps.

    The two step lengths share their noise, so the leading error in the step cancels.
    """
    width = parameters.horizon / parameters.steps
    rate, private = parameters.rate, parameters.gradient_noise_std**2

    def advance(state: np.ndarray, noise: np.ndarray, width: float) -> None:
        """One Euler-Maruyama step of all paths in place."""
        spread = 2.0 * problem.risk(state)[:, None] * problem.eigenvalues + private
        drift = problem.curvatures * state - problem.eigenvalues * problem.target
        state += -rate * width * drift + rate * np.sqrt(spread / parameters.dimension) * noise

    fine = np.tile(problem.initial, (parameters.paths, 1))
    coarse = fine.copy()
    for start, stop in pairwise([0, *parameters.stops]):
        for _ in range(start, stop):
            halves = rng.standard_normal((2, *fine.shape)) * np.sqrt(width / 2.0)
            for noise in halves:
                advance(fine, noise, width / 2.0)
            advance(coarse, halves.sum(axis=0), width)
        yield 2.0 * problem.risk(fine).mean() - problem.risk(coarse).mean()
