"""One-pass noisy SGD on ridge-regularised least squares, with or without gradient clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from math import erfc, exp, inf, pi, sqrt
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy.special import gammainc

from privreg.algorithms.samples import (
    Chunk,
    checked_data,
    released_setting,
    require_clip_norm,
    require_places,
    rescaled,
    row_norms,
)
from privreg.checks import (
    MOST,
    FloatArray,
    Immutable,
    Rebuilt,
    frozen,
    require_answer,
    require_array,
    require_choice,
    require_each,
    require_fields,
    require_frozen,
    require_instance,
    require_rng,
    require_scale,
    scale_or_infinity,
    scale_or_zero,
)
from privreg.kernels import inner_product, standard_normal
from privreg.privacy.budget import Budget, Neighbours
from privreg.privacy.release import USUAL, Diagnostic, OneOfMany, Release

# Below this share of its parts a sum of squares is formed again, coordinate by coordinate.
CANCELLED = 1e-6


@dataclass(frozen=True, eq=False)
class LinearRecords(Immutable):
    r"""Law of records with independent feature coordinates, and linear labels with clipped noise.

    .. math::
        a_j = \mu_j + s_ju_j,\qquad b = a^\top\tilde x + \xi,\qquad
        \mathbb E[aa^\top] = \mathrm{diag}(s^2) + \mu\mu^\top

    with u uniform on [-√3, √3] or standard Gaussian. ξ is normal, clipped at `label_noise_clip`.

    Parameters
    ----------
    shape : {"uniform", "gaussian"}
        Law of u.
    mean, std, target : array_like, shape (d,)
        Means μ and deviations s ≥ 0 of features, and the ground truth x̃; at most 1e12 in size.
    label_noise_std : float
        Standard deviation of the label noise before it is clipped, 0 or from 1e-12 to 1e12.
    label_noise_clip : float
        Clip of this noise in standard deviations, from 1e-12 to 1e12; `inf` clips nothing.
    """

    shape: Literal["uniform", "gaussian"]
    mean: FloatArray
    std: FloatArray
    target: FloatArray
    label_noise_std: float = 0.0
    label_noise_clip: float = inf

    def __post_init__(self) -> None:
        require_fields(
            self,
            shape=partial(require_choice, choices=("uniform", "gaussian")),
            target=partial(require_frozen, shape=(None,), least=-MOST, most=MOST),
            label_noise_std=scale_or_zero,
            label_noise_clip=scale_or_infinity,
        )
        like = partial(require_frozen, shape=self.target.shape, most=MOST)
        require_fields(self, mean=partial(like, least=-MOST), std=partial(like, least=0))

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
        """Records with i.i.d. feature coordinates, uniform on mean ± half_width."""
        truth = np.asarray(target)
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
    def clipped_label_noise_std(self) -> float:
        """Standard deviation of the label noise after it is clipped."""
        return sqrt(self._label_noise_square)

    @property
    def _label_noise_square(self) -> float:
        return self.label_noise_std**2 * clipped_normal_variance(self.label_noise_clip)

    def risk(self, parameters: ArrayLike) -> FloatArray:
        """Population risk at parameters (..., d): half the mean squared error on a fresh record."""
        error = np.asarray(parameters, dtype=float) - self.target
        excess = (error**2).dot(self.std**2) + error.dot(self.mean) ** 2
        return np.asarray(0.5 * (excess + self._label_noise_square))

    def sample(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw features of shape (count, d) and labels of shape (count,)."""
        size = (count, self.dimension)
        if self.shape == "uniform":
            standard = sqrt(3.0) * (2.0 * rng.random(size) - 1.0)
        else:
            standard = standard_normal(rng, size)
        features = self.mean + self.std * standard
        noise = np.clip(standard_normal(rng, count), -self.label_noise_clip, self.label_noise_clip)
        return features, features @ self.target + self.label_noise_std * noise


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
    r"""One-pass noisy SGD on freshly drawn records, for each pair of noise scale and clipping norm.

    .. math::
        g_k = a_k(a_k^\top x_k-b_k)+\delta x_k,\qquad
        x_{k+1} = x_k - \eta_k\big(\min(1, c/\|g_k\|)\,g_k + \sigma Z_k\big),\qquad Z_k\sim N(0,I_d)

    The full gradient, penalty included, is clipped. The noise does not scale with c. All settings
    share the records and the Z_k, so that sampling error largely cancels in comparisons.

    Parameters
    ----------
    records : LinearRecords
        Law from which the records are drawn: features a_k (d,) and labels b_k.
    initial : array_like, shape (d,)
        Start x_0, at most 1e12 in size.
    step_sizes : array_like, shape (n,)
        Step sizes η_k, one per record, from 0 to 1e12.
    gradient_noise_stds : array_like, shape (S,)
        Standard deviations σ of the gradient noise, from 0 to 1e12.
    clip_norms : array_like, shape (C,)
        Clipping norms c, from 1e-12 to 1e12; or `inf`, which clips nothing.
    ridge : float
        Factor δ of the penalty δ/2 ‖x‖², 0 or from 1e-12 to 1e12.
    rng : numpy.random.Generator
        Source of records and noise.

    Guarantee
    ---------
    Neighbours differ in one replaced record at a fixed position. The record enters one gradient of
    norm at most c. The guarantee needs finite c, σ > 0, and a start and step sizes that do not
    depend on the data. Under these conditions, all iterates together satisfy Rényi privacy of every
    order α > 1 with ε = 2αc²/σ² (zero-concentrated privacy with ρ = 2c²/σ²). With c = `inf` the
    gradient is unbounded and there is no guarantee, whatever σ is. Settings share noise:
    `NoisySGDRuns.release` releases only one setting.

    Source
    ------
    lin2025, Algorithm 1, and section 5, which does not say whether clipping includes the penalty.
    """
    return _run(records, None, initial, step_sizes, gradient_noise_stds, clip_norms, ridge, rng)


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
    """One-pass noisy SGD on given records in their order; otherwise as `simulate_noisy_sgd`.

    Parameters
    ----------
    features, labels : array_like, shapes (n, d) and (n,)
        Finite features a_k and labels b_k, one record per step size, in the order of use.
    records : LinearRecords
        Law for which the population risk is computed; nothing is drawn from it.
    initial, step_sizes, gradient_noise_stds, clip_norms, ridge, rng
        As for `simulate_noisy_sgd`. With norm `inf`, row lengths must be 0 or in [1e-50, 1e50].

    Guarantee
    ---------
    As for `simulate_noisy_sgd`; no guarantee without clipping.
    """
    descent = (initial, step_sizes, gradient_noise_stds, clip_norms, ridge, rng)
    return _run(records, (features, labels), *descent)


