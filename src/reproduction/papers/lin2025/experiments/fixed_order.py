"""Exact loss of noisy SGD between two data sets against the diffusion's; not a guarantee."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.renyi_loss import Record, last_iterate_divergence
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Mean, Trial, means, per, stage
from reproduction.papers.lin2025.setting import BOTH_INFINITE, OneNoise, about, each_record

PLACE = "Section 4.2: the laws conditioned on the data sets"


class Parameters(OneNoise):
    """Steps at which a record is replaced, and steps from there to the release."""

    order: q.RenyiOrder = Field(description="Rényi order alpha.")
    positions: q.Some[q.Index] = Field(description="0-based steps of the replaced record.")
    lags: q.Some[q.Steps] = Field(description="Steps from it to the release, at least 1.")

    _releases_have_records = q.at_most(
        "positions", "sample_size - lags", lambda self: self.design.sample_size - max(self.lags)
    )


AXES = {
    "position": Axis("step of the replaced record", "positions"),
    "lag": Axis("steps from the replaced record to the release", "lags"),
}


@per(
    "position",
    "lag",
    exact="exact loss, data sets held fixed (no guarantee)",
    surrogate="loss of the diffusion (no guarantee)",
    shorter_surrogate="loss of the diffusion, the differing step not counted twice (no guarantee)",
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """The larger of the two directions' divergences: exact, and by the diffusion at two times."""
    from privreg.theory.noisy_sgd.last_iterate_loss import fixed_order_divergence

    design, positions, lags = parameters.design, parameters.positions, parameters.lags
    instance = design.draw(trial.rng)
    given = instance.records.sample(design.sample_size, trial.rng)
    others = instance.records.sample(len(positions), trial.rng)
    law = design.law(instance.problem, parameters.gradient_noise_std)
    records, replacements = (
        each_record(instance.basis.coordinates(rows), labels) for rows, labels in (given, others)
    )

    def diffusion(lag: int, position: int, replacement: Record) -> float:
        """Divergence by the diffusion, for a number of steps from a position."""
        time, pair = (position + lag) / design.dimension, (records[position], replacement)
        return max(
            last_iterate_divergence(
                law,
                *ordered,
                time=time,
                position=position / design.dimension,
                order=parameters.order,
            )
            for ordered in (pair, pair[::-1])
        )

    replaced = list(zip(positions, replacements, strict=True))
    release = np.add.outer(positions, lags)
    releases, place = np.unique(release, return_inverse=True)
    exact = fixed_order_divergence(
        *given,
        initial=instance.initial,
        positions=positions,
        replacement_features=others[0],
        replacement_labels=others[1],
        release_steps=releases,
        step_sizes=np.full(design.sample_size, design.step_size),
        gradient_noise_std=parameters.gradient_noise_std,
        ridge=design.ridge,
        order=parameters.order,
    )
    rows = np.arange(len(positions))[:, None]
    return {
        "exact": exact[place.reshape(release.shape), rows].max(axis=-1),
        "surrogate": [[diffusion(lag, *at) for lag in lags] for at in replaced],
        "shorter_surrogate": [[diffusion(lag - 1, *at) for lag in lags] for at in replaced],
    }


@per(
    "position",
    "lag",
    surrogate_ratio=Mean(
        "the loss of the diffusion divided by the exact one (no guarantee)", missing=BOTH_INFINITE
    ),
    shorter_surrogate_ratio=Mean(
        "the loss of the diffusion with one step less, divided by the exact one (no guarantee)",
        missing=BOTH_INFINITE,
    ),
)
def ratios(simulation: Dataset) -> dict:
    names = ("surrogate", "shorter_surrogate")
    return {f"{name}_ratio": simulation[name] / simulation.exact for name in names}


def _about(parameters: Parameters) -> dict:
    return about(parameters, "none: exact for these data sets, no bound for others")


simulate = stage(AXES, run, attributes=_about)
summarise = stage(AXES, means(run), ratios)
