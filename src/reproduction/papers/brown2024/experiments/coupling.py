"""Clipped and unclipped runs with the same noise: they part exactly where a gradient clips."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Estimate, Mean, Quantity, Trials, per, stage
from reproduction.engine.summaries import error_of_mean
from reproduction.papers.brown2024.setting import RHO, OneThreshold, rhos

if TYPE_CHECKING:
    from privreg.algorithms.samples import ArraySamples

PLACE = "Lemmas 2.2 and C.1-C.3"
# Screening sums in another order: rounding is no difference.
ROUNDING = 1e-9


class Parameters(OneThreshold):
    """One data set that does not clip at the start; budgets from rare to frequent clipping."""

    budgets: q.Some[q.StatedBudget] = Field(description="Budgets.")
    steps: q.Steps = Field(description="Gradient steps T.")
    runs: q.Count = Field(description="Runs in each trial.")


AXES = {"rho": RHO}


@per(
    any_clip=Quantity("indicator that a gradient clipped, not private", "rho run"),
    any_clip_unclipped_path=Quantity(
        "indicator that one would have, along the unclipped path, not private", "rho run"
    ),
    paths_differ=Quantity("indicator that the two paths differ", "rho run"),
    share_unclipped_path=Quantity(
        "share of gradients over the threshold on the unclipped path", "rho run"
    ),
)
def run(parameters: Parameters, trials: Trials, shared_rng: np.random.Generator) -> Iterator[dict]:
    """Whether a gradient clipped, along either path, and whether the paths differ."""
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd

    data, noise = _setting(parameters, shared_rng)
    for trial in trials:
        state = trial.rng.bit_generator.state
        paths = []
        for bound in (parameters.clip_norm, np.inf):
            trial.rng.bit_generator.state = state
            paths.append(
                full_batch_dpgd(
                    data,
                    clip_norm=bound,
                    step_size=parameters.step_size,
                    gradient_noise_std=noise,
                    steps=parameters.steps,
                    runs=parameters.runs,
                    rng=trial.rng,
                )
            )
        clipped, unclipped = paths
        share = _share_over(data, unclipped.iterates, parameters.clip_norm)
        gap = np.abs(clipped.iterates - unclipped.iterates).max(axis=(2, 3))
        yield {
            "any_clip": clipped.clipped_fraction.non_private.max(axis=-1) > 0,
            "any_clip_unclipped_path": share > 0,
            "paths_differ": gap > ROUNDING,
            "share_unclipped_path": share,
        }


@per(
    "rho",
    any_clip_bound="union bound on the probability of any clip",
    exact_share="exact expected share over the threshold, unclipped path",
)
def bounds(parameters: Parameters, shared_rng: np.random.Generator) -> list[dict]:
    from privreg.algorithms.samples import moments
    from privreg.theory.full_batch_dpgd.law import clipping_bound, gradient_descent_law

    data, noise = _setting(parameters, shared_rng)
    found = []
    for std in noise:
        law = gradient_descent_law(
            *moments(data),
            sample_size=data.sample_size,
            step_size=parameters.step_size,
            gradient_noise_std=float(std),
        )
        bound, share = clipping_bound(
            law,
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
    share_unclipped_path=Mean("the share of gradients over the threshold on the unclipped path"),
    disagreements="runs in which the paths differ without a clip, or agree in spite of one",
    path_disagreements="runs in which one path clips and the other would not",
    bound_slack=Estimate("union bound less the simulated probability of any clip"),
    share_gap=Estimate("simulated less exact expected share over the threshold"),
    any_clip_bound="union bound on the probability of any clip",
)
def probabilities(simulation: Dataset, rho: float) -> dict:
    """Probabilities of clipping and of parting, and runs in which they disagree."""
    at = simulation.sel(rho=rho)
    clip, would, differ, share = (
        at[name].transpose("trial", "run").values.ravel() for name in run.quantities
    )
    bound = float(at.any_clip_bound)
    return {
        "any_clip": clip,
        "paths_differ": differ,
        "share_unclipped_path": share,
        "disagreements": np.sum(clip != differ),
        "path_disagreements": np.sum(clip != would),
        "bound_slack": (bound - clip.mean(), error_of_mean(clip)),
        "share_gap": (share.mean() - float(at.exact_share), error_of_mean(share)),
        "any_clip_bound": bound,
    }


simulate = stage(AXES, run, bounds)
summarise = stage(AXES, probabilities)


def _setting(parameters: Parameters, rng: np.random.Generator) -> tuple[ArraySamples, np.ndarray]:
    """The data set, and the noise of each budget."""
    from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
    from reproduction.papers.brown2024.synthetic_data import draw

    # The first gradient is a function of the data alone: with it clipped, all runs would clip.
    while True:
        data, _ = draw(parameters.sample_size, parameters.dimension, rng)
        if np.max(np.abs(data.labels) * data.norms) <= parameters.clip_norm:
            break
    return data, full_batch_noise_std(
        clip_norm=parameters.clip_norm,
        rho=rhos(parameters),
        sample_size=data.sample_size,
        gradients=parameters.steps,
    )


def _share_over(data: ArraySamples, iterates: np.ndarray, clip_norm: float) -> np.ndarray:
    """Share of the gradients at θ_0..θ_{T-1} over the threshold, by budget and run."""
    widths, steps = clip_norm / data.norms, iterates.shape[2]
    over = np.full(iterates.shape[:2], np.count_nonzero(np.abs(data.labels) > widths), dtype=float)
    for step in range(steps - 1):
        residuals = np.abs(data.labels - iterates[:, :, step] @ data.features.T)
        over += np.count_nonzero(residuals > widths, axis=-1)
    return over / (len(widths) * steps)
