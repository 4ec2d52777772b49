"""Confidence intervals from the iterates of DP-GD: their coverage and length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Count,
    Dimension,
    Flag,
    Index,
    Probability,
    Rising,
    SampleSize,
    StatedBudget,
    Steps,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.inference.intervals import Construction
    from reproduction.experiment.trials import Trials

PLACE = "Figures 5, 6, 10 and 11, sections 3 and 4.2, Theorem 3.1"
ON_ONE_PATH: tuple[Construction, ...] = ("batch_means", "checkpoints")
CONSTRUCTIONS: tuple[Construction, ...] = (*ON_ONE_PATH, "independent_runs")
# A stream that no trial uses: all trials run on one data set, whatever the shards.
DATA_STREAM = 1 << 31


class Parameters(Strict):
    """Figures 5 and 6, with anisotropic data 10 and 11: one data set, many algorithm runs."""

    dimension: Dimension = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(
        description="Sample size n; the paper does not state it."
    )
    budget: StatedBudget = Field(description="zCDP budget of all gradients together.")
    gradients: Rising[Steps] = Field(description="Total numbers N of gradients.")
    step_size: StepSize = Field(description="eta; the paper does not state it.")
    clip_constant: ClipConstant = Field(description="gamma / sqrt(p).")
    replicates: Annotated[Count, Field(ge=2)] = Field(
        10, description="Runs, checkpoints or batches m."
    )
    burn_in: Index = Field(20, description="First iterates left out.")
    level: Probability = Field(0.95, description="Nominal coverage; the paper states none.")
    runs: Count = Field(description="Algorithm runs in each trial.")
    literal_steps: Annotated[Rising[Steps], Field(min_length=3)] = Field(
        default_factory=lambda: [5, 10, 15, 20, 30],
        description="Steps T a run, or between checkpoints, in Theorem 3.1's own constructions.",
    )
    anisotropic: Flag = Field(False, description="Random covariance of Appendix B.")

    _more_rows_than_columns = more_than("sample_size", "dimension")

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if not self.gradients_of("independent_runs"):
            raise ValueError(
                "gradients must hold a number more than replicates * burn_in = "
                f"{self.replicates * self.burn_in}, got {self.gradients}"
            )
        return self

    def gradient_noise_std(self, gradients: int) -> float:
        from privreg.algorithms.full_batch_dpgd import full_batch_noise_std

        return float(
            full_batch_noise_std(
                clip_norm=self.clip_constant * np.sqrt(self.dimension),
                rho=self.budget.rho,
                sample_size=self.sample_size,
                gradients=gradients,
            )
        )

    def gradients_of(self, construction: str) -> list[int]:
        """Independent runs need more than the burn-in in each of them."""
        least = self.replicates * self.burn_in if construction == "independent_runs" else 0
        return [count for count in self.gradients if count > least]

    def weights(self, construction: Construction, gradients: int) -> np.ndarray:
        """Weights of a path's iterates in the replicates, (m, N) or (1, N / m)."""
        from privreg.inference.intervals import replicate_weights

        return replicate_weights(
            construction,
            gradients=gradients,
            replicates=self.replicates,
            burn_in=self.burn_in,
        )


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact coverage and expected length at identity covariance and an evenly spread minimiser."""
    import xarray as xr
    from scipy.special import ndtri

    from reproduction.papers.brown2024.literal_constructions import literal_coverage

    p = parameters.dimension
    variables: dict[str, tuple] = {}
    for construction in CONSTRUCTIONS:
        found = _exact(parameters, construction, np.ones(p), np.eye(p), np.full(p, p**-0.5))
        for name, (values, meaning) in found.items():
            variables[f"{construction}_{name}"] = variable(
                _axis(construction), values.mean(axis=-1), f"{meaning}, {_words(construction)}"
            )
    # Length is proportional to 1/n and a least-squares interval's to 1/sqrt(n).
    length = variables["batch_means_expected_length"][1]
    variables["equal_length_sample_size"] = variable(
        "gradients",
        (length * parameters.sample_size / (2 * ndtri((1 + parameters.level) / 2))) ** 2,
        "sample size at which batch means are as long as the interval of least squares",
    )
    return xr.Dataset(
        variables | literal_coverage(parameters),
        coords=_coordinates(parameters)
        | {"steps": variable("steps", parameters.literal_steps, "steps T of Theorem 3.1")},
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Replicates of each construction, and what a reader needs to know of the one data set."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
    from privreg.algorithms.ols import ols
    from privreg.algorithms.samples import moments
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.clipped_loss import clipped_minimiser
    from reproduction.papers.brown2024.synthetic_data import draw

    p, m, runs = parameters.dimension, parameters.replicates, parameters.runs
    data, target = draw(
        parameters.sample_size, p, trials.generator(DATA_STREAM), anisotropic=parameters.anisotropic
    )
    gram, moment = moments(data)
    fit = ols(data)
    clip_norm = parameters.clip_constant * np.sqrt(p)
    found = {
        name: np.empty((len(trials), runs, len(parameters.gradients_of(name)), m, p))
        for name in CONSTRUCTIONS
    }
    clipped = np.empty((len(trials), len(parameters.gradients)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for column, gradients in enumerate(parameters.gradients):
            separate = gradients in parameters.gradients_of("independent_runs")
            for steps, count in ((gradients, runs), (gradients // m, runs * m))[: 1 + separate]:
                run = full_batch_dpgd(
                    data,
                    clip_norm=clip_norm,
                    step_size=parameters.step_size,
                    gradient_noise_std=parameters.gradient_noise_std(gradients),
                    steps=steps,
                    runs=count,
                    rng=trial.rng,
                )
                if count == runs:
                    clipped[at, column] = run.clipped_fraction.non_private.mean()
                    for name in ON_ONE_PATH:
                        weights = parameters.weights(name, gradients)
                        found[name][at, :, column] = weights @ run.iterates
                else:
                    mean = parameters.weights("independent_runs", gradients) @ run.iterates
                    place = parameters.gradients_of("independent_runs").index(gradients)
                    found["independent_runs"][at, :, place] = mean.reshape(runs, m, p)
    variables = {
        name: variable(
            ("trial", "run", _axis(name), "replicate", "feature"),
            values,
            f"replicates of {_words(name)}",
        )
        for name, values in found.items()
    }
    widths = fit.half_widths(level=parameters.level)
    return xr.Dataset(
        variables
        | {
            "clipped_fraction": variable(
                ("trial", "gradients"), clipped, "share of gradients clipped, not private"
            ),
            "gram": variable(("feature", "other_feature"), gram, "X'X, not private"),
            "moment": variable("feature", moment, "X'y, not private"),
            "clipped_minimiser": variable(
                "feature",
                clipped_minimiser(data, clip_norm=float(clip_norm)),
                "minimiser of the loss whose gradients are the clipped ones, not private",
            ),
            "population_parameter": variable("feature", target, "population parameter"),
            "ols_length": variable(
                "feature",
                2 * widths,
                "length of the least-squares interval for the population parameter, not private",
            ),
        },
        coords=_coordinates(parameters),
    )


def intervals(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Coverage of the three targets and length, simulated and exact given the data."""
    import xarray as xr

    from privreg.inference.intervals import replicate_interval

    gram, moment = simulation.gram.values, simulation.moment.values
    minimiser = np.linalg.solve(gram, moment)
    eigenvalues, eigenvectors = np.linalg.eigh(gram / parameters.sample_size)
    variables: dict[str, tuple] = {}
    for name in CONSTRUCTIONS:
        axis, words = _axis(name), _words(name)
        values = simulation[name].values
        # Runs of all trials in one row: (runs, gradients, replicates, features).
        values = values.reshape(-1, *values.shape[2:])
        interval = replicate_interval(values, level=parameters.level)
        exact = _exact(parameters, name, eigenvalues, eigenvectors, minimiser)
        for quantity, per_run, meaning in (
            ("coverage", interval.covers(minimiser), "coverage of the empirical minimiser"),
            (
                "clipped_minimiser_coverage",
                interval.covers(simulation.clipped_minimiser.values),
                "coverage of the clipped loss's minimiser",
            ),
            (
                "population_coverage",
                interval.covers(simulation.population_parameter.values),
                "coverage of the population parameter",
            ),
            ("length", interval.length, "length of the interval"),
        ):
            runs = np.asarray(per_run, dtype=float)
            variables |= mean_and_error(
                f"{name}_{quantity}",
                runs.mean(axis=-1).T,
                (axis,),
                f"{meaning}, {words}, averaged over features",
            )
            variables[f"{name}_{quantity}_percentiles"] = variable(
                ("percentile", axis),
                np.percentile(runs.mean(axis=0), (2.5, 97.5), axis=-1),
                f"percentiles over features of the {meaning}, {words}",
            )
        for quantity, (by_feature, meaning) in exact.items():
            variables[f"{name}_{quantity}"] = variable(
                axis, by_feature.mean(axis=-1), f"{meaning}, {words}, averaged over features"
            )
        coverage = variables[f"{name}_coverage"][1] - variables[f"{name}_exact_coverage"][1]
        length = variables[f"{name}_length"][1] / variables[f"{name}_expected_length"][1]
        for quantity, gap, meaning, source, scale in (
            ("coverage_gap", coverage, "simulated less exact coverage", "coverage", 1.0),
            (
                "length_ratio",
                length,
                "simulated over expected length",
                "length",
                variables[f"{name}_expected_length"][1],
            ),
        ):
            error = f"{name}_{quantity}_standard_error"
            variables[f"{name}_{quantity}"] = variable(
                axis, gap, f"{meaning}, {words}", standard_error=error
            )
            variables[error] = variable(
                axis,
                variables[f"{name}_{source}_standard_error"][1] / scale,
                f"standard error of {meaning}",
            )
    variables["ols_length"] = variable(
        (),
        simulation.ols_length.values.mean(),
        "mean length of the least-squares interval for the population parameter, not private",
    )
    variables["batch_means_over_ols_length"] = variable(
        "gradients",
        variables["batch_means_length"][1] / variables["ols_length"][1],
        "length of batch means over that of the least-squares interval",
    )
    variables |= mean_and_error(
        "clipped_fraction",
        simulation.clipped_fraction.values.T,
        ("gradients",),
        "the share of gradients clipped, not private",
    )
    return xr.Dataset(
        variables,
        coords=_coordinates(parameters)
        | {"percentile": variable("percentile", [2.5, 97.5], "percentile", units="percent")},
        attrs={
            "level": parameters.level,
            "runs": len(values),
            "sample_size": parameters.sample_size,
        },
    )


