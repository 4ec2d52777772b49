"""Approximate Rényi loss of three release strategies, as printed and exact; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    Count,
    Positive,
    PositiveDeviation,
    RenyiOrder,
    Rising,
    Steps,
    at_most,
)
from privreg.experiment.summaries import mean_and_error
from privreg.papers.lin2025.setting import Design

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials
    from privreg.theory.noisy_sgd.release_loss import Release

PLACE = "Theorems 4.3-4.5, equations (15), (21) and (24)"
STRATEGIES: dict[str, Release] = {
    "last iterate": "last",
    "chosen iterates": "all",
    "average": "average",
}
VARIANTS: tuple[Literal["exact", "paper"], ...] = ("exact", "paper")


class Parameters(Strict):
    """Release times, and the pairs that stand for the worst."""

    design: Design
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    order: RenyiOrder = Field(description="Rényi order alpha.")
    steps: Annotated[Rising[Steps], Field(min_length=2)] = Field(
        description="Iterations that are released, ascending."
    )
    candidates: Count = Field(description="Records that each criterion adds to the search.")
    pairs: Count = Field(description="Ordered pairs compared at each position.")
    finest: Positive = Field(description="Width of the finest quadrature panel, in steps.")

    _steps_have_records = at_most("steps", "design.sample_size")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Loss by position of the differing record, and with the position random."""
    import xarray as xr

    from privreg.experiment.progress import track
    from privreg.theory.noisy_sgd.pair_proxies import candidate_records, largest_pairs
    from privreg.theory.noisy_sgd.release_loss import release_divergence
    from privreg.theory.noisy_sgd.renyi_loss import Record
    from privreg.theory.noisy_sgd.shuffled_position import (
        position_quadrature,
        shuffled_loss,
    )
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

    design, order = parameters.design, parameters.order
    times = np.asarray(parameters.steps) / design.dimension
    places, weights = position_quadrature(
        times, finest=parameters.finest / design.dimension, nodes_per_panel=3
    )
    profile = np.empty((len(STRATEGIES), len(VARIANTS), places.size, len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        instance = design.draw(trial.rng)
        rows, labels = instance.records.sample(design.sample_size, trial.rng)
        rows = instance.basis.coordinates(rows)
        law = design.law(instance.problem, parameters.gradient_noise_std)
        references = law.mean(np.linspace(0.0, 1.0, 5) ** 2 * design.horizon)
        held = candidate_records(rows, labels, references, count=parameters.candidates)
        records = [Record(rows[k], float(labels[k])) for k in held]
        search = PairSearch(law, rows[held], labels[held])
        for p, place in enumerate(places):
            after = times[np.searchsorted(times, place)]
            found = search.divergences(times=[after], position=place, order=order)
            worst = np.zeros((len(STRATEGIES), len(VARIANTS)))
            for i, j in largest_pairs(found, parameters.pairs):
                pair = (records[i], records[j])
                for s, release in enumerate(STRATEGIES.values()):
                    for v, variant in enumerate(VARIANTS):
                        # As printed the arguments are swapped; the pair is, so that only what the
                        # variants disagree on is left.
                        value = release_divergence(
                            law,
                            *(pair if variant == "exact" else pair[::-1]),
                            release=release,
                            times=times,
                            position=place,
                            order=order,
                            variant=variant,
                        )
                        worst[s, v] = max(worst[s, v], value)
            profile[:, :, p, at] = worst
    # One trial at a time: how a product rounds depends on how many it has beside it.
    loss = np.empty((*profile.shape[:2], len(trials)))
    for at in range(len(trials)):
        of_trial = np.ascontiguousarray(profile[..., at])
        loss[..., at] = shuffled_loss(of_trial, weights, horizon=design.horizon, order=order)
    dims = ("strategy", "variant")
    return xr.Dataset(
        {
            "divergence": variable(
                (*dims, "position", "trial"), profile, "divergence given the position"
            ),
            "loss": variable((*dims, "trial"), loss, "Rényi loss at a random position"),
        },
        coords={
            "strategy": variable("strategy", list(STRATEGIES), "what is released"),
            "variant": variable("variant", list(VARIANTS), "formula"),
            "position": variable("position", places, "time s of the differing step"),
            "release": variable("release", times, "release times"),
        },
        attrs={"guarantee": "none: an approximation by a conjecture, over observed pairs"},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over data sets, and how far the printed formulas fall short."""
    import xarray as xr

    loss, divergence = simulation.loss.values, simulation.divergence.values
    later = simulation.position.values > simulation.release.values[0]
    exact, printed = divergence[:, 0], divergence[:, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(exact > 0, printed / exact, 1.0)[:, later]
    one, two = ("strategy",), ("strategy", "variant")
    return xr.Dataset(
        {
            **mean_and_error("loss", loss, two, "the Rényi loss (no guarantee)"),
            **mean_and_error(
                "printed_share", loss[:, 1] / loss[:, 0], one, "the printed loss over the exact one"
            ),
            **mean_and_error(
                "least_printed_share",
                share.min(axis=1),
                one,
                "the least ratio over positions of the printed to the exact divergence",
            ),
            **mean_and_error(
                "strategy_ratio",
                loss / loss[:1],
                two,
                "the loss over that of the last iterate",
            ),
            "divergence": variable(
                (*two, "position"), divergence[..., 0], "divergence by position, first data set"
            ),
        },
        coords={
            name: simulation[name].variable
            for name in ("strategy", "variant", "position", "release", "trial")
        },
        attrs={"order": parameters.order, "gradient_noise_std": parameters.gradient_noise_std},
    )
