"""Errors of DP-GD, least squares and AdaSSP as dimension and sample size grow together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Dimension,
    Finite,
    Flag,
    Probability,
    Rising,
    SampleSize,
    StatedBudget,
    Steps,
    StepSize,
)
from reproduction.experiment.summaries import loglog_slope, mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from privreg.algorithms.samples import ArraySamples
    from reproduction.experiment.trials import Trials

PLACE = "Figures 1 and 9, section 4.1, Theorem 2.7"
# Differs from its neighbour in `VARIANTS` in the budget alone; draws from a stream of its own and
# leaves the trial's to the others.
APART = "wide_zcdp_replace_one"
# How AdaSSP is given its bounds and its budget. Only a priori bounds keep it private.
VARIANTS = (
    "data_max_approximate_add_remove",
    "data_max_approximate_replace_one",
    "data_max_zcdp_add_remove",
    "data_max_zcdp_replace_one",
    "a_priori_approximate_replace_one",
    "a_priori_zcdp_replace_one",
    "wide_zcdp_replace_one_large_budget",
    APART,
)
# Wide a priori bounds, in root mean squares of a row's norm and of a label, and the multiple of the
# budget at which AdaSSP with them needs no ridge.
WIDE = (3.0, 4.5)
LARGE_BUDGET = 20_000
# Slopes: from ten features on, and where the lower-order terms of AdaSSP have died out.
FITTED_FROM = {"slope": 10, "late_slope": 50}


class Parameters(Strict):
    """Figures 1 and 9: dimensions at a fixed ratio of samples to features."""

    dimensions: Annotated[Rising[Dimension], Field(min_length=2)] = Field(
        description="Numbers of features p."
    )
    samples_per_feature: Annotated[SampleSize, Field(ge=3)] = Field(description="n / p.")
    budget: StatedBudget = Field(description="zCDP budget.")
    delta: Probability = Field(description="delta of the (eps, delta) form of AdaSSP.")
    steps: Steps = Field(description="Gradient steps T.")
    step_size: StepSize = Field(description="eta; the paper's experiments do not state it.")
    clip_constant: ClipConstant = Field(description="gamma / sqrt(p).")
    anisotropic: Flag = Field(False, description="Random covariance of Appendix B.")
    label_noise_mean: Finite = Field(0.0, description="Mean of the label noise, 0 in the paper.")

    @property
    def work(self) -> float:
        """Arithmetic of a trial: second moments, two passes a step and the draw of each table."""
        rows_and_columns = [(p * self.samples_per_feature, p) for p in self.dimensions]
        return float(sum(n * p * (p + 2 * self.steps + 30) for n, p in rows_and_columns))

    @property
    def held(self) -> float:
        """Numbers in memory, however many trials: the largest table."""
        return float(max(self.dimensions) ** 2 * self.samples_per_feature)


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Distances of the estimates to the empirical minimiser and to the population parameter."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.algorithms.samples import moments
    from privreg.theory.full_batch_dpgd.law import gradient_descent_law
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    shape = (len(trials), len(parameters.dimensions))
    private, private_population, sampling, law = (np.empty(shape) for _ in range(4))
    baseline, baseline_privacy = (np.empty((*shape, len(VARIANTS))) for _ in range(2))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for column, dimension in enumerate(parameters.dimensions):
            count = dimension * parameters.samples_per_feature
            data, target = draw(
                count,
                dimension,
                trial.rng,
                anisotropic=parameters.anisotropic,
                label_noise_mean=parameters.label_noise_mean,
            )
            gram, moment = moments(data)
            clip_norm = parameters.clip_constant * np.sqrt(dimension)
            noise = float(
                full_batch_noise_std(
                    clip_norm=clip_norm,
                    rho=parameters.budget.rho,
                    sample_size=count,
                    gradients=parameters.steps,
                )
            )
            exact = gradient_descent_law(
                gram,
                moment,
                sample_size=count,
                step_size=parameters.step_size,
                gradient_noise_std=noise,
            )
            found = full_batch_dpgd(
                data,
                clip_norm=clip_norm,
                step_size=parameters.step_size,
                gradient_noise_std=noise,
                steps=parameters.steps,
                times=[parameters.steps],
                rng=trial.rng,
                screening=False,
            ).iterates[0, 0]
            where = at, column
            private[where] = np.linalg.norm(found - exact.minimiser)
            private_population[where] = np.linalg.norm(found - target)
            sampling[where] = np.linalg.norm(exact.minimiser - target)
            law[where] = exact.expected_squared_error(parameters.steps)
            estimates = _baselines(parameters, data, trial.rng)
            baseline[where] = np.linalg.norm(estimates - target, axis=1)
            baseline_privacy[where] = np.linalg.norm(estimates - exact.minimiser, axis=1)
    dims = ("trial", "dimension")
    return xr.Dataset(
        {
            "privacy_error": variable(
                dims, private, "distance of DP-GD to the empirical minimiser"
            ),
            "private_error": variable(
                dims, private_population, "distance of DP-GD to the population parameter"
            ),
            "sampling_error": variable(
                dims,
                sampling,
                "distance of least squares, not private, to the population parameter",
            ),
            "law_squared_error": variable(
                dims,
                law,
                "exact mean squared distance of unclipped DP-GD to the empirical minimiser",
            ),
            "adassp_error": variable(
                (*dims, "variant"), baseline, "distance of AdaSSP to the population parameter"
            ),
            "adassp_privacy_error": variable(
                (*dims, "variant"),
                baseline_privacy,
                "distance of AdaSSP to the empirical minimiser",
            ),
        },
        coords={
            "dimension": variable("dimension", parameters.dimensions, "features p"),
            "variant": variable("variant", list(VARIANTS), "bounds, budget and neighbours"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over trials, and log-log slopes in the dimension."""
    import xarray as xr

    errors = {
        name: np.moveaxis(simulation[name].values, 0, -1)
        for name in (
            "privacy_error",
            "private_error",
            "sampling_error",
            "adassp_error",
            "adassp_privacy_error",
        )
    }
    dims = {name: [str(dim) for dim in simulation[name].dims[1:]] for name in errors}
    dimensions = np.asarray(parameters.dimensions)
    variables: dict[str, tuple] = {}
    for name, values in errors.items():
        variables |= mean_and_error(name, values, dims[name], simulation[name].attrs["long_name"])
        for kind, least in FITTED_FROM.items():
            fitted = dimensions >= min(least, dimensions[-2])
            slope, error = loglog_slope(dimensions[fitted], np.moveaxis(values[fitted], 0, -2))
            standard_error = f"{name}_{kind}_standard_error"
            variables[f"{name}_{kind}"] = variable(
                dims[name][1:],
                slope,
                f"log-log slope in the dimension, from p = {dimensions[fitted][0]} on",
                standard_error=standard_error,
            )
            variables[standard_error] = variable(
                dims[name][1:], error, "standard error of the slope"
            )
    ratio = errors["privacy_error"] ** 2 / simulation.law_squared_error.values.T
    variables |= mean_and_error(
        "law_ratio",
        ratio,
        ("dimension",),
        "squared distance of DP-GD to the empirical minimiser over its exact expectation",
    )
    variables |= mean_and_error(
        "triangle_ratio",
        errors["private_error"] ** 2
        / (errors["privacy_error"] ** 2 + errors["sampling_error"] ** 2),
        ("dimension",),
        "squared distance of DP-GD to the population parameter over the sum of its two parts",
    )
    exact = np.sqrt(dimensions / (dimensions * (parameters.samples_per_feature - 1) - 1.0))
    squares = mean_and_error(
        "sampling_square_ratio",
        (errors["sampling_error"] / exact[:, None]) ** 2,
        ("dimension",),
        "squared error of least squares over p / (n - p - 1)",
    )
    return xr.Dataset(
        variables | squares, coords=simulation.drop_vars("trial").coords
    ).assign_coords(trial=simulation.trial.variable)


