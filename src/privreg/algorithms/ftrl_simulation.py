r"""Noisy-FTRL and DP-FTRL on Gaussian data drawn on the fly, to set beside the theory.

The samples are never stored; the correlated noise of a run, steps × dimension numbers, is.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.algorithms.clipped_gradient import LARGEST_PARAMETER, require_clip_norm
from privreg.algorithms.dp_ftrl_kernels import draw_and_step
from privreg.noise.normals import standard_normal
from privreg.noise.streams import correlate_noise
from privreg.ranges import short
from privreg.validation import (
    require_array,
    require_count,
    require_counts,
    require_number,
    require_rng,
)

FloatArray = NDArray[np.float64]

# Columns of noise transformed at once: the transform of a column is twice its size, and complex.
COLUMNS = 16
LARGEST = 1e50


class FTRLRisks(NamedTuple):
    """Excess risks of independent runs, half the squared error in the norm of the covariance.

    `risks`, shape (runs, len(record)), stand at the recorded steps; `averages`, shape (runs,), are
    means over the steps from `burn_in` to the last; `clipped_fraction`, shape (runs,), is the share
    of gradients that were clipped. None of them is a private release.
    """

    risks: FloatArray
    averages: FloatArray
    clipped_fraction: FloatArray


def simulate_ftrl(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    decoder: ArrayLike,
    gradient_noise_std: float,
    steps: int,
    rng: np.random.Generator,
    label_noise_std: float = 0.0,
    clip_norm: float = inf,
    initial_error: ArrayLike | None = None,
    burn_in: int = 0,
    record: ArrayLike | None = None,
    runs: int = 1,
) -> FTRLRisks:
    r"""Run one-pass FTRL on fresh samples of :math:`N(0,\mathrm{diag}\,\lambda)`, one a step.

    `decoder` holds coefficients β of `privreg.noise.toeplitz`, and what is missing of it is 0;
    `initial_error` is θ_0 - θ* in the eigenbasis. Risks are recorded after the steps in `record`,
    0 for the start and by default the last, and averaged over time from `burn_in` on. They are
    `inf` where the iteration is unstable.
    """
    within = {"least": -LARGEST, "most": LARGEST}
    values = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=LARGEST)
    scales = np.sqrt(values)
    eta = require_number("step_size", step_size, above=0, most=LARGEST)
    sigma = require_number("gradient_noise_std", gradient_noise_std, least=0, most=LARGEST)
    zeta = require_number("label_noise_std", label_noise_std, least=0, most=LARGEST)
    require_number("clip_norm", clip_norm, above=0, infinite=True)
    clip = float(require_clip_norm(clip_norm))
    require_rng("rng", rng)
    count, repeats = require_count("steps", steps), require_count("runs", runs)
    first = require_count("burn_in", burn_in, least=0)
    if first > count:
        raise ValueError(f"burn_in must be at most steps, {count}, got {first}")
    d = scales.size
    start = np.zeros(d)
    if initial_error is not None:
        limits = {"least": -LARGEST_PARAMETER, "most": LARGEST_PARAMETER}
        start = require_array("initial_error", initial_error, shape=(d,), **limits)
    coefficients = require_array("decoder", decoder, shape=(None,), **within)
    if coefficients.size > count:
        raise ValueError(
            f"decoder must have at most steps, {count}, entries, got {coefficients.size}"
        )
    wanted = _record(record, count)
    risks = np.zeros((repeats, wanted.size))
    averages, clipped = np.zeros(repeats), np.zeros(repeats)
    noise = np.zeros((count, d))
    for run in range(repeats):
        if sigma > 0:
            _fill_noise(noise, coefficients, sigma, rng)
        averages[run], clips = draw_and_step(
            rng, scales, start.copy(), zeta, eta, clip, noise, first, wanted, risks[run]
        )
        clipped[run] = clips / count
    # An unstable iteration leaves double precision, by way of opposite infinities.
    risks[np.isnan(risks)], averages[np.isnan(averages)] = inf, inf
    return FTRLRisks(risks=risks, averages=averages, clipped_fraction=clipped)


def _fill_noise(
    noise: FloatArray, decoder: FloatArray, std: float, rng: np.random.Generator
) -> None:
    steps, d = noise.shape
    kernel = np.trim_zeros(decoder, "b")
    for left in range(0, d, COLUMNS):
        block = standard_normal(rng, (steps, min(COLUMNS, d - left)))
        block *= std
        if kernel.size:
            noise[:, left : left + COLUMNS] = correlate_noise(kernel, block)


def _record(record: ArrayLike | None, steps: int) -> NDArray[np.int64]:
    if record is None:
        return np.array([steps], dtype=np.int64)
    wanted = require_counts("record", record, least=0, most=steps)
    if (
        wanted.ndim != 1
        or wanted.size == 0
        or np.any(np.diff(wanted, prepend=-1, append=steps + 1) < 1)
    ):
        raise ValueError(
            f"record must be whole numbers that increase within 0..{steps}, got {short(record)}"
        )
    return wanted
