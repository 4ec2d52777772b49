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
from privreg.privacy.iteration import one_pass_privacy
from privreg.schedules import Schedule, noise_multipliers, step_shape

CHUNK = 32


@dataclass(frozen=True)
class Mechanism:
    """A family of runs of one-pass DP-GD that share a schedule's shape: all but the data.

    Setting g takes steps `amplitude[g] * step_shape`, clips gradients to norm `clip_norm[g]` and
    adds noise of standard deviation `2 * clip_norm[g] * amplitude[g] * noise_shape`.

    Parameters
    ----------
    step_shape, noise_shape : ndarray, shape (samples,)
        Step sizes and noise multipliers at unit amplitude.
    amplitude, clip_norm : ndarray, shape (settings,)
        More than 0.
    privacy : float
        rho, the promise; `inf` promises nothing.

    Raises
    ------
    ValueError
        The noise does not keep the promise.

    Guarantee
    ---------
    Each setting's output is rho^2/2-zCDP with rho = `privacy`, for data sets that differ in one
    sample (replace one), when features are scaled and one setting is chosen without looking at
    these data, and only the last iterate is released. The budget is computed from the steps and
    the noise that will be used (equation (4.1)), and a mechanism over its budget is refused. Risks
    along the path, and comparisons of many settings, are not private.

    Source
    ------
    bombari2025, Algorithm 1 and Proposition 4.1.
    """

    step_shape: NDArray[np.float64]
    noise_shape: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    clip_norm: NDArray[np.float64]
    privacy: float

    def __post_init__(self) -> None:
        # The amplitude scales steps and noise alike, so the budget is the same for all settings.
        spent = float(one_pass_privacy(self.step_shape, self.noise_shape))
        if isfinite(self.privacy) and not spent <= self.privacy * (1 + 1e-9):
            raise ValueError(
                f"privacy = {self.privacy}: the noise gives {spent:.6g}, expected no more"
            )

    @classmethod
    def from_schedule(
        cls,
        schedule: Schedule,
        *,
        samples: int,
        dimension: int,
        privacy: float,
        clip: ArrayLike,
    ) -> Mechanism:
        """The noise that spends the whole budget on every sample, equation (4.2).

        Parameters
        ----------
        schedule : Schedule
            Learning rate; its amplitudes are broadcast with `clip`, and flattened.
        samples, dimension : int
            At least 1.
        privacy : float
            rho, more than 0.
        clip : array_like
            Clipping constant c in units of the residual: the norm is c sqrt(dimension).
        """
        steps = step_shape(schedule, samples)
        amplitude, constant = np.broadcast_arrays(
            np.asarray(schedule.amplitude, float), np.asarray(clip, float)
        )
        for name, values in (("amplitude", amplitude), ("clip", constant)):
            if not np.all(values > 0):
                raise ValueError(f"{name} = {values[~(values > 0)].flat[0]}: expected more than 0")
        noise = noise_multipliers(steps, privacy=privacy)
        norm = constant.ravel() * np.sqrt(dimension)
        return cls(steps, noise, amplitude.ravel().copy(), norm, privacy)

    @property
    def samples(self) -> int:
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
    features : ndarray, shape (samples, dimension)
        In the order of use; as many as the mechanism has steps.
    labels : ndarray, shape (samples,)
    rng : Generator
        Draws the private noise.

    Returns
    -------
    ndarray, shape (settings, dimension)
        The private output of each setting.
    """
    if len(features) != mechanism.samples or len(labels) != mechanism.samples:
        raise ValueError(
            f"features, labels of length {len(features)}, {len(labels)}: "
            f"expected {mechanism.samples}, one a step"
        )
    dimension = features.shape[1]
    parameters = np.zeros((mechanism.settings, dimension))
    for start in range(0, mechanism.samples, CHUNK):
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
    recorded = np.asarray([mechanism.samples] if record is None else record, dtype=np.int64)
    risk = np.empty((mechanism.settings, len(recorded)))
    kernels.draw_and_step(
        rng,
        model.eigenvalues,
        np.tile(-model.target, (mechanism.settings, 1)),
        model.noise_std,
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
    noise_std: float,
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
    noise_std : float
        Standard deviation of the label noise.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk, half the squared error.
    """
    if dimension < 3:
        raise ValueError(f"dimension = {dimension}: expected at least 3")
    recorded = np.asarray([mechanism.samples] if record is None else record, dtype=np.int64)
    risk = np.empty((mechanism.settings, len(recorded)))
    kernels.isotropic_steps(
        rng,
        dimension,
        target_norm**2,
        noise_std,
        mechanism.step_shape,
        mechanism.noise_shape,
        mechanism.amplitude,
        mechanism.clip_norm,
        recorded,
        risk,
    )
    return risk
