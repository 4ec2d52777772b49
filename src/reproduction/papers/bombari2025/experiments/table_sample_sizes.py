"""Validation loss of DP-GD on a real table against the number of samples, for tuned schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipConstant,
    Count,
    Deviation,
    Positive,
    Power,
    Rising,
    SampleSize,
    Some,
    StatedBudget,
    StepSizeAxis,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

    from privreg.algorithms.one_pass_dpgd import Mechanism
    from privreg.data.splits import Standardised
    from privreg.schedules import Schedule
    from reproduction.experiment.trials import Trials

PLACE = "Figure 8, Section 7"
HARMONIC = "harmonic"
GRID = ("schedule", "sample_size")


class Parameters(Strict):
    """Figure 8: one table, polynomial schedules and the harmonic one, a range of sample sizes."""

    dataset: Literal["mnist", "california_housing"]
    train: Annotated[Rising[SampleSize], Field(min_length=2)] = Field(
        description="Training sizes n, increasing."
    )
    normalisation: Annotated[SampleSize, Field(ge=30)] = Field(
        description="Samples that set means and standard deviations."
    )
    validation: Annotated[SampleSize, Field(ge=2)] = Field(
        description="Held-out samples: half choose the settings, the other half report."
    )
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c; the norm is c sqrt(d).")
    exponents: Some[Power] = Field(description="Exponents alpha, 0 the first.")
    initial_rates: StepSizeAxis = Field(description="Initial learning rates to choose from.")
    offsets: Some[Positive] = Field(
        description="Offsets tau of the harmonic schedule to choose from."
    )
    tuning_runs: Count = Field(
        1, description="Runs, each in an order of its own, whose mean loss chooses."
    )
    minimum_std: Deviation = Field(
        0.0, description="Features of at most this deviation count as constant."
    )
    exclusion_factor: Annotated[Positive, Field(gt=1)] = Field(
        10.0, description="A run that exceeds this many medians of its cell is unstable."
    )

    @model_validator(mode="after")
    def _the_table_has_the_rows(self) -> Self:
        from privreg import data

        data.require_split(
            self.dataset,
            train=max(self.train),
            normalisation=self.normalisation,
            validation=self.validation,
        )
        return self

    @model_validator(mode="after")
    def _begins_with_a_constant_rate(self) -> Self:
        if self.exponents[0] != 0:
            raise ValueError(
                f"exponents must begin with 0, the others are over it, got {self.exponents[0]}"
            )
        return self

    @property
    def schedules(self) -> list[str]:
        return [f"alpha={exponent:g}" for exponent in self.exponents] + [HARMONIC]

    def families(self, schedule: int, rates: np.ndarray) -> list[Schedule]:
        """A schedule's candidates, one family for each shape in time."""
        from privreg.schedules import Harmonic, Polynomial

        if schedule < len(self.exponents):
            return [Polynomial(rates, self.exponents[schedule])]
        return [Harmonic(rates * offset, offset) for offset in self.offsets]