def _baselines(parameters: Parameters, data: ArraySamples, rng: np.random.Generator) -> np.ndarray:
    """AdaSSP's estimates, one a variant; all but the a priori ones use bounds that leak."""
    from privreg.algorithms import adassp
    from privreg.privacy.budget import Budget
    from privreg.privacy.neighbours import Neighbours
    from privreg.privacy.zcdp import to_approximate
    from reproduction.papers.brown2024.synthetic_data import LABEL_NOISE_STD, mean_covariance_trace

    trace = mean_covariance_trace(data.dimension, anisotropic=parameters.anisotropic)
    label_variance = trace / data.dimension + LABEL_NOISE_STD**2
    scales = np.sqrt([trace, label_variance])
    largest = adassp.bounds_from_data(data).non_private
    wide = adassp.Bounds(*(float(bound) for bound in scales * WIDE))
    whole = adassp.clipped_sums(data, bounds=largest)
    sums = {
        "data_max": whole,
        "a_priori": adassp.clipped_sums(
            data, bounds=adassp.Bounds(float(scales[0]), float(2 * scales[1]))
        ),
        # Bounds beyond the data clip nothing, so the sums are those of the data's maxima.
        "wide": whole.within(wide)
        if largest.feature_norm <= wide.feature_norm and largest.label <= wide.label
        else adassp.clipped_sums(data, bounds=wide),
    }
    streams = {APART: rng.spawn(1)[0]}
    epsilon = float(to_approximate(parameters.budget.rho, delta=parameters.delta))
    estimates = []
    for variant in VARIANTS:
        part = next(value for name, value in sums.items() if variant.startswith(name))
        neighbours = Neighbours("add-remove" if "add_remove" in variant else "replace-one")
        if "approximate" in variant:
            estimate = adassp.adassp(
                part,
                bounds=part.bounds,
                epsilon=epsilon,
                delta=parameters.delta,
                rng=streams.get(variant, rng),
                neighbours=neighbours,
            )
        else:
            factor = LARGE_BUDGET if variant.endswith("large_budget") else 1
            estimate = adassp.adassp_zcdp(
                part,
                bounds=part.bounds,
                budget=Budget.zcdp(factor * parameters.budget.rho, neighbours=neighbours),
                rng=streams.get(variant, rng),
            )
        estimates.append(estimate)
    return np.array(estimates)
