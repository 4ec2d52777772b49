"""The residual estimator: Option 1 and its factor, Option 2 as printed and as corrected."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.algorithms import shaped_dp_ftrl
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Mean,
    Quantity,
    Trial,
    below,
    means,
    per,
    stage,
    stated,
)
from reproduction.engine.summaries import trials_last

PLACE = "Algorithm 2, Lemma B.3, equation (B.17)"
# Over a doubling, of which the bins are: at 1 the truth is the edge of two bins.
TRUTHS = (1.0, 1.2, 1.4, 1.7)


class Parameters(Strict):
    """Normal residuals, of deviation 1 for Option 1."""

    rows: q.Some[q.SampleSize] = Field(description="Public rows m of Option 1.")
    epsilon: q.Epsilon = Field(description="epsilon of one private estimate.")
    delta: q.Delta = Field(description="delta of one private estimate.")
    failure_probability: q.Probability = Field(description="That a private estimate fails.")
    group_rows: q.SampleSize = Field(description="Private rows per group.")


AXES = {
    "rows": Axis("public rows m", "rows"),
    "reading": Axis("reading of lines 9 to 12", ("printed", "corrected")),
    "truth": Axis("true mean square", TRUTHS),
}


@per(
    failure_within_a_half=stated(
        "largest probability that the mean is farther than half away, times N^10",
        where="Section B.5.3, equation (B.17)",
        statement="With m of order log N public rows the mean of the squared residuals is within "
        "half of the true mean square with probability at least 1 - N^-10.",
        check=below(1.0),
        wrong={
            "With m of order (log N)^(1/2).": "failure_at_fewer_rows",
            "Within a quarter of the truth, with the same m.": "failure_within_a_quarter",
        },
        id="mean-of-squares-within-half-b17",
        ours=["normal residuals, m = 220 log N, N = 10 to 1e6", "the probability of Lemma B.3"],
    ),
    failure_at_fewer_rows="the same probability with 220 (log N)^(1/2) rows",
    failure_within_a_quarter="the same probability for a quarter in place of half",
)
def failures() -> dict[str, float]:
    from scipy.stats import chi2

    sizes = np.geomspace(10, 1e6, 51)

    def largest(distance: float, power: float) -> float:
        rows = np.ceil(220 * np.log(sizes) ** power)
        outside = chi2.sf((1 + distance) * rows, rows) + chi2.cdf((1 - distance) * rows, rows)
        return float((outside * sizes**10).max())

    return {
        "failure_within_a_half": largest(0.5, 1.0),
        "failure_at_fewer_rows": largest(0.5, 0.5),
        "failure_within_a_quarter": largest(0.25, 1.0),
    }


@per(
    public=Quantity("l^2 divided by the truth, Option 1", "rows"),
    private=Quantity("l^2 divided by the truth, Option 2", "reading truth"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    target = parameters.model_dump(include={"epsilon", "delta", "failure_probability"})
    groups = shaped_dp_ftrl.private_groups_needed(**target)
    public = []
    for rows in parameters.rows:
        labels = trial.rng.standard_normal(rows)
        scale = shaped_dp_ftrl.public_residual_scale(np.ones((rows, 1)), labels, np.zeros(1))
        public.append(scale**2)
    normals = trial.rng.standard_normal(groups * parameters.group_rows)
    private, epsilon = [], parameters.epsilon
    for truth in TRUTHS:
        labels = np.sqrt(truth) * normals
        # Lines 8 to 13 to the letter: noise for shares below the threshold, 0 for the others.
        squares = np.mean(labels.reshape(groups, -1) ** 2, axis=1)
        bins, counts = np.unique(np.floor(np.log2(squares)), return_counts=True)
        shares = counts / groups
        threshold = 2 * np.log(1 / parameters.delta) / (epsilon * groups) + 1 / groups
        noisy = shares + trial.rng.laplace(0.0, 2 / (epsilon * groups), bins.size)
        fullest = np.argmax(np.where(shares < threshold, noisy, 0.0))
        printed = float(2 * np.exp2(bins[fullest] + 1))
        scale = shaped_dp_ftrl.private_residual_scale(
            np.ones((labels.size, 1)), labels, [0.0], rng=trial.rng, **target
        )
        private.append([printed / truth, scale**2 / truth])
    return {"public": public, "private": np.transpose(private)}


@per(
    "reading",
    "truth",
    private_at_most_twice=Mean("Option 2 estimates at most twice the truth"),
    near_the_truth=Mean("Option 2 estimates from 1.5 to 5 times the truth"),
)
def shares(simulation: Dataset) -> dict:
    ratio = trials_last(simulation.private)
    return {
        # A square of a root of 2, which is exactly twice, rounds to more.
        "private_at_most_twice": (ratio <= 2.0 + 1e-9).astype(float),
        # A bin's upper end is at most twice the mean of the groups in it, which are near the truth.
        "near_the_truth": ((ratio >= 1.5) & (ratio <= 5.0)).astype(float),
    }


@per("rows", public_near_the_truth=Mean("Option 1 estimates at most 5 times the truth"))
def public_share(simulation: Dataset) -> np.ndarray:
    return (trials_last(simulation.public) <= 5.0).astype(float)


theory = stage(AXES, failures)
simulate = stage(AXES, run)
summarise = stage(AXES, means(run, "public"), shares, public_share)