def simulate(parameters: Parameters, trials: Trials, data: xr.Dataset) -> xr.Dataset:
    """Loss of the chosen settings, refitted on rows in another order with fresh private noise."""
    import xarray as xr

    from privreg.data import splits
    from reproduction.experiment.progress import track
    from reproduction.experiment.tables import from_dataset

    table = from_dataset(data)
    sizes = splits.sizes_that_fit(
        table,
        train=max(parameters.train),
        normalisation=parameters.normalisation,
        validation=parameters.validation,
    )
    train = [max(1, size * sizes["train"] // max(parameters.train)) for size in parameters.train]
    shape = (len(parameters.schedules), len(train), len(trials))
    loss, rate, offset = np.empty(shape), np.empty(shape), np.zeros(shape)
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        split = splits.split(table, **sizes, rng=trial.rng)
        ready = splits.standardise(split, table, minimum_std=parameters.minimum_std)
        for a, n in np.ndindex(shape[:2]):
            found = _tuned(parameters, a, train[n], ready, trial.rng)
            loss[a, n, at], rate[a, n, at], offset[a, n, at] = found
    dims = (*GRID, "trial")
    return xr.Dataset(
        {
            "loss": variable(
                dims,
                loss,
                "loss on the reporting rows, half the mean squared error of standardised labels",
                release="diagnostic",
            ),
            "initial_rate": variable(
                dims, rate, "initial rate chosen on the tuning rows", release="diagnostic"
            ),
            "offset": variable(
                dims,
                offset,
                "offset of the harmonic schedule chosen on the tuning rows, 0 for the others",
                release="diagnostic",
            ),
        },
        coords=_coordinates(parameters, train),
        attrs={
            "dimension": table.shape[1],
            "split": "disjoint, reshuffled in each trial by the trial's own stream: "
            + ", ".join(f"{size} {part} rows" for part, size in sizes.items())
            + "; the validation rows are cut in half, for tuning and for reporting",
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Means over stable runs, and the harmonic schedule against the best polynomial one."""
    import xarray as xr

    loss = simulation.loss.values
    median = np.median(loss, axis=-1)
    stable = loss <= parameters.exclusion_factor * median[..., None]
    count = stable.sum(axis=-1)
    mean = np.where(stable, loss, 0).sum(axis=-1) / count
    deviation = np.where(stable, loss - mean[..., None], 0)
    spread = np.sqrt((deviation**2).sum(axis=-1) / np.maximum(count - 1, 1))
    excess = _harmonic_excess(np.where(stable, loss, np.nan))
    release: dict = {"release": "diagnostic"}
    return xr.Dataset(
        {
            "loss": variable(
                GRID,
                mean,
                "mean loss over stable runs",
                standard_error="loss_standard_error",
                **release,
            ),
            "loss_standard_error": variable(
                GRID, spread / np.sqrt(count), "standard error of the mean loss", **release
            ),
            "loss_spread": variable(
                GRID, spread, "standard deviation over stable runs of the loss", **release
            ),
            "loss_median": variable(GRID, median, "median loss over all runs", **release),
            "excluded": variable(
                GRID,
                (~stable).sum(axis=-1).astype("int32"),
                "unstable runs, left out of the mean",
                **release,
            ),
            "median_initial_rate": variable(
                GRID,
                np.median(simulation.initial_rate.values, axis=-1),
                "median over trials of the chosen initial rate",
                **release,
            ),
            "median_offset": variable(
                GRID,
                np.median(simulation.offset.values, axis=-1),
                "median over trials of the chosen offset",
                **release,
            ),
            "harmonic_excess": variable(
                "sample_size",
                excess[0],
                "log ratio of the harmonic schedule's loss to the best polynomial schedule's",
                standard_error="harmonic_excess_standard_error",
                **release,
            ),
            "harmonic_excess_standard_error": variable(
                "sample_size", excess[1], "standard error of the log ratio of the losses", **release
            ),
        },
        coords=_coordinates(parameters, simulation.sample_size.values)
        | {"trial": simulation.trial.variable},
        attrs={"dimension": simulation.attrs["dimension"]},
    )


def _tuned(
    parameters: Parameters,
    schedule: int,
    sample_size: int,
    ready: Standardised,
    rng: np.random.Generator,
) -> tuple[float, float, float]:
    """Reported loss, initial rate and offset."""
    from privreg.algorithms import one_pass_dpgd

    rates = parameters.initial_rates.values()
    orders = [
        rng.permutation(len(ready.train_labels))[:sample_size]
        for _ in range(parameters.tuning_runs)
    ]
    half = len(ready.validation_labels) // 2
    tuning, reporting = slice(None, half), slice(half, None)

    def fitted(mechanism: Mechanism, rows: np.ndarray | slice, judges: slice) -> np.ndarray:
        found = one_pass_dpgd.fit(
            mechanism, ready.train_features[rows], ready.train_labels[rows], rng
        )
        residuals = (
            ready.validation_features[judges] @ found.T - ready.validation_labels[judges, None]
        )
        return np.mean(residuals**2, axis=0) / 2

    def candidates(amplitudes: np.ndarray) -> Iterator[Mechanism]:
        for family in parameters.families(schedule, amplitudes):
            yield one_pass_dpgd.Mechanism.from_schedule(
                family,
                sample_size=sample_size,
                dimension=ready.train_features.shape[1],
                budget=parameters.budget,
                clip_constant=parameters.clip_constant,
            )

    losses = np.array(
        [
            np.mean([fitted(each, order, tuning) for order in orders], axis=0)
            for each in candidates(rates)
        ]
    )
    shape, rate = np.unravel_index(np.argmin(losses), losses.shape)
    chosen = list(candidates(rates[[rate]]))[shape]
    offset = parameters.offsets[shape] if schedule == len(parameters.exponents) else 0.0
    reported = fitted(chosen, slice(None, sample_size), reporting)
    return float(reported[0]), float(rates[rate]), offset


def _harmonic_excess(loss: np.ndarray) -> np.ndarray:
    """Mean and standard error over trials; the rival is chosen on the other trials."""
    trials = loss.shape[-1]
    found = np.empty((2, loss.shape[1]))
    for n in range(loss.shape[1]):
        differences = []
        for trial in range(trials):
            others = np.nanmean(np.delete(loss[:-1, n], trial, axis=-1), axis=-1)
            rival = np.argmin(others) if trials > 1 else 0
            differences.append(np.log(loss[-1, n, trial] / loss[rival, n, trial]))
        kept = np.array(differences)[np.isfinite(differences)]
        found[0, n] = kept.mean()
        found[1, n] = kept.std(ddof=1) / np.sqrt(len(kept)) if len(kept) > 1 else np.inf
    return found


def _coordinates(parameters: Parameters, train: list[int] | np.ndarray) -> dict[str, tuple]:
    return {
        "schedule": variable("schedule", parameters.schedules, "schedule of the rate"),
        "sample_size": variable("sample_size", train, "training samples n"),
    }
