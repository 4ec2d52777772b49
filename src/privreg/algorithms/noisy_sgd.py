"""One-pass noisy SGD on ridge-regularised least squares, with the gradient clipped or not."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, inf, pi, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.noisy_sgd_kernel import one_pass


@dataclass(frozen=True, eq=False)
class LinearRecords:
    r"""The law of a record: features with independent coordinates, a linear label, clipped noise.

    .. math::
        a_j = \mu_j + s_ju_j,\qquad b = a^\top\tilde x + \xi,\qquad
        \mathbb E[aa^\top] = \mathrm{diag}(s^2) + \mu\mu^\top

    with u standard uniform (on ±3^{1/2}) or Gaussian, and ξ normal, set to the nearer end beyond
    ± `label_noise_clip` standard deviations.

    Parameters
    ----------
    shape : {"uniform", "gaussian"}
        Law of u.
    mean, std : array_like, shape (d,)
        μ and s, the latter at least 0.
    target : array_like, shape (d,)
        Ground truth x̃.
    label_noise_std : float
        Standard deviation of the label noise before it is clipped, at least 0.
    label_noise_clip : float
        More than 0, in standard deviations; `inf` clips nothing.
    """

    shape: Literal["uniform", "gaussian"]
    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    target: NDArray[np.float64]
    label_noise_std: float = 0.0
    label_noise_clip: float = inf

    def __post_init__(self) -> None:
        if self.shape not in ("uniform", "gaussian"):
            raise ValueError(f"shape must be 'uniform' or 'gaussian', got {self.shape!r}")
        for name in ("mean", "std", "target"):
            array = np.asarray(getattr(self, name), dtype=np.float64, order="C")
            if array.ndim != 1 or array.size != np.size(self.target):
                raise ValueError(
                    f"{name} must have shape ({np.size(self.target)},), got {array.shape}"
                )
            object.__setattr__(self, name, array)
        if np.any(self.std < 0) or not self.label_noise_std >= 0 or not self.label_noise_clip > 0:
            raise ValueError("std and label_noise_std must be at least 0, label_clip more than 0")

    @classmethod
    def uniform(
        cls,
        *,
        mean: float,
        half_width: float,
        target: ArrayLike,
        label_noise_std: float = 0.0,
        label_noise_clip: float = inf,
    ) -> LinearRecords:
        """Features whose coordinates are i.i.d. uniform on mean ± half_width."""
        truth = np.asarray(target, dtype=np.float64)
        return cls(
            "uniform",
            np.full(truth.size, mean),
            np.full(truth.size, half_width / sqrt(3.0)),
            truth,
            label_noise_std,
            label_noise_clip,
        )

    @property
    def dimension(self) -> int:
        return self.target.size

    @property
    def label_noise_variance(self) -> float:
        """Variance of the label noise after it is clipped."""
        return self.label_noise_std**2 * clipped_normal_variance(self.label_noise_clip)

    def risk(self, parameters: ArrayLike) -> NDArray[np.float64]:
        """Population risk, half the mean squared error of a fresh label, (..., d) -> (...)."""
        error = np.asarray(parameters, dtype=np.float64) - self.target
        excess = error**2 @ self.std**2 + (error @ self.mean) ** 2
        return np.asarray(0.5 * (excess + self.label_noise_variance))

    def sample(
        self, count: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Features of shape (count, d) and labels of shape (count,)."""
        size = (count, self.dimension)
        if self.shape == "uniform":
            standard = sqrt(3.0) * (2.0 * rng.random(size) - 1.0)
        else:
            standard = rng.standard_normal(size)
        features = self.mean + self.std * standard
        noise = np.clip(rng.standard_normal(count), -self.label_noise_clip, self.label_noise_clip)
        return features, features @ self.target + self.label_noise_std * noise


class NoisySGDRuns(NamedTuple):
    """Runs of noisy SGD at S noise scales and C clipping norms on the same records and noise.

    `iterate`, shape (S, C, d), is what a private run would release; `risk`, shape (S, C, n +
    1), is the population risk before the first step and after each, and `clipped_fraction`, shape
    (S, C), the share of the n gradients that were longer than the clipping norm: both are
    non-private diagnostics.
    """

    risk: NDArray[np.float64]
    iterate: NDArray[np.float64]
    clipped_fraction: NDArray[np.float64]


