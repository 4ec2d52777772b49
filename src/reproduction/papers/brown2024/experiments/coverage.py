"""Confidence intervals from the iterates of DP-GD: their coverage and length."""

from __future__ import annotations

from collections.abc import Iterator
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
from reproduction.papers.brown2024.setting import OneThreshold

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples
    from privreg.inference.intervals import Construction

PLACE = "Figures 5, 6, 10 and 11, sections 3 and 4.2, Theorem 3.1"
ON_ONE_PATH: tuple[Construction, ...] = ("batch_means", "checkpoints")
CONSTRUCTIONS: tuple[Construction, ...] = (*ON_ONE_PATH, "independent_runs")
# Which numbers of gradients a construction is evaluated at, and what the intervals may cover.
ALONG: dict[Construction, str] = {
    "batch_means": "gradients",
    "checkpoints": "gradients",
    "independent_runs": "long_gradients",
}
TARGETS = {
    "coverage": "empirical minimiser",
    "clipped_minimiser_coverage": "clipped loss's minimiser",
    "population_coverage": "population parameter",
}


class Parameters(OneThreshold):
    """Figures 5 and 6, with anisotropic data 10 and 11: one data set, many algorithm runs."""

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

    _long_enough = q.at_least(
        "gradients", "burn_in + replicates", lambda self: self.burn_in + self.replicates
    )
    _some_are_longer = q.must(
        "gradients must hold a number more than replicates * burn_in = {self.burnt}, "
        "got {self.gradients}",
        lambda self: self.long_gradients,
    )

    @property
    def burnt(self) -> int:
        """Gradients that independent runs leave out."""
        return self.replicates * self.burn_in

    @property
    def long_gradients(self) -> list[int]:
        return [count for count in self.gradients if count > self.burnt]

    def gradient_noise_std(self, gradients: int) -> float:
        from privreg.algorithms.full_batch_dpgd import full_batch_noise_std

        return float(
            full_batch_noise_std(
                clip_norm=self.clip_norm,
                rho=self.budget.rho,
                sample_size=self.sample_size,
                gradients=gradients,
            )
        )

    def weights(self, construction: Construction, gradients: int) -> np.ndarray:
        """Weights of a path's iterates in the replicates, (m, N) or (1, N / m)."""
        from privreg.inference.intervals import replicate_weights

        return replicate_weights(
            construction,
            gradients=gradients,
            replicates=self.replicates,
            burn_in=self.burn_in,
        )


AXES = {
    "gradients": Axis("total number of gradients N", "gradients"),
    "long_gradients": Axis("total number of gradients N", "long_gradients"),
    "percentile": Axis("percentile", [2.5, 97.5], units="percent"),
    "literal": Axis("construction of Theorem 3.1", ["independent_runs", "checkpoints"]),
    "steps": Axis("steps T of Theorem 3.1", "literal_steps"),
}


def _of_each(kind: type[Quantity], meaning: str, quantity: str, dims: str = "") -> dict:
    """A quantity of each construction."""
    return {
        f"{name}_{quantity}": kind(f"{meaning}, {name.replace('_', ' ')}", f"{dims} {axis}")
        for name, axis in ALONG.items()
    }


EXACT = _of_each(
    Quantity,
    "exact coverage of the empirical minimiser without clipping, averaged over features",
    "exact_coverage",
) | _of_each(
    Quantity, "expected length without clipping, averaged over features", "expected_length"
)


@per(
    **EXACT,
    equal_length_sample_size=Quantity(
        "sample size at which batch means are as long as the interval of least squares", "gradients"
    ),
)
def law(parameters: Parameters) -> dict:
    """Exact coverage and expected length at identity covariance and an evenly spread minimiser."""
    from scipy.special import ndtri

    p = parameters.dimension
    found = _exact(parameters, np.ones(p), np.eye(p), np.full(p, p**-0.5))
    # Length is proportional to 1/n and a least-squares interval's to 1/sqrt(n).
    length = np.array(found["batch_means_expected_length"]) * parameters.sample_size
    normal = 2 * ndtri((1 + parameters.level) / 2)
    return found | {"equal_length_sample_size": (length / normal) ** 2}


