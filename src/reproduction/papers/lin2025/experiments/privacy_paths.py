"""Approximate Rényi loss of the last iterate, record order shuffled; not a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.lin2025.pairs import Records, Searched
from reproduction.papers.lin2025.setting import BOTH_INFINITE, NO_GUARANTEE, NOISE

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

PLACE = "Figures 2(b) and 3(b), Theorem 4.3, equation (15)"


class Parameters(Searched):
    """Figure 2(b), and the order swept."""

    gradient_noise_stds: q.Some[q.PositiveDeviation] = Field(description="Gradient noise sigma.")
    order: q.RenyiOrder = Field(description="Rényi order of the curves.")
    steps: q.Grid[q.Steps] = Field(description="Iterations k at which the loss is shown.")
    orders: q.Some[q.RenyiOrder] = Field(description="Rényi orders of the sweep.")
    sweep_steps: q.Rising[q.Steps] = Field(description="Iterations of the sweep.")
    pairs: q.Count = Field(description="Pairs with the largest proxy that stand for the worst.")
    candidates: q.Count = Field(description="Records that each criterion adds to the search.")
    finest: q.Positive = Field(description="Width of the finest quadrature panel, in steps.")

    _steps_have_records = q.at_most("steps", "design.sample_size")
    _sweep_has_records = q.at_most("sweep_steps", "design.sample_size")
    _pairs_are_there = q.at_most("pairs", "design.ordered_pairs")
    _candidates_are_records = q.at_most("candidates", "design.sample_size")


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
    """Loss of each trial's records, the worst pair chosen at each position by three rules."""
    found = _Search.draw(parameters, trial.rng)
    curves = [found.losses(step) for step in parameters.steps]
    swept = [found.swept_losses(step) for step in parameters.sweep_steps]
    return {"loss": np.moveaxis(np.array(curves), 0, -1), "swept_loss": np.transpose(swept)}


@per(
    "selection",
    "gradient_noise_std",
    overshoot=Mean("the largest loss over the last one", missing=BOTH_INFINITE),
    relative_loss=Mean("the loss over the one after the last step", "step", missing=BOTH_INFINITE),
    selection_share=Mean(
        "the loss over that of the search over candidate records", "step", missing=BOTH_INFINITE
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
        "the loss over that at the next smaller noise scale", "step", missing=BOTH_INFINITE
    ),
)
def noise_ratio(simulation: Dataset) -> np.ndarray:
    loss = trials_last(simulation.loss)
    return loss[:, 1:] / loss[:, :-1]


simulate = stage(
    AXES,
    run,
    attributes=lambda parameters: {
        "guarantee": NO_GUARANTEE,
        "order_of_curves": parameters.order,
    },
)
summarise = stage(AXES, means(run), shares, noise_ratio)


@dataclass(frozen=True)
class _Search:
    """Records of a trial that a search holds, and the pairs among them with the printed proxy."""

    parameters: Parameters
    records: Records
    named: np.ndarray
    searches: list[PairSearch]

    @classmethod
    def draw(cls, parameters: Parameters, rng: np.random.Generator) -> _Search:
        from privreg.theory.noisy_sgd.pair_proxies import largest_pairs

        design = parameters.design
        instance = design.draw(rng)
        records = Records.draw(design, instance, rng)
        laws = [parameters.law(instance.problem, std) for std in parameters.gradient_noise_stds]
        ones = instance.basis.coordinates(np.ones(design.dimension))
        named = largest_pairs(records.gradient_gap(ones, design.ridge), parameters.pairs)
        held = np.union1d(records.candidates(laws[0], parameters.candidates), named)
        few = records[held]
        searches = [few.search(law) for law in laws]
        return cls(parameters, few, np.searchsorted(held, named), searches)

    def losses(self, step: int) -> np.ndarray:
        """Loss after a step by rule and noise scale, the position of the differing record random.

        Pairs are named by a proxy at the mean, which is the same at all noise scales.
        """
        from privreg.theory.noisy_sgd.pair_proxies import largest_pairs

        order = self.parameters.order
        time, positions, weights = self._quadrature(step)
        gaps = self.records.gradient_gap(self.searches[0].law.mean(positions))
        ahead = np.array([largest_pairs(gap, self.parameters.pairs) for gap in gaps])
        found = [
            search.divergences(times=[time], position=positions, order=order)
            for search in self.searches
        ]
        either = np.array([np.maximum(loss, loss.swapaxes(1, 2)) for loss in found])
        places = np.arange(positions.size)[:, None]
        named = either[:, :, self.named[:, 0], self.named[:, 1]]
        picked = named, either[:, places, ahead[..., 0], ahead[..., 1]]
        largest = np.array([*(losses.max(axis=2) for losses in picked), either.max(axis=(2, 3))])
        return self._shuffled(largest, weights, order)

    def swept_losses(self, step: int) -> list[float]:
        """Loss after a step by order, at the largest noise scale, of the pair that loses most."""
        orders = self.parameters.orders
        time, positions, weights = self._quadrature(step)
        found = self.searches[-1].divergences(
            times=[time], position=positions, order=np.array(orders)[:, None]
        )
        largest = found.max(axis=(2, 3))
        return [
            float(self._shuffled(losses, weights, order))
            for losses, order in zip(largest, orders, strict=True)
        ]

    def _quadrature(self, step: int) -> tuple[float, np.ndarray, np.ndarray]:
        """Time after a step, positions of the differing record and their weights."""
        from privreg.theory.noisy_sgd.shuffled_position import position_quadrature

        dimension = self.parameters.design.dimension
        finest = self.parameters.finest / dimension
        time = step / dimension
        return time, *position_quadrature([time], finest=finest, nodes_per_panel=3)

    def _shuffled(self, divergences: np.ndarray, weights: np.ndarray, order: float) -> np.ndarray:
        """Loss at a random position, from the largest divergences at each."""
        from privreg.theory.noisy_sgd.shuffled_position import shuffled_loss

        horizon = self.parameters.design.horizon
        return shuffled_loss(divergences, weights, horizon=horizon, order=order)
