"""Validation loss of DP-GD on a real table against the number of samples, for tuned schedules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Estimate, Trials, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.bombari2025 import tables
from reproduction.papers.bombari2025.setting import HARMONIC, SCHEDULE, Schedules

if TYPE_CHECKING:
    from privreg.algorithms.one_pass_dpgd import Mechanism
    from privreg.data.splits import Standardised
    from privreg.schedules import Schedule

PLACE = "Figure 8, Section 7"


class Parameters(tables.TableParameters, Schedules):
    """Figure 8: one table, polynomial schedules and the harmonic one, a range of sample sizes."""

    train: q.Grid[q.SampleSize] = Field(description="Training sizes n, increasing.")
    validation: q.Plural[q.SampleSize] = Field(
        description="Held-out samples: half choose the settings, the other half report."
    )
    clip_constant: q.ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    offsets: q.Some[q.Positive] = Field(
        description="Offsets tau of the harmonic schedule to choose from."
    )
    tuning_runs: q.Count = Field(
        1, description="Runs, each in an order of its own, whose mean loss chooses."
    )
    exclusion_factor: Annotated[q.Positive, Field(gt=1)] = Field(
        10.0, description="A run that exceeds this many medians of its cell is unstable."
    )

    def candidates(self, sample_size: int, dimension: int) -> list[list[Mechanism]]:
        """Of each schedule, a mechanism with all rates for each shape in time."""
        from privreg.algorithms.one_pass_dpgd import Mechanism
        from privreg.schedules import Harmonic, Polynomial

        rates = self.initial_rates.values()

        def mechanism(schedule: Schedule) -> Mechanism:
            return Mechanism.from_schedule(
                schedule,
                sample_size=sample_size,
                dimension=dimension,
                budget=self.budget,
                clip_constant=self.clip_constant,
            )

        return [
            [mechanism(Harmonic(rates * offset, offset)) for offset in self.offsets]
            if schedule == HARMONIC
            else [mechanism(Polynomial(rates, self.exponent(schedule)))]
            for schedule in self.schedules
        ]


AXES = {"schedule": SCHEDULE}
GRID = ("schedule", "sample_size")


@per(
    *GRID,
    loss="loss on the reporting rows, half the mean squared error of standardised labels",
    initial_rate="initial rate chosen on the tuning rows",
    offset="offset of the harmonic schedule chosen on the tuning rows, 0 for the others",
)
def run(parameters: Parameters, trials: Trials, data: Dataset) -> Iterator[list]:
    """Loss of the chosen settings, refitted on rows in another order with fresh private noise.

    The schedules of a trial share rows and noise directions, and are compared within the trial.
    """
    candidates = [
        parameters.candidates(size, data.sizes["feature"]) for size in parameters.train_sizes(data)
    ]
    for ready, rng in parameters.standardised(trials, data):
        by_size = [_tuned(parameters, of_size, ready, rng) for of_size in candidates]
        yield [list(of_schedule) for of_schedule in zip(*by_size, strict=True)]


@per(
    *GRID,
    loss=Estimate("mean loss over stable runs"),
    loss_spread="standard deviation over stable runs of the loss",
    loss_median="median loss over all runs",
    excluded="unstable runs, left out of the mean",
    median_initial_rate="median over trials of the chosen initial rate",
    median_offset="median over trials of the chosen offset",
)
def cell(parameters: Parameters, simulation: Dataset, schedule: str, sample_size: int) -> dict:
    """Means over stable runs."""
    at = simulation.sel(schedule=schedule, sample_size=sample_size)
    loss = at.loss.values
    stable = _stable(parameters, loss)
    mean, variance, count = tables.moments(loss, stable)
    spread = np.sqrt(variance)
    return {
        "loss": (mean, spread / np.sqrt(count)),
        "loss_spread": spread,
        "loss_median": np.median(loss),
        "excluded": np.int32(np.sum(~stable)),
        "median_initial_rate": np.median(at.initial_rate),
        "median_offset": np.median(at.offset),
    }


@per(
    "sample_size",
    harmonic_excess=Estimate(
        "log ratio of the harmonic schedule's loss to the best polynomial schedule's"
    ),
)
def harmonic_excess(
    parameters: Parameters, simulation: Dataset, sample_size: int
) -> tuple[float, float]:
    """The harmonic schedule against the best polynomial one."""
    loss = trials_last(simulation.loss.sel(sample_size=sample_size))
    return _harmonic_excess(np.where(_stable(parameters, loss), loss, np.nan))


def _about(parameters: Parameters, data: Dataset) -> dict:
    return parameters.about(
        data, "the validation rows are cut in half, for tuning and for reporting"
    )


simulate = stage(AXES, run, attributes=_about, released="diagnostic", sample_size=tables.SIMULATED)
summarise = stage(AXES, cell, harmonic_excess, released="diagnostic", sample_size=tables.SUMMARISED)


def _stable(parameters: Parameters, loss: np.ndarray) -> np.ndarray:
    """Runs that do not exceed their median, along the last axis, by too much."""
    return loss <= parameters.exclusion_factor * np.median(loss, axis=-1, keepdims=True)


def _tuned(
    parameters: Parameters,
    candidates: list[list[Mechanism]],
    ready: Standardised,
    rng: np.random.Generator,
) -> list[dict]:
    """Reported loss, initial rate and offset of each schedule."""
    from privreg.algorithms.one_pass_dpgd import fit_together

    rates = parameters.initial_rates.values()
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
    reported = fitted(chosen, slice(None, sample_size), reporting)
    return [
        {
            "loss": loss.item(),
            "initial_rate": rates[rate],
            "offset": parameters.offsets[shape] if schedule == HARMONIC else 0.0,
        }
        for schedule, (shape, rate), loss in zip(parameters.schedules, best, reported, strict=True)
    ]


def _harmonic_excess(loss: np.ndarray) -> tuple[float, float]:
    """Mean and standard error over trials; the schedule compared with is chosen on the others.

    Parameters
    ----------
    loss : ndarray, shape (schedules, trials)
        The harmonic schedule's last, NaN for unstable runs.
    """
    differences = []
    for trial, own in enumerate(loss.T):
        others = np.nanmean(np.delete(loss[:-1], trial, axis=-1), axis=-1)
        best = np.argmin(others) if loss.shape[-1] > 1 else 0
        differences.append(np.log(own[-1] / own[best]))
    return tables.mean_and_error([each for each in differences if np.isfinite(each)])