def _exact(
    parameters: Parameters,
    construction: Construction,
    eigenvalues: np.ndarray,
    eigenvectors: np.ndarray,
    minimiser: np.ndarray,
) -> dict[str, tuple[np.ndarray, str]]:
    """Exact coverage and expected length under the unclipped law, (gradients, features) each."""
    from privreg.inference.quality import interval_quality
    from privreg.theory.full_batch_dpgd.law import GradientDescentLaw

    found = []
    for gradients in parameters.gradients_of(construction):
        law = GradientDescentLaw(
            eigenvalues=eigenvalues,
            eigenvectors=eigenvectors,
            minimiser=minimiser,
            start=np.zeros_like(minimiser),
            step_size=parameters.step_size,
            gradient_noise_std=parameters.gradient_noise_std(gradients),
        )
        found.append(
            interval_quality(
                law,
                gradients=gradients,
                construction=construction,
                replicates=parameters.replicates,
                burn_in=parameters.burn_in,
                level=parameters.level,
            )
        )
    coverage = _by_gradients(parameters, [each.coverage for each in found])
    length = _by_gradients(parameters, [each.expected_length for each in found])
    return {
        "exact_coverage": (coverage, "exact coverage of the empirical minimiser without clipping"),
        "expected_length": (length, "expected length without clipping"),
    }


def _by_gradients(parameters: Parameters, rows: list[np.ndarray]) -> np.ndarray:
    """One row for each number of gradients, of which there may be none."""
    return np.reshape(rows, (len(rows), parameters.dimension))


def _axis(construction: str) -> str:
    return "long_gradients" if construction == "independent_runs" else "gradients"


def _words(construction: str) -> str:
    return construction.replace("_", " ")


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        _axis(name): variable(
            _axis(name), parameters.gradients_of(name), "total number of gradients N"
        )
        for name in CONSTRUCTIONS
    }
