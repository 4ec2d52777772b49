"""The residual estimator: Option 1 and its factor, Option 2 as printed and as its lemma has it."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.annotations import DataArray, Dataset, Trial
from reproduction.experiment.cells import Axis, Mean, Quantity, means, per, stage
from reproduction.experiment.parameters import Strict
from reproduction.experiment.summaries import trials_last

PLACE = "Algorithm 2, Lemma B.3"


class Parameters(Strict):
    """Normal residuals of deviation 1."""

    rows: q.Some[q.SampleSize] = Field(description="Public rows m of Option 1.")
    epsilon: q.Epsilon = Field(description="epsilon of one private estimate.")
    delta: q.Delta = Field(description="delta of one private estimate.")
    failure_probability: q.Probability = Field(description="Of one private estimate.")
    group_rows: q.SampleSize = Field(description="Private rows a group.")

    @property
    def target(self) -> dict[str, float]:
        """What one private estimate keeps."""
        names = ("epsilon", "delta", "failure_probability")
        return {name: getattr(self, name) for name in names}


AXES = {
    "rows": Axis("public rows m", "rows"),
    "reading": Axis("reading of lines 9 to 12", ("printed", "corrected")),
}


@per(
    public=Quantity("l^2 over the truth, Option 1", "rows"),
    private=Quantity("l^2 over the truth, Option 2", "reading"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    from privreg.algorithms import residual_estimate

    groups = residual_estimate.private_groups_needed(**parameters.target)
    public = []
    for rows in parameters.rows:
        labels = trial.rng.standard_normal(rows)
        scale = residual_estimate.public_residual_scale(np.ones((rows, 1)), labels, [0.0])
        public.append(scale**2)
    labels = trial.rng.standard_normal(groups * parameters.group_rows)
    printed = _as_printed(parameters, labels.reshape(groups, -1), trial.rng)
    scale = residual_estimate.private_residual_scale(
        np.ones((labels.size, 1)), labels, [0.0], rng=trial.rng, **parameters.target
    )
    return {"public": public, "private": [printed, scale**2]}


@per("rows", within_a_half=Mean("Option 1 means of squares within half of the truth"))
def within_a_half(simulation: Dataset) -> DataArray:
    # The squared estimate is twice the mean of squares.
    return (abs(simulation.public / 2 - 1) <= 0.5).astype(float)


@per("rows", within_a_quarter=Mean("Option 1 means of squares within a quarter of the truth"))
def within_a_quarter(simulation: Dataset) -> DataArray:
    return (abs(simulation.public / 2 - 1) <= 0.25).astype(float)


@per("reading", private_at_most_twice=Mean("Option 2 estimates at most twice the truth"))
def private_at_most_twice(simulation: Dataset) -> np.ndarray:
    return (trials_last(simulation.private) <= 2.0).astype(float)


@per("reading", near_the_truth=Mean("Option 2 estimates from 1.5 to 5 times the truth"))
def near_the_truth(simulation: Dataset) -> DataArray:
    # A bin's upper end is at most twice the mean of the groups in it, which are near the truth.
    return ((simulation.private >= 1.5) & (simulation.private <= 5.0)).astype(float)


simulate = stage(AXES, run)
summarise = stage(
    AXES,
    means(run, "public"),
    within_a_half,
    within_a_quarter,
    private_at_most_twice,
    near_the_truth,
)


def _as_printed(parameters: Parameters, labels: np.ndarray, rng: np.random.Generator) -> float:
    """Lines 8 to 13 to the letter: noise for shares below the threshold, 0 for the others."""
    means, groups = np.mean(labels**2, axis=1), len(labels)
    bins, counts = np.unique(np.floor(np.log2(means)), return_counts=True)
    shares, epsilon = counts / groups, parameters.epsilon
    threshold = 2 * np.log(1 / parameters.delta) / (epsilon * groups) + 1 / groups
    noisy = shares + rng.laplace(0.0, 2 / (epsilon * groups), bins.size)
    kept = np.where(shares < threshold, noisy, 0.0)
    return float(2 * np.exp2(bins[np.argmax(kept)] + 1))
