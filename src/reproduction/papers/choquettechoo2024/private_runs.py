"""Private training of all mechanisms and budgets on one table of images, and its rates."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.engine.recipe import Dataset, Trials
from reproduction.papers.choquettechoo2024.features import FEATURE_MAPS
from reproduction.papers.choquettechoo2024.mechanisms import prefix_errors
from reproduction.papers.choquettechoo2024.training import Floats, Settings, accuracy, train

FloatArray = NDArray[np.float64]
TRAINED = ("dp_sgd", "tree_aggregation", "optimal_cc", "nu_dp_ftrl", "banded", "multi_epoch")
CLASSES = 10
# The generator that rates are chosen with; reported trials count from 0.
TUNING_TRIAL = 1_000_000


class _Mechanism(NamedTuple):
    """Noise of a run: its decoder, the encoder's sensitivity and the error per noise multiplier."""

    decoder: Floats
    sensitivity: float
    error: float


class Rates(NamedTuple):
    """Learning rates by mechanism and budget, and the one without noise."""

    private: FloatArray
    noiseless: float


class _Parts(NamedTuple):
    """Features and labels in the order of a run, and those that it is measured on."""

    features: Floats
    labels: NDArray[np.intp]
    measured: dict[str, tuple[Floats, NDArray[np.intp]]]


