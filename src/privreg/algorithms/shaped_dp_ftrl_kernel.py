"""The inner loop of shaped DP-FTRL, compiled. `shaped_dp_ftrl` says what it computes."""

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
    shared_noise,
    noise_scale,
    shared_scale,
    step_size,
    clip_norm,
    parameters,
    total,
    clipped,
):
    """One step a row for every setting; the iterates after each step are added to `total`.

    `parameters`, `total` and `noise_scale` have shape (d, settings), so that the innermost loop is
    over settings and no sum changes its order. `noise` (rows, d) is scaled by coordinate and
    setting, `shared_noise` (rows or 0, d) by setting alone. `norms` (rows, settings) are the
    features' inverse norms.
    """
    rows, dimension = features.shape
    settings = parameters.shape[1]
    shared = shared_noise.shape[0] > 0
    prediction = np.zeros(settings)
    move = np.zeros(settings)
    for i in range(dimension):
        for s in range(settings):
            prediction[s] += features[0, i] * parameters[i, s]
    for t in range(rows):
        for s in range(settings):
            residual = prediction[s] - labels[t]
            if abs(residual) * norms[t, s] > clip_norm[s]:
                residual = math.copysign(clip_norm[s] / norms[t, s], residual)
                clipped[s] += 1
            move[s] = step_size[s] * residual
            prediction[s] = 0.0
        following = min(t + 1, rows - 1)
        for i in range(dimension):
            row, running, scale = parameters[i], total[i], noise_scale[i]
            here, ahead, increment = features[t, i], features[following, i], noise[t, i]
            if shared:
                common = shared_noise[t, i]
                for s in range(settings):
                    value = (
                        row[s] - shared_scale[s] * common - move[s] * here - scale[s] * increment
                    )
                    row[s] = value
                    running[s] += value
                    prediction[s] += ahead * value
            else:
                for s in range(settings):
                    value = row[s] - move[s] * here - scale[s] * increment
                    row[s] = value
                    running[s] += value
                    prediction[s] += ahead * value
