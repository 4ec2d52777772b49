r"""Error of one epoch of DP-FTRL whose noise is correlated over the steps.

A step's noise enters the last iterate through the contractions after it. With
:math:`v_t = \eta\prod_{u>t}a_u` along an eigenvector and the decoder's Toeplitz matrix B, the
private noise leaves :math:`\sigma^2\|B^\top v\|^2` and each batch its own sampling noise.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from privreg.noise.toeplitz import damped_square_root, damped_square_root_encoder
from privreg.prediction.clipping import clipped_residual, finite
from privreg.prediction.methods import CorrelatedNoise
from privreg.prediction.misfit import squared_shift
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows, require_setting
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import sum_sensitivity
from privreg.validation import require_instance

FloatArray = NDArray[np.float64]
PASSES, STALE = 2, 0.05


def follow(problem: Problem, rows: Rows, method: CorrelatedNoise, budget: Budget) -> ErrorMoments:
    """Moments of the error of the last iterate.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    method : CorrelatedNoise
    budget : Budget
        For replace-one or zero-out neighbours.
    """
    require_setting(problem, rows, budget)
    require_instance("method", method, CorrelatedNoise)
    batch, eta = min(method.batch_size, problem.sample_size), method.step_size
    steps = ceil(problem.sample_size / batch)
    coefficients = damped_square_root(steps, damping=method.damping)
    encoder = damped_square_root_encoder(steps, damping=method.damping)
    change = float(sum_sensitivity(method.clip_norm, neighbours=budget.neighbours))
    std = float(np.sqrt(encoder @ encoder)) * change / (batch * budget.root)
    widths = method.clip_norm / np.maximum(rows.norms, 1e-300)
    signal = rows.squared_signal
    private = np.zeros_like(signal)
    for _ in range(PASSES):
        bias, sampling = np.ones_like(signal), np.zeros_like(signal)
        contractions = np.empty((steps, len(signal)))
        last = np.full_like(signal, -1.0)
        for step in range(steps):
            energy = finite(bias**2 * signal + sampling + private)
            if not np.all(np.abs(energy - last) <= STALE * last):
                last = energy
                found = clipped_residual(
                    problem,
                    rows,
                    widths,
                    squared_bias=finite(bias**2 * signal),
                    variance=finite(sampling + private),
                )
                drift, pull, kick = map(rows.per_coordinate, found)
            contractions[step] = 1 - eta * pull
            with np.errstate(over="ignore", invalid="ignore"):
                bias = bias * (1 - eta * drift)
                sampling = (
                    contractions[step] ** 2 * sampling
                    + eta**2 * np.maximum(kick - pull**2 * last, 0.0) / batch
                )
        with np.errstate(over="ignore", invalid="ignore"):
            after = np.cumprod(contractions[::-1], axis=0)
            loads = eta * np.concatenate([np.ones((1, len(signal))), after[:-1]])
            # Reversed in time, so that the transposed product is a convolution.
            size = next_fast_len(2 * steps - 1, real=True)
            spectrum = rfft(coefficients, size)[:, None] * rfft(loads, size, axis=0)
            loads = np.asarray(irfft(spectrum, size, axis=0))[:steps]
            private = std**2 * np.sum(loads**2, axis=0)
    moved = squared_shift(problem, rows, widths[None], covered=1 - bias)[0]
    return ErrorMoments((bias**2 * signal + moved)[None], (sampling + private)[None])
