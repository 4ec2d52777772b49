"""Validation loss of one-pass DP-GD on a real table, over clipping constants and learning rates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from privreg.data.tables import Standardised
from privreg.schedules import Polynomial
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Dataset, Estimate, Quantity, Trials, per, stage
from reproduction.engine.summaries import error_of_mean, trials_last
from reproduction.papers.bombari2025 import heat_maps, mechanisms, setting, tables

PLACE = "Figures 5 and 6, Section 7"
FEW_OR_ONE_SIDE = f"{heat_maps.ONE_SIDE}, or fewer than two seeds are stable"


class Parameters(tables.TableParameters, heat_maps.Grid):
    """Figures 5 and 6: one table, two sample sizes, two schedules, a grid of settings."""

    loss_cap: q.Positive = Field(0.6, description="Largest loss compared or drawn.")
    exclusion_factor: q.Positive = Field(
        10.0,
        description="A seed is unstable, and left out of its panel's means, if it exceeds this "
        "many medians in a cell whose median is below the cap.",
    )


PANEL, MAP = ("sample_size", "exponent"), ("clip_constant", "initial_rate")
AXES = {
    "exponent": setting.EXPONENT,
    "clip_constant": setting.CLIP_CONSTANT,
    "initial_rate": setting.INITIAL_RATE,
}


@per(*PANEL, *MAP, loss="validation loss, half the mean squared error of standardised labels")
def run(parameters: Parameters, trials: Trials, data: Dataset) -> Iterator[list]:
    """Final validation loss of every setting on reshuffled splits."""
    train = parameters.train_sizes(data)
    for ready, rng in parameters.standardised(trials, data):
        yield [
            [_losses(parameters, ready, size, exponent, rng) for exponent in parameters.exponents]
            for size in train
        ]


@per(
    *PANEL,
    loss=Estimate("mean validation loss over stable seeds", " ".join(MAP)),
    loss_median=Quantity("median validation loss over all seeds", " ".join(MAP)),
    excluded=Quantity("unstable seeds, left out of the mean"),
    large_clip_excess=Estimate(
        "log ratio of the best loss with c above 1 to the best other loss", missing=FEW_OR_ONE_SIDE
    ),
    large_rate_excess=Estimate(
        "log ratio of the best loss with a rate above 2 / gamma to the best other loss",
        missing=FEW_OR_ONE_SIDE,
    ),
    valley_slope=Estimate(
        "log-log slope of the best initial rate in the clipping constant below 1"
    ),
    large_clip_typical=Estimate("median over seeds of the log ratio by c", missing=FEW_OR_ONE_SIDE),
    large_rate_typical=Estimate(
        "median over seeds of the log ratio by rate", missing=FEW_OR_ONE_SIDE
    ),
    valley_typical=Estimate("median over all seeds of the slope of the best rate"),
)
def panel(parameters: Parameters, simulation: Dataset, sample_size: int, exponent: float) -> dict:
    """Mean over stable seeds, median over all, and the text's quantities of the grid."""
    loss = trials_last(simulation.loss.sel(sample_size=sample_size, exponent=exponent))
    median = np.median(loss, axis=-1)
    readable = (median <= parameters.loss_cap)[..., None]
    beyond = readable & (loss > parameters.exclusion_factor * median[..., None])
    stable = ~np.any(beyond, axis=(0, 1))
    mean, variance, count = tables.moments(loss, stable)
    regions = parameters.regions(simulation.attrs["dimension"] / sample_size)
    found = {}
    for name, region in regions.items():
        found[name] = _mean(_excesses(loss[..., stable], region), np.nan, np.nan)
        found[name.replace("excess", "typical")] = _median(_excesses(loss, region), np.nan, np.nan)
    return found | {
        "loss": (mean, np.sqrt(variance / count)),
        "loss_median": median,
        "excluded": np.int32(np.sum(~stable)),
        "valley_slope": _mean(_valley_slopes(parameters, loss[..., stable]), 0.0, np.inf),
        "valley_typical": _median(_valley_slopes(parameters, loss), 0.0, np.inf),
    }


simulate = stage(
    AXES, run, attributes=tables.about, released="diagnostic", sample_size=tables.SIMULATED
)
summarise = stage(
    AXES,
    panel,
    attributes=lambda parameters: {"loss_cap": parameters.loss_cap},
    released="diagnostic",
    sample_size=tables.SUMMARISED,
)


def _losses(
    parameters: Parameters,
    ready: Standardised,
    sample_size: int,
    exponent: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Losses of all settings, shape (constants, rates)."""
    from privreg.algorithms import one_pass_dpgd

    constants, rates = parameters.settings()
    features, labels = ready.train_features[:sample_size], ready.train_labels[:sample_size]
    schedule, dimension = Polynomial(rates.ravel(), exponent), len(ready.constant_features)
    mechanism = mechanisms.mechanism(
        parameters.budget, schedule, sample_size, dimension, constants.ravel()
    )
    found = one_pass_dpgd.fit(mechanism, features, labels, rng)
    loss = tables.validation_loss(found, ready.validation_features, ready.validation_labels)
    return loss.reshape(rates.shape)


def _mean(values: list, *none: float) -> tuple:
    return (np.mean(values), error_of_mean(values)) if values else none


def _median(values: list, *none: float) -> tuple:
    """Median, and half the distance of the quantiles one deviation of ranks below and above."""
    if not values:
        return none
    apart = 0.5 / np.sqrt(len(values))
    low, high = np.quantile(values, [0.5 - apart, 0.5 + apart])
    return np.median(values), (high - low) / 2


def _excesses(loss: np.ndarray, region: np.ndarray) -> list:
    """Settings of a trial are chosen on the others, so that no minimum is its own evidence."""
    differences = []
    for trial in range(loss.shape[-1] if loss.shape[-1] > 1 else 0):
        scores = np.median(np.delete(loss, trial, axis=-1), axis=-1)
        differences.append(heat_maps.best_in_and_out(loss[..., trial], scores, region))
    return differences


def _valley_slopes(parameters: Parameters, loss: np.ndarray) -> list:
    """Each trial fitted by itself, where three constants have their best rate inside the grid."""
    slopes = [parameters.valley_slope(each, fewest=3) for each in np.moveaxis(loss, -1, 0)]
    return [slope for slope in slopes if np.isfinite(slope)]
