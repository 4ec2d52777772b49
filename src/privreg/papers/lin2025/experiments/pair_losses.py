"""Approximate loss of every observed pair, and how well proxies find the worst; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    Count,
    NonNegative,
    Positive,
    PositiveDeviation,
    RenyiOrder,
    Some,
    at_most,
)
from privreg.experiment.summaries import mean_and_error
from privreg.papers.lin2025.setting import Design

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

PLACE = "Figure 1(b), Theorem 4.3"
PROXIES = ("ones", "mean", "norm")


class Place(Strict):
    """A release time and a position of the differing record."""

    time: Positive = Field(description="Release time t.")
    position: NonNegative = Field(description="Time s of the differing step.")

    _differs_before_the_release = at_most("position", "time")


class Parameters(Strict):
    """Figure 1(b): one noise scale, two places."""

    design: Design
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    order: RenyiOrder = Field(description="Rényi order alpha.")
    places: Some[Place] = Field(description="Release times and positions.")
    pairs: Count = Field(description="Pairs with the largest proxy whose loss is computed.")
    candidates: Count = Field(description="Records that each criterion adds to the search.")
    shown: Count = Field(description="Random pairs for the scatter.")

    @property
    def times(self) -> list[float]:
        return [place.time for place in self.places]

    _places_have_records = at_most("times", "design.horizon")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """All ordered pairs of each trial's records: the maximum, and what the proxies find of it."""
    import xarray as xr

    from privreg.experiment.progress import track
    from privreg.theory.noisy_sgd.pair_proxies import (
        candidate_records,
        largest_pairs,
        pair_gradient_gap,
    )
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

    design, places = parameters.design, parameters.places
    shape = (len(places), len(trials))
    largest, searched = np.empty(shape), np.empty(shape)
    top, best, correlation = np.empty((3, len(PROXIES), *shape))
    scatter = np.empty((len(PROXIES), *shape, parameters.shown))
    scatter_loss = np.empty((*shape, parameters.shown))
    limit = np.empty(len(trials))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        instance = design.draw(trial.rng)
        rows, labels = instance.records.sample(design.sample_size, trial.rng)
        rows = instance.basis.coordinates(rows)
        ones = instance.basis.coordinates(np.ones(design.dimension))
        law = design.law(instance.problem, parameters.gradient_noise_std)
        search = PairSearch(law, rows, labels)
        square = np.sum(rows**2, axis=1) ** 2
        norm = square[:, None] + square
        printed = pair_gradient_gap(rows, labels, ones, ridge=design.ridge)
        apart = ~np.eye(design.sample_size, dtype=bool)
        chosen = trial.rng.choice(np.flatnonzero(apart), parameters.shown, replace=False)
        # A grid of means from start to limit, without knowledge of the places.
        references = law.mean(np.linspace(0.0, 1.0, 5) ** 2 * design.horizon)
        held = candidate_records(rows, labels, references, count=parameters.candidates)
        few = PairSearch(law, rows[held], labels[held])
        for p, place in enumerate(places):
            options: dict[str, Any] = {
                "times": [place.time],
                "position": place.position,
                "order": parameters.order,
            }
            loss = search.divergences(**options)
            largest[p, at] = loss[apart].max()
            searched[p, at] = few.worst(**options).divergence
            gap = pair_gradient_gap(rows, labels, law.mean(place.position))
            for q, proxy in enumerate((printed, gap, norm)):
                pairs = largest_pairs(proxy, parameters.pairs)
                both = np.maximum(loss[pairs[:, 0], pairs[:, 1]], loss[pairs[:, 1], pairs[:, 0]])
                top[q, p, at], best[q, p, at] = both[0], both.max()
                correlation[q, p, at] = np.corrcoef(proxy[apart], loss[apart])[0, 1]
                scatter[q, p, at] = proxy.ravel()[chosen]
            scatter_loss[p, at] = loss.ravel()[chosen]
        limit[at] = _largest_finite_order(few, 0.5 * design.horizon)
    dims = ("place", "trial")
    return xr.Dataset(
        {
            "largest_loss": variable(dims, largest, "largest loss over all ordered pairs"),
            "candidate_share": variable(
                dims, searched / largest, "largest loss over pairs of candidate records, as a share"
            ),
            "top_share": variable(
                ("proxy", *dims), top / largest, "loss of the proxy's first pair, as a share"
            ),
            "best_share": variable(
                ("proxy", *dims), best / largest, "largest loss over the proxy's pairs, as a share"
            ),
            "correlation": variable(
                ("proxy", *dims), correlation, "correlation of proxy and loss over all pairs"
            ),
            "proxy_value": variable(
                ("proxy", *dims, "shown"), scatter, "proxy of random ordered pairs"
            ),
            "loss": variable((*dims, "shown"), scatter_loss, "loss of random ordered pairs"),
            "order_limit": variable(
                "trial", limit, "largest order with a finite loss at release right after the step"
            ),
        },
        coords={
            "proxy": variable("proxy", list(PROXIES), "proxy"),
            "time": variable("place", [p.time for p in places], "release time t"),
            "position": variable("place", [p.position for p in places], "position s"),
        },
        attrs={"guarantee": "none: an approximation by a conjecture, over observed pairs"},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over data sets; the scatter of the first."""
    import xarray as xr

    variables: dict[str, tuple] = {}
    for name in (
        "largest_loss", "candidate_share", "top_share", "best_share", "correlation", "order_limit",
    ):  # fmt: skip
        array = simulation[name]
        variables |= mean_and_error(
            name, array.values, [str(d) for d in array.dims[:-1]], array.attrs["long_name"]
        )
    for name, axis in (("proxy_value", 2), ("loss", 1)):
        array = simulation[name]
        dims = [str(d) for d in array.dims if d != "trial"]
        description = f"{array.attrs['long_name']}, first data set"
        variables[name] = variable(dims, array.values.take(0, axis=axis), description)
    kept = ("proxy", "time", "position", "trial")
    return xr.Dataset(
        variables,
        coords={name: simulation[name].variable for name in kept},
        attrs={"order": parameters.order, "gradient_noise_std": parameters.gradient_noise_std},
    )


def _largest_finite_order(search: PairSearch, position: float) -> float:
    low, high = 1.0, 1e3
    for _ in range(30):
        middle = np.sqrt(low * high)
        worst = search.worst(times=[position], position=position, order=middle)
        low, high = (middle, high) if np.isfinite(worst.divergence) else (low, middle)
    return low
