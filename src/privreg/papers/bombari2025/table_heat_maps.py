"""Validation loss of one-pass DP-GD on a real table, over clipping constants and learning rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from privreg import store
from privreg.config import Strict

if TYPE_CHECKING:
    import xarray as xr

    from privreg.randomness import Trials

PLACE = "Figures 5 and 6, Section 7"


class Axis(Strict):
    """Log-spaced settings."""

    low: float = Field(gt=0, description="Smallest value.")
    high: float = Field(gt=0, description="Largest value.")
    count: int = Field(ge=2, description="Number of values.")

    def values(self) -> np.ndarray:
        return np.geomspace(self.low, self.high, self.count)


class Parameters(Strict):
    """Figures 5 and 6: one table, two sample sizes, two schedules, a grid of settings."""

    dataset: Literal["mnist", "california_housing"]
    train: list[int] = Field(min_length=1, description="Training sizes n.")
    normalisation: int = Field(ge=2, description="Samples that set means and standard deviations.")
    validation: int = Field(ge=1, description="Held-out samples.")
    privacy: float = Field(gt=0, description="rho: the output is rho^2/2-zCDP.")
    exponents: list[float] = Field(min_length=1, description="Exponents alpha of the schedules.")
    clips: Axis = Field(description="Clipping constants c.")
    initial_rates: Axis = Field(description="Initial learning rates.")
    exclusion_factor: float = Field(
        10.0, gt=1, description="A seed above this many medians is left out of a cell's mean."
    )


def simulate(parameters: Parameters, trials: Trials, data: xr.Dataset) -> xr.Dataset:
    """Final validation loss of every setting on reshuffled splits."""
    import xarray as xr

    from privreg.algorithms import dpgd
    from privreg.data import splits, tables
    from privreg.progress import track
    from privreg.schedules import Polynomial

    table = tables.from_dataset(data)
    train, normalisation, validation = splits.fit_sizes(
        table, parameters.train, parameters.normalisation, parameters.validation
    )
    clips, rates = parameters.clips.values(), parameters.initial_rates.values()
    dimension = table.features.shape[1]
    loss = np.empty((len(train), len(parameters.exponents), len(clips), len(rates), len(trials)))
    for at, trial in enumerate(track(trials, total=len(trials), label=trials.experiment)):
        split = splits.split(
            table,
            train=max(train),
            normalisation=normalisation,
            validation=validation,
            rng=trial.rng,
        )
        ready = splits.standardise(split, table)
        for (s, samples), (a, exponent) in _pairs(train, parameters.exponents):
            mechanism = dpgd.Mechanism.from_schedule(
                Polynomial(np.tile(rates, len(clips)), exponent),
                samples=samples,
                dimension=dimension,
                privacy=parameters.privacy,
                clip=np.repeat(clips, len(rates)),
            )
            found = dpgd.fit(
                mechanism, ready.train_features[:samples], ready.train_labels[:samples], trial.rng
            )
            residuals = ready.validation_features @ found.T - ready.validation_labels[:, None]
            loss[s, a, :, :, at] = (np.mean(residuals**2, axis=0) / 2).reshape(
                len(clips), len(rates)
            )
    return xr.Dataset(
        {
            "loss": store.variable(
                ("samples", "exponent", "clip", "initial_rate", "trial"),
                loss,
                "validation loss, half the mean squared error of standardised labels",
                release="diagnostic",
            )
        },
        coords={
            "samples": store.variable("samples", train, "training samples n"),
            "exponent": store.variable("exponent", parameters.exponents, "schedule exponent alpha"),
            "clip": store.variable("clip", clips, "clipping constant c"),
            "initial_rate": store.variable("initial_rate", rates, "initial learning rate"),
        },
        attrs={
            "dimension": dimension,
            "split": f"{max(train)} training, {normalisation} normalisation, {validation} "
            "validation rows, disjoint, reshuffled in each trial by the trial's own stream",
        },
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Mean without unstable seeds, median, and what the figures' text says of the grid."""
    import xarray as xr

    loss = simulation.loss.values
    trials = loss.shape[-1]
    grid = ("samples", "exponent", "clip", "initial_rate")
    median = np.median(loss, axis=-1)
    kept = loss <= parameters.exclusion_factor * median[..., None]
    count = kept.sum(axis=-1)
    mean = np.where(kept, loss, 0).sum(axis=-1) / count
    variance = np.where(kept, (loss - mean[..., None]) ** 2, 0).sum(axis=-1) / np.maximum(
        count - 1, 1
    )
    excluded = trials - count
    reading = _readings(simulation)
    return xr.Dataset(
        {
            "loss": store.variable(
                grid,
                mean,
                "mean validation loss over the seeds that are kept",
                standard_error="loss_standard_error",
                release="diagnostic",
            ),
            "loss_standard_error": store.variable(
                grid,
                np.sqrt(variance / count),
                "standard error of the mean validation loss",
                release="diagnostic",
            ),
            "loss_median": store.variable(
                grid, median, "median validation loss over all seeds", release="diagnostic"
            ),
            "excluded": store.variable(
                grid,
                excluded.astype("int32"),
                f"seeds left out of the mean, above {parameters.exclusion_factor:g} medians",
                release="diagnostic",
            ),
            **reading,
        },
        coords={name: simulation[name].variable for name in (*grid, "trial")},
    )


