"""Mechanisms of one-pass DP-GD run together, over the same samples and private noise directions.

A function with one mechanism is `one_pass_dpgd`'s. With several, whose schedules may differ in
shape, it draws and multiplies once what all of them share; results of different mechanisms are
then dependent, and differences between them are to be taken trial by trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms import one_pass_dpgd_kernels as kernels
from privreg.algorithms.one_pass_mechanism import LARGEST, Mechanism
from privreg.algorithms.samples import Chunk, checked_data, rescaled, row_norms
from privreg.models import LinearModel
from privreg.noise.normals import FEWEST, standard_normal
from privreg.ranges import short
from privreg.validation import (
    require_count,
    require_counts,
    require_instance,
    require_number,
    require_rng,
)

CHUNK, ROWS_OF_ONE = 32, 1024
# Up to so many columns, inner products between the samples of a block cost more than they save.
NARROW = 16


def fit_together(
    mechanisms: Sequence[Mechanism],
    features: ArrayLike,
    labels: ArrayLike,
    rng: np.random.Generator,
) -> list[NDArray[np.float64]]:
    """Run every setting of every mechanism, with the same private noise directions.

    Guarantee
    ---------
    Each row of the results, (settings, dimension) a mechanism, keeps its mechanism's budget, as for
    `one_pass_dpgd.fit`. Only one of all may be released: they share noise.
    """
    runs = _Runs.of(mechanisms)
    require_rng("rng", rng)
    features, labels = checked_data(features, labels, sample_size=runs.sample_size)
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
        for start, noisy in zip(chunks.tolist(), noisy_chunks.tolist(), strict=True):
            block = slice(start, start + CHUNK)
            rows, noise = features[block], runs.noise_shape[block]
            directions = standard_normal(rng, rows.shape) if noisy else np.zeros((0, dimension))
            steps = np.empty((len(rows), runs.settings))
            targets = labels[block]
            # A row that is beyond the range is rare, and found where its square is formed anyhow.
            for in_range in (False, True):
                if kernels.step_block(
                    rows @ rows.T,
                    rows @ directions.T,
                    rows @ parameters.T,
                    targets,
                    runs.step_shape[block],
                    noise,
                    runs.bounds,
                    runs.amplitude,
                    runs.clip_norm,
                    in_range,
                    steps,
                ):
                    break
                rows, targets, _ = rescaled(Chunk(rows, targets, row_norms(rows)))
            np.matmul(steps.T, rows, out=moves)
            if noisy:
                kernels.move_and_perturb(
                    parameters, moves, noise.T @ directions, runs.bounds, scale
                )
            else:
                parameters -= moves
    return [parameters[part] for part in runs.parts]


def risk_paths_together(
    mechanisms: Sequence[Mechanism],
    model: LinearModel,
    rng: np.random.Generator,
    *,
    record: ArrayLike | None = None,
) -> list[NDArray[np.float64]]:
    """Excess risk along runs over samples drawn on the fly, which are never stored.

    Arguments are those of `one_pass_dpgd.risk_path`. Paths are diagnostics, not private releases.
    """
    require_instance("model", model, LinearModel)
    runs = _Runs.of(mechanisms)
    recorded = _recorded(runs, rng, record)
    risk = np.empty((runs.settings, len(recorded)))
    kernels.draw_and_step(
        rng,
        model.eigenvalues,
        np.tile(-model.target, (runs.settings, 1)),
        model.label_noise_std,
        runs.step_shape,
        runs.noise_shape,
        runs.bounds,
        runs.amplitude,
        runs.clip_norm,
        recorded,
        risk,
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
) -> list[NDArray[np.float64]]:
    """The same for an isotropic covariance, exactly in law, at a cost that does not depend on d.

    Arguments are those of `one_pass_dpgd.isotropic_risk_path`. Each mechanism's risk has its law
    exactly; jointly they share draws, but are not runs over the same samples, of which each sees
    its own components.
    """
    dimension = require_count("dimension", dimension, least=3)
    target_norm = require_number("target_norm", target_norm, least=0, most=LARGEST)
    label_noise_std = require_number("label_noise_std", label_noise_std, least=0, most=LARGEST)
    runs = _Runs.of(mechanisms)
    recorded = _recorded(runs, rng, record)
    risk = np.empty((runs.settings, len(recorded)))
    kernels.isotropic_steps(
        rng,
        dimension,
        target_norm**2,
        label_noise_std,
        runs.step_shape,
        runs.noise_shape,
        runs.bounds,
        runs.amplitude,
        runs.clip_norm,
        recorded,
        risk,
    )
    return [risk[part] for part in runs.parts]


@dataclass(frozen=True)
class _Runs:
    """Several mechanisms as arrays: a column of shapes each, whose settings follow one another."""

    step_shape: NDArray[np.float64]
    noise_shape: NDArray[np.float64]
    bounds: NDArray[np.int64]
    amplitude: NDArray[np.float64]
    clip_norm: NDArray[np.float64]

    @classmethod
    def of(cls, mechanisms: Sequence[Mechanism]) -> _Runs:
        if not isinstance(mechanisms, (list, tuple)) or not all(
            isinstance(each, Mechanism) for each in mechanisms
        ):
            raise ValueError(f"mechanisms must be a list of Mechanism, got {short(mechanisms)}")
        sizes = sorted({mechanism.sample_size for mechanism in mechanisms})
        if len(sizes) != 1:
            raise ValueError(f"mechanisms must be at least one, of one sample size, got {sizes}")
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
    runs: _Runs,
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """As `fit_together`, from sample to sample."""
    dimension = features.shape[1]
    one = runs.settings == 1
    parameters = np.zeros(dimension if one else (dimension, runs.settings))
    # Whole chunks, with enough draws for the compiled loop.
    size = max(ROWS_OF_ONE, CHUNK * -(-FEWEST // (CHUNK * dimension)))
    for start in range(0, runs.sample_size, size):
        block = slice(start, start + size)
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
                moved = kernels.step_rows(*data, *shapes, in_range, parameters)
            else:
                moved = kernels.step_narrow_rows(
                    *data,
                    steps,
                    noise,
                    runs.bounds,
                    runs.amplitude,
                    runs.clip_norm,
                    in_range,
                    parameters,
                )
            if moved:
                break
            rows, targets, _ = rescaled(Chunk(rows, targets, row_norms(rows)))
    return parameters[None] if one else np.ascontiguousarray(parameters.T)


def _recorded(runs: _Runs, rng: np.random.Generator, record: ArrayLike | None) -> NDArray[np.int64]:
    """Steps to record, each of which the kernel will reach and fill."""
    require_rng("rng", rng)
    if record is None:
        return np.array([runs.sample_size])
    steps = require_counts("record", record, least=0, most=runs.sample_size)
    if steps.ndim != 1 or np.any(np.diff(steps) < 0):
        raise ValueError(f"record must be increasing steps, got {short(record)}")
    return steps
