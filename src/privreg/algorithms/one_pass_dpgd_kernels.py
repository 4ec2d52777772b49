"""The inner loops of one-pass DP-GD, compiled; `one_pass_dpgd` says what they compute."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath=True)
def draw_and_step(  # type: ignore[no-untyped-def]
    rng,
    eigenvalues,
    deviation,
    label_noise_std,
    step_shape,
    noise_shape,
    amplitude,
    clip_norm,
    record,
    risk_out,
):
    """Gaussian samples drawn in the loop; `deviation` is theta - theta*, shape (settings, d)."""
    settings, dimension = deviation.shape
    scale = np.sqrt(eigenvalues)
    sample = np.empty(dimension)
    direction = np.empty(dimension)
    recorded = 0
    for step in range(len(step_shape) + 1):
        if step > 0:
            squared_norm = 0.0
            for i in range(dimension):
                sample[i] = scale[i] * rng.standard_normal()
                squared_norm += sample[i] * sample[i]
            label_noise = label_noise_std * rng.standard_normal()
            noise = noise_shape[step - 1]
            if noise > 0:
                for i in range(dimension):
                    direction[i] = rng.standard_normal()
            cap = 2 / squared_norm
            norm = math.sqrt(squared_norm)
            for setting in range(settings):
                row = deviation[setting]
                residual = -label_noise
                for i in range(dimension):
                    residual += sample[i] * row[i]
                rate = min(amplitude[setting] * step_shape[step - 1], cap)
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
                total = 0.0
                for i in range(dimension):
                    total += eigenvalues[i] * deviation[setting, i] ** 2
                risk_out[setting, recorded] = total / 2
            recorded += 1


@njit(cache=True, nogil=True, fastmath=True)
def step_block(  # type: ignore[no-untyped-def]
    gram,
    noise_overlap,
    predictions,
    labels,
    step_shape,
    noise_shape,
    amplitude,
    clip_norm,
    steps_out,
):
    """Moves along each sample of a block.

    `predictions` (sample_size, settings) are those of the parameters before the block; `gram` and
    `noise_overlap` (sample_size, samples) are inner products of samples with samples and with the
    directions of the private noise (no column if the block has none).
    """
    sample_size, settings = predictions.shape
    noisy = noise_overlap.shape[1] > 0
    for k in range(sample_size):
        drift = 0.0
        if noisy:
            for j in range(k):
                drift += noise_shape[j] * noise_overlap[k, j]
        row = predictions[k]
        for setting in range(settings):
            row[setting] += 2 * clip_norm[setting] * amplitude[setting] * drift - labels[k]
        for j in range(k):
            overlap = gram[k, j]
            moved = steps_out[j]
            for setting in range(settings):
                row[setting] -= overlap * moved[setting]
        squared_norm = gram[k, k]
        if squared_norm > 0:
            cap = 2 / squared_norm
            norm = math.sqrt(squared_norm)
            for setting in range(settings):
                rate = min(amplitude[setting] * step_shape[k], cap)
                threshold = clip_norm[setting] / norm
                steps_out[k, setting] = rate * max(-threshold, min(threshold, row[setting]))
        else:
            steps_out[k] = 0.0


@njit(cache=True, nogil=True, fastmath=True)
def isotropic_steps(  # type: ignore[no-untyped-def]
    rng,
    dimension,
    squared_error,
    label_noise_std,
    step_shape,
    noise_shape,
    amplitude,
    clip_norm,
    record,
    risk_out,
):
    """One squared error a setting; a step draws what all settings share."""
    settings = len(amplitude)
    error = np.full(settings, squared_error)
    recorded = 0
    for step in range(len(step_shape) + 1):
        if step > 0:
            along = rng.standard_normal()
            across = math.sqrt(rng.chisquare(dimension - 1))
            label_noise = label_noise_std * rng.standard_normal()
            squared_norm = along * along + across * across
            cap = 2 / squared_norm
            inverse_norm = 1 / math.sqrt(squared_norm)
            size = step_shape[step - 1]
            noise = noise_shape[step - 1]
            if noise > 0:
                first = rng.standard_normal()
                second = rng.standard_normal()
                rest = rng.chisquare(dimension - 2)
                for g in range(settings):
                    length = math.sqrt(error[g])
                    threshold = clip_norm[g] * inverse_norm
                    residual = length * along - label_noise
                    move = min(amplitude[g] * size, cap) * max(-threshold, min(threshold, residual))
                    spread = 2 * clip_norm[g] * amplitude[g] * noise
                    parallel = length - move * along + spread * first
                    crossing = spread * second - move * across
                    error[g] = parallel * parallel + crossing * crossing + spread * spread * rest
            else:
                for g in range(settings):
                    length = math.sqrt(error[g])
                    threshold = clip_norm[g] * inverse_norm
                    residual = length * along - label_noise
                    move = min(amplitude[g] * size, cap) * max(-threshold, min(threshold, residual))
                    parallel = length - move * along
                    crossing = move * across
                    error[g] = parallel * parallel + crossing * crossing
        while recorded < len(record) and record[recorded] == step:
            for g in range(settings):
                risk_out[g, recorded] = error[g] / 2
            recorded += 1
