"""Approximate loss of every observed pair, and how well proxies find the worst; not a guarantee."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from privreg.accuracy import AccuracyWarning
from reproduction.experiment import quantities as q
from reproduction.experiment.annotations import Dataset, Trial
from reproduction.experiment.cells import Axis, Quantity, means, per, stage
from reproduction.experiment.parameters import Strict
from reproduction.papers.lin2025.pairs import Records, Searched
from reproduction.papers.lin2025.setting import BOTH_INFINITE, about

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

PLACE = "Figure 1(b), Theorem 4.3"


class Place(Strict):
    """A release time and a position of the differing record."""

    time: q.Positive = Field(description="Release time t.")
    position: q.NonNegative = Field(description="Time s of the differing step.")

    _differs_before_the_release = q.at_most("position", "time")


class Parameters(Searched):
    """Figure 1(b): one noise scale, two places."""

    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    order: q.RenyiOrder = Field(description="Rényi order alpha.")
    places: q.Some[Place] = Field(description="Release times and positions.")
    pairs: q.Count = Field(description="Pairs with the largest proxy whose loss is computed.")
    candidates: q.Count = Field(description="Records that each criterion adds to the search.")
    shown: q.Count = Field(description="Random pairs for the scatter.")

    @property
    def times(self) -> list[float]:
        return [place.time for place in self.places]

    @property
    def positions(self) -> list[float]:
        return [place.position for place in self.places]

    _places_have_records = q.at_most("times", "design.horizon")
    _pairs_are_there = q.at_most("pairs", "design.ordered_pairs")
    _shown_are_there = q.at_most("shown", "design.ordered_pairs")
    _candidates_are_records = q.at_most("candidates", "design.sample_size")


AXES = {
    "proxy": Axis("proxy", ["ones", "mean", "norm"]),
    "time": Axis("release time t", "times", along="place"),
    "position": Axis("position s", "positions", along="place"),
}


@per(
    largest_loss=Quantity("largest loss over all ordered pairs", "place"),
    candidate_share=Quantity(
        "largest loss over pairs of candidate records, as a share",
        "place",
        missing=BOTH_INFINITE,
    ),
    top_share=Quantity(
        "loss of the proxy's first pair, as a share", "place proxy", missing=BOTH_INFINITE
    ),
    best_share=Quantity(
        "largest loss over the proxy's pairs, as a share", "place proxy", missing=BOTH_INFINITE
    ),
    correlation=Quantity(
        "correlation of proxy and loss over all pairs",
        "place proxy",
        missing="a loss is infinite at this order",
    ),
    proxy_value=Quantity("proxy of random ordered pairs", "place proxy shown"),
    loss=Quantity("loss of random ordered pairs", "place shown"),
    order_limit="largest order with a finite loss at release right after the step",
)
def run(parameters: Parameters, trial: Trial) -> dict:
    """All ordered pairs of each trial's records: the maximum, and what the proxies find of it."""
    pairs = _Pairs.draw(parameters, trial.rng)
    places = [pairs.at(place) for place in parameters.places]
    limit = _largest_finite_order(pairs.few, 0.5 * parameters.design.horizon)
    return {name: [at[name] for at in places] for name in places[0]} | {"order_limit": limit}


@per(
    proxy_value=Quantity("proxy of random ordered pairs, first data set", "place proxy shown"),
    loss=Quantity("loss of random ordered pairs, first data set", "place shown"),
)
def scatter(simulation: Dataset) -> dict:
    first = simulation.isel(trial=0)
    return {"proxy_value": first.proxy_value.values, "loss": first.loss.values}


simulate = stage(AXES, run, attributes=about)
summarise = stage(
    AXES,
    means(
        run,
        *("largest_loss", "candidate_share", "order_limit"),
        *("top_share", "best_share", "correlation"),
    ),
    scatter,
)


@dataclass(frozen=True)
class _Pairs:
    """The ordered pairs of a trial's records: searches, proxies, and random ones to show."""

    parameters: Parameters
    records: Records
    printed: np.ndarray
    every: PairSearch
    few: PairSearch
    apart: np.ndarray
    chosen: np.ndarray

    @classmethod
    def draw(cls, parameters: Parameters, rng: np.random.Generator) -> _Pairs:
        design = parameters.design
        instance = design.draw(rng)
        records = Records.draw(design, instance, rng)
        law = parameters.law(instance.problem, parameters.gradient_noise_std)
        held = records.candidates(law, parameters.candidates)
        ones = instance.basis.coordinates(np.ones(design.dimension))
        apart = np.flatnonzero(~np.eye(design.sample_size, dtype=bool))
        return cls(
            parameters,
            records,
            printed=records.gradient_gap(ones, design.ridge),
            every=records.search(law),
            few=records[held].search(law),
            apart=apart,
            chosen=rng.choice(apart, parameters.shown, replace=False),
        )

    def proxies(self, position: float) -> list[np.ndarray]:
        """Of each ordered pair: the printed proxy, the gap at the mean, and the norms."""
        square = np.sum(self.records.rows**2, axis=1) ** 2
        gap = self.records.gradient_gap(self.every.law.mean(position))
        return [self.printed, gap, square[:, None] + square]

    def at(self, place: Place) -> dict:
        """What the proxies find at a place."""
        options: dict[str, Any] = {
            "times": [place.time],
            "position": place.position,
            "order": self.parameters.order,
        }
        loss = self.every.divergences(**options)
        apart, proxies = loss.ravel()[self.apart], self.proxies(place.position)
        found = [_losses_of_largest(proxy, loss, self.parameters.pairs) for proxy in proxies]
        return {
            "largest_loss": apart.max(),
            "candidate_share": self.few.worst(**options).divergence / apart.max(),
            "top_share": [losses[0] / apart.max() for losses in found],
            "best_share": [losses.max() / apart.max() for losses in found],
            "correlation": [
                np.corrcoef(proxy.ravel()[self.apart], apart)[0, 1] for proxy in proxies
            ],
            "proxy_value": [proxy.ravel()[self.chosen] for proxy in proxies],
            "loss": loss.ravel()[self.chosen],
        }


def _losses_of_largest(proxy: np.ndarray, loss: np.ndarray, count: int) -> np.ndarray:
    """The larger loss of either order of the pairs with the largest proxy."""
    from privreg.theory.noisy_sgd.pair_proxies import largest_pairs

    first, second = largest_pairs(proxy, count).T
    return np.maximum(loss[first, second], loss[second, first])


def _largest_finite_order(search: PairSearch, position: float) -> float:
    low, high = 1.0, 1e3
    with warnings.catch_warnings():
        # Next to that order a loss has lost digits; whether it is finite is all that counts.
        warnings.simplefilter("ignore", AccuracyWarning)
        for _ in range(30):
            middle = np.sqrt(low * high)
            worst = search.worst(times=[position], position=position, order=middle)
            low, high = (middle, high) if np.isfinite(worst.divergence) else (low, middle)
    return low