def simulate_noisy_sgd(
    records: LinearRecords,
    *,
    initial: ArrayLike,
    step_sizes: ArrayLike,
    gradient_noise_stds: ArrayLike,
    clip_norms: ArrayLike = (inf,),
    ridge: float = 0.0,
    rng: np.random.Generator,
) -> NoisySGDRuns:
    r"""One-pass noisy SGD on records drawn as it goes, every noise scale and clipping norm at once.

    .. math::
        g_k = a_k(a_k^\top x_k-b_k)+\delta x_k,\qquad
        x_{k+1} = x_k - \eta_k\big(\min(1, c/\|g_k\|)\,g_k + \sigma Z_k\big),\qquad Z_k\sim N(0,I_d)

    The full gradient, penalty included, is clipped; the noise does not scale with c. All
    settings share the records and the Z_k, so their differences carry no sampling error of
    their own.

    Parameters
    ----------
    records : LinearRecords
    initial : array_like, shape (d,)
        Start x_0.
    step_sizes : array_like, shape (n,)
        Discrete steps η, one a record, at least 0.
    gradient_noise_stds : array_like, shape (S,)
        Standard deviations σ of the gradient noise, at least 0.
    clip_norms : array_like, shape (C,)
        Norms c, more than 0; `inf` clips nothing.
    ridge : float
        Penalty δ, at least 0.
    rng : numpy.random.Generator

    Returns
    -------
    NoisySGDRuns

    Guarantee
    ---------
    With a finite c and σ > 0, for data sets that differ in one replaced record at a fixed
    position: the record enters one gradient of norm at most c, so all iterates together satisfy
    Rényi privacy of every order α > 1 with ε = 2αc²/σ² (zero-concentrated privacy with ρ =
    2c²/σ²), if the start and the step sizes do not depend on the data. With c = `inf` the
    gradient is unbounded and there is no guarantee, whatever σ is. Neither the risk nor the
    fraction clipped is private.

    Source
    ------
    lin2025, Algorithm 1; the clipped variant of section 5, where the paper leaves open whether the
    penalty's gradient is clipped too.
    """
    steps = np.asarray(step_sizes, dtype=np.float64)
    return _run(
        records,
        np.empty((0, 0)),
        np.empty(0),
        initial,
        steps,
        gradient_noise_stds,
        clip_norms,
        ridge,
        rng,
    )


def run_noisy_sgd(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    records: LinearRecords,
    initial: ArrayLike,
    step_sizes: ArrayLike,
    gradient_noise_stds: ArrayLike,
    clip_norms: ArrayLike = (inf,),
    ridge: float = 0.0,
    rng: np.random.Generator,
) -> NoisySGDRuns:
    """One-pass noisy SGD on given records in their order, else as :func:`simulate_noisy_sgd`.

    Parameters
    ----------
    features : array_like, shape (n, d)
    labels : array_like, shape (n,)
    records : LinearRecords
        The law that the recorded population risk refers to; nothing is drawn from it.
    initial, step_sizes, gradient_noise_stds, clip_norms, ridge, rng
        As for :func:`simulate_noisy_sgd`.

    Guarantee
    ---------
    As for :func:`simulate_noisy_sgd`: none without clipping.
    """
    rows = np.ascontiguousarray(features, dtype=np.float64)
    targets = np.asarray(labels, dtype=np.float64)
    steps = np.asarray(step_sizes, dtype=np.float64)
    if rows.shape != (steps.size, records.dimension) or targets.shape != (steps.size,):
        raise ValueError(
            f"features must have shape {(steps.size, records.dimension)}, got {rows.shape}, "
            f"and labels {(steps.size,)}, got {targets.shape}"
        )
    return _run(records, rows, targets, initial, steps, gradient_noise_stds, clip_norms, ridge, rng)


def clipped_normal_variance(clip_norm: float) -> float:
    r"""Variance of a standard normal that is set to ±c beyond ±c.

    .. math:: 1 - 2\bar\Phi(c) - 2c\varphi(c) + 2c^2\bar\Phi(c)

    Parameters
    ----------
    clip_norm : float
        c, more than 0; `inf` gives 1.
    """
    if clip_norm == inf:
        return 1.0
    tail = 0.5 * erfc(clip_norm / sqrt(2.0))
    density = exp(-0.5 * clip_norm**2) / sqrt(2.0 * pi)
    return 1.0 - 2.0 * tail - 2.0 * clip_norm * density + 2.0 * clip_norm**2 * tail


def _run(
    records: LinearRecords,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    initial: ArrayLike,
    steps: NDArray[np.float64],
    gradient_noise_stds: ArrayLike,
    clip_norms: ArrayLike,
    ridge: float,
    rng: np.random.Generator,
) -> NoisySGDRuns:
    start = np.asarray(initial, dtype=np.float64)
    noises = np.atleast_1d(np.asarray(gradient_noise_stds, dtype=np.float64))
    clip_norms = np.atleast_1d(np.asarray(clip_norms, dtype=np.float64))
    if start.shape != (records.dimension,):
        raise ValueError(f"initial must have shape ({records.dimension},), got {start.shape}")
    if steps.ndim != 1 or not np.all(steps >= 0):
        raise ValueError("step_sizes must be a vector of numbers that are at least 0")
    if not (np.all(noises >= 0) and np.all(np.isfinite(noises))):
        raise ValueError(f"gradient_noise_stds must be finite and at least 0, got {noises}")
    if not np.all(clip_norms > 0):
        raise ValueError(f"clip_norms must be more than 0, got {clip_norms}")
    if not ridge >= 0:
        raise ValueError(f"ridge must be at least 0, got {ridge}")
    settings = noises.size * clip_norms.size
    iterate = np.tile(start, (settings, 1))
    risk = np.empty((settings, steps.size + 1))
    risk[:, 0] = records.risk(start)
    clipped = np.zeros(settings, dtype=np.int64)
    one_pass(
        rng,
        rows,
        labels,
        records.shape == "uniform",
        records.mean,
        records.std,
        records.target,
        records.label_noise_std,
        records.label_noise_clip,
        records.label_noise_variance,
        steps,
        np.repeat(noises, clip_norms.size),
        np.tile(clip_norms, noises.size),
        float(ridge),
        iterate,
        risk,
        clipped,
    )
    shape = (noises.size, clip_norms.size)
    # Without a step nothing was clipped.
    fraction = clipped.reshape(shape) / max(steps.size, 1)
    return NoisySGDRuns(risk.reshape(*shape, -1), iterate.reshape(*shape, -1), fraction)
