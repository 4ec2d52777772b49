"""Shared setting of the experiments on real tables: rows, schedules, privacy, unstable runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from privreg import data
from privreg.data import tables
from reproduction.engine import quantities as q
from reproduction.engine.artifacts import from_dataset
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Trials

MEANING = "training samples n"
SIMULATED = Axis(MEANING, lambda parameters, data: parameters.train_sizes(data))
SUMMARISED = Axis(MEANING, lambda simulation: simulation.sample_size.values)


class TableParameters(Strict):
    """One table, training sizes, schedules, initial rates."""

    notes: ClassVar[tuple[str, ...]] = ()
    dataset: Literal["mnist", "california_housing"] = Field(description="The real table.")
    train: q.Rising[q.SampleSize] = Field(description="Training sizes n, increasing.")
    normalisation: Annotated[q.SampleSize, Field(ge=30)] = Field(
        description="Samples that set means and standard deviations."
    )
    validation: q.SampleSize = Field(description="Held-out samples.")
    budget: q.StatedBudget = Field(description="Budget of the private output.")
    exponents: q.Some[q.Power] = Field(description="Exponents alpha of the schedules.")
    initial_rates: q.StepSizeAxis = Field(description="Initial learning rates.")
    minimum_std: q.Deviation = Field(
        0.0, description="Features of at most this deviation count as constant."
    )

    @model_validator(mode="after")
    def _the_table_has_the_rows(self) -> Self:
        data.require_split(self.dataset, **self._sizes())
        return self

    def _sizes(self) -> dict[str, int]:
        parts = {"normalisation": self.normalisation, "validation": self.validation}
        return {"train": max(self.train), **parts}

    def sizes(self, data: Dataset) -> dict[str, int]:
        """Rows of each part; fewer for a stand-in table."""
        return tables.sizes_that_fit(from_dataset(data), **self._sizes())

    def train_sizes(self, data: Dataset) -> list[int]:
        """Training sizes, in proportion to the available rows."""
        largest = self.sizes(data)["train"]
        return [max(1, size * largest // max(self.train)) for size in self.train]

    def standardised(
        self, trials: Trials, data: Dataset
    ) -> Iterator[tuple[tables.Standardised, np.random.Generator]]:
        """Each trial's split, standardised, and its generator.

        Features that are zero in every row are left out, though `constant_features` has them: no
        loss depends on their parameters, and their noise affects nothing else.
        """
        table, sizes = from_dataset(data), self.sizes(data)
        for trial in trials:
            split = tables.split(table, **sizes, rng=trial.rng)
            ready = tables.standardise(split, table, minimum_std=self.minimum_std)
            train, validation = ready.train_features, ready.validation_features
            used = train.any(axis=0) | validation.any(axis=0)
            if not used.all():
                train, validation = (
                    np.compress(used, each, axis=1) for each in (train, validation)
                )
                ready = replace(ready, train_features=train, validation_features=validation)
            yield ready, trial.rng


def about(parameters: TableParameters, data: Dataset) -> dict[str, str | int]:
    """Global attributes of a simulation."""
    parts = ", ".join(f"{size} {part} rows" for part, size in parameters.sizes(data).items())
    split = f"disjoint, reshuffled in each trial by the trial's own stream: {parts}"
    return {"dimension": data.sizes["feature"], "split": "; ".join((split, *parameters.notes))}


def validation_loss(estimates: np.ndarray, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Half the mean squared error of standardised labels, of estimates (m, d)."""
    residuals = features @ estimates.T
    residuals -= labels[:, None]
    return np.square(residuals, out=residuals).mean(axis=0) / 2


def moments(loss: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance over the kept trials, along the last axis, and their number."""
    count = np.broadcast_to(kept, loss.shape).sum(axis=-1)
    mean = np.where(kept, loss, 0).sum(axis=-1) / count
    deviation = np.where(kept, loss - mean[..., None], 0)
    return mean, (deviation**2).sum(axis=-1) / np.maximum(count - 1, 1), count
