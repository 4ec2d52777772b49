"""Sample moments of many unclipped runs on one data set against their exact Gaussian law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Count,
    Dimension,
    Rising,
    SampleSize,
    StatedBudget,
    Steps,
    StepSize,
    at_most,
    more_than,
)

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Lemma 2.3, equations (8), (18), (19) and (88)-(94)"
DATA_STREAM = 1 << 31
SETTINGS = ("unclipped", "clipped")
BINS = 200


class Parameters(Strict):
    """One data set; runs without clipping, and with the clipping of the experiments."""

    dimension: Dimension = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Sample size n.")
    budget: StatedBudget = Field(description="zCDP budget that sets the noise.")
    steps: Steps = Field(description="Gradient steps T.")
    times: Rising[Steps] = Field(description="Steps at which the law is compared.")
    step_size: StepSize = Field(description="eta.")
    clip_constant: ClipConstant = Field(description="gamma / sqrt(p).")
    runs: Annotated[Count, Field(ge=2)] = Field(description="Runs in each trial.")

    _more_rows_than_columns = more_than("sample_size", "dimension")
    _times_are_steps = at_most("times", "steps")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """First and second moments, over each trial's runs, of deviations from the law's mean."""
    import xarray as xr
    from scipy.special import gammainc

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.algorithms.samples import moments
    from privreg.theory.full_batch_dpgd.law import gradient_descent_law
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    data, _ = draw(parameters.sample_size, parameters.dimension, trials.generator(DATA_STREAM))
    gram, moment = moments(data)
    clip_norm = parameters.clip_constant * np.sqrt(parameters.dimension)
    noise = float(
        full_batch_noise_std(
            clip_norm=clip_norm,
            rho=parameters.budget.rho,
            sample_size=data.sample_size,
            gradients=parameters.steps,
        )
    )
    law = gradient_descent_law(
        gram,
        moment,
        sample_size=data.sample_size,
        step_size=parameters.step_size,
        gradient_noise_std=noise,
    )
    times = np.asarray(parameters.times)
    mean = law.mean(times)
    size = mean.size
    exact = law.covariance(times[:, None], times).transpose(0, 2, 1, 3).reshape(size, size)
    first = np.empty((len(trials), len(SETTINGS), size))
    second = np.empty((len(trials), len(SETTINGS), size, size))
    ranks = np.empty((len(trials), len(SETTINGS), BINS))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        # One bound a call: a finite one would keep screening from replacing the unclipped rows.
        state = trial.rng.bit_generator.state
        for row, bound in enumerate((np.inf, clip_norm)):
            trial.rng.bit_generator.state = state
            run = full_batch_dpgd(
                data,
                clip_norm=bound,
                step_size=parameters.step_size,
                gradient_noise_std=noise,
                steps=parameters.steps,
                runs=parameters.runs,
                times=times,
                rng=trial.rng,
            )
            gap = (run.iterates - mean).reshape(parameters.runs, size)
            first[at, row] = gap.mean(axis=0)
            second[at, row] = gap.T @ gap / parameters.runs
            # Squared Mahalanobis lengths are chi-squared; their ranks are uniform.
            lengths = np.einsum("ij,ij->i", gap, np.linalg.solve(exact, gap.T).T)
            ranks[at, row] = np.histogram(gammainc(size / 2, lengths / 2), BINS, (0, 1))[0]
    entries = np.arange(size)
    return xr.Dataset(
        {
            "first": variable(
                ("trial", "setting", "entry"), first, "mean deviation from the law's mean"
            ),
            "second": variable(
                ("trial", "setting", "entry", "other_entry"),
                second,
                "mean product of deviations from the law's mean",
            ),
            "ranks": variable(
                ("trial", "setting", "bin"), ranks, "runs by the rank of their Mahalanobis length"
            ),
            "covariance": variable(
                ("entry", "other_entry"), exact, "covariance and cross-covariance of the law"
            ),
        },
        coords={
            "setting": variable("setting", list(SETTINGS), "without or with clipping"),
            "entry": variable("entry", entries, "feature within time, flattened"),
        },
        attrs={"runs": parameters.runs},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Gaps to the law over all runs, with the standard errors that the law implies."""
    import xarray as xr

    exact = simulation.covariance.values
    count = simulation.sizes["trial"] * parameters.runs
    first, second = simulation.first.values.mean(axis=0), simulation.second.values.mean(axis=0)
    variance = np.diag(exact)
    mean_error = np.broadcast_to(np.sqrt(variance / count), first.shape)
    pair_error = np.sqrt((np.outer(variance, variance) + exact**2) / count)
    scale = np.array([np.trace(np.linalg.solve(exact, part)) for part in second]) / len(exact)
    shares = np.cumsum(simulation.ranks.values.sum(axis=0), axis=-1) / count
    distance = np.abs(shares - np.arange(1, BINS + 1) / BINS).max(axis=-1)
    last = slice(-parameters.dimension, None)
    bias = np.linalg.norm(first[:, last], axis=1) / np.sqrt(variance[last].sum())
    dims = ("setting", "entry")
    return xr.Dataset(
        {
            "mean_gap": variable(
                dims,
                first,
                "sample mean less the law's, at each time and feature",
                standard_error="mean_gap_standard_error",
            ),
            "mean_gap_standard_error": variable(
                dims, mean_error, "standard error of the sample mean under the law"
            ),
            "covariance_gap": variable(
                (*dims, "other_entry"),
                second - exact,
                "sample covariance less the law's, between times and features",
                standard_error="covariance_gap_standard_error",
            ),
            "covariance_gap_standard_error": variable(
                (*dims, "other_entry"),
                np.broadcast_to(pair_error, second.shape),
                "standard error of the sample covariance under the law",
            ),
            "covariance_scale": variable(
                "setting",
                scale,
                "mean eigenvalue of the sample covariance in units of the law's",
                standard_error="covariance_scale_standard_error",
            ),
            "covariance_scale_standard_error": variable(
                "setting",
                np.full(len(scale), np.sqrt(2 / (count * len(exact)))),
                "standard error of the scale under the law",
            ),
            "law_distance": variable(
                "setting",
                distance * np.sqrt(count),
                "Kolmogorov distance of the joint law's ranks to uniform ones, times the root of "
                "the runs",
            ),
            "largest_mean_deviation": variable(
                "setting",
                np.max(np.abs(first) / mean_error, axis=1),
                "largest deviation of a mean in standard errors",
            ),
            "relative_bias": variable(
                "setting",
                bias,
                "norm of the last time's mean gap over the noise's root mean square",
            ),
        },
        coords={name: simulation[name].variable for name in ("setting", "entry", "trial")},
        attrs={"runs": count},
    )
