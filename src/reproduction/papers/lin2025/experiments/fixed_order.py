"""Exact loss of noisy SGD between two data sets against the diffusion's; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Mean, Trial, means, per, stage
from reproduction.papers.lin2025.setting import BOTH_INFINITE, Design, Instance, about

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
    from privreg.theory.noisy_sgd.renyi_loss import Record

    Sample = tuple[np.ndarray, np.ndarray]

PLACE = "Section 4.2: the laws conditioned on the data sets"


class Parameters(Strict):
    """Steps at which a record is replaced, and steps from there to the release."""

    design: Design
    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    order: q.RenyiOrder = Field(description="Rényi order alpha.")
    positions: q.Some[q.Index] = Field(description="0-based steps of the replaced record.")
    lags: q.Some[q.Steps] = Field(description="Steps from it to the release, at least 1.")

    @property
    def last_release(self) -> int:
        return max(self.positions) + max(self.lags)

    _releases_have_records = q.at_most("last_release", "design.sample_size")


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
    """The larger divergence of both directions, exact and by the diffusion at two elapsed times."""
    design, positions = parameters.design, parameters.positions
    instance = design.draw(trial.rng)
    given = instance.records.sample(design.sample_size, trial.rng)
    others = instance.records.sample(len(positions), trial.rng)
    law = design.law(instance.problem, parameters.gradient_noise_std)
    rows = _in_eigenbasis(instance, given)
    pairs = list(zip([rows[k] for k in positions], _in_eigenbasis(instance, others), strict=True))

    def diffusion(lags: list[int]) -> list:
        return [
            [_surrogate(parameters, law, pair, position, lag) for lag in lags]
            for position, pair in zip(positions, pairs, strict=True)
        ]

    return {
        "exact": _exact(parameters, instance, given, others),
        "surrogate": diffusion(parameters.lags),
        "shorter_surrogate": diffusion([lag - 1 for lag in parameters.lags]),
    }


@per(
    "position",
    "lag",
    surrogate_ratio=Mean(
        "the loss of the diffusion over the exact one (no guarantee)", missing=BOTH_INFINITE
    ),
    shorter_surrogate_ratio=Mean(
        "the loss of the diffusion, the differing step not counted twice, over the exact one "
        "(no guarantee)",
        missing=BOTH_INFINITE,
    ),
)
def ratios(simulation: Dataset) -> dict:
    names = ("surrogate", "shorter_surrogate")
    return {f"{name}_ratio": simulation[name] / simulation.exact for name in names}


simulate = stage(
    AXES,
    run,
    attributes=lambda parameters: (
        about(parameters)
        | {"guarantee": "none: exact for these data sets, which bounds nothing over others"}
    ),
)
summarise = stage(AXES, means(run), ratios)


def _exact(parameters: Parameters, instance: Instance, given: Sample, others: Sample) -> np.ndarray:
    """Of the laws conditioned on the data sets, shape (positions, lags)."""
    from privreg.theory.noisy_sgd.fixed_order_loss import fixed_order_divergence

    design, positions = parameters.design, np.asarray(parameters.positions)
    release = positions[:, None] + parameters.lags
    releases, place = np.unique(release, return_inverse=True)
    found = fixed_order_divergence(
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
    return found[place.reshape(release.shape), np.arange(positions.size)[:, None]].max(axis=-1)


def _surrogate(
    parameters: Parameters,
    law: HomogenisedSGD,
    pair: tuple[Record, Record],
    position: int,
    elapsed: int,
) -> float:
    from privreg.theory.noisy_sgd.renyi_loss import last_iterate_divergence

    dimension = parameters.design.dimension
    return max(
        last_iterate_divergence(
            law,
            *ordered,
            time=(position + elapsed) / dimension,
            position=position / dimension,
            order=parameters.order,
        )
        for ordered in (pair, pair[::-1])
    )


def _in_eigenbasis(instance: Instance, sample: Sample) -> list[Record]:
    from privreg.theory.noisy_sgd.renyi_loss import Record

    rows = instance.basis.coordinates(sample[0])
    return [Record(row, float(label)) for row, label in zip(rows, sample[1], strict=True)]
