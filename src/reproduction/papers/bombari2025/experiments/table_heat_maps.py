"""Validation loss of one-pass DP-GD on a real table, over clipping constants and learning rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    ClipAxis,
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
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Figures 5 and 6, Section 7"


class Parameters(Strict):
    """Figures 5 and 6: one table, two sample sizes, two schedules, a grid of settings."""

    dataset: Literal["mnist", "california_housing"]
    train: Rising[SampleSize] = Field(description="Training sizes n.")
    normalisation: Annotated[SampleSize, Field(ge=30)] = Field(
        description="Samples that set means and standard deviations."
    )
    validation: SampleSize = Field(description="Held-out samples.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    exponents: Some[Power] = Field(description="Exponents alpha of the schedules.")
    clip_constants: ClipAxis = Field(description="Clipping constants c.")
    initial_rates: StepSizeAxis = Field(description="Initial learning rates.")
    minimum_std: Deviation = Field(
        0.0, description="Features of at most this deviation count as constant."
    )
    loss_cap: Positive = Field(0.6, description="Losses above it are not told apart.")
    exclusion_factor: Annotated[Positive, Field(gt=1)] = Field(
        10.0,
        description="A seed that exceeds this many medians in a cell whose median is below the cap "
        "is unstable, and left out of its panel's means.",
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


def simulate(parameters: Parameters, trials: Trials, data: xr.Dataset) -> xr.Dataset:
    """Final validation loss of every setting on reshuffled splits."""
    import xarray as xr

    from privreg.algorithms import one_pass_dpgd
    from privreg.data import splits
    from privreg.schedules import Polynomial
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
    clip_constants, rates = parameters.clip_constants.values(), parameters.initial_rates.values()
    dimension = table.shape[1]
    loss = np.empty(
        (len(train), len(parameters.exponents), len(clip_constants), len(rates), len(trials))
    )
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        split = splits.split(table, **sizes, rng=trial.rng)
        ready = splits.standardise(split, table, minimum_std=parameters.minimum_std)
        for (s, sample_size), (a, exponent) in _pairs(train, parameters.exponents):
            mechanism = one_pass_dpgd.Mechanism.from_schedule(
                Polynomial(np.tile(rates, len(clip_constants)), exponent),
                sample_size=sample_size,
                dimension=dimension,
                budget=parameters.budget,
                clip_constant=np.repeat(clip_constants, len(rates)),
            )
            found = one_pass_dpgd.fit(
                mechanism,
                ready.train_features[:sample_size],
                ready.train_labels[:sample_size],
                trial.rng,
            )
            residuals = ready.validation_features @ found.T - ready.validation_labels[:, None]
            loss[s, a, :, :, at] = (np.mean(residuals**2, axis=0) / 2).reshape(
                len(clip_constants), len(rates)
            )
    return xr.Dataset(
        {
            "loss": variable(
                ("sample_size", "exponent", "clip_constant", "initial_rate", "trial"),
                loss,
                "validation loss, half the mean squared error of standardised labels",
                release="diagnostic",
            )
        },
        coords={
            "sample_size": variable("sample_size", train, "training samples n"),
            "exponent": variable("exponent", parameters.exponents, "schedule exponent alpha"),
            "clip_constant": variable("clip_constant", clip_constants, "clipping constant c"),
            "initial_rate": variable("initial_rate", rates, "initial learning rate"),
        },
        attrs={
            "dimension": dimension,
            "split": "disjoint, reshuffled in each trial by the trial's own stream: "
            + ", ".join(f"{size} {part} rows" for part, size in sizes.items()),
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean over stable seeds, median over all, and what the figures' text says of the grid."""
    import xarray as xr

    loss = simulation.loss.values
    grid = ("sample_size", "exponent", "clip_constant", "initial_rate")
    median = np.median(loss, axis=-1)
    readable = (median <= parameters.loss_cap)[..., None]
    unstable = np.any(
        readable & (loss > parameters.exclusion_factor * median[..., None]), axis=(2, 3)
    )
    weights = np.broadcast_to(~unstable[:, :, None, None, :], loss.shape).astype(float)
    count = weights.sum(axis=-1)
    mean = (weights * loss).sum(axis=-1) / count
    variance = (weights * (loss - mean[..., None]) ** 2).sum(axis=-1) / np.maximum(count - 1, 1)
    return xr.Dataset(
        {
            "loss": variable(
                grid,
                mean,
                "mean validation loss over stable seeds",
                standard_error="loss_standard_error",
                release="diagnostic",
            ),
            "loss_standard_error": variable(
                grid,
                np.sqrt(variance / count),
                "standard error of the mean validation loss",
                release="diagnostic",
            ),
            "loss_median": variable(
                grid, median, "median validation loss over all seeds", release="diagnostic"
            ),
            "excluded": variable(
                grid[:2],
                unstable.sum(axis=-1).astype("int32"),
                "unstable seeds, left out of the mean",
                release="diagnostic",
            ),
            **_readings(simulation, ~unstable),
        },
        coords={name: simulation[name].variable for name in (*grid, "trial")},
        attrs={"loss_cap": parameters.loss_cap},
    )


