"""Clipped and unclipped runs with the same noise: they part exactly where a gradient clips."""

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

PLACE = "Lemmas 2.2 and C.1-C.3"
DATA_STREAM = 1 << 31


class Parameters(Strict):
    """One data set that does not clip at the start; budgets from rare to frequent clipping."""

    dimension: Dimension = Field(description="Features p.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Sample size n.")
    budgets: Some[StatedBudget] = Field(description="Budgets.")
    steps: Steps = Field(description="Gradient steps T.")
    step_size: StepSize = Field(description="eta.")
    clip_constant: ClipConstant = Field(description="gamma / sqrt(p).")
    runs: Count = Field(description="Runs in each trial.")

    _more_rows_than_columns = more_than("sample_size", "dimension")

    @property
    def rhos(self) -> list[float]:
        return [budget.rho for budget in self.budgets]


def theory_bounds(parameters: Parameters, trials: Trials) -> np.ndarray:
    """The union bound on the probability of any clip, for each budget."""
    from privreg.algorithms.samples import moments
    from privreg.theory.full_batch_dpgd.law import clipping_bound, gradient_descent_law

    data, clip_norm, noise = _setting(parameters, trials)
    gram, moment = moments(data)
    return np.array(
        [
            clipping_bound(
                gradient_descent_law(
                    gram,
                    moment,
                    sample_size=data.sample_size,
                    step_size=parameters.step_size,
                    gradient_noise_std=float(std),
                ),
                data.features,
                data.labels,
                clip_norm=clip_norm,
                steps=parameters.steps,
            )
            for std in noise
        ]
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Whether a gradient clipped, along either path, and whether the paths differ."""
    import xarray as xr

    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
    from reproduction.experiment.progress import track

    data, clip_norm, noise = _setting(parameters, trials)
    shape = (len(trials), len(noise), parameters.runs)
    clipped, would_clip, differ = (np.empty(shape) for _ in range(3))
    share = np.empty(shape)
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        state = trial.rng.bit_generator.state
        paths = []
        for bound in (clip_norm, np.inf):
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
        with_clip, without = paths
        gap = np.abs(with_clip.iterates - without.iterates).max(axis=(2, 3))
        # Screening sums in another order: rounding is no difference.
        differ[at] = gap > 1e-9
        clipped[at] = with_clip.clipped_fraction.non_private.max(axis=-1) > 0
        would, counted = _along_unclipped_path(
            data.features, data.labels, without.iterates, clip_norm
        )
        would_clip[at], share[at] = would, counted
    dims = ("trial", "rho", "run")
    bounds = theory_bounds(parameters, trials)
    return xr.Dataset(
        {
            "any_clip": variable(dims, clipped, "whether a gradient clipped, not private"),
            "any_clip_unclipped_path": variable(
                dims, would_clip, "whether one would have, along the unclipped path, not private"
            ),
            "paths_differ": variable(dims, differ, "whether the two paths differ"),
            "share_unclipped_path": variable(
                dims, share, "share of gradients over the threshold on the unclipped path"
            ),
            "any_clip_bound": variable(
                "rho", bounds[:, 0], "union bound on the probability of any clip"
            ),
            "exact_share": variable(
                "rho", bounds[:, 1], "exact expected share over the threshold, unclipped path"
            ),
        },
        coords={"rho": variable("rho", parameters.rhos, "zCDP budget")},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Probabilities of clipping and of parting, and runs in which they disagree."""
    import xarray as xr

    variables: dict[str, tuple] = {}
    for name in ("any_clip", "paths_differ", "share_unclipped_path"):
        values = np.moveaxis(simulation[name].values, 1, 0)
        variables |= mean_and_error(
            name, values.reshape(len(values), -1), ("rho",), simulation[name].attrs["long_name"]
        )
    disagree = simulation.any_clip.values != simulation.paths_differ.values
    early = simulation.any_clip.values != simulation.any_clip_unclipped_path.values
    share = variables["share_unclipped_path"][1] - simulation.exact_share.values
    return xr.Dataset(
        variables
        | {
            "disagreements": variable(
                "rho",
                disagree.sum(axis=(0, 2)),
                "runs in which the paths differ without a clip, or agree in spite of one",
            ),
            "path_disagreements": variable(
                "rho",
                early.sum(axis=(0, 2)),
                "runs in which one path clips and the other would not",
            ),
            "bound_slack": variable(
                "rho",
                simulation.any_clip_bound.values - variables["any_clip"][1],
                "union bound less the simulated probability of any clip",
                standard_error="any_clip_standard_error",
            ),
            "share_gap": variable(
                "rho",
                share,
                "simulated less exact expected share over the threshold",
                standard_error="share_unclipped_path_standard_error",
            ),
            "any_clip_bound": simulation.any_clip_bound.variable,
        },
        coords={name: simulation[name].variable for name in ("rho", "trial")},
        attrs={"runs": disagree.shape[0] * disagree.shape[2]},
    )


def _setting(parameters: Parameters, trials: Trials):  # type: ignore[no-untyped-def]
    from privreg.algorithms.full_batch_dpgd import full_batch_noise_std
    from reproduction.papers.brown2024.synthetic_data import draw

    rng = trials.generator(DATA_STREAM)
    clip_norm = parameters.clip_constant * np.sqrt(parameters.dimension)
    # The first gradient is a function of the data alone: with it clipped, all runs would clip.
    while True:
        data, _ = draw(parameters.sample_size, parameters.dimension, rng)
        if np.max(np.abs(data.labels) * data.norms) <= clip_norm:
            break
    noise = full_batch_noise_std(
        clip_norm=clip_norm,
        rho=parameters.rhos,
        sample_size=data.sample_size,
        gradients=parameters.steps,
    )
    return data, clip_norm, noise


def _along_unclipped_path(
    features: np.ndarray, labels: np.ndarray, iterates: np.ndarray, clip_norm: float
) -> tuple[np.ndarray, np.ndarray]:
    """Whether any, and what share, of the gradients at θ_0..θ_{T-1} is over the threshold."""
    widths = clip_norm / np.linalg.norm(features, axis=1)
    over = np.full(iterates.shape[:2], np.count_nonzero(np.abs(labels) > widths), dtype=float)
    for step in range(iterates.shape[2] - 1):
        residuals = np.abs(labels - iterates[:, :, step] @ features.T)
        over += np.count_nonzero(residuals > widths, axis=-1)
    return over > 0, over / (len(labels) * iterates.shape[2])
