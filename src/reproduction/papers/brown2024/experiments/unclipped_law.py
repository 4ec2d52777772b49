"""Sample moments of many unclipped runs on one data set against their exact Gaussian law."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Estimate, Quantity, Trials, per, stage
from reproduction.papers.brown2024.setting import Runs, draw, law_of

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples
    from privreg.theory.full_batch_dpgd import GradientDescentLaw

PLACE = "Lemma 2.3, equations (8), (18), (19) and (88)-(94)"
BINS = 200


class Parameters(Runs):
    """One data set; runs without clipping, and with the clipping of the experiments."""

    budget: q.StatedBudget = Field(description="zCDP budget that sets the noise.")
    times: q.Rising[q.Steps] = Field(description="Steps at which the law is compared.")

    @property
    def entries(self) -> np.ndarray:
        return np.arange(len(self.times) * self.dimension)


AXES = {
    "setting": Axis("without or with clipping", ["unclipped", "clipped"]),
    "entry": Axis("feature within time, flattened", "entries"),
}


@per(
    first=Quantity("mean deviation from the law's mean", "setting entry"),
    second=Quantity("mean product of deviations from the law's mean", "setting entry other_entry"),
    ranks=Quantity("runs by the rank of their Mahalanobis length", "setting bin"),
)
def run(
    parameters: Parameters, trials: Trials, shared_rng: np.random.Generator
) -> Iterator[list[dict]]:
    """First and second moments, over each trial's runs, of deviations from the law's mean."""
    data, law = _setting(parameters, shared_rng)
    mean, exact = law.mean(parameters.times), _covariance(parameters, law)
    for trial in trials:
        found = []
        for path in parameters.coupled(
            data, law.gradient_noise_std, trial.rng, times=parameters.times
        ):
            gap = (path.iterates - mean).reshape(parameters.runs, -1)
            moments = {"first": gap.mean(axis=0), "second": gap.T @ gap / parameters.runs}
            found.append(moments | {"ranks": _ranks(gap, exact)})
        yield found


@per(covariance=Quantity("covariance and cross-covariance of the law", "entry other_entry"))
def covariance(parameters: Parameters, shared_rng: np.random.Generator) -> np.ndarray:
    return _covariance(parameters, _setting(parameters, shared_rng)[1])


@per(
    "setting",
    mean_gap=Estimate("sample mean minus the law's, at each time and feature", "entry"),
    covariance_gap=Estimate(
        "sample covariance minus the law's, between times and features", "entry other_entry"
    ),
    covariance_scale=Estimate("mean eigenvalue of the sample covariance, in units of the law's"),
    law_distance="Kolmogorov distance of the joint law's ranks to uniform ones, times sqrt(runs)",
    relative_bias="norm of the last time's mean gap divided by the noise's root mean square",
)
def gaps(parameters: Parameters, simulation: Dataset, setting: str) -> dict:
    """Gaps to the law over all runs, with the standard errors that the law implies."""
    at = simulation.sel(setting=setting)
    exact, count = at.covariance.values, at.sizes["trial"] * parameters.runs
    first, second = at.first.mean("trial").values, at.second.mean("trial").values
    variance = np.diag(exact)
    error = np.sqrt(variance / count)
    pair_error = np.sqrt((np.outer(variance, variance) + exact**2) / count)
    scale = np.trace(np.linalg.solve(exact, second)) / len(exact)
    shares = np.cumsum(at.ranks.sum("trial").values) / count
    distance = np.abs(shares - np.arange(1, BINS + 1) / BINS).max()
    last = slice(-parameters.dimension, None)
    return {
        "mean_gap": (first, error),
        "covariance_gap": (second - exact, pair_error),
        "covariance_scale": (scale, np.sqrt(2 / (count * len(exact)))),
        "law_distance": distance * np.sqrt(count),
        "relative_bias": np.linalg.norm(first[last]) / np.sqrt(variance[last].sum()),
    }


simulate = stage(AXES, run, covariance)
summarise = stage(AXES, gaps)


def _setting(
    parameters: Parameters, rng: np.random.Generator
) -> tuple[ArraySamples, GradientDescentLaw]:
    """The data set, and the law of its unclipped runs."""
    data, _ = draw(parameters.sample_size, parameters.dimension, rng)
    noise = parameters.gradient_noise_std(parameters.budget.rho, parameters.steps)
    return data, law_of(data, parameters.step_size, noise)


def _covariance(parameters: Parameters, law: GradientDescentLaw) -> np.ndarray:
    """Covariance of all times and features, flattened."""
    times, size = np.asarray(parameters.times), len(parameters.entries)
    return law.covariance(times[:, None], times).transpose(0, 2, 1, 3).reshape(size, size)


def _ranks(gap: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Squared Mahalanobis lengths are chi-squared; their ranks are uniform."""
    from scipy.special import gammainc

    lengths = np.einsum("ij,ij->i", gap, np.linalg.solve(covariance, gap.T).T)
    return np.histogram(gammainc(len(covariance) / 2, lengths / 2), BINS, (0, 1))[0]