def _readings(simulation: xr.Dataset, stable: np.ndarray) -> dict[str, tuple]:
    """What the text says of the grid.

    The settings that a trial reports are chosen on the other stable trials, so that no minimum is
    its own evidence.
    """
    loss = simulation.loss.values
    clip_constants, rates = simulation["clip_constant"].values, simulation.initial_rate.values
    gammas = simulation.attrs["dimension"] / simulation.sample_size.values
    shape = (len(clip_constants), len(rates))
    regions = {
        "large_clip_excess": lambda gamma: np.broadcast_to(clip_constants[:, None] > 1, shape),
        "large_rate_excess": lambda gamma: np.broadcast_to(rates > 2 / gamma, shape),
    }
    meanings = {
        "large_clip_excess": "log ratio of the best loss with c above 1 to the best loss below",
        "large_rate_excess": "log ratio of the best loss with a rate above 2 / gamma to that below",
        "valley_slope": "log-log slope of the best initial rate in the clipping constant below 1",
    }
    found = {name: np.empty((*loss.shape[:2], 2)) for name in meanings}
    for s, a in np.ndindex(loss.shape[:2]):
        kept = loss[s, a][..., stable[s, a]]
        for name, region in regions.items():
            found[name][s, a] = _excess(kept, region(gammas[s]))
        found["valley_slope"][s, a] = _valley_slope(
            kept[clip_constants < 1], clip_constants[clip_constants < 1], rates
        )
    variables: dict[str, tuple] = {}
    for name, meaning in meanings.items():
        dims = ("sample_size", "exponent")
        error = f"{name}_standard_error"
        variables[name] = variable(
            dims, found[name][..., 0], meaning, standard_error=error, release="diagnostic"
        )
        variables[error] = variable(
            dims, found[name][..., 1], f"standard error of the {meaning}", release="diagnostic"
        )
    return variables


def _excess(loss: np.ndarray, region: np.ndarray) -> tuple[float, float]:
    differences = []
    for trial in range(loss.shape[-1]):
        score = np.median(np.delete(loss, trial, axis=-1), axis=-1)
        inside, outside = (
            loss[..., trial].flat[np.argmin(np.where(part, score, np.inf))]
            for part in (region, ~region)
        )
        differences.append(np.log(inside / outside))
    return _mean_and_error(np.asarray(differences))


def _valley_slope(
    loss: np.ndarray, clip_constants: np.ndarray, rates: np.ndarray
) -> tuple[float, float]:
    """Each trial fitted by itself, where its best rate lies inside the grid."""
    slopes = []
    for trial in range(loss.shape[-1]):
        best = np.argmin(loss[..., trial], axis=1)
        inside = (best > 0) & (best < len(rates) - 1)
        if inside.sum() >= 3:
            slopes.append(
                np.polyfit(np.log(clip_constants[inside]), np.log(rates[best[inside]]), 1)[0]
            )
    return _mean_and_error(np.asarray(slopes)) if slopes else (0.0, np.inf)


def _mean_and_error(sample_size: np.ndarray) -> tuple[float, float]:
    error = sample_size.std(ddof=1) / np.sqrt(len(sample_size)) if len(sample_size) > 1 else np.inf
    return float(sample_size.mean()), float(error)


def _pairs(first: list, second: list):  # type: ignore[no-untyped-def]
    return ((outer, inner) for outer in enumerate(first) for inner in enumerate(second))
