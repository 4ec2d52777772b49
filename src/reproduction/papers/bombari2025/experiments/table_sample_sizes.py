"""Validation loss of DP-GD on a real table against the number of samples, for tuned schedules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from privreg.data.tables import Standardised
from privreg.schedules import Harmonic, Polynomial, Schedule
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Estimate, Trials, per, stage
from reproduction.engine.summaries import error_of_mean, trials_last
from reproduction.papers.bombari2025 import mechanisms, setting, tables

if TYPE_CHECKING:
    from privreg.algorithms.one_pass_dpgd import Mechanism

PLACE = "Figure 8, Section 7"


class Parameters(tables.TableParameters, setting.Schedules):
    """Figure 8: one table, polynomial schedules and the harmonic one, a range of sample sizes."""

    notes = ("the validation rows are cut in half, for tuning and for reporting",)
    train: q.Grid[q.SampleSize] = Field(description="Training sizes n, increasing.")
    validation: q.Plural[q.SampleSize] = Field(
        description="Held-out samples: half choose the settings, the other half report."
    )
    clip_constant: q.ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    offsets: q.Some[q.Positive] = Field(
        description="Offsets tau of the harmonic schedule to choose from."
    )
    tuning_runs: q.Count = Field(
        1, description="Runs, each with its own order of rows; the least mean loss chooses."
    )
    exclusion_factor: q.Positive = Field(
        10.0, description="A run that exceeds this many medians of its cell is unstable."
    )

    def candidates(self, sample_size: int, dimension: int) -> list[list[Mechanism]]:
        """Mechanisms with all rates, for each schedule and shape in time."""
        rates = self.initial_rates.values()

        def mechanism(schedule: Schedule) -> Mechanism:
            return mechanisms.mechanism(
                self.budget, schedule, sample_size, dimension, self.clip_constant
            )

        return [
            [mechanism(Harmonic(rates * offset, offset)) for offset in self.offsets]
            if isinstance(shape, str)
            else [mechanism(Polynomial(rates, shape))]
            for shape in self.shapes.values()
        ]


AXES = {"schedule": setting.SCHEDULE}
GRID = ("schedule", "sample_size")


@per(*GRID, loss="loss on the reporting rows, half the mean squared error of standardised labels")
def run(parameters: Parameters, trials: Trials, data: Dataset) -> Iterator[np.ndarray]:
    """Loss of the chosen settings, refitted on rows in another order with fresh private noise.

    The schedules of a trial share rows and noise directions, and are compared within the trial.
    """
    candidates = [
        parameters.candidates(size, data.sizes["feature"]) for size in parameters.train_sizes(data)
    ]
    for ready, rng in parameters.standardised(trials, data):
        yield np.stack([_tuned(parameters, each, ready, rng) for each in candidates], axis=-1)


@per(
    *GRID,
    loss=Estimate("mean loss over stable runs"),
    loss_spread="standard deviation over stable runs of the loss",
    loss_median="median loss over all runs",
    excluded="unstable runs, left out of the mean",
)
def cell(parameters: Parameters, simulation: Dataset, schedule: str, sample_size: int) -> dict:
    """Means over stable runs."""
    loss = simulation.loss.sel(schedule=schedule, sample_size=sample_size).values
    stable = _stable(parameters, loss)
    mean, variance, count = tables.moments(loss, stable)
    spread = np.sqrt(variance)
    return {
        "loss": (mean, spread / np.sqrt(count)),
        "loss_spread": spread,
        "loss_median": np.median(loss),
        "excluded": np.int32(np.sum(~stable)),
    }


@per(
    "sample_size",
    harmonic_excess=Estimate(
        "largest mean log ratio of the harmonic schedule's loss to a polynomial schedule's"
    ),
)
def harmonic_excess(parameters: Parameters, simulation: Dataset, sample_size: int) -> tuple:
    """The harmonic schedule, the last, over trials in which both are stable."""
    loss = trials_last(simulation.loss.sel(sample_size=sample_size))
    loss = np.where(_stable(parameters, loss), loss, np.nan)
    ratios = [each[np.isfinite(each)] for each in np.log(loss[-1] / loss[:-1])]
    largest = max(ratios, key=np.mean)
    return np.mean(largest), error_of_mean(largest)


simulate = stage(
    AXES, run, attributes=tables.about, released="diagnostic", sample_size=tables.SIMULATED
)
summarise = stage(AXES, cell, harmonic_excess, released="diagnostic", sample_size=tables.SUMMARISED)


def _stable(parameters: Parameters, loss: np.ndarray) -> np.ndarray:
    """Stable runs: those that do not exceed the median along the last axis by too much."""
    return loss <= parameters.exclusion_factor * np.median(loss, axis=-1, keepdims=True)


def _tuned(
    parameters: Parameters,
    candidates: list[list[Mechanism]],
    ready: Standardised,
    rng: np.random.Generator,
) -> np.ndarray:
    """Reported loss of each schedule."""
    from privreg.algorithms.one_pass_dpgd import fit_together

    each = [mechanism for of_schedule in candidates for mechanism in of_schedule]
    sample_size = each[0].sample_size
    orders = [
        rng.permutation(len(ready.train_labels))[:sample_size]
        for _ in range(parameters.tuning_runs)
    ]
    half = len(ready.validation_labels) // 2
    tuning, reporting = slice(None, half), slice(half, None)

    def fitted(
        mechanisms: list[Mechanism], rows: np.ndarray | slice, held_out: slice
    ) -> list[np.ndarray]:
        """Loss of every setting of each mechanism."""
        features, labels = ready.train_features[rows], ready.train_labels[rows]
        return [
            tables.validation_loss(
                found, ready.validation_features[held_out], ready.validation_labels[held_out]
            )
            for found in fit_together(mechanisms, features, labels, rng)
        ]

    losses = iter(np.mean([fitted(each, order, tuning) for order in orders], axis=0))
    best = []
    for of_schedule in candidates:
        table = np.array([next(losses) for _ in of_schedule])
        best.append(np.unravel_index(np.argmin(table), table.shape))
    chosen = [
        replace(
            of_schedule[shape],
            amplitude=of_schedule[shape].amplitude[[rate]],
            clip_norm=of_schedule[shape].clip_norm[[rate]],
        )
        for of_schedule, (shape, rate) in zip(candidates, best, strict=True)
    ]
    return np.concatenate(fitted(chosen, slice(None, sample_size), reporting))
