"""The No-Clipping Condition on drawn data, and whether its lemma's bounds exclude clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import Axis, Quantity, means, per, stage
from reproduction.papers.brown2024.setting import OneSize

if TYPE_CHECKING:
    import xarray as xr

    from privreg.algorithms.samples import ArraySamples
    from reproduction.experiment.trials import Trial

PLACE = "Condition 2.4, Lemmas 2.5, 2.6, C.5 and C.7"
# Multiples of 4 c_0² sqrt(p) for the label noise: Lemma 2.5's, and the one that its proof needs.
RULES = {"printed": lambda sigma: sigma, "with_unit_floor": lambda sigma: max(sigma, 1.0)}
DIMENSIONS = np.array([2, 10, 100, 10_000])


class Parameters(OneSize):
    """One size of data; label noise of the paper's scale and below it."""

    dimension: Annotated[q.Dimension, Field(ge=2)] = Field(description="Features p.")
    steps: q.Steps = Field(description="Gradient steps T.")
    failure: q.Probability = Field(description="beta.")
    label_noise: q.Some[q.Deviation] = Field(description="Standard deviations sigma.")
    runs: q.Count = Field(description="Runs on each data set.")
    budget: q.StatedBudget = Field(description="Budget at which the proof's demand is evaluated.")

    @property
    def constant(self) -> float:
        """The paper's c_0."""
        from privreg.theory.full_batch_dpgd.no_clipping import generative_constant

        found = generative_constant(self.sample_size, steps=self.steps, failure=self.failure)
        return float(found)


AXES = {
    "dimension": Axis("features p", DIMENSIONS),
    "logarithm": Axis("where the logarithm stands in c_1", ["outside", "inside"]),
    "label_noise": Axis("label noise sigma", "label_noise"),
    "rule": Axis("threshold as printed, or with max(sigma, 1)", list(RULES)),
    "design": Axis("covariance of features", ["isotropic", "anisotropic"]),
}


@per(
    constant="the paper's c_0 at this size",
    demanded_clip_norm="least threshold the proof admits",
    demanded_sample_size="least sample size the proof admits",
)
def demand(parameters: Parameters) -> dict:
    """The paper's constant and what its proof then demands."""
    from privreg.theory.full_batch_dpgd.no_clipping import no_clipping_demand

    found = no_clipping_demand(
        parameters.constant,
        features=parameters.dimension,
        steps=parameters.steps,
        step_size=parameters.step_size,
        rho=parameters.budget.rho,
        failure=parameters.failure,
        label_noise_std=1.0,
    )
    return {
        "constant": parameters.constant,
        "demanded_clip_norm": found.clip_norm,
        "demanded_sample_size": found.sample_size,
    }


@per("dimension", chain_constant="constant that the proof's chain for part (iv) gives")
def chain_constant(dimension: int) -> float:
    return 12 / (1 - dimension**-0.5)


@per("logarithm", "dimension", row_norm_ratio="the proof's c_1 over 3 sqrt(ln(5 n / beta))")
def row_norm_ratio(parameters: Parameters, logarithm: str) -> np.ndarray:
    """The bound of Claim A.9 on a row's norm over sqrt(p); printed is the logarithm outside."""
    value = np.log(5 * parameters.sample_size / parameters.failure)
    row = value if logarithm == "outside" else np.sqrt(value)
    return (1 + np.sqrt(2 / DIMENSIONS) * row) / (3 * np.sqrt(value))


@per(
    constant=Quantity("least c_0 of the condition on the data", "label_noise"),
    constant_ratio=Quantity("least c_0 over the paper's", "label_noise"),
    clipped_runs=Quantity("share of runs with any gradient clipped", "label_noise rule"),
    spectrum_bounded=Quantity("indicator of half I <= Sigma <= 2 I", "design"),
    contracts=Quantity("indicator of a norm of I - eta Sigma of at most 7/8", "design"),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """The condition's ratios, and runs at the limits of Lemma 2.5 with the measured constant."""
    constants, clipped = [], []
    for sigma in parameters.label_noise:
        data, ratios = _draw(parameters, trial.rng, parameters.steps, label_noise_std=sigma)
        constants.append(ratios.constant)
        clipped.append(
            [
                _clipped_runs(parameters, data, ratios.constant, scale(sigma), trial.rng)
                for scale in RULES.values()
            ]
        )
    designs = [_draw(parameters, trial.rng, 1, anisotropic=kind)[1] for kind in (False, True)]
    return {
        "constant": constants,
        "constant_ratio": np.array(constants) / parameters.constant,
        "clipped_runs": clipped,
        "spectrum_bounded": [float(ratios.spectrum_bounded) for ratios in designs],
        "contracts": [float(ratios.contracts) for ratios in designs],
    }


@per(
    "label_noise",
    largest_constant_ratio="largest ratio over data sets of the least c_0 to the paper's",
)
def largest_ratio(simulation: xr.Dataset) -> np.ndarray:
    return simulation.constant_ratio.max("trial").values


theory = stage(AXES, demand, chain_constant, row_norm_ratio)
simulate = stage(AXES, run)
summarise = stage(
    AXES, means(run, "constant", "clipped_runs", "spectrum_bounded", "contracts"), largest_ratio
)


def _draw(
    parameters: Parameters, rng: np.random.Generator, steps: int, **options: Any
) -> tuple[ArraySamples, Any]:
    """A data set and the ratios of the condition on it."""
    from privreg.theory.full_batch_dpgd.no_clipping import no_clipping_ratios
    from reproduction.papers.brown2024.synthetic_data import draw

    data, target = draw(parameters.sample_size, parameters.dimension, rng, **options)
    return data, no_clipping_ratios(
        data.features,
        data.labels,
        target=target,
        step_size=parameters.step_size,
        steps=steps,
        label_noise_std=options.get("label_noise_std", 1.0),
    )


def _clipped_runs(
    parameters: Parameters,
    data: ArraySamples,
    constant: float,
    scale: float,
    rng: np.random.Generator,
) -> float:
    """Share of runs that clip at the limits of Lemma 2.5."""
    from reproduction.papers.brown2024.descent import descend

    p, n, steps = parameters.dimension, parameters.sample_size, parameters.steps
    logarithm = np.log(2 * n * steps / parameters.failure)
    path = descend(
        data,
        clip_norm=4 * constant**2 * scale * np.sqrt(p),
        # The budget at which the second inequality of the lemma is an equality.
        rho=2 * steps * (64 * constant**2 * p * parameters.step_size / n) ** 2 * logarithm,
        step_size=parameters.step_size,
        steps=steps,
        times=[steps],
        runs=parameters.runs,
        rng=rng,
    )
    return np.mean(path.clipped_fraction.non_private.max(axis=-1) > 0)
