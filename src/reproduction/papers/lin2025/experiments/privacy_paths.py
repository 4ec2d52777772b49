"""Approximate Rényi loss of the last iterate, record order shuffled; not a guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.annotations import Dataset, Trial
from reproduction.experiment.cells import Axis, Mean, Quantity, means, per, stage
from reproduction.experiment.summaries import trials_last
from reproduction.papers.lin2025.pairs import Records, Searched
from reproduction.papers.lin2025.setting import BOTH_INFINITE, NO_GUARANTEE, NOISE

if TYPE_CHECKING:
    from collections.abc import Callable

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
    swept = [
        [found.swept_loss(step, order) for step in parameters.sweep_steps]
        for order in parameters.orders
    ]
    return {"loss": np.moveaxis(np.array(curves), 0, -1), "swept_loss": swept}


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

        def suprema(time: float, position: float) -> np.ndarray:
            gap = self.records.gradient_gap(self.searches[0].law.mean(position))
            ahead = largest_pairs(gap, self.parameters.pairs)
            found = [
                search.divergences(times=[time], position=position, order=order)
                for search in self.searches
            ]
            both = np.array([np.maximum(loss, loss.T) for loss in found])
            rules = (*self.named.T,), (*ahead.T,), (...,)
            return np.array([[loss[rule].max() for loss in both] for rule in rules])

        return self._shuffled(step, order, suprema)

    def swept_loss(self, step: int, order: float) -> np.ndarray:
        """Loss after a step at the largest noise scale, of the pair that loses most."""

        def supremum(time: float, position: float) -> np.ndarray:
            losses = self.searches[-1].divergences(times=[time], position=position, order=order)
            return losses.max()

        return self._shuffled(step, order, supremum)

    def _shuffled(
        self, step: int, order: float, suprema: Callable[[float, float], np.ndarray]
    ) -> np.ndarray:
        """Loss at a random position, from the largest divergences at a time and a position."""
        from privreg.theory.noisy_sgd.shuffled_position import position_quadrature, shuffled_loss

        design = self.parameters.design
        time, finest = step / design.dimension, self.parameters.finest / design.dimension
        positions, weights = position_quadrature([time], finest=finest, nodes_per_panel=3)
        divergences = np.stack([suprema(time, position) for position in positions], axis=-1)
        return shuffled_loss(divergences, weights, horizon=design.horizon, order=order)
