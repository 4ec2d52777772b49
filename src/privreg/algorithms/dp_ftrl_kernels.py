"""The inner loops of DP-FTRL, compiled. `dp_ftrl` and `ftrl_simulation` say what they compute."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def step_rows(  # type: ignore[no-untyped-def]
    features,
    labels,
    norms,
    noise,
    theta,
    gradient,
    progress,
    step_sizes,
    ridge,
    clip_norm,
    batch_size,
    epoch_ends,
    times,
    released,
):
    """Take in rows; after each full batch, and after the last of an epoch, make a step.

    `gradient` sums the batch so far; `progress` counts steps, rows in the batch, iterates released
    and gradients clipped; `noise` has a row for each step that these rows complete.
    """
    rows, dimension = features.shape
    used = 0
    for i in range(rows):
        residual = -labels[i]
        for j in range(dimension):
            residual += features[i, j] * theta[j]
        if abs(residual) * norms[i] > clip_norm:
            residual = math.copysign(clip_norm / norms[i], residual)
            progress[3] += 1
        for j in range(dimension):
            gradient[j] += residual * features[i, j]
        progress[1] += 1
        if progress[1] == batch_size or (epoch_ends and i == rows - 1):
            step = progress[0]
            eta = step_sizes[step]
            for j in range(dimension):
                mean = gradient[j] / batch_size
                theta[j] -= eta * (mean + ridge * theta[j] + noise[used, j])
                gradient[j] = 0.0
            used += 1
            progress[0] = step + 1
            progress[1] = 0
            if progress[2] < len(times) and times[progress[2]] == step + 1:
                released[progress[2]] = theta
                progress[2] += 1


@njit(cache=True, nogil=True, error_model="numpy")
def draw_and_step(  # type: ignore[no-untyped-def]
    rng, scales, error, label_noise_std, step_size, clip_norm, noise, first_averaged, record, risks
):
    """Fresh Gaussian rows, given noise; returns the mean risk from `first_averaged` on, and clips.

    `error` is θ - θ*; `risks` receives the excess risk after the steps in `record`.
    """
    steps, dimension = noise.shape
    sample = np.empty(dimension)
    total, clipped, slot = 0.0, 0, 0
    for step in range(steps + 1):
        if step > 0:
            residual, squared = 0.0, 0.0
            for j in range(dimension):
                sample[j] = scales[j] * rng.standard_normal()
                squared += sample[j] * sample[j]
                residual += sample[j] * error[j]
            residual -= label_noise_std * rng.standard_normal()
            norm = math.sqrt(squared)
            if abs(residual) * norm > clip_norm:
                residual = math.copysign(clip_norm / norm, residual)
                clipped += 1
            for j in range(dimension):
                error[j] -= step_size * (residual * sample[j] + noise[step - 1, j])
        wanted = slot < len(record) and record[slot] == step
        if wanted or step >= first_averaged:
            risk = 0.0
            for j in range(dimension):
                move = scales[j] * error[j]
                risk += move * move
            risk *= 0.5
            if wanted:
                risks[slot] = risk
                slot += 1
            if step >= first_averaged:
                total += risk
    averaged = steps + 1 - first_averaged
    return (total / averaged if averaged > 0 else math.nan), clipped