@per(
    "literal",
    literal_coverage=Quantity("exact coverage of the minimiser", "steps"),
    literal_distance=Quantity(
        "Pinsker's bound on the distance to independent stationary replicates", "steps"
    ),
    literal_distance_over_gap=Quantity(
        "that bound over the larger gap of mean and covariance, Claim C.11", "steps"
    ),
    literal_slack=Quantity("coverage less the level plus the bound on the distance", "steps"),
    literal_rate="factor of that distance for each further step at Sigma = I / 2, with one noise",
    literal_bias=Quantity("norm of the replicates' bias, all features and replicates", "steps"),
)
def literal(parameters: Parameters, literal: str) -> dict:
    """Theorem 3.1's own constructions."""
    # Imported here, so that simulations do not depend on exact coverage.
    from reproduction.papers.brown2024.literal_constructions import exact_law

    return exact_law(parameters, literal)


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
    """What the constructions estimate on the one data set, or are compared with."""
    from privreg.algorithms.ols import ols
    from privreg.algorithms.samples import moments
    from reproduction.papers.brown2024.clipped_loss import clipped_minimiser

    data, target = _data(parameters, shared_rng)
    gram, moment = moments(data)
    return {
        "gram": gram,
        "moment": moment,
        "clipped_minimiser": clipped_minimiser(data, clip_norm=float(parameters.clip_norm)),
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
    from reproduction.papers.brown2024.descent import descend

    m = parameters.replicates
    data, _ = _data(parameters, shared_rng)
    settings: dict[str, Any] = {
        "clip_norm": parameters.clip_norm,
        "rho": parameters.budget.rho,
        "step_size": parameters.step_size,
    }
    for trial in trials:
        found: dict = {name: [] for name in replicates.quantities}
        for count in parameters.gradients:
            path = descend(data, **settings, steps=count, runs=parameters.runs, rng=trial.rng)
            found["clipped_fraction"].append(path.clipped_fraction.non_private.mean())
            for name in ON_ONE_PATH:
                found[name].append(parameters.weights(name, count) @ path.iterates)
            if count in parameters.long_gradients:
                separate = descend(
                    data,
                    **settings,
                    steps=count // m,
                    gradients=count,
                    runs=parameters.runs * m,
                    rng=trial.rng,
                )
                mean = parameters.weights("independent_runs", count) @ separate.iterates
                found["independent_runs"].append(mean.reshape(parameters.runs, m, -1))
        yield found


SCORES = {quantity: f"coverage of the {target}" for quantity, target in TARGETS.items()}
SCORES["length"] = "length of the interval"


@per(
    **{
        name: each
        for quantity, meaning in SCORES.items()
        for name, each in {
            **_of_each(Mean, f"the {meaning}, averaged over features", quantity),
            **_of_each(
                Quantity,
                f"percentiles over features of the {meaning}",
                f"{quantity}_percentiles",
                "percentile",
            ),
        }.items()
    },
    **EXACT,
    **_of_each(Estimate, "simulated less exact coverage", "coverage_gap"),
    **_of_each(Estimate, "simulated over expected length", "length_ratio"),
    ols_length="mean length of the least-squares interval, not private",
)
def scores(parameters: Parameters, simulation: Dataset) -> dict:
    """Coverage of the three targets and length, simulated and exact given the data."""
    minimiser = np.linalg.solve(simulation.gram.values, simulation.moment.values)
    spectrum = np.linalg.eigh(simulation.gram.values / parameters.sample_size)
    found = _exact(parameters, *spectrum, minimiser)
    targets = dict(
        zip(
            TARGETS,
            (
                minimiser,
                simulation.clipped_minimiser.values,
                simulation.population_parameter.values,
            ),
            strict=True,
        )
    )
    for name in CONSTRUCTIONS:
        found |= _scores(parameters, simulation, name, targets)
        coverage, length = found[f"{name}_coverage"], found[f"{name}_length"]
        exact, expected = found[f"{name}_exact_coverage"], found[f"{name}_expected_length"]
        found[f"{name}_coverage_gap"] = coverage.mean(axis=-1) - exact, error_of_mean(coverage)
        found[f"{name}_length_ratio"] = (
            length.mean(axis=-1) / expected,
            error_of_mean(length) / expected,
        )
    return found | {"ols_length": simulation.ols_length.values.mean()}


theory = stage(AXES, law, literal)
simulate = stage(AXES, table, replicates)
intervals = stage(
    AXES,
    scores,
    means(replicates, "clipped_fraction"),
    attributes=lambda parameters: {
        "level": parameters.level,
        "sample_size": parameters.sample_size,
    },
)


def _data(parameters: Parameters, rng: np.random.Generator) -> tuple[ArraySamples, np.ndarray]:
    from reproduction.papers.brown2024.synthetic_data import draw

    return draw(
        parameters.sample_size, parameters.dimension, rng, anisotropic=parameters.anisotropic
    )


def _exact(
    parameters: Parameters, eigenvalues: np.ndarray, eigenvectors: np.ndarray, minimiser: np.ndarray
) -> dict:
    """Exact coverage and expected length under the unclipped law."""
    from privreg.inference.quality import interval_quality
    from privreg.theory.full_batch_dpgd.law import GradientDescentLaw

    found: dict = {name: [] for name in EXACT}
    for name, axis in ALONG.items():
        for gradients in getattr(parameters, axis):
            descent = GradientDescentLaw(
                eigenvalues=eigenvalues,
                eigenvectors=eigenvectors,
                minimiser=minimiser,
                start=np.zeros_like(minimiser),
                step_size=parameters.step_size,
                gradient_noise_std=parameters.gradient_noise_std(gradients),
            )
            quality = interval_quality(
                descent,
                gradients=gradients,
                construction=name,
                replicates=parameters.replicates,
                burn_in=parameters.burn_in,
                level=parameters.level,
            )
            found[f"{name}_exact_coverage"].append(quality.coverage.mean())
            found[f"{name}_expected_length"].append(quality.expected_length.mean())
    return found


def _scores(
    parameters: Parameters, simulation: Dataset, construction: Construction, targets: dict
) -> dict[str, np.ndarray]:
    """Means over features of each run, (gradients, runs), and percentiles of means over runs."""
    from privreg.inference.intervals import replicate_interval

    # Runs of all trials in one row: (runs, gradients, replicates, features).
    order = ("trial", "run", ALONG[construction], "replicate", "feature")
    values = simulation[construction].transpose(*order).values
    interval = replicate_interval(values.reshape(-1, *values.shape[2:]), level=parameters.level)
    found = {}
    scores = {name: interval.covers(target) for name, target in targets.items()}
    for name, score in (scores | {"length": interval.length}).items():
        each = np.asarray(score, dtype=float)
        found[f"{construction}_{name}"] = each.mean(axis=-1).T
        found[f"{construction}_{name}_percentiles"] = np.percentile(
            each.mean(axis=0), (2.5, 97.5), axis=-1
        )
    return found
