"""The No-Clipping Condition on drawn data, and whether its lemma's bounds exclude clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Count,
    Deviation,
    Dimension,
    Probability,
    SampleSize,
    Some,
    StatedBudget,
    Steps,
    StepSize,
    more_than,
)
from reproduction.experiment.summaries import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Condition 2.4, Lemmas 2.5, 2.6, C.5 and C.7"
RULES = ("printed", "with_unit_floor")


class Parameters(Strict):
    """One size of data; label noise of the paper's scale and below it."""

    dimension: Annotated[Dimension, Field(ge=2)] = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Sample size n.")
    steps: Steps = Field(description="Gradient steps T.")
    step_size: StepSize = Field(description="eta.")
    failure: Probability = Field(description="beta.")
    label_noise: Some[Deviation] = Field(description="Standard deviations sigma.")
    runs: Count = Field(description="Runs on each data set.")
    budget: StatedBudget = Field(description="Budget at which the proof's demand is evaluated.")

    _more_rows_than_columns = more_than("sample_size", "dimension")


def theory(parameters: Parameters) -> xr.Dataset:
    """The paper's constant and what its proof then demands."""
    import xarray as xr

    from privreg.theory.full_batch_dpgd.no_clipping import generative_constant, no_clipping_demand

    constant = float(
        generative_constant(
            parameters.sample_size, steps=parameters.steps, failure=parameters.failure
        )
    )
    demand = no_clipping_demand(
        constant,
        features=parameters.dimension,
        steps=parameters.steps,
        step_size=parameters.step_size,
        rho=parameters.budget.rho,
        failure=parameters.failure,
        label_noise_std=1.0,
    )
    dimensions = np.array([2, 10, 100, 10_000])
    logarithm = np.log(5 * parameters.sample_size / parameters.failure)
    # The bound of Claim A.9 on a row's norm over sqrt(p), with the logarithm outside the root, as
    # the proof prints it, and inside.
    rows = np.array([logarithm, np.sqrt(logarithm)])[:, None]
    row_norms = 1 + np.sqrt(2 / dimensions) * rows
    return xr.Dataset(
        {
            "constant": variable((), constant, "the paper's c_0 at this size"),
            "demanded_clip_norm": variable(
                (), demand.clip_norm, "least threshold the proof admits"
            ),
            "demanded_sample_size": variable(
                (), demand.sample_size, "least sample size the proof admits"
            ),
            "chain_constant": variable(
                "dimension",
                12 / (1 - dimensions**-0.5),
                "constant that the proof's chain for part (iv) gives",
            ),
            "row_norm_ratio": variable(
                ("logarithm", "dimension"),
                row_norms / (3 * np.sqrt(logarithm)),
                "the proof's c_1 over 3 sqrt(ln(5 n / beta))",
            ),
        },
        coords={
            "dimension": variable("dimension", dimensions, "features p"),
            "logarithm": variable(
                "logarithm", ["outside", "inside"], "where the logarithm stands in c_1"
            ),
        },
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """The condition's ratios, and runs at the limits of Lemma 2.5 with the measured constant."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, full_batch_noise_std
    from privreg.theory.full_batch_dpgd.no_clipping import generative_constant, no_clipping_ratios
    from reproduction.experiment.progress import track
    from reproduction.papers.brown2024.synthetic_data import draw

    p, n, steps = parameters.dimension, parameters.sample_size, parameters.steps
    paper = float(generative_constant(n, steps=steps, failure=parameters.failure))
    shape = (len(trials), len(parameters.label_noise))
    constant = np.empty(shape)
    clip_norms = np.empty((*shape, len(RULES)))
    bounded, contracts = np.empty((len(trials), 2)), np.empty((len(trials), 2))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        for column, sigma in enumerate(parameters.label_noise):
            data, target = draw(n, p, trial.rng, label_noise_std=sigma)
            ratios = no_clipping_ratios(
                data.features,
                data.labels,
                target=target,
                step_size=parameters.step_size,
                steps=steps,
                label_noise_std=sigma,
            )
            c = constant[at, column] = ratios.constant
            logarithm = np.log(2 * n * steps / parameters.failure)
            # The budget at which the second inequality of the lemma is an equality.
            rho = 2 * steps * (64 * c**2 * p * parameters.step_size / n) ** 2 * logarithm
            for row, scale in enumerate((sigma, max(sigma, 1.0))):
                clip_norm = 4 * c**2 * scale * np.sqrt(p)
                run = full_batch_dpgd(
                    data,
                    clip_norm=clip_norm,
                    step_size=parameters.step_size,
                    gradient_noise_std=full_batch_noise_std(
                        clip_norm=clip_norm, rho=rho, sample_size=n, gradients=steps
                    ),
                    steps=steps,
                    times=[steps],
                    runs=parameters.runs,
                    rng=trial.rng,
                )
                clip_norms[at, column, row] = np.mean(
                    run.clipped_fraction.non_private.max(axis=-1) > 0
                )
        for column, anisotropic in enumerate((False, True)):
            data, target = draw(n, p, trial.rng, anisotropic=anisotropic)
            ratios = no_clipping_ratios(
                data.features,
                data.labels,
                target=target,
                step_size=parameters.step_size,
                steps=1,
                label_noise_std=1.0,
            )
            bounded[at, column], contracts[at, column] = ratios.spectrum_bounded, ratios.contracts
    return xr.Dataset(
        {
            "constant": variable(
                ("trial", "label_noise"), constant, "least c_0 of the condition on the data"
            ),
            "constant_ratio": variable(
                ("trial", "label_noise"), constant / paper, "least c_0 over the paper's"
            ),
            "clipped_runs": variable(
                ("trial", "label_noise", "rule"),
                clip_norms,
                "share of runs with any gradient clipped",
            ),
            "spectrum_bounded": variable(
                ("trial", "design"), bounded, "whether half I <= Sigma <= 2 I"
            ),
            "contracts": variable(
                ("trial", "design"), contracts, "whether the norm of I - eta Sigma is at most 7/8"
            ),
        },
        coords={
            "label_noise": variable("label_noise", parameters.label_noise, "label noise sigma"),
            "rule": variable("rule", list(RULES), "threshold as printed, or with max(sigma, 1)"),
            "design": variable("design", ["isotropic", "anisotropic"], "covariance of features"),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over data sets, and the largest ratio."""
    import xarray as xr

    variables: dict[str, tuple] = {}
    for name in ("constant", "clipped_runs", "spectrum_bounded", "contracts"):
        array = simulation[name]
        variables |= mean_and_error(
            name, np.moveaxis(array.values, 0, -1), _names(array), array.attrs["long_name"]
        )
    variables["largest_constant_ratio"] = variable(
        "label_noise",
        simulation.constant_ratio.values.max(axis=0),
        "largest ratio over data sets of the least c_0 to the paper's",
    )
    return xr.Dataset(
        variables,
        coords={
            name: simulation[name].variable for name in ("label_noise", "rule", "design", "trial")
        },
    )


def _names(array: xr.DataArray) -> list[str]:
    """Dimensions without the trials."""
    return [str(name) for name in array.dims if name != "trial"]
