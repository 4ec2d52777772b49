"""Confidence intervals from the iterates of DP-GD: their coverage and length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Estimate,
    Mean,
    Quantity,
    Trials,
    means,
    per,
    stage,
)
from reproduction.engine.summaries import error_of_mean
from reproduction.papers.brown2024.setting import OneThreshold, clipped_minimiser, descend, draw

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples
    from privreg.inference.intervals import Construction, IntervalQuality
    from privreg.theory.full_batch_dpgd import GradientDescentLaw

PLACE = "Figures 5, 6, 10 and 11, sections 3 and 4.2, Theorem 3.1"
# Constructions, and which numbers of gradients each is evaluated at.
ALONG: dict[Construction, str] = {
    "batch_means": "gradients",
    "checkpoints": "gradients",
    "independent_runs": "long_gradients",
}
COORDINATE_POINTS = 100
# The least eigenvalue that Condition 2.4 admits: at eta = 1/4 the contraction is its 7/8 there.
LEAST_EIGENVALUE = 0.5


class Parameters(OneThreshold):
    """Figures 5 and 6, and 10 and 11 (anisotropic data): one data set, many algorithm runs."""

    budget: q.StatedBudget = Field(description="zCDP budget of all gradients together.")
    gradients: q.Rising[q.Steps] = Field(description="Total numbers N of gradients.")
    replicates: q.Plural[q.Count] = Field(10, description="Runs, checkpoints or batches m.")
    burn_in: q.Index = Field(20, description="First iterates left out.")
    level: Annotated[q.Probability, Field(ge=0.01, le=0.9999)] = Field(
        0.95, description="Nominal coverage; the paper states none."
    )
    runs: q.Count = Field(description="Algorithm runs in each trial.")
    literal_steps: Annotated[q.Rising[q.Steps], Field(min_length=3)] = Field(
        default_factory=lambda: [5, 10, 15, 20, 30],
        description="Steps T a run, or between checkpoints, in Theorem 3.1's own constructions.",
    )
    anisotropic: q.Flag = Field(False, description="Random covariance of Appendix B.")

    @property
    def long_gradients(self) -> list[int]:
        """Numbers of gradients at which each independent run keeps iterates after its burn-in."""
        return [count for count in self.gradients if count > self.replicates * self.burn_in]

    def quality(
        self, law: GradientDescentLaw, construction: Construction, gradients: int
    ) -> IntervalQuality:
        """Exact coverage and length under a law of unclipped runs, at the noise of the budget."""
        from privreg.inference.intervals import interval_quality

        noise = float(self.gradient_noise_std(self.budget.rho, gradients))
        return interval_quality(
            replace(law, gradient_noise_std=noise),
            gradients=gradients,
            construction=construction,
            replicates=self.replicates,
            burn_in=self.burn_in,
            level=self.level,
        )


AXES = {
    "gradients": Axis("total number of gradients N", "gradients"),
    "long_gradients": Axis("total number of gradients N", "long_gradients"),
    "percentile": Axis("percentile", [2.5, 97.5], units="percent"),
    "literal": Axis("construction of Theorem 3.1", ["independent_runs", "checkpoints"]),
    "steps": Axis("steps T of Theorem 3.1", "literal_steps"),
}


def _of_each(kind: type[Quantity], meanings: dict[str, str], dims: str = "") -> dict:
    """Quantities of each construction."""
    return {
        f"{name}_{quantity}": kind(f"{meaning}, {name.replace('_', ' ')}", f"{dims} {axis}")
        for quantity, meaning in meanings.items()
        for name, axis in ALONG.items()
    }


UNCLIPPED = {
    "exact_coverage": "feature-averaged exact coverage of the empirical minimiser, unclipped",
    "expected_length": "feature-averaged expected length, unclipped",
}
EXACT = _of_each(Quantity, UNCLIPPED)


@per(
    **EXACT,
    equal_length_sample_size=Quantity(
        "sample size at which batch means give intervals as long as least squares", "gradients"
    ),
)
def law(parameters: Parameters) -> dict:
    """Exact coverage and expected length at identity covariance and an evenly spread minimiser."""
    from scipy.special import ndtri

    found = _exact(parameters, _isotropic_law(parameters, parameters.dimension))
    # Length is proportional to 1/n and a least-squares interval's to 1/sqrt(n).
    length = np.array(found["batch_means_expected_length"]) * parameters.sample_size
    normal = 2 * ndtri((1 + parameters.level) / 2)
    return found | {"equal_length_sample_size": (length / normal) ** 2}


@per(
    "literal",
    literal_coverage=Quantity("exact coverage of the minimiser", "steps"),
    literal_distance_over_gap=Quantity(
        "Pinsker's bound on the distance to independent stationary replicates, divided by the "
        "larger gap of mean and covariance, Claim C.11",
        "steps",
    ),
    literal_rate="factor of that distance for each further step at Sigma = I / 2, with one noise",
)
def literal(parameters: Parameters, literal: str) -> dict:
    """Theorem 3.1's own constructions, final iterates and checkpoints, under their exact law.

    Identity covariance, a minimiser uniform on the unit sphere: coverage is averaged over the law
    of a coordinate. Only the minimiser's norm enters the divergence of the joint laws. The rate is
    for Sigma = I / 2 with the noise of the most steps, since the theorem fixes the noise.
    """
    from scipy.special import betaincinv

    from privreg.inference.intervals import t_interval_coverage

    m, p, times = parameters.replicates, parameters.dimension, np.array(parameters.literal_steps)
    ranks = (np.arange(COORDINATE_POINTS) + 0.5) / COORDINATE_POINTS
    # Relative to the root mean square, 1 / sqrt(p).
    coordinate = np.sqrt(p * betaincinv(0.5, (p - 1) / 2, ranks)) if p > 1 else np.ones(1)
    coverage, distance, gap = np.empty((3, len(times)))
    for place, steps in enumerate(parameters.literal_steps):
        bias, covariance, stationary = _literal_law(parameters, literal, steps, noise_for=steps)
        covariances = np.broadcast_to(covariance, (len(coordinate), m, m))
        biases = coordinate[:, None] * bias
        coverage[place] = t_interval_coverage(biases, covariances, level=parameters.level).mean()
        distance[place] = _pinsker(p, bias, covariance, stationary)
        excess = np.linalg.norm(covariance / stationary - np.eye(m))
        gap[place] = np.sqrt(p) * max(np.sqrt(np.sum(bias**2) / stationary), excess)
    late = times[times >= np.median(times)]
    half: Any = {"noise_for": max(parameters.literal_steps), "eigenvalue": LEAST_EIGENVALUE}
    slow = [_pinsker(p, *_literal_law(parameters, literal, steps, **half)) for steps in late]
    centred = late - late.mean()
    return {
        "literal_coverage": coverage,
        "literal_distance_over_gap": distance / gap,
        "literal_rate": np.exp(np.log(slow) @ centred / np.sum(centred**2)),
    }


@per(
    averaged_over_final_length=Quantity(
        "expected length from averages of the runs' iterates divided by that from final ones",
        "long_gradients",
    )
)
def averages(parameters: Parameters) -> list[float]:
    """Averages against final iterates, at identity covariance and without clipping."""
    law = _isotropic_law(parameters, parameters.dimension)
    ratios = []
    for count in parameters.long_gradients:
        last = parameters.model_copy(update={"burn_in": count // parameters.replicates - 1})
        each = (part.quality(law, "independent_runs", count) for part in (parameters, last))
        averaged, final = (quality.expected_length.mean() for quality in each)
        ratios.append(averaged / final)
    return ratios


@per(
    gram=Quantity("X'X, not private", "feature other_feature"),
    moment=Quantity("X'y, not private", "feature"),
    clipped_minimiser=Quantity(
        "minimiser of the loss whose gradients are the clipped ones, not private", "feature"
    ),
    population_parameter=Quantity("population parameter", "feature"),
    ols_length=Quantity(
        "length of the least-squares interval for the population parameter, not private", "feature"
    ),
)
def table(parameters: Parameters, shared_rng: np.random.Generator) -> dict:
    """Estimates of the constructions on the one data set, and their references."""
    from privreg.algorithms.ols import ols
    from privreg.algorithms.samples import moments

    data, target = _data(parameters, shared_rng)
    gram, moment = moments(data)
    return {
        "gram": gram,
        "moment": moment,
        "clipped_minimiser": clipped_minimiser(data, parameters.clip_norm),
        "population_parameter": target,
        "ols_length": 2 * ols(data).half_widths(level=parameters.level),
    }


@per(
    **{
        name: Quantity(f"replicates of {name.replace('_', ' ')}", f"{axis} run replicate feature")
        for name, axis in ALONG.items()
    },
    clipped_fraction=Quantity("share of gradients clipped, not private", "gradients"),
)
def replicates(
    parameters: Parameters, trials: Trials, shared_rng: np.random.Generator
) -> Iterator[dict]:
    """Replicates of each construction."""
    from privreg.inference.intervals import replicate_weights

    m, runs = parameters.replicates, parameters.runs
    data, _ = _data(parameters, shared_rng)
    descent: Any = partial(
        descend,
        data,
        clip_norm=parameters.clip_norm,
        rho=parameters.budget.rho,
        step_size=parameters.step_size,
        times=None,
    )
    weights = partial(replicate_weights, replicates=m, burn_in=parameters.burn_in)
    for trial in trials:
        found: dict = {name: [] for name in replicates.quantities}
        for count in parameters.gradients:
            path = descent(steps=count, runs=runs, rng=trial.rng)
            found["clipped_fraction"].append(path.clipped_fraction.non_private.mean())
            found["batch_means"].append(weights("batch_means", gradients=count) @ path.iterates)
            found["checkpoints"].append(weights("checkpoints", gradients=count) @ path.iterates)
            if count in parameters.long_gradients:
                path = descent(steps=count // m, gradients=count, runs=runs * m, rng=trial.rng)
                mean = weights("independent_runs", gradients=count) @ path.iterates
                found["independent_runs"].append(mean.reshape(runs, m, -1))
        yield found


SCORES = {
    "coverage": "the feature-averaged coverage of the empirical minimiser",
    "clipped_minimiser_coverage": "the feature-averaged coverage of the clipped loss's minimiser",
    "population_coverage": "the feature-averaged coverage of the population parameter",
    "length": "the feature-averaged length of the interval",
}
PERCENTILES = {
    "coverage_percentiles": "percentiles over features of the coverage of the empirical minimiser",
    "length_percentiles": "percentiles over features of the length of the interval",
}
GAPS = {
    "coverage_gap": "simulated minus exact coverage",
    "length_ratio": "simulated length divided by the expected length",
}


@per(
    **_of_each(Mean, SCORES),
    **_of_each(Quantity, PERCENTILES, "percentile"),
    **_of_each(Estimate, GAPS),
    **EXACT,
    ols_length="mean length of the least-squares interval, not private",
)
def scores(parameters: Parameters, simulation: Dataset) -> dict:
    """Coverage of the three targets and length, simulated and exact given the data."""
    from privreg.inference.intervals import replicate_interval
    from privreg.theory.full_batch_dpgd import gradient_descent_law

    law = gradient_descent_law(
        simulation.gram.values,
        simulation.moment.values,
        sample_size=parameters.sample_size,
        step_size=parameters.step_size,
        gradient_noise_std=0.0,
    )
    targets = (
        law.minimiser,
        simulation.clipped_minimiser.values,
        simulation.population_parameter.values,
    )
    found = _exact(parameters, law)
    for name, axis in ALONG.items():
        # Runs of all trials in one row: (runs, gradients, replicates, features).
        values = simulation[name].transpose("trial", "run", axis, "replicate", "feature").values
        interval = replicate_interval(values.reshape(-1, *values.shape[2:]), level=parameters.level)
        covers = [interval.covers(target).astype(float) for target in targets]
        each = dict(zip(SCORES, (*covers, interval.length), strict=True))
        for quantity, values in each.items():
            found[f"{name}_{quantity}"] = values.mean(axis=-1).T
        for quantity in ("coverage", "length"):
            spread = np.percentile(each[quantity].mean(axis=0), (2.5, 97.5), axis=-1)
            found[f"{name}_{quantity}_percentiles"] = spread
        coverage, length = found[f"{name}_coverage"], found[f"{name}_length"]
        exact, expected = found[f"{name}_exact_coverage"], found[f"{name}_expected_length"]
        found[f"{name}_coverage_gap"] = coverage.mean(axis=-1) - exact, error_of_mean(coverage)
        ratio = length.mean(axis=-1) / expected, error_of_mean(length) / expected
        found[f"{name}_length_ratio"] = ratio
    return found | {"ols_length": simulation.ols_length.values.mean()}


theory = stage(AXES, law, literal, averages)
simulate = stage(AXES, table, replicates)
intervals = stage(
    AXES,
    scores,
    means(replicates, "clipped_fraction"),
    attributes=lambda parameters: {"level": parameters.level},
)


def _data(parameters: Parameters, rng: np.random.Generator) -> tuple[ArraySamples, np.ndarray]:
    return draw(
        parameters.sample_size, parameters.dimension, rng, anisotropic=parameters.anisotropic
    )


def _exact(parameters: Parameters, law: GradientDescentLaw) -> dict:
    """Exact coverage and expected length under the unclipped law."""
    found: dict = {}
    for name, axis in ALONG.items():
        made = [parameters.quality(law, name, count) for count in getattr(parameters, axis)]
        found[f"{name}_exact_coverage"] = [each.coverage.mean() for each in made]
        found[f"{name}_expected_length"] = [each.expected_length.mean() for each in made]
    return found


def _isotropic_law(
    parameters: Parameters, size: int, *, noise: float = 0.0, eigenvalue: float = 1.0
) -> GradientDescentLaw:
    """Law of `size` coordinates for a multiple of the identity and an evenly spread minimiser."""
    from privreg.theory.full_batch_dpgd import GradientDescentLaw

    return GradientDescentLaw(
        eigenvalues=np.full(size, eigenvalue),
        eigenvectors=np.eye(size),
        minimiser=np.full(size, parameters.dimension**-0.5),
        start=np.zeros(size),
        step_size=parameters.step_size,
        gradient_noise_std=noise,
    )


def _literal_law(
    parameters: Parameters, literal: str, steps: int, *, noise_for: int, eigenvalue: float = 1.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Bias and covariance of one coordinate's m replicates, and its stationary variance."""
    m = parameters.replicates
    noise = float(parameters.gradient_noise_std(parameters.budget.rho, m * noise_for))
    contraction = 1 - parameters.step_size * eigenvalue
    stationary = (parameters.step_size * noise) ** 2 / (1 - contraction**2)
    law = _isotropic_law(parameters, 1, noise=noise, eigenvalue=eigenvalue)
    if literal == "independent_runs":
        bias, variance = law.functionals(np.eye(1, steps, steps - 1))
        return np.repeat(bias[0], m), variance[0, 0, 0] * np.eye(m), stationary
    checkpoints = np.zeros((m, m * steps))
    checkpoints[np.arange(m), steps * (np.arange(m) + 1) - 1] = 1
    bias, covariance = law.functionals(checkpoints)
    return bias[0], covariance[0], stationary


def _pinsker(dimension: int, bias: np.ndarray, covariance: np.ndarray, variance: float) -> float:
    """Bound on the distance of the joint laws of all coordinates, from KL(N(b, C) ‖ N(0, v I))."""
    # log1p keeps the digits of a covariance that is nearly the ideal one.
    excess = np.linalg.eigvalsh(covariance / variance - np.eye(len(covariance)))
    divergence = 0.5 * (np.sum(bias**2) / variance + np.sum(excess - np.log1p(excess)))
    return float(np.sqrt(dimension * divergence / 2))
