"""Private training of linear softmax models on a table of images, many settings at a time.

The gradient of a record's cross-entropy is the outer product of its features x and of p - y, the
predicted less the true probabilities. Its norm is the product of their norms, and clipping needs
one factor for each record. Settings with the same order of the records share matrix products.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from reproduction.engine.recipe import Dataset, Trials
from reproduction.papers.choquettechoo2024.features import FEATURE_MAPS, Floats
from reproduction.papers.choquettechoo2024.mechanisms import prefix_errors

Doubles = NDArray[np.float64]
Rows = tuple[Floats, NDArray[np.intp]]
TRAINED = ("dp_sgd", "tree_aggregation", "optimal_cc", "nu_dp_ftrl", "banded", "multi_epoch")
SAMPLED = "dp_sgd_sampled"
CLASSES = 10
# The trial with which rates are chosen; reported trials count from 0.
TUNING_TRIAL = 1_000_000


class Runs:
    """Settings of an experiment (`private_training.Parameters`), and data that its trials share."""

    def __init__(self, parameters: Any, trials: Trials, theory: Dataset, data: Dataset) -> None:
        from privreg.data.tables import sizes_that_fit
        from reproduction.engine.artifacts import from_dataset

        self.parameters, self._trials, self._theory = parameters, trials, theory
        self.table = from_dataset(data)
        self.sizes = sizes_that_fit(self.table, **parameters.sizes)
        self.batch_size = self.sizes["train"] // parameters.steps_per_epoch

    @cached_property
    def mechanisms(self) -> list[tuple[Floats, float]]:
        """The decoder of each mechanism, and the sensitivity of the encoder."""
        return [self._mechanism(name) for name in TRAINED]

    @cached_property
    def noise_std(self) -> Doubles:
        """Standard deviation of the draws before they are correlated, (mechanisms, budgets)."""
        return np.array([[sensitivity] for _, sensitivity in self.mechanisms]) * self._changes

    @property
    def _changes(self) -> Doubles:
        """By budget, a record's largest change of a mean gradient times the noise multiplier."""
        change = self.parameters.clip_norm / self.batch_size
        return np.asarray(change * self.parameters.noise_multipliers)

    @cached_property
    def sampled_std(self) -> Doubles:
        """Standard deviation of the noise of DP-SGD on sampled batches, (budgets,)."""
        change = self.parameters.clip_norm / self.batch_size
        return np.asarray(change * self.parameters.sampled_multipliers)

    @cached_property
    def rates(self) -> dict[str, tuple[Doubles, Doubles]]:
        """By feature map, the rates of best validation accuracy in one run; not private."""
        return {
            name: self._chosen(name, self._trials.generator(TUNING_TRIAL)) for name in FEATURE_MAPS
        }

    def accuracies(self, name: str, rng: Generator) -> dict[str, Any]:
        """Test accuracies by mechanism and budget, and the accuracy without noise."""
        (sampling,) = rng.spawn(1)
        (rates, without), rows = self.rates[name], self._rows(name, rng)
        found = self._trained(rows["train"], rng, self.noise_std, rates[:-1], without)
        *private, noiseless = accuracy(*rows["test"], found)
        private += [*accuracy(*rows["test"], self._sampled(rows["train"], sampling, rates[-1:].T))]
        return {"accuracy": np.reshape(private, rates.shape), "noiseless_accuracy": noiseless}

    def _chosen(self, name: str, rng: Generator) -> tuple[Doubles, Doubles]:
        """Rates by mechanism (sampled DP-SGD last) and budget, and the rate without noise."""
        (sampling,) = rng.spawn(1)
        errors = self._theory.mean_error.isel(schedule=0).sel(mechanism=[*TRAINED]).values
        # Noise of the mean gradients' prefix sums, (mechanisms, budgets, 1).
        levels = (errors[:, None] * self._changes)[..., None]
        rates = np.array(self.parameters.rate_factors) / levels
        without = np.array(self.parameters.noiseless_rates)
        rows = self._rows(name, rng)
        noise_std = np.broadcast_to(self.noise_std[..., None], rates.shape)
        found = self._trained(rows["train"], rng, noise_std, rates, without)
        scores = accuracy(*rows["validation"], found)
        # A sampled step has a sensitivity of 1, so the noise of t steps adds up to t^(1/2).
        levels = self.sampled_std * ((self.parameters.participation.steps + 1) / 2) ** 0.5
        sampled = np.array(self.parameters.rate_factors) / levels[:, None]
        more = accuracy(*rows["validation"], self._sampled(rows["train"], sampling, sampled))
        tried = np.concatenate([rates, sampled[None]])
        private = np.append(scores[: rates.size], more).reshape(tried.shape)
        best = np.take_along_axis(tried, private.argmax(axis=-1)[..., None], axis=-1)[..., 0]
        return best, without[[scores[rates.size :].argmax()]]

    def _trained(
        self, rows: Rows, rng: Generator, noise_std: Doubles, rates: Doubles, without: Doubles
    ) -> Floats:
        """Models of each mechanism, in the order of their rates, then the models without noise."""
        dimension, count = rows[0].shape[1], len(self.mechanisms)
        steps = self.parameters.participation.steps
        # Mechanisms share their draws, so that comparisons are paired.
        drawn = rng.standard_normal((steps, dimension, CLASSES), dtype=np.float32)
        white = drawn.transpose(0, 2, 1).reshape(steps, -1)
        noise = np.empty((steps, CLASSES, count, dimension), np.float32)
        for at, (decoder, _) in enumerate(self.mechanisms):
            correlate(decoder, white, into=noise[:, :, at])
        every = np.concatenate([rates.ravel(), without])
        owner = np.repeat(np.arange(count), rates[0].size)
        momentum = np.full(every.size, self.parameters.momentum)
        momentum[: rates.size][owner == TRAINED.index("dp_sgd")] = 0.0
        spread = np.zeros((every.size, count))
        spread[np.arange(rates.size), owner] = noise_std.ravel()
        return train(rows, self.parameters, noise, spread, every, momentum)

    def _sampled(self, rows: Rows, rng: Generator, rates: Doubles) -> Floats:
        """Models of DP-SGD on Poisson-sampled batches, by budget and rate."""
        shape = self.parameters.participation.steps, CLASSES, 1, rows[0].shape[1]
        noise = rng.standard_normal(shape, dtype=np.float32)
        stds, flat = np.repeat(self.sampled_std, rates.shape[1])[:, None], rates.ravel()
        return train(rows, self.parameters, noise, stds, flat, np.zeros_like(flat), rng)

    @cached_property
    def _features(self) -> dict[str, Floats]:
        from reproduction.papers.choquettechoo2024.features import feature_map

        images, scale = self.table.features, self.table.feature_scale
        dataset = self.parameters.dataset
        return {
            name: feature_map(name, images, dataset=dataset, scale=scale) for name in FEATURE_MAPS
        }

    def _rows(self, name: str, rng: Generator) -> dict[str, Rows]:
        """Features and labels in the order of a run: training, validation and test rows."""
        from privreg.data.tables import split

        features, labels = self._features[name], self.table.labels.astype(np.intp)
        rows = split(self.table, **self.sizes, rng=rng)
        # If the number of steps does not divide the rows, a few are left over.
        used = rows.train[: self.batch_size * self.parameters.steps_per_epoch]
        parts = {"train": used, "validation": rows.normalisation, "test": rows.validation}
        return {part: (features[chosen], labels[chosen]) for part, chosen in parts.items()}

    def _mechanism(self, name: str) -> tuple[Floats, float]:
        from privreg.noise.toeplitz import dense_matrix

        if name == "multi_epoch":
            sensitivity = float(self._theory.multi_epoch_sensitivity)
            return self._theory.multi_epoch_decoder.values, sensitivity
        stretches = int(self._theory.stretches.isel(schedule=0).sel(mechanism=name))
        matrices = prefix_errors(name, self.parameters.participation, stretches).matrices
        assert matrices is not None
        decoder = matrices.decoder if matrices.decoder.ndim == 2 else dense_matrix(matrices.decoder)
        return decoder.astype(np.float32), matrices.sensitivity


