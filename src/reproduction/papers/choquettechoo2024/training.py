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
    noise : ndarray, shape (steps, classes, mechanisms, features)
        Correlated noise of each mechanism made of standard normal draws.
    noise_std : ndarray, shape (models, mechanisms)
        Standard deviation of these draws in units of the mean gradient; 0 where a model has none.
    rates : ndarray, shape (models,)
        Initial learning rates.
    momentum : ndarray, shape (models,)
    """

    noise: Floats
    noise_std: NDArray[np.float64]
    rates: NDArray[np.float64]
    momentum: NDArray[np.float64]


def train(
    features: Floats, labels: NDArray[np.intp], *, schedule: Schedule, to: Settings
) -> Floats:
    r"""Last iterates of all settings.

    .. math:: v_{t+1} = \beta v_t + \bar g_t + \tilde w_t, \qquad
        \theta_{t+1} = \theta_t - (1 - \beta) \eta_t v_{t+1}

    with the mean clipped gradient of a batch and correlated noise. The factor 1 - β lets equal
    rates move equally far whatever the momentum; a framework's rate is (1 - β) η.

    Returns
    -------
    ndarray, shape (classes, models, features)
    """
    size, dimension = features.shape
    batch = schedule.batch_size
    per_epoch = size // batch
    classes = to.noise.shape[1]
    theta = np.zeros((classes, to.rates.size, dimension), np.float32)
    velocity = np.zeros_like(theta)
    momentum = to.momentum.astype(np.float32)[:, None]
    rates = (to.rates * (1 - to.momentum)).astype(np.float32)[:, None]
    # One product spreads a step's noise over the models of each mechanism.
    spread = to.noise_std.astype(np.float32)
    norms = np.linalg.norm(features, axis=1)
    one_hot = np.eye(classes, dtype=np.float32)[:, labels]
    for step, share in enumerate(schedule.rate_shares(schedule.epochs * per_epoch)):
        rows = slice(step % per_epoch * batch, (step % per_epoch + 1) * batch)
        velocity *= momentum
        velocity += clipped_mean_gradient(
            features[rows], one_hot[:, rows], theta, clip_norm=schedule.clip_norm, norms=norms[rows]
        )
        velocity += spread @ to.noise[step]
        theta -= rates * share * velocity
    return theta


def clipped_mean_gradient(
    features: Floats, one_hot: Floats, theta: Floats, *, clip_norm: float, norms: Floats
) -> Floats:
    r"""Mean over a batch of the clipped cross-entropy gradients, for models side by side.

    .. math:: \frac1m \sum_i \min\Bigl(1, \frac{G}{\|x_i\| \|p_i - y_i\|}\Bigr) x_i (p_i - y_i)^T

    Parameters
    ----------
    features, one_hot : ndarray, shapes (m, d) and (classes, m)
    theta : ndarray, shape (classes, models, d)
    clip_norm : float
    norms : ndarray, shape (m,)
        Of the features' rows.

    Returns
    -------
    ndarray, shape (classes, models, d)
    """
    # Classes come first and records last, so that a class's numbers are contiguous.
    residual = _scores(features, theta)
    residual -= residual.max(axis=0)
    np.exp(residual, out=residual)
    residual /= residual.sum(axis=0)
    residual -= one_hot[:, None]
    length = np.sqrt(np.einsum("cmi,cmi->mi", residual, residual))
    length *= norms
    residual *= np.float32(clip_norm / len(features)) / np.maximum(length, np.float32(clip_norm))
    return (residual.reshape(-1, len(features)) @ features).reshape(theta.shape)


def accuracy(features: Floats, labels: NDArray[np.intp], theta: Floats) -> NDArray[np.float64]:
    """Share of the rows whose largest score is the label's, by model."""
    return np.asarray((_scores(features, theta).argmax(axis=0) == labels).mean(axis=-1))


def _scores(features: Floats, theta: Floats) -> Floats:
    """Shape (classes, models, rows)."""
    found: Floats = theta.reshape(-1, features.shape[1]) @ features.T
    return found.reshape(*theta.shape[:2], -1)
