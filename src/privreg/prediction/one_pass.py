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

from privreg.prediction.clipping import clipped_moments
from privreg.prediction.methods import OnePass
from privreg.prediction.moments import ErrorMoments
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget

FloatArray = NDArray[np.float64]
PANELS_PER_DECADE = 14


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
    n, sigma = problem.sample_size, problem.label_noise_std
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
    total = bias * rows.squared_signal

    def slopes(energy: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
        taken = np.minimum(rate[:, None] / n, cap)
        variance = sigma**2 + rows.quadratic(np.minimum(np.nan_to_num(energy, nan=1e100), 1e100))
        share, square = clipped_moments(widths, np.sqrt(variance))
        return rows.per_coordinate(taken * share), rows.per_coordinate(taken**2 * square)

    with np.errstate(over="ignore", invalid="ignore"):
        pull, kick = slopes(total, rates[:, 0])
        for at in range(1, len(times)):
            count = n * (times[at] - times[at - 1])
            # Per step and per time the noise is known exactly.
            noise = (energy_of_noise * (rates[:, at - 1] ** 2 - rates[:, at] ** 2) / n**2)[:, None]
            predicted, _ = _advance(total, bias, pull, kick, noise, count)
            next_pull, next_kick = slopes(predicted, rates[:, at])
            total, bias = _advance(
                total, bias, (pull + next_pull) / 2, (kick + next_kick) / 2, noise, count
            )
            pull, kick = slopes(total, rates[:, at])
        total = total + (energy_of_noise * rates[:, -1] ** 2 / n**2)[:, None]
    squared = bias**2 * rows.squared_signal
    return ErrorMoments(squared, np.maximum(total - squared, 0.0))


def _advance(
    total: FloatArray,
    bias: FloatArray,
    pull: FloatArray,
    kick: FloatArray,
    noise: FloatArray,
    count: float,
) -> tuple[FloatArray, FloatArray]:
    decay = np.exp(-2 * pull * count)
    gone = np.where(pull * count > 1e-12, -np.expm1(-2 * pull * count) / (2 * pull * count), 1.0)
    return total * decay + (kick * count + noise) * gone, bias * np.sqrt(decay)


def _times(sample_size: int) -> FloatArray:
    """From 0 to 1, geometric at both ends down to a step."""
    decades = max(np.log10(sample_size / 2), 1)
    rising = np.geomspace(1 / sample_size, 0.5, int(np.ceil(PANELS_PER_DECADE * decades)))
    return np.concatenate([[0.0], rising, 1 - rising[-2::-1], [1.0]])