def correlate(decoder: Floats, white: Floats, *, into: Floats, block: int = 250) -> None:
    """Write `decoder` times `white` to `into`, in blocks of rows without columns of zeros."""
    for start in range(0, len(decoder), block):
        rows = slice(start, start + block)
        used = np.flatnonzero(decoder[rows].any(axis=0))
        columns = slice(used[0], used[-1] + 1)
        found = decoder[rows, columns] @ white[columns]
        into[rows] = found.reshape(into[rows].shape)


def train(
    rows: Rows,
    parameters: Any,
    noise: Floats,
    noise_std: Doubles,
    rates: Doubles,
    momentum: Doubles,
    sampling: Generator | None = None,
) -> Floats:
    r"""Last iterates of all models, shape (classes, models, features).

    .. math:: v_{t+1} = \beta v_t + \bar g_t + \tilde w_t, \qquad
        \theta_{t+1} = \theta_t - (1 - \beta) \eta_t v_{t+1}

    with the mean clipped gradient of a batch and correlated noise: `noise`, shape (steps, classes,
    mechanisms, features), times `noise_std`, shape (models, mechanisms). With the factor 1 - β
    equal rates move equally far at any momentum; the rate of other frameworks is (1 - β) η. Batches
    follow one order, or are Poisson samples; sums are then divided by the mean batch size.
    """
    (features, labels), per_epoch = rows, parameters.steps_per_epoch
    classes = noise.shape[1]
    batch = len(features) // per_epoch
    theta = np.zeros((classes, rates.size, features.shape[1]), np.float32)
    velocity = np.zeros_like(theta)
    moved = (rates * (1 - momentum)).astype(np.float32)[:, None]
    kept = momentum.astype(np.float32)[:, None]
    # One product applies a step's noise to the models of each mechanism.
    spread = noise_std.astype(np.float32)
    norms = np.linalg.norm(features, axis=1)
    one_hot = np.eye(classes, dtype=np.float32)[:, labels]
    for step, share in enumerate(rate_shares(parameters)):
        now: Any = slice(step % per_epoch * batch, (step % per_epoch + 1) * batch)
        if sampling is not None:
            now = np.flatnonzero(sampling.random(len(features)) < 1 / per_epoch)
        velocity *= kept
        velocity += clipped_mean_gradient(
            features[now], one_hot[:, now], theta, parameters.clip_norm, norms[now], batch
        )
        velocity += spread @ noise[step]
        theta -= moved * share * velocity
    return theta


