"""Many settings of shaped DP-FTRL over the same rows and the same noise, for studies."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike

from privreg.algorithms.shaped_dp_ftrl_kernel import step_rows
from privreg.privacy.release import Diagnostic
from privreg.validation import (
    FloatArray,
    require_array,
    require_count,
    require_real,
)


def run_settings(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    inverse_norms: ArrayLike,
    noise: ArrayLike,
    noise_scale: ArrayLike,
    step_size: ArrayLike,
    clip_norm: ArrayLike,
    shared_noise: ArrayLike | None = None,
    shared_scale: ArrayLike | None = None,
    block: int = 64,
) -> tuple[FloatArray, Diagnostic[FloatArray]]:
    """Average iterates of many settings over the same rows and noise, with fixed clip norms.

    It is the loop of `shaped_dp_ftrl` for studies that compare settings; each setting by itself has
    that function's law, but their comparison is not private. `inverse_norms` (settings, N) are
    √(xᵀΣ⁻¹x) under each setting's Σ; `noise` (N - 1, d) are increments of standard normal noise in
    the chosen correlation, which `noise_scale` (settings, d) multiplies: τψ times the root of a
    diagonal Σ. `shared_noise` (N - 1, d) is a second part, the low-rank one of `PublicCovariance`,
    with a multiplier a setting. At most `block` settings pass over the rows together; their state
    should fit the cache. The averages (settings, d) of a setting that overflowed are `inf`.
    """
    rows = require_array("features", features, shape=(None, None))
    size, dimension = rows.shape
    if size < 2:
        raise ValueError(f"features must have at least two rows, got {size}")
    values = require_array("labels", labels, shape=(size,))
    norms = require_array("inverse_norms", inverse_norms, shape=(None, size), least=0)
    count = len(norms)
    increments = require_array("noise", noise, shape=(size - 1, dimension))
    scale = require_array("noise_scale", noise_scale, shape=(count, dimension))
    eta = require_real("step_size", require_array("step_size", step_size, shape=(count,)), above=0)
    clips = require_real("clip_norm", clip_norm, above=0, infinite=True)
    if clips.shape != (count,):
        raise ValueError(f"clip_norm must have shape ({count},), got {clips.shape}")
    common, weights = np.zeros((0, dimension)), np.zeros(count)
    if (shared_noise is None) != (shared_scale is None):
        raise ValueError("shared_noise must be given together with shared_scale, got one of them")
    if shared_noise is not None and shared_scale is not None:
        common = require_array("shared_noise", shared_noise, shape=(size - 1, dimension))
        weights = require_array("shared_scale", shared_scale, shape=(count,))
    averages = np.zeros((count, dimension))
    clipped = np.zeros(count)
    # Blocks of one width: a narrow rest would take nearly as long as a whole one.
    block = ceil(count / ceil(count / require_count("block", block)))
    for first in range(0, count, block):
        some = slice(first, first + block)
        width = len(eta[some])
        total = np.zeros((dimension, width))
        hits = np.zeros(width)
        step_rows(
            rows[:-1],
            values,
            np.ascontiguousarray(norms[some].T),
            increments,
            common,
            np.ascontiguousarray((eta[some, None] * scale[some]).T),
            eta[some] * weights[some],
            eta[some],
            clips[some],
            np.zeros((dimension, width)),
            total,
            hits,
        )
        averages[some], clipped[some] = total.T / size, hits / (size - 1)
    averages[~np.all(np.isfinite(averages), axis=1)] = inf
    return averages, Diagnostic(clipped, "share of clipped gradients")
