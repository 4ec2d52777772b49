"""Approximate Rényi loss of the last iterate, record order shuffled; not a guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
    Some,
    Steps,
    at_most,
)
from privreg.experiment.summaries import mean_and_error
from privreg.papers.lin2025.setting import Design, noise_coordinate

if TYPE_CHECKING:
    import xarray as xr

    from privreg.experiment.trials import Trials
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch as Search

PLACE = "Figures 2(b) and 3(b), Theorem 4.3, equation (15)"
SELECTIONS = ("ones", "mean", "candidates")


class Parameters(Strict):
    """Figure 2(b), and the order swept."""

    design: Design
    gradient_noise_stds: Some[PositiveDeviation] = Field(description="Gradient noise sigma.")
    order: RenyiOrder = Field(description="Rényi order of the curves.")
    steps: Annotated[Rising[Steps], Field(min_length=2)] = Field(
        description="Iterations k at which the loss is shown."
    )
    orders: Some[RenyiOrder] = Field(description="Rényi orders of the sweep.")
    sweep_steps: Rising[Steps] = Field(description="Iterations of the sweep.")
    pairs: Count = Field(description="Pairs with the largest proxy that stand for the worst.")
    candidates: Count = Field(description="Records that each criterion adds to the search.")
    finest: Positive = Field(description="Width of the finest quadrature panel, in steps.")

    _steps_have_records = at_most("steps", "design.sample_size")
    _sweep_has_records = at_most("sweep_steps", "design.sample_size")


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Loss of each trial's records, the worst pair chosen at each position by three rules."""
    import xarray as xr

    from privreg.experiment.progress import track
    from privreg.theory.noisy_sgd.pair_proxies import (
        candidate_records,
        largest_pairs,
        pair_gradient_gap,
    )
    from privreg.theory.noisy_sgd.shuffled_position import position_quadrature, shuffled_loss
    from privreg.theory.noisy_sgd.worst_pairs import PairSearch

    design = parameters.design
    curve = np.empty(
        (len(SELECTIONS), len(parameters.gradient_noise_stds), len(parameters.steps), len(trials))
    )
    swept = np.empty((len(parameters.orders), len(parameters.sweep_steps), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        instance = design.draw(trial.rng)
        rows, labels = instance.records.sample(design.sample_size, trial.rng)
        rows = instance.basis.coordinates(rows)
        ones = instance.basis.coordinates(np.ones(design.dimension))
        laws = [
            design.law(instance.problem, gradient_noise_std)
            for gradient_noise_std in parameters.gradient_noise_stds
        ]
        printed = pair_gradient_gap(rows, labels, ones, ridge=design.ridge)
        named = largest_pairs(printed, parameters.pairs)
        references = laws[0].mean(np.linspace(0.0, 1.0, 5) ** 2 * design.horizon)
        held = candidate_records(rows, labels, references, count=parameters.candidates)
        held = np.union1d(held, named)
        few, few_labels = rows[held], labels[held]
        named = np.searchsorted(held, named)
        searches = [PairSearch(law, few, few_labels) for law in laws]

        def suprema(
            search: Search,
            step: int,
            position: float,
            order: float,
            named: np.ndarray = named,
            few: np.ndarray = few,
            few_labels: np.ndarray = few_labels,
        ) -> np.ndarray:
            time = step / design.dimension
            loss = search.divergences(times=[time], position=position, order=order)
            gap = pair_gradient_gap(few, few_labels, search.law.mean(position))
            ahead = largest_pairs(gap, parameters.pairs)
            both = np.maximum(loss, loss.T)
            return np.array([both[tuple(named.T)].max(), both[tuple(ahead.T)].max(), loss.max()])

        def losses(search: Search, step: int, order: float) -> np.ndarray:
            places, weights = position_quadrature(
                [step / design.dimension],
                finest=parameters.finest / design.dimension,
                nodes_per_panel=3,
            )
            found = np.stack([suprema(search, step, place, order) for place in places], axis=-1)
            return shuffled_loss(found, weights, horizon=design.horizon, order=order)

        for s, search in enumerate(searches):
            for k, step in enumerate(parameters.steps):
                curve[:, s, k, at] = losses(search, step, parameters.order)
        for o, order in enumerate(parameters.orders):
            for k, step in enumerate(parameters.sweep_steps):
                swept[o, k, at] = losses(searches[-1], step, order)[-1]
    return xr.Dataset(
        {
            "loss": variable(
                ("selection", "gradient_noise_std", "step", "trial"),
                curve,
                "Rényi loss of the last iterate",
            ),
            "swept_loss": variable(
                ("order", "sweep_step", "trial"),
                swept,
                "Rényi loss of the last iterate at the largest noise scale, candidate pairs",
            ),
        },
        coords={
            "selection": variable("selection", list(SELECTIONS), "rule for the worst pair"),
            "gradient_noise_std": noise_coordinate(parameters.gradient_noise_stds),
            "step": variable("step", parameters.steps, "iteration k"),
            "order": variable("order", parameters.orders, "Rényi order"),
            "sweep_step": variable("sweep_step", parameters.sweep_steps, "iteration k"),
        },
        attrs={"guarantee": "none: an approximation by a conjecture, over observed pairs"},
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over data sets, the overshoot, and the ratio of neighbouring noise scales."""
    import xarray as xr

    loss = simulation.loss.values
    peak = loss.max(axis=2)
    ratio = loss[:, 1:] / loss[:, :-1]
    both = ("selection", "gradient_noise_std")
    swept = simulation.swept_loss.values
    finite = np.where(np.isinf(swept).any(axis=-1, keepdims=True), np.inf, swept)
    with np.errstate(invalid="ignore"):
        sweep = mean_and_error(
            "swept_loss",
            finite,
            ("order", "sweep_step"),
            simulation.swept_loss.attrs["long_name"],
        )
    # An infinite mean has no standard error to speak of; NaN would hide that.
    error = sweep["swept_loss_standard_error"][1]
    error[np.isnan(error)] = np.inf
    return xr.Dataset(
        {
            **mean_and_error(
                "loss",
                loss,
                (*both, "step"),
                "the Rényi loss of the last iterate (no guarantee)",
            ),
            **mean_and_error(
                "overshoot", peak / loss[:, :, -1], both, "the largest loss over the last one"
            ),
            **mean_and_error(
                "relative_loss",
                loss / loss[:, :, -1:],
                (*both, "step"),
                "the loss over the one after the last step",
            ),
            **mean_and_error(
                "noise_ratio",
                ratio,
                ("selection", "noise_step", "step"),
                "the loss over that at the next smaller noise scale",
            ),
            **mean_and_error(
                "selection_share",
                loss / loss[-1:],
                (*both, "step"),
                "the loss over that of the search over candidate records",
            ),
            **sweep,
        },
        coords={
            name: simulation[name].variable
            for name in ("selection", "gradient_noise_std", "step", "order", "sweep_step", "trial")
        }
        | {
            "noise_step": variable(
                "noise_step", parameters.gradient_noise_stds[1:], "the larger of two noise scales"
            )
        },
        attrs={"order_of_curves": parameters.order},
    )
