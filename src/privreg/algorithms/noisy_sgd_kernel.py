"""The compiled loop of one-pass noisy SGD. `privreg.algorithms.noisy_sgd` says what it computes."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privreg.sums import inner_product

# Below this share of its parts a sum of squares is formed again, coordinate by coordinate.
CANCELLED = 1e-6


@njit(cache=True, nogil=True)
def one_pass(
    rng: np.random.Generator,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    uniform: bool,
    mean: NDArray[np.float64],
    std: NDArray[np.float64],
    target: NDArray[np.float64],
    label_noise_std: float,
    label_noise_clip: float,
    label_noise_square: float,
    step_sizes: NDArray[np.float64],
    gradient_noise_stds: NDArray[np.float64],
    clip_norms: NDArray[np.float64],
    ridge: float,
    iterate: NDArray[np.float64],
    risk: NDArray[np.float64],
    clipped: NDArray[np.float64],
    in_range: bool,
) -> bool:
    """Advance `iterate` (settings, d) over all steps; fill `risk` (settings, steps + 1).

    A setting is a noise and a norm, all norms at the first noise first.

    Without rows each step draws d feature coordinates, a label noise and d noise coordinates,
    in that order; with rows the d noise coordinates only. `clipped` (settings,) counts the steps
    whose gradient was longer than the norm.

    Returns whether all rows and labels are in the range of `is_within_range`, which is not
    looked at if `in_range` says so; where not, nothing has been drawn or written.
    """
    settings, dimension = iterate.shape
    given = rows.shape[0] > 0
    if given and not in_range:
        for k in range(step_sizes.size):
            square = inner_product(rows[k], rows[k])
            if not (1e-100 <= square <= 1e100 and abs(labels[k]) <= 1e110):
                return False
    noise_std, clip_norm = np.empty(settings), np.empty(settings)
    for s in range(settings):
        noise_std[s] = gradient_noise_stds[s // clip_norms.size]
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
    return True
