r"""One-pass DP-GD with clipping for least squares.

Each sample is used once, in order. With the gradient :math:`g_k = x_k(x_k^\top\theta_{k-1} - y_k)`,

.. math:: \theta_k = \theta_{k-1}
    - \min\Big(\eta_k, \frac{2}{\|x_k\|^2}\Big)\,\min\Big(1, \frac{C}{\|g_k\|}\Big)\, g_k
    + 2 C \sigma_k b_k, \qquad b_k \sim N(0, I),

from :math:`\theta_0 = 0`, and only :math:`\theta_n` is released (bombari2025, Algorithm 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms import one_pass_dpgd_kernels as kernels
from privreg.models import LinearModel
from privreg.privacy.budget import Budget
from privreg.privacy.iteration import one_pass_zcdp_root
from privreg.privacy.neighbours import Neighbours
from privreg.schedules import Schedule, noise_multipliers, step_shape

CHUNK = 32


@dataclass(frozen=True)
class Mechanism:
    """A family of runs of one-pass DP-GD that share a schedule's shape: all but the data.

    Setting g takes steps `amplitude[g] * step_shape`, clips gradients to norm `clip_norm[g]` and
    adds noise of standard deviation `2 * clip_norm[g] * amplitude[g] * noise_shape`.

    Parameters
    ----------
    step_shape, noise_shape : ndarray, shape (sample_size,)
        Step sizes and noise multipliers at unit amplitude.
    amplitude, clip_norm : ndarray, shape (settings,)
        More than 0.
    budget : Budget
        The promise; an infinite one promises nothing.

    Raises
    ------
    ValueError
        The noise does not keep the promise.

    Guarantee
    ---------
    Each setting's output keeps `budget` for data sets that differ in one sample (replace one), when
    features are scaled and one setting is chosen without looking at these data, and only the last
    iterate is released. The budget is computed from the steps and the noise that will be used
    (equation (4.1)), and a mechanism over its budget is refused. Settings share noise directions:
    only one of them may be released. Risks along the path, and comparisons of many settings, are
    not private.

    Source
    ------
    bombari2025, Algorithm 1 and Proposition 4.1.
    """

    step_shape: NDArray[np.float64]
    noise_shape: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    clip_norm: NDArray[np.float64]
    budget: Budget

    def __post_init__(self) -> None:
        if self.budget.neighbours is not Neighbours.REPLACE_ONE:
            raise ValueError(f"budget must be for replace-one neighbours, got {self.budget}")
        # The amplitude scales steps and noise alike, so the budget is the same for all settings.
        spent = float(one_pass_zcdp_root(self.step_shape, self.noise_shape))
        if isfinite(self.budget.root) and not spent <= self.budget.root * (1 + 1e-9):
            raise ValueError(
                f"noise_shape must keep {self.budget}, got noise that spends rho = {spent**2 / 2:g}"
            )

    @classmethod
    def from_schedule(
        cls,
        schedule: Schedule,
        *,
        sample_size: int,
        dimension: int,
        budget: Budget,
        clip_constant: ArrayLike,
    ) -> Mechanism:
        """The noise that spends the whole budget on every sample, equation (4.2).

        Parameters
        ----------
        schedule : Schedule
            Learning rate; its amplitudes are broadcast with `clip_constant`, and flattened.
        sample_size, dimension : int
            At least 1.
        budget : Budget
            For replace-one neighbours.
        clip_constant : array_like
            Clipping constant c in units of the residual: the norm is c sqrt(dimension).
        """
        steps = step_shape(schedule, sample_size)
        amplitude, constant = np.broadcast_arrays(
            np.asarray(schedule.amplitude, float), np.asarray(clip_constant, float)
        )
        for name, values in (("amplitude", amplitude), ("clip_constant", constant)):
            if not np.all(values > 0):
                raise ValueError(f"{name} must be more than 0, got {values[~(values > 0)].flat[0]}")
        noise = noise_multipliers(steps, zcdp_root=budget.root)
        norm = constant.ravel() * np.sqrt(dimension)
        return cls(steps, noise, amplitude.ravel().copy(), norm, budget)

    @property
    def sample_size(self) -> int:
        return len(self.step_shape)

    @property
    def settings(self) -> int:
        return len(self.amplitude)


def fit(
    mechanism: Mechanism,
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Run every setting of a mechanism over given samples, with the same private noise directions.

    Blocks of samples go through matrix products: inside a block a prediction depends on earlier
    samples only through inner products that all settings share.

    Parameters
    ----------
    mechanism : Mechanism
        Which settings; see its guarantee.
    features : ndarray, shape (sample_size, dimension)
        In the order of use; as many as the mechanism has steps.
    labels : ndarray, shape (sample_size,)
    rng : Generator
        Draws the private noise.

    Returns
    -------
    ndarray, shape (settings, dimension)
        The private output of each setting.
    """
    if len(features) != mechanism.sample_size or len(labels) != mechanism.sample_size:
        raise ValueError(
            f"features and labels must be {mechanism.sample_size} rows, one a step, "
            f"got {len(features)} and {len(labels)}"
        )
    dimension = features.shape[1]
    parameters = np.zeros((mechanism.settings, dimension))
    for start in range(0, mechanism.sample_size, CHUNK):
        block = slice(start, start + CHUNK)
        rows, noise = features[block], mechanism.noise_shape[block]
        noisy = bool(np.any(noise > 0))
        directions = rng.standard_normal(rows.shape) if noisy else np.zeros((0, dimension))
        steps = np.empty((len(rows), mechanism.settings))
        kernels.step_block(
            rows @ rows.T,
            rows @ directions.T,
            rows @ parameters.T,
            labels[block],
            mechanism.step_shape[block],
            noise,
            mechanism.amplitude,
            mechanism.clip_norm,
            steps,
        )
        parameters -= steps.T @ rows
        if noisy:
            scale = 2 * mechanism.clip_norm * mechanism.amplitude
            parameters += scale[:, None] * (noise @ directions)
    return parameters


