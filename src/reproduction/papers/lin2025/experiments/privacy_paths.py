"""Approximate Rényi loss of the last iterate, record order shuffled; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.renyi_loss import position_quadrature, shuffled_loss
from privreg.theory.noisy_sgd.worst_pairs import largest_pairs, pair_gradient_gap
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.lin2025.setting import BOTH_INFINITE, NOISE, FromStart, Records, about

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

PLACE = "Figures 2(b) and 3(b), Theorem 4.3, equation (15)"


class Parameters(FromStart):
    """Figure 2(b), and the order swept."""

    gradient_noise_stds: q.Some[q.PositiveDeviation] = Field(description="Gradient noise sigma.")
    steps: q.Grid[q.Steps] = Field(description="Iterations k at which the loss is shown.")
    orders: q.Some[q.RenyiOrder] = Field(description="Rényi orders of the sweep.")
    sweep_steps: q.Rising[q.Steps] = Field(description="Iterations of the sweep.")
    finest: q.Positive = Field(description="Width of the finest quadrature panel, in steps.")

    _steps_have_records = q.at_most("steps", "design.sample_size")
    _sweep_has_records = q.at_most("sweep_steps", "design.sample_size")


AXES = {
    "selection": Axis("rule for the worst pair", ["ones", "mean", "candidates"]),
    "gradient_noise_std": NOISE,
    "noise_step": Axis(
        "the larger of two noise scales", lambda parameters: parameters.gradient_noise_stds[1:]
    ),
    "step": Axis("iteration k", "steps"),
    "order": Axis("Rényi order", "orders"),
    "sweep_step": Axis("iteration k", "sweep_steps"),
}


@per(
    loss=Quantity(
        "Rényi loss of the last iterate (no guarantee)", "selection gradient_noise_std step"
    ),
    swept_loss=Quantity(
        "Rényi loss of the last iterate at the largest noise scale, candidate pairs",
        "order sweep_step",
    ),
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """Loss over each trial's records; three rules choose the worst pair at each position."""
    design = parameters.design
    instance = design.draw(trial.rng)
    records = Records.draw(instance, design.sample_size, trial.rng)
    laws = [parameters.law(instance.problem, std) for std in parameters.gradient_noise_stds]
    ones = instance.basis.coordinates(np.ones(design.dimension))
    named = largest_pairs(pair_gradient_gap(*records, ones, ridge=design.ridge), parameters.pairs)
    held = np.union1d(records.candidates(laws[0], parameters.candidates), named)
    searches = [records.search(law, held) for law in laws]
    named = np.searchsorted(held, named)
    curves = [_losses(parameters, searches, named, step) for step in parameters.steps]
    swept = [_swept_losses(parameters, searches[-1], step) for step in parameters.sweep_steps]
    return {"loss": np.moveaxis(np.array(curves), 0, -1), "swept_loss": np.transpose(swept)}


@per(
    "selection",
    "gradient_noise_std",
    overshoot=Mean("the largest loss divided by the last one", missing=BOTH_INFINITE),
    relative_loss=Mean("the loss divided by the last one", "step", missing=BOTH_INFINITE),
    selection_share=Mean(
        "the loss divided by that of a search among candidates", "step", missing=BOTH_INFINITE
    ),
)
def shares(simulation: Dataset) -> dict:
    loss = trials_last(simulation.loss)
    return {
        "overshoot": loss.max(axis=2) / loss[:, :, -1],
        "relative_loss": loss / loss[:, :, -1:],
        "selection_share": loss / loss[-1:],
    }


@per(
    "selection",
    "noise_step",
    noise_ratio=Mean(
        "the loss divided by that at the next smaller noise scale", "step", missing=BOTH_INFINITE
    ),
)
def noise_ratio(simulation: Dataset) -> np.ndarray:
    loss = trials_last(simulation.loss)
    return loss[:, 1:] / loss[:, :-1]


simulate = stage(AXES, run, attributes=about)
summarise = stage(AXES, means(run), shares, noise_ratio)


def _losses(
    parameters: Parameters, searches: list[PairSearch], named: np.ndarray, step: int
) -> np.ndarray:
    """Loss after a step, by rule and noise scale, for a random position of the differing record.

    Pairs are named by a proxy at the mean, which is the same at all noise scales.
    """
    order, first = parameters.order, searches[0]
    time, positions, weights = _quadrature(parameters, step)
    gaps = pair_gradient_gap(first.features, first.labels, first.law.mean(positions))
    ahead = np.array([largest_pairs(gap, parameters.pairs) for gap in gaps])
    found = [
        search.divergences(times=[time], position=positions, order=order) for search in searches
    ]
    either = np.array([np.maximum(loss, loss.swapaxes(1, 2)) for loss in found])
    places = np.arange(positions.size)[:, None]
    picked = either[:, :, *named.T], either[:, places, ahead[..., 0], ahead[..., 1]]
    largest = np.array([*(losses.max(axis=2) for losses in picked), either.max(axis=(2, 3))])
    return shuffled_loss(largest, weights, horizon=first.law.horizon, order=order)


def _swept_losses(parameters: Parameters, search: PairSearch, step: int) -> list[np.ndarray]:
    """Loss after a step, by order, of the pair with the largest loss at each position."""
    orders, horizon = parameters.orders, search.law.horizon
    time, positions, weights = _quadrature(parameters, step)
    found = search.divergences(times=[time], position=positions, order=np.array(orders)[:, None])
    return [
        shuffled_loss(losses, weights, horizon=horizon, order=order)
        for losses, order in zip(found.max(axis=(2, 3)), orders, strict=True)
    ]


def _quadrature(parameters: Parameters, step: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Time after a step, positions of the differing record and their weights."""
    dimension = parameters.design.dimension
    finest, time = parameters.finest / dimension, step / dimension
    return time, *position_quadrature([time], finest=finest, nodes_per_panel=3)
