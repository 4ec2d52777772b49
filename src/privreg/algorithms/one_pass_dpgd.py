r"""One-pass DP-GD with clipping for least squares.

Each sample is used once, in order. With the gradient :math:`g_k = x_k(x_k^\top\theta_{k-1} - y_k)`,

.. math:: \theta_k = \theta_{k-1}
    - \min\Big(\eta_k, \frac{2}{\|x_k\|^2}\Big)\,\min\Big(1, \frac{C}{\|g_k\|}\Big)\, g_k
    + 2 C \sigma_k b_k, \qquad b_k \sim N(0, I).

The start is :math:`\theta_0 = 0`, and only :math:`\theta_n` is released (bombari2025, Algorithm 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.samples import Chunk, checked_data, require_increasing, rescaled, row_norms
from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    Immutable,
    instance_of,
    require_count,
    require_fields,
    require_frozen,
    require_instance,
    require_real,
    require_rng,
    require_scales,
)
from privreg.kernels import FEWEST, inner_product, standard_normal
from privreg.models import LinearModel
from privreg.privacy.budget import Budget, Neighbours, one_pass_zcdp_root
from privreg.schedules import Schedule, noise_multipliers, step_shape


@njit(cache=True, nogil=True)
def draw_and_step(  # type: ignore[no-untyped-def]
    rng, eigenvalues, deviation, label_noise_std, runs, record, risk_out
):
    """Run on Gaussian samples, drawn in the loop; `deviation` (settings, d) is theta - theta*."""
    step_shape, noise_shape, bounds, amplitude, clip_norm = runs
    settings, dimension = deviation.shape
    scale = np.sqrt(eigenvalues)
    sample = np.empty(dimension)
    direction = np.empty(dimension)
    recorded = 0
    for step in range(len(step_shape) + 1):
        if step > 0:
            for i in range(dimension):
                sample[i] = rng.standard_normal()
            label_noise = label_noise_std * rng.standard_normal()
            if _any_noise(noise_shape[step - 1]):
                for i in range(dimension):
                    direction[i] = rng.standard_normal()
            squared_norm = 0.0
            for i in range(dimension):
                sample[i] *= scale[i]
                squared_norm += sample[i] * sample[i]
            cap = 2 / squared_norm
            norm = math.sqrt(squared_norm)
            for shape in range(step_shape.shape[1]):
                size = step_shape[step - 1, shape]
                noise = noise_shape[step - 1, shape]
                for setting in range(bounds[shape], bounds[shape + 1]):
                    row = deviation[setting]
                    residual = inner_product(sample, row) - label_noise
                    rate = min(amplitude[setting] * size, cap)
                    threshold = clip_norm[setting] / norm
                    move = rate * max(-threshold, min(threshold, residual))
                    if noise > 0:
                        spread = 2 * clip_norm[setting] * amplitude[setting] * noise
                        for i in range(dimension):
                            row[i] += spread * direction[i] - move * sample[i]
                    else:
                        for i in range(dimension):
                            row[i] -= move * sample[i]
        while recorded < len(record) and record[recorded] == step:
            for setting in range(settings):
                row = deviation[setting]
                for i in range(dimension):
                    direction[i] = eigenvalues[i] * row[i]
                risk_out[setting, recorded] = inner_product(direction, row) / 2
            recorded += 1


@njit(inline="always")
def _any_noise(noise_shape):  # type: ignore[no-untyped-def]
    for shape in range(len(noise_shape)):  # noqa: SIM110
        if noise_shape[shape] > 0:
            return True
    return False


@njit(cache=True, nogil=True)
def step_block(  # type: ignore[no-untyped-def]
    gram,
    noise_overlap,
    predictions,
    labels,
    step_shape,
    noise_shape,
    bounds,
    amplitude,
    clip_norm,
    in_range,
    steps_out,
):
    """Compute how far each step of a block moves along its sample.

    `predictions` (sample_size, settings) use the parameters before the block. `gram` holds inner
    products of samples with samples. `noise_overlap` holds inner products of samples with
    directions of the private noise, and has no column if the block has no noise.
    Returns True if all rows and labels are in the range of `is_within_range`. If False is returned,
    the computed moves are meaningless.
    """
    sample_size, settings = predictions.shape
    noisy = noise_overlap.shape[1] > 0
    for k in range(sample_size):
        if not in_range and not (1e-100 <= gram[k, k] <= 1e100 and abs(labels[k]) <= 1e110):
            return False
    for k in range(sample_size):
        row = predictions[k]
        for shape in range(step_shape.shape[1]):
            drift = 0.0
            if noisy:
                for j in range(k):
                    drift += noise_shape[j, shape] * noise_overlap[k, j]
            of_shape = slice(bounds[shape], bounds[shape + 1])
            own, norms, amplitudes = row[of_shape], clip_norm[of_shape], amplitude[of_shape]
            for setting in range(len(own)):
                own[setting] += 2 * norms[setting] * amplitudes[setting] * drift - labels[k]
        for j in range(k):
            overlap = gram[k, j]
            moved = steps_out[j]
            for setting in range(settings):
                row[setting] -= overlap * moved[setting]
        squared_norm = gram[k, k]
        if squared_norm > 0:
            cap = 2 / squared_norm
            norm = math.sqrt(squared_norm)
            for shape in range(step_shape.shape[1]):
                size = step_shape[k, shape]
                of_shape = slice(bounds[shape], bounds[shape + 1])
                own, moves = row[of_shape], steps_out[k, of_shape]
                norms, amplitudes = clip_norm[of_shape], amplitude[of_shape]
                for setting in range(len(own)):
                    rate = min(amplitudes[setting] * size, cap)
                    threshold = norms[setting] / norm
                    moves[setting] = rate * max(-threshold, min(threshold, own[setting]))
        else:
            steps_out[k] = 0.0
    return True


@njit(cache=True, nogil=True)
def move_and_perturb(parameters, moves, noise, bounds, scale):  # type: ignore[no-untyped-def]
    """Subtract `moves` from `parameters` (settings, d), and add the noise of each setting's shape.

    `noise` (shapes, d) has unit scale; `scale` (settings,) multiplies it.
    """
    for shape in range(len(noise)):
        direction = noise[shape]
        for setting in range(bounds[shape], bounds[shape + 1]):
            row, move, spread = parameters[setting], moves[setting], scale[setting]
            for i in range(len(row)):
                row[i] = row[i] - move[i] + spread * direction[i]


@njit(nogil=True)
def _squared_norms(rows, labels, in_range):  # type: ignore[no-untyped-def]
    """Squared norms of all rows, and True if rows and labels are known or found to be in range."""
    squared_norms = np.empty(len(rows))
    for k in range(len(rows)):
        squared_norms[k] = inner_product(rows[k], rows[k])
        if not in_range and not (1e-100 <= squared_norms[k] <= 1e100 and abs(labels[k]) <= 1e110):
            return squared_norms, False
    return squared_norms, True


@njit(cache=True, nogil=True)
def step_rows(  # type: ignore[no-untyped-def]
    rows, labels, directions, step_shape, noise_shape, amplitude, clip_norm, in_range, parameters
):
    """Run one setting, sample by sample, and update `parameters` (d,) in place.

    `directions` (sample_size, d) of the private noise have no row if there is no noise.
    Returns True if all rows and labels are in the range of `is_within_range`; else moves nothing.
    """
    squared_norms, within = _squared_norms(rows, labels, in_range)
    if not within:
        return False
    for k in range(len(rows)):
        row = rows[k]
        if squared_norms[k] > 0:
            residual = inner_product(row, parameters) - labels[k]
            rate = min(amplitude * step_shape[k], 2 / squared_norms[k])
            threshold = clip_norm / math.sqrt(squared_norms[k])
            move = rate * max(-threshold, min(threshold, residual))
            for i in range(len(row)):
                parameters[i] -= move * row[i]
        if len(directions) > 0:
            spread = 2 * clip_norm * amplitude * noise_shape[k]
            direction = directions[k]
            for i in range(len(row)):
                parameters[i] += spread * direction[i]
    return True


@njit(cache=True, nogil=True)
def step_narrow_rows(  # type: ignore[no-untyped-def]
    rows, labels, directions, runs, in_range, parameters
):
    """As `step_rows`, for all settings at once: updates `parameters` (d, settings)."""
    step_shape, noise_shape, bounds, amplitude, clip_norm = runs
    dimension, settings = parameters.shape
    squared_norms, within = _squared_norms(rows, labels, in_range)
    if not within:
        return False
    kick = 2 * clip_norm * amplitude
    moves = np.empty(settings)
    for k in range(len(rows)):
        cap = 2 / squared_norms[k] if squared_norms[k] > 0 else 0.0
        inverse_norm = 1 / math.sqrt(squared_norms[k]) if squared_norms[k] > 0 else 0.0
        moves[:] = -labels[k]
        for i in range(dimension):
            value, own = rows[k, i], parameters[i]
            for setting in range(settings):
                moves[setting] += value * own[setting]
        for shape in range(step_shape.shape[1]):
            size = step_shape[k, shape]
            of_shape = slice(bounds[shape], bounds[shape + 1])
            move, norms, amplitudes = moves[of_shape], clip_norm[of_shape], amplitude[of_shape]
            for setting in range(len(move)):
                threshold = norms[setting] * inverse_norm
                clipped = max(-threshold, min(threshold, move[setting]))
                move[setting] = min(amplitudes[setting] * size, cap) * clipped
            kicks = kick[of_shape]
            for i in range(dimension):
                value, own = rows[k, i], parameters[i, of_shape]
                if len(directions) > 0:
                    spread = noise_shape[k, shape] * directions[k, i]
                    for setting in range(len(own)):
                        own[setting] += kicks[setting] * spread - value * move[setting]
                else:
                    for setting in range(len(own)):
                        own[setting] -= value * move[setting]
    return True


@njit(cache=True, nogil=True)
def isotropic_steps(  # type: ignore[no-untyped-def]
    rng, dimension, squared_error, label_noise_std, runs, record, risk_out
):
    """Squared error of each setting; all settings share the draws of a step."""
    step_shape, noise_shape, bounds, amplitude, clip_norm = runs
    settings = len(amplitude)
    error = np.full(settings, squared_error)
    kick = 2 * clip_norm * amplitude
    squared_kick = kick * kick
    across_spread, rest_spread = _spread(dimension - 1), _spread(dimension - 2)
    first = second = squared_rest = 0.0
    recorded = 0
    for step in range(len(step_shape) + 1):
        if step > 0:
            along = rng.standard_normal()
            squared_across = _chi_square(rng, dimension - 1, across_spread)
            across = math.sqrt(squared_across)
            label_noise = label_noise_std * rng.standard_normal()
            inverse_norm = 1 / math.sqrt(along * along + squared_across)
            cap = 2 * inverse_norm * inverse_norm
            if _any_noise(noise_shape[step - 1]):
                first = rng.standard_normal()
                second = rng.standard_normal()
                squared_rest = _chi_square(rng, dimension - 2, rest_spread)
            for shape in range(step_shape.shape[1]):
                size = step_shape[step - 1, shape]
                noise = noise_shape[step - 1, shape]
                of_shape = slice(bounds[shape], bounds[shape + 1])
                errors, norms = error[of_shape], clip_norm[of_shape]
                amplitudes, kicks = amplitude[of_shape], kick[of_shape]
                if noise > 0:
                    squared_kicks, rest = squared_kick[of_shape], noise * noise * squared_rest
                    for g in range(len(errors)):
                        length = math.sqrt(errors[g])
                        threshold = norms[g] * inverse_norm
                        residual = length * along - label_noise
                        clipped = max(-threshold, min(threshold, residual))
                        move = min(amplitudes[g] * size, cap) * clipped
                        spread = kicks[g] * noise
                        parallel = length - move * along + spread * first
                        crossing = spread * second - move * across
                        squared = parallel * parallel + crossing * crossing
                        errors[g] = squared + squared_kicks[g] * rest
                else:
                    for g in range(len(errors)):
                        length = math.sqrt(errors[g])
                        threshold = norms[g] * inverse_norm
                        residual = length * along - label_noise
                        clipped = max(-threshold, min(threshold, residual))
                        move = min(amplitudes[g] * size, cap) * clipped
                        parallel = length - move * along
                        crossing = move * across
                        errors[g] = parallel * parallel + crossing * crossing
        while recorded < len(record) and record[recorded] == step:
            for g in range(settings):
                risk_out[g, recorded] = error[g] / 2
            recorded += 1


@njit(inline="always")
def _spread(freedom):  # type: ignore[no-untyped-def]
    return math.sqrt(2 / (9 * freedom - 6)) if freedom > 2 else 0.0


@njit(inline="always")
def _chi_square(rng, freedom, spread):  # type: ignore[no-untyped-def]
    """Draw like `rng.chisquare` (Marsaglia and Tsang 2000), with `spread` computed beforehand."""
    if freedom <= 2:
        return rng.chisquare(freedom)
    centre = freedom / 2 - 1 / 3
    while True:
        x = rng.standard_normal()
        root = 1 + spread * x
        if root > 0:
            cube = root * root * root
            u = rng.random()
            if u < 1 - 0.0331 * (x * x) * (x * x):
                return 2 * centre * cube
            if math.log(u) < x * x / 2 + centre * (1 - cube + math.log(cube)):
                return 2 * centre * cube


# Products of steps, amplitudes and norms up to here stay far from overflow.
LARGEST = 1e30
CHUNK, ROWS_OF_ONE = 32, 1024
# Up to so many columns, inner products between the samples of a block cost more than they save.
NARROW = 16


@dataclass(frozen=True)
class Mechanism(Immutable):
    """Settings of one-pass DP-GD, whose step sizes are multiples of one `step_shape`.

    Setting g takes steps `amplitude[g] * step_shape`, clips gradients to norm `clip_norm[g]` and
    adds noise of standard deviation `2 * clip_norm[g] * amplitude[g] * noise_shape`.

    Parameters
    ----------
    step_shape, noise_shape : array_like, shape (sample_size,)
        Step sizes and noise multipliers at unit amplitude, from 0 to 1e30.
    amplitude, clip_norm : array_like, shape (settings,)
        Amplitudes from 1e-12 to 1e12, and clipping norms from 1e-12 to 1e30.
    budget : Budget
        Budget that a run may spend; an infinite budget gives no privacy.

    Guarantee
    ---------
    Each setting's last iterate spends at most `budget` for data sets that differ in one replaced
    sample. Conditions: the features' scaling and the released setting are chosen without looking at
    these data, and only the last iterate is released. The cost is computed from steps and noise
    (equation (4.1)); a mechanism over its budget is refused. Settings share noise directions: only
    one setting may be released. Risks along a run and comparisons of settings are not private.

    Source
    ------
    bombari2025, Algorithm 1 and Proposition 4.1.
    """

    step_shape: FloatArray
    noise_shape: FloatArray
    amplitude: FloatArray
    clip_norm: FloatArray
    budget: Budget

    def __post_init__(self) -> None:
        # What was checked is what will be used: these arrays are read-only.
        steps = partial(require_frozen, shape=(None,), least=0, most=LARGEST)
        factors = partial(require_frozen, shape=(None,), least=LEAST, most=MOST)
        require_fields(self, budget=instance_of(Budget), step_shape=steps, amplitude=factors)
        noise = partial(steps, shape=self.step_shape.shape)
        norms = partial(factors, shape=self.amplitude.shape, most=LARGEST)
        require_fields(self, noise_shape=noise, clip_norm=norms)
        if self.budget.neighbours is not Neighbours.REPLACE_ONE:
            raise ValueError(f"budget must be for replace-one neighbours, got {self.budget}")
        # The amplitude scales steps and noise alike, so the budget is the same for all settings.
        spent = float(one_pass_zcdp_root(self.step_shape, self.noise_shape))
        if isfinite(self.budget.root) and not spent <= self.budget.root * (1 + 1e-9):
            raise ValueError(
                f"noise_shape must cost at most {self.budget}, got rho = {spent * spent / 2:g}"
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
        """Mechanism with the noise of bombari2025, (4.2): the budget bounds every sample's loss.

        Gradients are clipped to norm c sqrt(dimension). The clipping constants c have the
        residual's unit. They are broadcast with the schedule's amplitudes and flattened.
        """
        steps = step_shape(schedule, sample_size)
        clip_constant = require_real("clip_constant", clip_constant, least=LEAST, most=MOST)
        amplitude, constant = np.broadcast_arrays(schedule.amplitude, clip_constant)
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
    mechanism: Mechanism, features: ArrayLike, labels: ArrayLike, rng: np.random.Generator
) -> FloatArray:
    """Run all settings of a mechanism over given samples, with shared private noise directions.

    Blocks of samples use matrix products: within a block, predictions depend on earlier samples
    only through inner products that all settings share. If there is one setting, or the data have
    few columns, samples are taken one by one, which is faster. The results agree up to rounding.

    Parameters
    ----------
    mechanism : Mechanism
        Step sizes, noise, clipping norms and budget of all settings.
    features, labels : array_like, shapes (sample_size, dimension) and (sample_size,)
        Finite rows and labels in the order of use, one for each step of the mechanism.
    rng : Generator
        Source of the private noise.

    Returns
    -------
    ndarray, shape (settings, dimension)
        Private output of each setting. Settings share noise: only one output may be released.

    Guarantee
    ---------
    Each row of the result spends at most the mechanism's budget in real arithmetic, for every data
    set with finite entries, subnormal to 1e308. Leaks through floating point are not covered. Exact
    integer sums could prevent them for all iterates together, but not for the last one alone.
    """
    (found,) = fit_together([mechanism], features, labels, rng)
    return found


def risk_path(
    mechanism: Mechanism,
    model: LinearModel,
    rng: np.random.Generator,
    *,
    record: ArrayLike | None = None,
) -> FloatArray:
    """Excess risk along runs on samples that are drawn on the fly and never stored.

    All settings share the data and the private noise's directions. The paths are not private.

    Parameters
    ----------
    mechanism : Mechanism
        As for `fit`.
    model : LinearModel
        Model from which samples are drawn.
    rng : Generator
        Source of samples and noise.
    record : array_like of int, optional
        Increasing steps after which the risk is recorded; 0 is the start. By default the last step.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk; the value of the last step includes the output noise.
    """
    (risk,) = risk_paths_together([mechanism], model, rng, record=record)
    return risk


def isotropic_risk_path(
    mechanism: Mechanism,
    rng: np.random.Generator,
    *,
    dimension: int,
    target_norm: float,
    label_noise_std: float,
    record: ArrayLike | None = None,
) -> FloatArray:
    r"""Excess risk along runs on samples with covariance I, at a cost that does not grow with d.

    By rotation invariance :math:`m = \|\theta_k - \theta^*\|^2` is a Markov chain driven by a few
    scalars: a sample's component along the error and its norm across the error, the label noise,
    and three parts of the private noise.

    Parameters
    ----------
    mechanism, rng, record
        As for `risk_path`.
    dimension : int
        Number of features d, at least 3.
    target_norm, label_noise_std : float
        Norm of theta* and standard deviation of the label noise; each 0 or from 1e-12 to 1e12.

    Returns
    -------
    ndarray, shape (settings, len(record))
        Excess risk, half the squared error.
    """
    (risk,) = isotropic_risk_paths_together(
        [mechanism],
        rng,
        dimension=dimension,
        target_norm=target_norm,
        label_noise_std=label_noise_std,
        record=record,
    )
    return risk


def fit_together(
    mechanisms: Sequence[Mechanism],
    features: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
) -> list[FloatArray]:
    """Run `fit` for several mechanisms; only one row of one result may be released."""
    runs = _Runs.of(mechanisms)
    require_rng("rng", rng)
    features, labels = checked_data(features, labels, shape=(runs.sample_size, None))
    dimension = features.shape[1]
    if runs.settings == 1 or dimension <= NARROW:
        parameters = _fit_rows(runs, features, labels, rng)
        return [parameters[part] for part in runs.parts]
    parameters = np.zeros((runs.settings, dimension))
    chunks = np.arange(0, runs.sample_size, CHUNK)
    noisy_chunks = np.logical_or.reduceat(np.any(runs.noise_shape > 0, axis=1), chunks)
    scale, moves = 2 * runs.clip_norm * runs.amplitude, np.empty_like(parameters)
    # Squares of rows that are beyond the range may overflow; such blocks are done again.
    with np.errstate(over="ignore", invalid="ignore"):
        for first, noisy in zip(chunks.tolist(), noisy_chunks.tolist(), strict=True):
            block = slice(first, first + CHUNK)
            rows, noise = features[block], runs.noise_shape[block]
            directions = standard_normal(rng, rows.shape) if noisy else np.zeros((0, dimension))
            steps = np.empty((len(rows), runs.settings))
            targets = labels[block]
            # A row that is beyond the range is rare, and found where its square is formed anyhow.
            for in_range in (False, True):
                if step_block(
                    rows @ rows.T,
                    rows @ directions.T,
                    rows @ parameters.T,
                    targets,
                    runs.step_shape[block],
                    noise,
                    *runs[2:],
                    in_range,
                    steps,
                ):
                    break
                rows, targets, _ = rescaled(Chunk(rows, targets, row_norms(rows)))
            np.matmul(steps.T, rows, out=moves)
            if noisy:
                move_and_perturb(parameters, moves, noise.T @ directions, runs.bounds, scale)
            else:
                parameters -= moves
    return [parameters[part] for part in runs.parts]


def risk_paths_together(
    mechanisms: Sequence[Mechanism],
    model: LinearModel,
    rng: np.random.Generator,
    *,
    record: ArrayLike | None = None,
) -> list[FloatArray]:
    """Run `risk_path` for several mechanisms."""
    runs = _Runs.of(mechanisms)
    recorded = _recorded(runs, record)
    risk = np.empty((runs.settings, len(recorded)))
    errors = np.tile(-model.target, (runs.settings, 1))
    draw_and_step(
        rng, model.eigenvalues, errors, model.label_noise_std, tuple(runs), recorded, risk
    )
    return [risk[part] for part in runs.parts]


def isotropic_risk_paths_together(
    mechanisms: Sequence[Mechanism],
    rng: np.random.Generator,
    *,
    dimension: int,
    target_norm: float,
    label_noise_std: float,
    record: ArrayLike | None = None,
) -> list[FloatArray]:
    """Run `isotropic_risk_path` for several mechanisms.

    The law of each mechanism's risk is exact. Mechanisms share draws, but not samples, so the joint
    law of their risks is not the one on shared samples.
    """
    dimension = require_count("dimension", dimension, least=3)
    target_norm, label_noise_std = require_scales(
        zero=True, target_norm=target_norm, label_noise_std=label_noise_std
    )
    runs = _Runs.of(mechanisms)
    recorded = _recorded(runs, record)
    risk = np.empty((runs.settings, len(recorded)))
    isotropic_steps(rng, dimension, target_norm**2, label_noise_std, tuple(runs), recorded, risk)
    return [risk[part] for part in runs.parts]


class _Runs(NamedTuple):
    """Mechanisms for kernels: column i of the shapes is for settings `bounds[i]:bounds[i + 1]`."""

    step_shape: FloatArray
    noise_shape: FloatArray
    bounds: NDArray[np.int64]
    amplitude: FloatArray
    clip_norm: FloatArray

    @classmethod
    def of(cls, mechanisms: Sequence[Mechanism]) -> _Runs:
        # A mechanism has checked that its noise keeps its budget.
        for each in mechanisms:
            require_instance("mechanism", each, Mechanism)
        sizes = sorted({mechanism.sample_size for mechanism in mechanisms})
        if len(sizes) != 1:
            raise ValueError(f"mechanisms must be one or more, of equal sample size, got {sizes}")
        return cls(
            np.stack([each.step_shape for each in mechanisms], axis=-1),
            np.stack([each.noise_shape for each in mechanisms], axis=-1),
            np.cumsum([0, *(each.settings for each in mechanisms)]),
            np.concatenate([each.amplitude for each in mechanisms]),
            np.concatenate([each.clip_norm for each in mechanisms]),
        )

    @property
    def sample_size(self) -> int:
        return len(self.step_shape)

    @property
    def settings(self) -> int:
        return len(self.amplitude)

    @property
    def parts(self) -> list[slice]:
        """Settings of each mechanism."""
        return [slice(*ends) for ends in zip(self.bounds[:-1], self.bounds[1:], strict=True)]


def _fit_rows(
    runs: _Runs, features: FloatArray, labels: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """As `fit_together`, one sample at a time."""
    dimension = features.shape[1]
    one = runs.settings == 1
    parameters = np.zeros(dimension if one else (dimension, runs.settings))
    # Whole chunks, with enough draws for the compiled loop.
    size = max(ROWS_OF_ONE, CHUNK * -(-FEWEST // (CHUNK * dimension)))
    for first in range(0, runs.sample_size, size):
        block = slice(first, first + size)
        rows, targets = np.ascontiguousarray(features[block]), labels[block]
        steps, noise = runs.step_shape[block], runs.noise_shape[block]
        # The same draws as in blocks: none for a chunk without noise.
        noisy = np.logical_or.reduceat(np.any(noise > 0, axis=1), np.arange(0, len(noise), CHUNK))
        drawn = noisy.repeat(CHUNK)[: len(noise)]
        directions = np.zeros(rows.shape if drawn.any() else (0, dimension))
        if len(directions):
            directions[drawn] = standard_normal(rng, (int(np.count_nonzero(drawn)), dimension))
        for in_range in (False, True):
            data = (rows, targets, directions)
            if one:
                shapes = (steps[:, 0], noise[:, 0], runs.amplitude[0], runs.clip_norm[0])
                moved = step_rows(*data, *shapes, in_range, parameters)
            else:
                some = (steps, noise, *runs[2:])
                moved = step_narrow_rows(*data, some, in_range, parameters)
            if moved:
                break
            rows, targets, _ = rescaled(Chunk(rows, targets, row_norms(rows)))
    return parameters[None] if one else np.ascontiguousarray(parameters.T)


def _recorded(runs: _Runs, record: ArrayLike | None) -> NDArray[np.int64]:
    """Steps to record, each of which the kernel will reach and fill."""
    steps = [runs.sample_size] if record is None else record
    return require_increasing("record", steps, least=0, most=runs.sample_size)