def risk_path(
    mechanism: Mechanism,
    model: LinearModel,
    rng: np.random.Generator,
    *,
    record: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Excess risk along runs over samples drawn on the fly, which are never stored.

    All settings share the data and the directions of the private noise.

    Parameters
    ----------
    mechanism : Mechanism
        Which settings; see its guarantee. The path is a diagnostic, not a private release.
    model : LinearModel
        Draws the samples.
    rng : Generator
        Draws samples and noise.
    record : array_like of int, optional
        Increasing steps after which the risk is recorded, 0 for the start; the last step alone if
        left out.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk; the last step's includes the output noise.
    """
    recorded = np.asarray([mechanism.sample_size] if record is None else record, dtype=np.int64)
    risk = np.empty((mechanism.settings, len(recorded)))
    kernels.draw_and_step(
        rng,
        model.eigenvalues,
        np.tile(-model.target, (mechanism.settings, 1)),
        model.label_noise_std,
        mechanism.step_shape,
        mechanism.noise_shape,
        mechanism.amplitude,
        mechanism.clip_norm,
        recorded,
        risk,
    )
    return risk


def isotropic_risk_path(
    mechanism: Mechanism,
    rng: np.random.Generator,
    *,
    dimension: int,
    target_norm: float,
    label_noise_std: float,
    record: ArrayLike | None = None,
) -> NDArray[np.float64]:
    r"""The same for an isotropic covariance, exactly in law, at a cost that does not depend on d.

    By rotation invariance :math:`m = \|\theta_k - \theta^*\|^2` is a Markov chain driven by a few
    scalars: the component of a sample along the error, the norm of the rest, the label noise and
    three components of the private noise.

    Parameters
    ----------
    mechanism, rng, record
        As for `risk_path`.
    dimension : int
        At least 3.
    target_norm : float
        Norm of theta*.
    label_noise_std : float
        Standard deviation of the label noise.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk, half the squared error.
    """
    if dimension < 3:
        raise ValueError(f"dimension must be at least 3, got {dimension}")
    recorded = np.asarray([mechanism.sample_size] if record is None else record, dtype=np.int64)
    risk = np.empty((mechanism.settings, len(recorded)))
    kernels.isotropic_steps(
        rng,
        dimension,
        target_norm**2,
        label_noise_std,
        mechanism.step_shape,
        mechanism.noise_shape,
        mechanism.amplitude,
        mechanism.clip_norm,
        recorded,
        risk,
    )
    return risk
