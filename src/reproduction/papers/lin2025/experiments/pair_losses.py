"""Approximate loss of all observed pairs, and how well proxies find the worst; no guarantee."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from privreg.checks import AccuracyWarning
from privreg.theory.noisy_sgd.worst_pairs import largest_pairs, pair_gradient_gap
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, means, per, stage
from reproduction.papers.lin2025.setting import BOTH_INFINITE, FromStart, Records, about

if TYPE_CHECKING:
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

PLACE = "Figure 1(b), Theorem 4.3"


class Place(Strict):
    """A release time and a position of the differing record."""

    time: q.Positive = Field(description="Release time t.")
    position: q.NonNegative = Field(description="Time s of the differing step.")

    _differs_before_the_release = q.at_most("position", "time")


class Parameters(FromStart):
    """Figure 1(b): one noise scale, two places."""

    gradient_noise_std: q.PositiveDeviation = Field(description="Gradient noise sigma.")
    places: q.Some[Place] = Field(description="Release times and positions.")
    shown: q.Count = Field(description="Random pairs for the scatter.")

    @property
    def times(self) -> list[float]:
        return [place.time for place in self.places]

    @property
    def positions(self) -> list[float]:
        return [place.position for place in self.places]

    _places_have_records = q.at_most("times", "design.horizon")
    _shown_are_there = q.at_most("shown", "design.ordered_pairs")


AXES = {
    "proxy": Axis("proxy", ["ones", "mean", "norm"]),
    "time": Axis("release time t", "times", along="place"),
    "position": Axis("position s", "positions", along="place"),
}


@per(
    largest_loss=Quantity("largest loss over all ordered pairs", "place"),
    candidate_share=Quantity(
        "loss of the worst candidate pair, share of the largest", "place", missing=BOTH_INFINITE
    ),
    top_share=Quantity(
        "loss of the proxy's first pair, share of the largest", "place proxy", missing=BOTH_INFINITE
    ),
    best_share=Quantity(
        "loss of the proxy's worst pair, share of the largest", "place proxy", missing=BOTH_INFINITE
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
    """Ordered pairs of each trial's records: the largest loss, and the share that proxies find."""
    design, order = parameters.design, parameters.order
    instance = design.draw(trial.rng)
    records = Records.draw(instance, design.sample_size, trial.rng)
    law = parameters.law(instance.problem, parameters.gradient_noise_std)
    every = records.search(law)
    few = records.search(law, records.candidates(law, parameters.candidates))
    distinct = np.flatnonzero(~np.eye(design.sample_size, dtype=bool))
    chosen = trial.rng.choice(distinct, parameters.shown, replace=False)
    # The printed proxy, the gap at the mean of each place, and the norms.
    means = law.mean(parameters.positions)
    points = np.vstack([instance.basis.coordinates(np.ones(design.dimension)), means])
    gaps = pair_gradient_gap(*records, points, ridge=[design.ridge, *np.zeros(len(means))])
    square = np.sum(records.rows**2, axis=1) ** 2
    proxies = [
        _Proxy.of(values, parameters.pairs, chosen) for values in (*gaps, square[:, None] + square)
    ]
    del gaps  # of the size of all pairs, as each loss is
    places = []
    for number, place in enumerate(parameters.places):
        options: Any = {"times": [place.time], "position": place.position, "order": order}
        loss = every.divergences(**options)
        largest, apart = loss.max(), _apart(loss)
        shown = [proxies[k] for k in (0, 1 + number, -1)]
        found = [np.maximum(loss[each.top], loss.T[each.top]) for each in shown]
        places.append(
            {
                "largest_loss": largest,
                "candidate_share": few.worst(**options).divergence / largest,
                "top_share": [losses[0] / largest for losses in found],
                "best_share": [losses.max() / largest for losses in found],
                "correlation": [np.vdot(apart, each.apart) for each in shown],
                "proxy_value": [each.shown for each in shown],
                "loss": loss.ravel()[chosen],
            }
        )
    limit = _largest_finite_order(few, 0.5 * design.horizon)
    return {name: [at[name] for at in places] for name in places[0]} | {"order_limit": limit}


@per(
    proxy_value=Quantity("proxy of random ordered pairs, first data set", "place proxy shown"),
    loss=Quantity("loss of random ordered pairs, first data set", "place shown"),
)
def scatter(simulation: Dataset) -> dict:
    return {name: simulation[name].isel(trial=0).values for name in ("proxy_value", "loss")}


simulate = stage(AXES, run, attributes=about)
summarise = stage(
    AXES, means(run, *(name for name in run.quantities if name not in scatter.quantities)), scatter
)


class _Proxy(NamedTuple):
    """Largest pairs of a proxy, its centred and normed deviations, and some of its values."""

    top: tuple[np.ndarray, ...]
    apart: np.ndarray
    shown: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, count: int, chosen: np.ndarray) -> _Proxy:
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
        # Near the limit a loss has few correct digits; only whether it is finite counts.
        warnings.simplefilter("ignore", AccuracyWarning)
        for _ in range(30):
            middle = np.sqrt(low * high)
            worst = search.worst(times=[position], position=position, order=middle)
            low, high = (middle, high) if np.isfinite(worst.divergence) else (low, middle)
    return low
