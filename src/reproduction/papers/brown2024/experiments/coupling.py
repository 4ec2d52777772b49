"""Clipped and unclipped runs with the same noise: they differ exactly if a gradient clips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Estimate, Mean, Quantity, Trials, per, stage
from reproduction.engine.summaries import error_of_mean
from reproduction.papers.brown2024.setting import RHO, Runs, draw, law_of, rhos

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples

PLACE = "Lemmas 2.2 and C.1-C.3"
# Screening sums in another order; a difference by rounding does not count.
ROUNDING = 1e-9


class Parameters(Runs):
    """One data set that does not clip at the start; budgets from rare to frequent clipping."""

    budgets: q.Some[q.StatedBudget] = Field(description="Budgets.")


AXES = {"rho": RHO}


@per(
    any_clip=Quantity("indicator that a gradient clipped, not private", "rho run"),
    paths_differ=Quantity("indicator that the two paths differ", "rho run"),
    share_unclipped_path=Quantity(
        "share of gradients over the threshold on the unclipped path", "rho run"
    ),
)
def run(parameters: Parameters, trials: Trials, shared_rng: np.random.Generator) -> Iterator[dict]:
    """Indicators that a gradient was clipped on either path and that the paths differ."""
    data = _data(parameters, shared_rng)
    noise = parameters.gradient_noise_std(rhos(parameters), parameters.steps)
    for trial in trials:
        unclipped, clipped = parameters.coupled(data, noise, trial.rng)
        share = _share_over(data, unclipped.iterates, parameters.clip_norm)
        gap = np.abs(clipped.iterates - unclipped.iterates).max(axis=(2, 3))
        yield {
            "any_clip": clipped.clipped_fraction.non_private.max(axis=-1) > 0,
            "paths_differ": gap > ROUNDING,
            "share_unclipped_path": share,
        }


@per(
    "rho",
    any_clip_bound="union bound on the probability of any clip",
    exact_share="exact expected share over the threshold, unclipped path",
)
def bounds(parameters: Parameters, shared_rng: np.random.Generator) -> list[dict]:
    from privreg.theory.full_batch_dpgd import clipping_bound

    data = _data(parameters, shared_rng)
    found = []
    for noise in parameters.gradient_noise_std(rhos(parameters), parameters.steps):
        bound, share = clipping_bound(
            law_of(data, parameters.step_size, noise),
            data.features,
            data.labels,
            clip_norm=parameters.clip_norm,
            steps=parameters.steps,
        )
        found.append({"any_clip_bound": bound, "exact_share": share})
    return found


@per(
    "rho",
    any_clip=Mean("the indicator that a gradient clipped, not private"),
    paths_differ=Mean("the indicator that the two paths differ"),
    disagreements="runs in which the paths differ without a clip, or agree in spite of one",
    path_disagreements="runs in which one path clips and the other would not",
    bound_slack=Estimate("union bound minus the simulated probability of any clip"),
    share_gap=Estimate("simulated minus exact expected share over the threshold"),
)
def probabilities(simulation: Dataset, rho: float) -> dict:
    """Probabilities that a gradient clips and that the paths differ; runs with only one of both."""
    at = simulation.sel(rho=rho)
    clip, differ, share = (
        at[name].transpose("trial", "run").values.ravel() for name in run.quantities
    )
    return {
        "any_clip": clip,
        "paths_differ": differ,
        "disagreements": np.sum(clip != differ),
        "path_disagreements": np.sum(clip != (share > 0)),
        "bound_slack": (float(at.any_clip_bound) - clip.mean(), error_of_mean(clip)),
        "share_gap": (share.mean() - float(at.exact_share), error_of_mean(share)),
    }


simulate = stage(AXES, run, bounds)
summarise = stage(AXES, probabilities)


def _data(parameters: Parameters, rng: np.random.Generator) -> ArraySamples:
    # The first gradient depends on the data alone: if it were clipped, all runs would clip.
    while True:
        data, _ = draw(parameters.sample_size, parameters.dimension, rng)
        if np.max(np.abs(data.labels) * data.norms) <= parameters.clip_norm:
            return data


def _share_over(data: ArraySamples, iterates: np.ndarray, clip_norm: float) -> np.ndarray:
    """Share of the gradients at θ_0..θ_{T-1} over the threshold, by budget and run."""
    widths, steps = clip_norm / data.norms, iterates.shape[2]
    over = np.full(iterates.shape[:2], np.count_nonzero(np.abs(data.labels) > widths), dtype=float)
    for step in range(steps - 1):
        residuals = np.abs(data.labels - iterates[:, :, step] @ data.features.T)
        over += np.count_nonzero(residuals > widths, axis=-1)
    return over / (len(widths) * steps)