def _readings(simulation: xr.Dataset) -> dict[str, tuple]:
    """Tuned on the even trials, reported on the odd ones, so that no minimum is its own evidence."""
    loss = simulation.loss.values
    clips, rates = simulation.clip.values, simulation.initial_rate.values
    gammas = simulation.attrs["dimension"] / simulation.samples.values
    tuned, fresh = loss[..., 0::2], loss[..., 1::2]
    if fresh.shape[-1] == 0:
        fresh = tuned
    names = ("large_clip_excess", "large_rate_excess", "valley_slope")
    meanings = (
        "log ratio of the best loss with c of at least 10 to the best loss",
        "log ratio of the best loss with an initial rate of at least 10 times 2 / gamma to the best",
        "log-log slope of the best initial rate in the clipping constant, for c up to 0.3",
    )
    found = {name: np.empty((*loss.shape[:2], 2)) for name in names}
    for s, a in np.ndindex(loss.shape[:2]):
        score, check = np.median(tuned[s, a], axis=-1), fresh[s, a]
        best = check[np.unravel_index(np.argmin(score), score.shape)]
        clipped = np.where(clips[:, None] >= 10, score, np.inf)
        fast = np.where(rates[None, :] >= 20 / gammas[s], score, np.inf)
        for name, candidates in (("large_clip_excess", clipped), ("large_rate_excess", fast)):
            if not np.any(np.isfinite(candidates)):
                found[name][s, a] = (0.0, np.inf)
                continue
            worse = check[np.unravel_index(np.argmin(candidates), candidates.shape)]
            found[name][s, a] = _mean_and_error(np.log(worse) - np.log(best))
        found["valley_slope"][s, a] = _valley_slope(loss[s, a], clips, rates)
    variables: dict[str, tuple] = {}
    for name, meaning in zip(names, meanings, strict=True):
        dims = ("samples", "exponent")
        error = f"{name}_standard_error"
        variables[name] = store.variable(
            dims, found[name][..., 0], meaning, standard_error=error, release="diagnostic"
        )
        variables[error] = store.variable(
            dims, found[name][..., 1], f"standard error of the {meaning}", release="diagnostic"
        )
    return variables


def _valley_slope(loss: np.ndarray, clips: np.ndarray, rates: np.ndarray) -> tuple[float, float]:
    """Slope of the log of the best rate in the log of c, each trial fitted by itself."""
    small = (clips <= 0.3) & (clips >= 0.3 * rates[0] / rates[-1] * 100)
    if small.sum() < 3:
        return -1.0, np.inf
    slopes = []
    for trial in range(loss.shape[-1]):
        best = np.argmin(loss[small, :, trial], axis=1)
        inside = (best > 0) & (best < len(rates) - 1)
        if inside.sum() >= 3:
            slopes.append(
                np.polyfit(np.log(clips[small][inside]), np.log(rates[best[inside]]), 1)[0]
            )
    return _mean_and_error(np.asarray(slopes)) if slopes else (-1.0, np.inf)


def _mean_and_error(samples: np.ndarray) -> tuple[float, float]:
    error = samples.std(ddof=1) / np.sqrt(len(samples)) if len(samples) > 1 else np.inf
    return float(samples.mean()), float(error)


def _pairs(first: list, second: list):  # type: ignore[no-untyped-def]
    return ((outer, inner) for outer in enumerate(first) for inner in enumerate(second))