@dataclass(frozen=True, eq=False)
class NoisySGDRuns(Rebuilt):
    """Runs of noisy SGD at S noise scales and C clipping norms on the same n records and noise.

    Attributes
    ----------
    iterate : ndarray, shape (S, C, d)
        Last iterates, for studies; `release` returns one setting's last iterate with its budget.
    risk : Diagnostic of ndarray, shape (S, C, n + 1)
        Population risk before the first step and after each step.
    clipped_fraction : Diagnostic of ndarray, shape (S, C)
        Share of the n gradients that were longer than the clipping norm.
    gradient_noise_stds, clip_norms : ndarray, shapes (S,) and (C,)
        Noise deviations σ and clipping norms c of the settings, as given.
    """

    iterate: FloatArray
    risk: Diagnostic[FloatArray]
    clipped_fraction: Diagnostic[FloatArray]
    gradient_noise_stds: FloatArray
    clip_norms: FloatArray
    _settings: OneOfMany = field(repr=False)

    def __post_init__(self) -> None:
        # A release is accounted with these numbers.
        for name in ("gradient_noise_stds", "clip_norms"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def release(
        self,
        setting: tuple[int, int] | None = None,
        *,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
    ) -> Release[FloatArray]:
        r"""Return the last iterate of one setting, with the budget of all its iterates.

        .. math:: \rho = 2c^2/\sigma^2

        for clipping norm c and noise deviation σ. Zero-out costs the same as replace-one, since a
        blank record keeps the penalty's gradient.

        Parameters
        ----------
        setting : (int, int), optional
            Indices of noise scale and norm; optional or refused as in `FullBatchIterates.release`.
        neighbours : Neighbours
            Neighbouring relation, replace-one or zero-out.
        """
        relation = require_places(neighbours)
        noises, norms = np.broadcast_arrays(self.gradient_noise_stds[:, None], self.clip_norms)
        index, norm, noise = released_setting(
            self._settings, setting, clip_norm=norms, noise=noises
        )
        budget = Budget(2 * (norm / noise) ** 2, relation)
        return Release(self.iterate[index], budget, USUAL)


def clipped_normal_variance(clip_norm: float) -> float:
    r"""Variance of a standard normal that is clipped to ±c.

    .. math:: 1 - 2\bar\Phi(c) - 2c\varphi(c) + 2c^2\bar\Phi(c)
    """
    # Beyond, nothing is left of the tail.
    if clip_norm > 40.0:
        return 1.0
    tail = 0.5 * erfc(clip_norm / sqrt(2.0))
    if clip_norm < 1.0:
        # The same without differences, which leave no digits of small values: the square within
        # the clip is a chi-square of three degrees of freedom.
        inside = float(gammainc(1.5, 0.5 * clip_norm**2))
        return inside + 2.0 * clip_norm**2 * tail
    density = exp(-0.5 * clip_norm**2) / sqrt(2.0 * pi)
    return 1.0 - 2.0 * tail - 2.0 * clip_norm * density + 2.0 * clip_norm**2 * tail


def _run(
    records: LinearRecords,
    data: tuple[ArrayLike, ArrayLike] | None,
    initial: ArrayLike,
    step_sizes: ArrayLike,
    gradient_noise_stds: ArrayLike,
    clip_norms: ArrayLike,
    ridge: float,
    rng: np.random.Generator,
) -> NoisySGDRuns:
    """A run on features and labels, or on records drawn from their law."""
    require_instance("records", records, LinearRecords)
    several = partial(require_array, shape=(None,), least=0, most=MOST)
    sizes = {"step_sizes": step_sizes, "gradient_noise_stds": gradient_noise_stds}
    steps, noises = require_each(several, **sizes)
    rows, labels = np.empty((0, 0)), np.empty(0)
    if data is not None:
        rows, labels = checked_data(*data, shape=(steps.size, records.dimension))
    initial = require_array("initial", initial, shape=(records.dimension,), least=-MOST, most=MOST)
    clip_norms = require_clip_norm(clip_norms, name="clip_norms", shape=(None,))
    ridge = require_scale("ridge", ridge, zero=True)
    require_rng("rng", rng)
    settings = noises.size * clip_norms.size
    iterate = initial[None].repeat(settings, axis=0)
    risk = np.empty((settings, steps.size + 1))
    risk[:, 0] = records.risk(initial)
    clipped = np.zeros(settings)
    law = (
        records.shape == "uniform",
        records.mean,
        records.std,
        records.target,
        records.label_noise_std,
        records.label_noise_clip,
        records._label_noise_square,
    )
    given = Chunk(rows, labels, row_norms(rows))
    rows, labels, _ = found = rescaled(given)
    if found is not given and not np.all(np.isfinite(clip_norms)):
        raise ValueError(
            "with inf in clip_norms, features must have rows of length 0 or from 1e-50 to 1e50, "
            "and labels must be at most 1e110 in size; got another row or label"
        )
    one_pass(rng, rows, labels, law, steps, noises, clip_norms, ridge, iterate, risk, clipped)
    require_answer("step_sizes and initial", iterate)
    shape = (noises.size, clip_norms.size)
    fraction = clipped.reshape(shape) / steps.size
    return NoisySGDRuns(
        iterate.reshape(*shape, -1),
        Diagnostic(risk.reshape(*shape, -1), "population risk along the path"),
        Diagnostic(fraction, "share of clipped gradients"),
        noises,
        clip_norms,
        OneOfMany(shape),
    )


@njit(cache=True, nogil=True)
def one_pass(  # type: ignore[no-untyped-def]
    rng, rows, labels, law, step_sizes, noises, clip_norms, ridge, iterate, risk, clipped
):
    """Advance `iterate` (settings, d) over all steps; fill `risk` (settings, steps + 1).

    A setting is a pair of noise and norm; settings with the first noise come first.
    If no rows are given, a step draws d feature coordinates, a label noise and d noise coordinates,
    in that order. If rows are given, it draws only the d noise coordinates. `clipped` (settings,)
    counts the steps with a gradient longer than the norm.
    """
    uniform, mean, std, target, label_noise_std, label_noise_clip, label_noise_square = law
    settings, dimension = iterate.shape
    given = rows.shape[0] > 0
    noise_std, clip_norm = np.empty(settings), np.empty(settings)
    for s in range(settings):
        noise_std[s] = noises[s // clip_norms.size]
        clip_norm[s] = clip_norms[s % clip_norms.size]
    width = math.sqrt(3.0)
    row = np.empty(dimension)
    noise = np.empty(dimension)
    error, scaled = np.empty(dimension), np.empty(dimension)
    for k in range(step_sizes.size):
        label = 0.0
        if given:
            for i in range(dimension):
                row[i] = rows[k, i]
            label = labels[k]
        else:
            if uniform:
                for i in range(dimension):
                    row[i] = mean[i] + std[i] * width * (2.0 * rng.random() - 1.0)
            else:
                for i in range(dimension):
                    row[i] = mean[i] + std[i] * rng.standard_normal()
            draw = rng.standard_normal()
            label = label_noise_std * max(-label_noise_clip, min(label_noise_clip, draw))
            label += inner_product(row, target)
        square = inner_product(row, row)
        for i in range(dimension):
            noise[i] = rng.standard_normal()
        step = step_sizes[k]
        for s in range(settings):
            x = iterate[s]
            fitted = inner_product(row, x)
            residual = fitted - label
            scale = 1.0
            if clip_norm[s] < math.inf:
                pulled = residual * residual * square
                held = ridge * ridge * inner_product(x, x)
                total = pulled + 2.0 * ridge * residual * fitted + held
                if not total > CANCELLED * (pulled + held):
                    # What is left of two parts that cancel has lost digits; a gradient that is
                    # taken for a shorter one would pass unclipped.
                    total = 0.0
                    for i in range(dimension):
                        part = residual * row[i] + ridge * x[i]
                        total += part * part
                norm = math.sqrt(total)
                if norm > clip_norm[s]:
                    scale = clip_norm[s] / norm
                    clipped[s] += 1
            shrink = 1.0 - step * scale * ridge
            pull = step * scale * residual
            kick = step * noise_std[s]
            for i in range(dimension):
                x[i] = shrink * x[i] - pull * row[i] - kick * noise[i]
                error[i] = x[i] - target[i]
                scaled[i] = std[i] * error[i]
            along = inner_product(mean, error)
            spread = inner_product(scaled, scaled)
            risk[s, k + 1] = 0.5 * (spread + along * along + label_noise_square)
