"""Private training of linear softmax models on fixed features, many settings side by side.

The gradient of the cross-entropy of one record is the outer product of its features x and of
p - y, predicted less true probabilities, so that its norm is the product of theirs and clipping
takes one factor a record. Settings that share an order of the records share the products with
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Schedule(NamedTuple):
    """Steps of a run, the same for every setting.

    Attributes
    ----------
    batch_size : int
        Records a step, visited in their own order in every epoch.
    epochs : int
    cooldown : float
        Last share of the steps, over which the learning rate falls linearly.
    final_rate : float
        Share of the learning rate that is left in the end.
    clip_norm : float
    """

    batch_size: int
    epochs: int
    cooldown: float
    final_rate: float
    clip_norm: float

    def rate_shares(self, steps: int) -> Floats:
        """Learning rate over the initial one, by step."""
        falling = round(self.cooldown * steps)
        shares = np.ones(steps)
        shares[steps - falling :] = np.linspace(1.0, self.final_rate, falling + 1)[1:]
        return shares.astype(np.float32)


class Settings(NamedTuple):
    """What differs between runs that share their records and their order.

    Attributes
    ----------
    noise : ndarray, shape (mechanisms, steps, features × classes), or None
        Correlated noise of each mechanism made of standard normal draws.
    noise_std : ndarray, shape (mechanisms, variants)
        Standard deviation of these draws in units of the mean gradient.
    rates : ndarray, shape (mechanisms, variants)
        Initial learning rates.
    momentum : ndarray, shape (mechanisms,)
    """

    noise: Floats | None
    noise_std: NDArray[np.float64]
    rates: NDArray[np.float64]
    momentum: NDArray[np.float64]


def train(
    features: Floats, labels: NDArray[np.intp], *, classes: int, schedule: Schedule, to: Settings
) -> Floats:
    r"""Last iterates of all settings.

    .. math:: v_{t+1} = \beta v_t + \bar g_t + \tilde w_t, \qquad
        \theta_{t+1} = \theta_t - (1 - \beta) \eta_t v_{t+1}

    with the mean clipped gradient of a batch and correlated noise. The factor 1 - β lets equal
    rates move equally far whatever the momentum; a framework's rate is (1 - β) η.

    Returns
    -------
    ndarray, shape (features, classes, mechanisms, variants)
    """
    size, dimension = features.shape
    batch = schedule.batch_size
    per_epoch = size // batch
    shape = (dimension, classes, *to.rates.shape)
    theta, velocity = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    momentum = to.momentum.astype(np.float32)[:, None]
    rates = (to.rates * (1 - to.momentum[:, None])).astype(np.float32)
    # One product spreads a step's noise over the variants of its mechanism.
    mechanisms, variants = to.rates.shape
    blocks = np.zeros((mechanisms, mechanisms, variants), np.float32)
    blocks[np.arange(mechanisms), np.arange(mechanisms)] = to.noise_std
    spread = blocks.reshape(mechanisms, -1)
    norms = np.linalg.norm(features, axis=1)
    one_hot = np.eye(classes, dtype=np.float32)[labels]
    for step, share in enumerate(schedule.rate_shares(schedule.epochs * per_epoch)):
        rows = slice(step % per_epoch * batch, (step % per_epoch + 1) * batch)
        velocity *= momentum
        velocity += clipped_mean_gradient(
            features[rows], one_hot[rows], theta, clip_norm=schedule.clip_norm, norms=norms[rows]
        )
        if to.noise is not None:
            velocity += (to.noise[:, step].T @ spread).reshape(shape)
        theta -= rates * share * velocity
    return theta


def clipped_mean_gradient(
    features: Floats, one_hot: Floats, theta: Floats, *, clip_norm: float, norms: Floats
) -> Floats:
    r"""Mean over a batch of the clipped cross-entropy gradients, for models side by side.

    .. math:: \frac1m \sum_i \min\Bigl(1, \frac{G}{\|x_i\| \|p_i - y_i\|}\Bigr) x_i (p_i - y_i)^T

    Parameters
    ----------
    features, one_hot : ndarray, shapes (m, d) and (m, classes)
    theta : ndarray, shape (d, classes, ...)
    clip_norm : float
    norms : ndarray, shape (m,)
        Of the features' rows.

    Returns
    -------
    ndarray, shape (d, classes, ...)
    """
    size = len(features)
    residual = _scores(features, theta)
    residual -= residual.max(axis=1, keepdims=True)
    np.exp(residual, out=residual)
    residual /= residual.sum(axis=1, keepdims=True)
    residual -= one_hot[:, :, None]
    length = np.sqrt(np.einsum("icm,icm->im", residual, residual))
    length *= norms[:, None]
    factor = np.float32(clip_norm / size) / np.maximum(length, np.float32(clip_norm))
    residual *= factor[:, None, :]
    return (features.T @ residual.reshape(size, -1)).reshape(theta.shape)


def accuracy(features: Floats, labels: NDArray[np.intp], theta: Floats) -> NDArray[np.float64]:
    """Share of the rows whose largest score is the label's, shape of theta but its first two."""
    found = _scores(features, theta).argmax(axis=1)
    return np.asarray((found == labels[:, None]).mean(axis=0).reshape(theta.shape[2:]))


def _scores(features: Floats, theta: Floats) -> Floats:
    """Shape (rows, classes, models)."""
    dimension, classes = theta.shape[:2]
    found: Floats = (features @ theta.reshape(dimension, -1)).reshape(len(features), classes, -1)
    return found
