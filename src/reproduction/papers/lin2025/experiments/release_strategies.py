"""Approximate Rényi loss of three release strategies, as printed and exact; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.renyi_loss import (
    iterates_divergence,
    position_quadrature,
    shuffled_loss,
)
from privreg.theory.noisy_sgd.worst_pairs import largest_pairs
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.lin2025.setting import BOTH_INFINITE, Records, Searched, about, each_record

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

PLACE = "Theorems 4.3-4.5, equations (15), (21) and (24)"
STRATEGIES = "last iterate", "chosen iterates", "average"
VARIANTS: tuple[Literal["exact", "paper"], ...] = ("exact", "paper")


class Parameters(Searched):
    """Release times; the pairs that lose most in the next release stand for the worst."""

    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    steps: q.Grid[q.Steps] = Field(description="Iterations that are released, ascending.")
    finest: q.Positive = Field(description="Width of the finest quadrature panel, in steps.")

    _steps_have_records = q.at_most("steps", "design.sample_size")

    @property
    def times(self) -> np.ndarray:
        """Release times."""
        return np.asarray(self.steps) / self.design.dimension


AXES = {
    "strategy": Axis("what is released", list(STRATEGIES)),
    "variant": Axis("formula", VARIANTS),
    "position": Axis("time s of the differing step", lambda parameters: _quadrature(parameters)[0]),
}
RELEASE = Axis("release times", "times")


@per(
    "strategy",
    "variant",
    divergence=Quantity("divergence given the position", "position"),
    loss="Rényi loss at a random position (no guarantee)",
)
def run(parameters: Parameters, trial: Trial) -> dict:
    instance = parameters.design.draw(trial.rng)
    records = Records.draw(instance, parameters.design.sample_size, trial.rng)
    law = parameters.design.law(instance.problem, parameters.gradient_noise_std)
    search = records.search(law, records.candidates(law, parameters.candidates))
    positions, weights = _quadrature(parameters)
    divergence = _largest_divergences(parameters, search, positions)
    loss = shuffled_loss(divergence, weights, horizon=law.horizon, order=parameters.order)
    return {"divergence": divergence, "loss": loss}


@per(
    "strategy",
    printed_share=Mean("the printed loss divided by the exact one", missing=BOTH_INFINITE),
    least_printed_share=Mean(
        "the least ratio over positions of the printed to the exact divergence",
        missing=BOTH_INFINITE,
    ),
    strategy_ratio=Mean("the loss divided by the last iterate's", "variant", missing=BOTH_INFINITE),
)
def ratios(parameters: Parameters, simulation: Dataset) -> dict:
    loss, divergence = trials_last(simulation.loss), trials_last(simulation.divergence)
    later = simulation.position.values > parameters.times[0]
    exact, printed = divergence[:, 0, later], divergence[:, 1, later]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(exact > 0, printed / exact, 1.0)
    return {
        "printed_share": loss[:, 1] / loss[:, 0],
        "least_printed_share": share.min(axis=1),
        "strategy_ratio": loss / loss[:1],
    }


@per(
    "strategy", "variant", divergence=Quantity("divergence by position, first data set", "position")
)
def profile(simulation: Dataset) -> np.ndarray:
    return simulation.divergence.isel(trial=0).values


simulate = stage(AXES, run, attributes=about, release=RELEASE)
summarise = stage(AXES, means(run, "loss"), ratios, profile, release=RELEASE)


def _quadrature(parameters: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the differing step, and their weights."""
    finest = parameters.finest / parameters.design.dimension
    return position_quadrature(parameters.times, finest=finest, nodes_per_panel=3)


def _largest_divergences(
    parameters: Parameters, search: PairSearch, positions: np.ndarray
) -> np.ndarray:
    """Largest divergences over the next release's worst pairs, (strategies, variants, positions).

    The printed formula swaps the two laws; here neither variant does. For one iterate the variants
    then agree; for chosen iterates the printed one has only the first release after the step.
    """
    times, order = parameters.times, parameters.order
    following = np.searchsorted(times, positions)
    ahead = np.concatenate(
        [
            search.divergences(times=[time], position=positions[following == k], order=order)
            for k, time in enumerate(times)
        ]
    )
    last = search.divergences(times=times[-1:], position=positions, order=order)
    exact, printed = (
        search.divergences(times=times, position=positions, order=order, variant=variant)
        for variant in VARIANTS
    )
    largest = []
    for k, position in enumerate(positions):
        pairs = largest_pairs(ahead[k], parameters.pairs)
        joint = [
            iterates_divergence(
                search.law,
                *each_record(search.features[pair], search.labels[pair]),
                times=times,
                position=position,
                order=order,
            )
            for pair in pairs
        ]
        at = (k, *pairs.T)
        alone, suffix = last[at].max(), ahead[at].max()
        average = [exact[at].max(), printed[at].max()]
        largest.append([[alone, alone], [max(joint), suffix], average])
    return np.moveaxis(np.array(largest), 0, -1)
