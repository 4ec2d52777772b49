"""Errors of DP-GD, least squares and AdaSSP as dimension and sample size grow together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Estimate,
    Mean,
    Quantity,
    Trial,
    means,
    per,
    stage,
)
from reproduction.engine.summaries import loglog_slope, trials_last
from reproduction.papers.brown2024.setting import LABEL_NOISE_STD, StepSize, descend, draw, law_of

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples

PLACE = "Figures 1 and 9, section 4.1, Theorem 2.7"
# This variant differs from its neighbour in `VARIANTS` in the budget alone. It draws from its own
# stream and leaves the trial's to the others.
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
# A priori bounds, in root mean squares of a row's norm and of a label, and the multiple of the
# budget at which AdaSSP with the wide ones needs no ridge.
A_PRIORI, WIDE = (1.0, 2.0), (3.0, 4.5)
LARGE_BUDGET = 20_000
# Slopes: from ten features on, and where the lower-order terms of AdaSSP have died out.
FITTED_FROM = {"slope": 10, "late_slope": 50}


class Parameters(Strict):
    """Figures 1 and 9: dimensions at a fixed ratio of samples to features."""

    dimensions: q.Grid[q.Dimension] = Field(description="Numbers of features p.")
    samples_per_feature: Annotated[q.SampleSize, Field(ge=3)] = Field(description="n / p.")
    budget: q.StatedBudget = Field(description="zCDP budget.")
    delta: q.Delta = Field(description="delta of the (eps, delta) form of AdaSSP.")
    steps: q.Steps = Field(description="Gradient steps T.")
    step_size: StepSize = Field(description="eta; the paper's experiments do not state it.")
    clip_constant: q.ClipConstant = Field(description="gamma / sqrt(p).")
    anisotropic: q.Flag = Field(False, description="Random covariance of Appendix B.")
    label_noise_mean: Annotated[q.Finite, Field(ge=-1e6, le=1e6)] = Field(
        0.0, description="Mean of the label noise, 0 in the paper."
    )

    _adassp_is_private = q.must(
        "budget must be at most epsilon = {self.most:.3g} at this delta, got {self.epsilon:.3g}",
        lambda self: self.epsilon <= self.most,
    )

    @property
    def epsilon(self) -> float:
        from privreg.privacy.budget import to_approximate

        return float(to_approximate(self.budget.rho, delta=self.delta))

    @property
    def most(self) -> float:
        """The largest epsilon at which AdaSSP is private."""
        from privreg.algorithms.adassp import largest_epsilon

        return largest_epsilon(self.delta)


AXES = {
    "dimension": Axis("features p", "dimensions"),
    "variant": Axis("bounds, budget and neighbours", lambda: VARIANTS),
}
ERRORS = {
    "privacy_error": Quantity("distance of DP-GD to the empirical minimiser"),
    "private_error": Quantity("distance of DP-GD to the population parameter"),
    "sampling_error": Quantity(
        "distance of least squares, not private, to the population parameter"
    ),
    "adassp_error": Quantity("distance of AdaSSP to the population parameter", "variant"),
    "adassp_privacy_error": Quantity("distance of AdaSSP to the empirical minimiser", "variant"),
}


@per(
    "dimension",
    **ERRORS,
    law_squared_error="exact mean squared distance of unclipped DP-GD to the empirical minimiser",
)
def run(parameters: Parameters, trial: Trial, dimension: int) -> dict:
    """Distances of the estimates to the empirical minimiser and to the population parameter."""
    data, target = draw(
        dimension * parameters.samples_per_feature,
        dimension,
        trial.rng,
        anisotropic=parameters.anisotropic,
        label_noise_mean=parameters.label_noise_mean,
    )
    path = descend(
        data,
        clip_norm=parameters.clip_constant * np.sqrt(dimension),
        rho=parameters.budget.rho,
        step_size=parameters.step_size,
        steps=parameters.steps,
        rng=trial.rng,
        screening=False,
    )
    law = law_of(data, parameters.step_size, path.gradient_noise_std)
    private, baselines = path.iterates[0, 0], _baselines(parameters, data, trial.rng)
    return {
        "privacy_error": np.linalg.norm(private - law.minimiser),
        "private_error": np.linalg.norm(private - target),
        "sampling_error": np.linalg.norm(law.minimiser - target),
        "adassp_error": np.linalg.norm(baselines - target, axis=1),
        "adassp_privacy_error": np.linalg.norm(baselines - law.minimiser, axis=1),
        "law_squared_error": law.expected_squared_error(parameters.steps),
    }


@per(
    **{
        f"{name}_{kind}": Estimate(
            f"log-log slope in the dimension, from p = {least} or the last but one on", error.dims
        )
        for kind, least in FITTED_FROM.items()
        for name, error in ERRORS.items()
    }
)
def slopes(parameters: Parameters, simulation: Dataset) -> dict:
    found, dimensions = {}, np.asarray(parameters.dimensions)
    for kind, least in FITTED_FROM.items():
        fitted = dimensions >= min(least, dimensions[-2])
        errors = simulation.isel(dimension=fitted)
        for name in ERRORS:
            values = trials_last(errors[name].transpose("dimension", ..., "trial"))
            found[f"{name}_{kind}"] = loglog_slope(dimensions[fitted], np.moveaxis(values, 0, -2))
    return found


@per(
    law_ratio=Mean(
        "the squared distance of DP-GD to the empirical minimiser divided by its exact mean",
        "dimension",
    ),
    triangle_ratio=Mean(
        "the squared distance of DP-GD to the population parameter divided by the sum of its parts",
        "dimension",
    ),
    sampling_square_ratio=Mean(
        "the squared error of least squares divided by p / (n - p - 1)", "dimension"
    ),
)
def ratios(parameters: Parameters, simulation: Dataset) -> dict:
    square = simulation**2
    dimension = simulation.dimension
    exact = np.sqrt(dimension / (dimension * (parameters.samples_per_feature - 1) - 1.0))
    return {
        "law_ratio": square.privacy_error / simulation.law_squared_error,
        "triangle_ratio": square.private_error / (square.privacy_error + square.sampling_error),
        "sampling_square_ratio": (simulation.sampling_error / exact) ** 2,
    }


simulate = stage(AXES, run)
summarise = stage(AXES, means(run, *ERRORS), slopes, ratios)


def _baselines(parameters: Parameters, data: ArraySamples, rng: np.random.Generator) -> np.ndarray:
    """AdaSSP's estimates, one for each variant; with the data's maxima as bounds, not private."""
    from privreg.algorithms import adassp
    from privreg.privacy.budget import Budget, Neighbours

    variance = 1.5 if parameters.anisotropic else 1.0
    scales = np.sqrt([data.dimension * variance, variance + LABEL_NOISE_STD**2])
    largest = adassp.bounds_from_data(data).non_private
    a_priori, wide = (adassp.Bounds(*(scales * factors)) for factors in (A_PRIORI, WIDE))
    whole = adassp.clipped_sums(data, bounds=largest)
    sums = {
        "data_max": whole,
        "a_priori": adassp.clipped_sums(data, bounds=a_priori),
        # Bounds beyond the data clip nothing, so the sums are those of the data's maxima.
        "wide": whole.within(wide)
        if largest.feature_norm <= wide.feature_norm and largest.label <= wide.label
        else adassp.clipped_sums(data, bounds=wide),
    }
    streams = {APART: rng.spawn(1)[0]}
    estimates = []
    for variant in VARIANTS:
        part = next(value for name, value in sums.items() if variant.startswith(name))
        neighbours = Neighbours("add-remove" if "add_remove" in variant else "replace-one")
        if "approximate" in variant:
            estimate = adassp.adassp(
                part,
                bounds=part.bounds,
                epsilon=parameters.epsilon,
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
