"""The residual estimator: Option 1 and its factor, Option 2 as printed and as its lemma has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Epsilon, Probability, SampleSize, Some
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Algorithm 2, Lemma B.3"
READINGS = ("printed", "corrected")


class Parameters(Strict):
    """Normal residuals of deviation 1."""

    rows: Some[SampleSize] = Field(description="Public rows m of Option 1.")
    epsilon: Epsilon = Field(description="epsilon of one private estimate.")
    delta: Probability = Field(description="delta of one private estimate.")
    failure_probability: Probability = Field(description="Of one private estimate.")
    group_rows: SampleSize = Field(description="Private rows a group.")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Squared estimates over the true mean square."""
    import xarray as xr

    from privreg.algorithms.residual_estimate import (
        private_groups_needed,
        private_residual_scale,
        public_residual_scale,
    )

    epsilon, delta = parameters.epsilon, parameters.delta
    chance = parameters.failure_probability
    groups = private_groups_needed(epsilon=epsilon, delta=delta, failure_probability=chance)
    public = np.empty((len(parameters.rows), len(trials)))
    private = np.empty((len(READINGS), len(trials)))
    features = np.ones((groups * parameters.group_rows, 1))
    for at, trial in enumerate(trials):
        for i, rows in enumerate(parameters.rows):
            labels = trial.rng.standard_normal(rows)
            public[i, at] = public_residual_scale(features[:rows], labels, [0.0]) ** 2
        labels = trial.rng.standard_normal(len(features))
        means = np.mean(labels.reshape(groups, -1) ** 2, axis=1)
        private[0, at] = _as_printed(means, epsilon=epsilon, delta=delta, rng=trial.rng)
        scale = private_residual_scale(
            features,
            labels,
            [0.0],
            epsilon=epsilon,
            delta=delta,
            failure_probability=chance,
            rng=trial.rng,
        )
        private[1, at] = scale**2
    return xr.Dataset(
        {
            "public": variable(("rows", "trial"), public, "l^2 over the truth, Option 1"),
            "private": variable(("reading", "trial"), private, "l^2 over the truth, Option 2"),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean of Option 1, and how often estimates lie in their windows."""
    import xarray as xr

    public, private = simulation.public.values, simulation.private.values
    variables = mean_and_error("public", public, ["rows"], "l^2 over the truth, Option 1")
    # A bin's upper end is at most twice the mean of the groups in it, which are near the truth.
    within = (private >= 1.5) & (private <= 5.0)
    for name, inside, dims, description in (
        ("at_most_twice", public <= 2.0, ["rows"], "Option 1 estimates at most twice the truth"),
        ("near_the_truth", within, ["reading"], "Option 2 estimates from 1.5 to 5 times the truth"),
    ):
        variables |= mean_and_error(name, inside.astype(float), dims, description)
    return xr.Dataset(
        variables, coords=_coordinates(parameters) | {"trial": simulation.trial.variable}
    )


def _as_printed(
    means: np.ndarray, *, epsilon: float, delta: float, rng: np.random.Generator
) -> float:
    """Lines 8 to 13 to the letter: noise for shares below the threshold, 0 for the others."""
    groups = means.size
    bins, counts = np.unique(np.floor(np.log2(means)), return_counts=True)
    shares = counts / groups
    threshold = 2 * np.log(1 / delta) / (epsilon * groups) + 1 / groups
    noisy = shares + rng.laplace(0.0, 2 / (epsilon * groups), bins.size)
    kept = np.where(shares < threshold, noisy, 0.0)
    return float(2 * np.exp2(bins[np.argmax(kept)] + 1))


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "rows": variable("rows", parameters.rows, "public rows m"),
        "reading": variable("reading", list(READINGS), "reading of lines 9 to 12"),
    }
