"""Risk of one-pass noisy SGD along its path, clipped and not, against the diffusion's law."""

from __future__ import annotations

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
from reproduction.engine.summaries import trials_last
from reproduction.papers.lin2025.setting import NOISE, Design, spread_over_trials

PLACE = "Figures 1(a), 2(a) and 3(a), Theorem 4.2, Conjecture 3.1"
CURVE_POINTS = 376


class Parameters(Strict):
    """Figures 1(a), 2(a), 3(a): noise scales and clipping norms on shared draws."""

    design: Design
    gradient_noise_stds: q.Some[q.PositiveDeviation] = Field(description="Gradient noise sigma.")
    clip_norms: q.Some[q.ClipNorm] = Field(
        description="Norms that the full gradient is clipped to; the unclipped run is added."
    )

    @property
    def every_clip_norm(self) -> list[float]:
        return [*self.clip_norms, np.inf]

    @property
    def shown(self) -> np.ndarray:
        """Iterations that figures show."""
        return np.unique(np.linspace(0, self.design.sample_size, CURVE_POINTS).astype(int))


def _levels(simulation: Dataset) -> np.ndarray:
    count = simulation.sizes["trial"]
    return (np.arange(count) + 0.5) / count


AXES = {
    "gradient_noise_std": NOISE,
    "clip_norm": Axis("norm that gradients are clipped to", "every_clip_norm"),
    "step": Axis("iteration k", "shown"),
    "quantile_level": Axis("probability of the quantile", _levels),
}


@per(
    "gradient_noise_std",
    risk=Quantity("population risk of the iterate", "clip_norm step"),
    law_risk=Quantity("mean population risk of the diffusion", "step"),
    gap="largest relative distance of one run's risk to the theory's",
    final_ratio="risk after the last step divided by the theory's",
    clipping_excess=Quantity(
        "largest relative excess of the clipped run's risk over the unclipped run's", "clip_norm"
    ),
    squared_distance="squared Mahalanobis distance of the last iterate to its law",
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Risk of each run and of its own limit law; distance of the last iterate from that law."""
    from privreg.algorithms.noisy_sgd import simulate_noisy_sgd

    design = parameters.design
    instance = design.draw(trial.rng)
    runs = simulate_noisy_sgd(
        instance.records,
        initial=instance.initial,
        step_sizes=np.full(design.sample_size, design.step_size),
        gradient_noise_stds=parameters.gradient_noise_stds,
        clip_norms=parameters.every_clip_norm,
        ridge=design.ridge,
        rng=trial.rng,
    )
    laws = [design.law(instance.problem, std) for std in parameters.gradient_noise_stds]
    times = np.arange(design.sample_size + 1) / design.dimension
    risk, expected = runs.risk.non_private, np.array([law.risk(times) for law in laws])
    ratio = risk[:, -1] / expected
    distances = []
    for last, law in zip(runs.iterate[:, -1], laws, strict=True):
        error = instance.basis.coordinates(last) - law.mean(law.horizon)
        distances.append(np.sum(error**2 / law.variance(law.horizon)))
    return {
        "risk": risk[..., parameters.shown],
        "law_risk": expected[:, parameters.shown],
        "gap": np.abs(ratio - 1.0).max(axis=-1),
        "final_ratio": ratio[:, -1],
        "clipping_excess": np.max(risk / risk[:, -1:], axis=-1) - 1.0,
        "squared_distance": distances,
    }


@per(
    "gradient_noise_std",
    risk_run=Quantity("population risk of the first trial", "clip_norm step"),
    law_run=Quantity("mean population risk of the diffusion on the first trial's problem", "step"),
)
def first(simulation: Dataset) -> dict:
    """Risk of the first trial's path, for figures."""
    trial = simulation.isel(trial=0)
    return {"risk_run": trial.risk, "law_run": trial.law_risk}


@per(
    "gradient_noise_std",
    final_clipping_excess=Mean(
        "the relative excess of the clipped run's risk after the last step", "clip_norm"
    ),
    least_clipping_excess=Quantity(
        "least excess along the path of the clipped run's mean over trials", "clip_norm"
    ),
    final_spread=Estimate("final risk's standard deviation over trials, relative to theory"),
    distance_per_coordinate=Mean("the squared Mahalanobis distance divided by the dimension"),
    distance_spread=Estimate(
        "standard deviation over trials of the squared distance, relative to its law's"
    ),
    sorted_distance=Quantity("sorted squared Mahalanobis distances", "quantile_level"),
)
def last_iterate(parameters: Parameters, simulation: Dataset) -> dict:
    """The squared distances have a chi-square law, of mean d and variance 2 d."""
    paths = trials_last(simulation.risk)
    risk = paths[:, :, -1]
    distance, dimension = trials_last(simulation.squared_distance), parameters.design.dimension
    standardised = (distance - dimension) / np.sqrt(2.0 * dimension)
    return {
        "final_clipping_excess": risk / risk[:, -1:] - 1.0,
        "least_clipping_excess": (paths / paths[:, -1:] - 1.0).mean(axis=-1).min(axis=-1),
        "final_spread": spread_over_trials(trials_last(simulation.final_ratio)),
        "distance_per_coordinate": distance / dimension,
        "distance_spread": spread_over_trials(standardised),
        "sorted_distance": np.sort(distance),
    }


@per("quantile_level", chi_square_quantile="quantile of the chi-square law")
def quantiles(parameters: Parameters, simulation: Dataset) -> np.ndarray:
    from scipy.stats import chi2

    return chi2.ppf(_levels(simulation), parameters.design.dimension)


simulate = stage(AXES, run)
summarise = stage(
    AXES, means(run, "gap", "final_ratio", "clipping_excess"), first, last_iterate, quantiles
)
