r"""Error of one-pass DP-GD: its deterministic equivalent, row by row.

.. math:: \dot C_j = n\Big(-2\,\mathbb E[x_j^2\,\eta_x\pi_x]\,C_j + \mathbb E[x_j^2\,\eta_x^2 q_x]
    + 4\gamma^2\sigma_k^2\Big), \qquad \eta_x = \min(\eta_k, 2/\|x\|^2)

with π and q those of a residual of variance :math:`\sigma^2 + \sum_j x_j^2 C_j` clipped at
:math:`\gamma/\|x\|`. As d grows the norms concentrate and this is the system of bombari2025,
equations (4.7) and (4.8); at small d, and for features with heavy tails, the rows' own norms and
fourth moments stay in.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from privreg.prediction.clipping import clipped_residual, finite
from privreg.prediction.methods import OnePass, require_methods
from privreg.prediction.misfit import squared_shift
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows, require_setting
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]
PANELS_PER_DECADE = 10


def follow(
    problem: Problem, rows: Rows, methods: Sequence[OnePass], budget: Budget
) -> ErrorMoments:
    """Moments of the error of the last iterate, its own noise included.

    Parameters
    ----------
    problem : Problem
    rows : Rows
        Those of the problem.
    methods : sequence of OnePass
        Settings, followed together.
    budget : Budget
        For replace-one neighbours.
    """
    require_setting(problem, rows, budget)
    methods = require_methods(methods, OnePass)
    n = problem.sample_size
    times = _times(n)
    rates = np.array(
        [
            float(np.asarray(each.schedule.amplitude).reshape(())) * each.schedule.shape(times)
            for each in methods
        ]
    )
    clip = np.sqrt(problem.dimension) * np.array([each.clip_constant for each in methods])
    energy_of_noise = 0.0 if budget.root == inf else (2 * clip / budget.root) ** 2
    cap = 2 / np.maximum(rows.norms, 1e-300) ** 2
    widths = clip[:, None] / np.maximum(rows.norms, 1e-300)
    bias = np.ones((len(methods), len(rows.eigenvalues)))
    variance = np.zeros_like(bias)
    signal = rows.squared_signal

    def slopes(
        bias: FloatArray, variance: FloatArray, rate: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        taken = np.minimum(rate[:, None] / n, cap)
        found = clipped_residual(
            problem,
            rows,
            widths,
            squared_bias=finite(bias**2 * signal),
            variance=finite(variance),
        )
        return (
            rows.per_coordinate(taken * found.drift),
            rows.per_coordinate(taken * found.share),
            rows.per_coordinate(taken**2 * found.square),
        )

    with np.errstate(over="ignore", invalid="ignore"):
        now = slopes(bias, variance, rates[:, 0])
        for at in range(1, len(times)):
            count = n * (times[at] - times[at - 1])
            # Per step and per time the noise is known exactly.
            noise = (energy_of_noise * (rates[:, at - 1] ** 2 - rates[:, at] ** 2) / n**2)[:, None]
            ahead = slopes(*_advance(bias, variance, now, noise, count), rates[:, at])
            between = tuple((one + other) / 2 for one, other in zip(now, ahead, strict=True))
            bias, variance = _advance(bias, variance, between, noise, count)
            now = slopes(bias, variance, rates[:, at])
        variance = variance + (energy_of_noise * rates[:, -1] ** 2 / n**2)[:, None]
    moved = squared_shift(problem, rows, widths, covered=1 - bias)
    return ErrorMoments(bias**2 * signal + moved, variance)


def _advance(
    bias: FloatArray,
    variance: FloatArray,
    slopes: tuple[FloatArray, ...],
    noise: FloatArray,
    count: float,
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance after some steps of constant slopes."""
    drift, pull, kick = slopes
    path = pull * count
    gone = np.where(path > 1e-12, -np.expm1(-2 * path) / (2 * np.where(path > 0, path, 1.0)), 1.0)
    return bias * np.exp(-drift * count), variance * np.exp(-2 * path) + (
        kick * count + noise
    ) * gone


def _times(sample_size: int) -> FloatArray:
    """From 0 to 1, geometric at both ends down to a step."""
    decades = max(np.log10(sample_size / 2), 1)
    rising = np.geomspace(1 / sample_size, 0.5, int(np.ceil(PANELS_PER_DECADE * decades)))
    return np.concatenate([[0.0], rising, 1 - rising[-2::-1], [1.0]])
