"""Approximate loss of every observed pair, and how well proxies find the worst; not a guarantee."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from privreg.accuracy import AccuracyWarning
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, means, per, stage
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
    places = [pairs.at(number) for number in range(len(parameters.places))]
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
    """The ordered pairs of a trial's records: searches, proxies, and random ones to show.

    The proxies are the printed one, the gap at the mean of each place, and the norms.
    """

    parameters: Parameters
    proxies: list[_Proxy]
    every: PairSearch
    few: PairSearch
    chosen: np.ndarray

    @classmethod
    def draw(cls, parameters: Parameters, rng: np.random.Generator) -> _Pairs:
        design = parameters.design
        instance = design.draw(rng)
        records = Records.draw(design, instance, rng)
        law = parameters.law(instance.problem, parameters.gradient_noise_std)
        held = records.candidates(law, parameters.candidates)
        ones = instance.basis.coordinates(np.ones(design.dimension))
        means = law.mean(parameters.positions)
        square = np.sum(records.rows**2, axis=1) ** 2
        apart = np.flatnonzero(~np.eye(design.sample_size, dtype=bool))
        chosen = rng.choice(apart, parameters.shown, replace=False)
        gaps = records.gradient_gap(np.vstack([ones, means]), [design.ridge, *np.zeros(len(means))])
        proxies = *gaps, square[:, None] + square
        return cls(
            parameters,
            [_Proxy.of(values, parameters.pairs, chosen) for values in proxies],
            every=records.search(law),
            few=records[held].search(law),
            chosen=chosen,
        )

    def at(self, number: int) -> dict:
        """What the proxies find at a place."""
        place = self.parameters.places[number]
        options: dict[str, Any] = {
            "times": [place.time],
            "position": place.position,
            "order": self.parameters.order,
        }
        loss = self.every.divergences(**options)
        largest, apart = loss.max(), _apart(loss)
        proxies = [self.proxies[k] for k in (0, 1 + number, -1)]
        found = [np.maximum(loss[each.top], loss.T[each.top]) for each in proxies]
        return {
            "largest_loss": largest,
            "candidate_share": self.few.worst(**options).divergence / largest,
            "top_share": [losses[0] / largest for losses in found],
            "best_share": [losses.max() / largest for losses in found],
            "correlation": [np.vdot(apart, each.apart) for each in proxies],
            "proxy_value": [each.shown for each in proxies],
            "loss": loss.ravel()[self.chosen],
        }


class _Proxy(NamedTuple):
    """Of a proxy of each ordered pair: where it is largest, what correlates it, and some values."""

    top: tuple[np.ndarray, ...]
    apart: np.ndarray
    shown: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, count: int, chosen: np.ndarray) -> _Proxy:
        from privreg.theory.noisy_sgd.pair_proxies import largest_pairs

        top = (*largest_pairs(values, count).T,)
        return cls(top, _apart(values), values.ravel()[chosen])


def _apart(values: np.ndarray) -> np.ndarray:
    """Deviations of the ordered pairs from their mean, 0 on the diagonal, with a norm of 1."""
    mean = (values.sum() - np.trace(values)) / (values.size - len(values))
    apart = values - mean
    np.fill_diagonal(apart, 0.0)
    apart /= np.linalg.norm(apart)
    return apart


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