class Runs:
    """Settings of one experiment (`private_training.Parameters`), and what its trials share."""

    def __init__(self, parameters: Any, trials: Trials, theory: Dataset, data: Dataset) -> None:
        from privreg.data.splits import sizes_that_fit
        from reproduction.engine.artifacts import from_dataset

        self.parameters, self._trials = parameters, trials
        self.table = from_dataset(data)
        self.sizes = sizes_that_fit(
            self.table,
            train=parameters.sample_size,
            normalisation=parameters.validation,
            validation=parameters.test,
        )
        self.batch_size = self.sizes["train"] // parameters.steps_per_epoch
        self._features: dict[str, Floats] = {}
        self._theory = theory

    @cached_property
    def mechanisms(self) -> list[_Mechanism]:
        errors = self._theory.mean_error.isel(schedule=0)
        return [self._mechanism(name, float(errors.sel(mechanism=name))) for name in TRAINED]

    @cached_property
    def noise_std(self) -> FloatArray:
        """Standard deviation of the draws before they are correlated, (mechanisms, budgets)."""
        return np.array([each.sensitivity for each in self.mechanisms])[:, None] * self._changes

    @cached_property
    def noise_levels(self) -> FloatArray:
        """Prefix error of the mean gradients, (mechanisms, budgets)."""
        return np.array([each.error for each in self.mechanisms])[:, None] * self._changes

    @cached_property
    def _changes(self) -> FloatArray:
        """What a record may change of a mean gradient, times the noise multiplier, by budget."""
        change = self.parameters.clip_norm / self.batch_size
        return np.asarray(change * self.parameters.noise_multipliers)

    @cached_property
    def rates(self) -> dict[str, Rates]:
        """By feature map, those of the best validation accuracy in one run; not private."""
        return {
            name: self._chosen(name, self._trials.generator(TUNING_TRIAL)) for name in FEATURE_MAPS
        }

    def _chosen(self, name: str, rng: np.random.Generator) -> Rates:
        factors = np.array(self.parameters.rate_factors)
        rates = factors / self.noise_levels[..., None]
        without = np.array(self.parameters.noiseless_rates)
        parts = self._parts(name, rng)
        noise_std = np.broadcast_to(self.noise_std[..., None], rates.shape)
        found = self._trained(parts, rng, noise_std, rates, without)
        scores = accuracy(*parts.measured["validation"], found)
        private = scores[: rates.size].reshape(rates.shape)
        best = np.take_along_axis(rates, private.argmax(axis=-1)[..., None], axis=-1)[..., 0]
        return Rates(best, float(without[scores[rates.size :].argmax()]))

    def accuracies(self, name: str, rng: np.random.Generator) -> tuple[FloatArray, float]:
        """Test accuracies by mechanism and budget, and the one without noise."""
        rates, parts = self.rates[name], self._parts(name, rng)
        without = np.array([rates.noiseless])
        found = self._trained(parts, rng, self.noise_std, rates.private, without)
        *private, noiseless = accuracy(*parts.measured["test"], found)
        return np.reshape(private, rates.private.shape), float(noiseless)

    def _trained(
        self,
        parts: _Parts,
        rng: np.random.Generator,
        noise_std: FloatArray,
        rates: FloatArray,
        without: FloatArray,
    ) -> Floats:
        """Models of each mechanism, in the order of their rates, and then those without noise."""
        dimension = parts.features.shape[1]
        steps, count = self.parameters.participation.steps, len(self.mechanisms)
        # Mechanisms share their draws, so that they are compared on common noise.
        drawn = rng.standard_normal((steps, dimension, CLASSES), dtype=np.float32)
        white = drawn.transpose(0, 2, 1).reshape(steps, -1)
        noise = np.empty((steps, CLASSES, count, dimension), np.float32)
        for at, mechanism in enumerate(self.mechanisms):
            correlate(mechanism.decoder, white, into=noise[:, :, at])
        momentum = np.full(rates.size + without.size, self.parameters.momentum)
        momentum[: rates.size][np.repeat(np.array(TRAINED) == "dp_sgd", rates[0].size)] = 0.0
        spread = np.zeros((momentum.size, count))
        owner = np.repeat(np.arange(count), rates[0].size)
        spread[np.arange(rates.size), owner] = noise_std.ravel()
        every = np.concatenate([rates.ravel(), without])
        schedule = self.parameters.schedule(self.batch_size)
        to = Settings(noise, spread, every, momentum)
        return train(parts.features, parts.labels, schedule=schedule, to=to)

    def _parts(self, name: str, rng: np.random.Generator) -> _Parts:
        from privreg.data.splits import split
        from reproduction.papers.choquettechoo2024.features import feature_map

        if name not in self._features:
            self._features[name] = feature_map(
                name,
                self.table.features,
                dataset=self.parameters.dataset,
                scale=self.table.feature_scale,
            )
        features, labels = self._features[name], self.table.labels.astype(np.intp)
        rows = split(self.table, **self.sizes, rng=rng)
        # A few rows are left over where the steps do not divide them.
        used = rows.train[: self.batch_size * self.parameters.steps_per_epoch]
        return _Parts(
            features[used],
            labels[used],
            {
                "validation": (features[rows.normalisation], labels[rows.normalisation]),
                "test": (features[rows.validation], labels[rows.validation]),
            },
        )

    def _mechanism(self, name: str, error: float) -> _Mechanism:
        from privreg.noise.toeplitz import dense_matrix

        if name == "multi_epoch":
            return _Mechanism(
                self._theory.multi_epoch_decoder.values,
                float(self._theory.multi_epoch_sensitivity),
                error,
            )
        stretches = int(self._theory.stretches.isel(schedule=0).sel(mechanism=name))
        matrices = prefix_errors(name, self.parameters.participation, stretches).matrices
        assert matrices is not None
        decoder = matrices.decoder if matrices.decoder.ndim == 2 else dense_matrix(matrices.decoder)
        return _Mechanism(decoder.astype(np.float32), matrices.sensitivity, error)


def correlate(decoder: Floats, white: Floats, *, into: Floats, block: int = 250) -> None:
    """Write the product, without the columns beyond those that a block of steps makes use of."""
    for start in range(0, len(decoder), block):
        rows = slice(start, start + block)
        used = np.flatnonzero(decoder[rows].any(axis=0))
        columns = slice(used[0], used[-1] + 1)
        found = decoder[rows, columns] @ white[columns]
        into[rows] = found.reshape(into[rows].shape)