def rate_shares(parameters: Any) -> Floats:
    """Learning rate by step, relative to the initial one; it falls linearly in the last steps."""
    steps = parameters.participation.steps
    falling = round(parameters.cooldown * steps)
    shares = np.ones(steps)
    shares[steps - falling :] = np.linspace(1.0, parameters.final_rate, falling + 1)[1:]
    return shares.astype(np.float32)


def clipped_mean_gradient(
    features: Floats, one_hot: Floats, theta: Floats, clip_norm: float, norms: Floats, batch: int
) -> Floats:
    r"""Mean over a batch of the clipped cross-entropy gradients, for models side by side.

    .. math:: \frac1m \sum_i \min\Bigl(1, \frac{G}{\|x_i\| \|p_i - y_i\|}\Bigr) x_i (p_i - y_i)^T

    of shape (classes, models, d) as theta, for one-hot labels (classes, records), batch size m.
    """
    # Classes come first and records last, so that a class's numbers are contiguous.
    residual = _scores(features, theta)
    residual -= residual.max(axis=0)
    np.exp(residual, out=residual)
    residual /= residual.sum(axis=0)
    residual -= one_hot[:, None]
    length = np.sqrt(np.einsum("cmi,cmi->mi", residual, residual))
    length *= norms
    residual *= np.float32(clip_norm / batch) / np.maximum(length, np.float32(clip_norm))
    return (residual.reshape(-1, len(features)) @ features).reshape(theta.shape)


def accuracy(features: Floats, labels: NDArray[np.intp], theta: Floats) -> Doubles:
    """Share of the rows whose largest score is that of the label, for each model."""
    return np.asarray((_scores(features, theta).argmax(axis=0) == labels).mean(axis=-1))


def _scores(features: Floats, theta: Floats) -> Floats:
    """Shape (classes, models, rows)."""
    found: Floats = theta.reshape(-1, features.shape[1]) @ features.T
    return found.reshape(*theta.shape[:2], -1)
