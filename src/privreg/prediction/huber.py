r"""Error of private Huber regression (`huber_descent`): its steps, followed on expectations.

In the whitened coordinates of the algorithm the descent is that of `full_batch`. What is followed
besides is how the private Gram matrix whitens each group of eigenvalues, with what noise is left
in it, how the private residual scale moves the clip, and the noise of the Newton matrix.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.huber_scales import residual_scale, scale_edges, white_cap
from privreg.prediction.clipping import clipped_rows, clipped_slopes, finite, squared_scales
from privreg.prediction.finite_sample import count_nodes, sample_nodes, sampling_inflation
from privreg.prediction.gram_rounds import Whitening, nodes_gain, whiten
from privreg.prediction.misfit import squared_shift
from privreg.prediction.predicted_error import ErrorMoments
from privreg.prediction.problem import LabelNoiseLaw, Problem
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import gram_sensitivity, sum_sensitivity
from privreg.theory.huber_descent.last_iterate import averaging_step_sizes

FloatArray = NDArray[np.float64]
HISTOGRAM_ROWS, MIXTURE_ROWS = 256, 32
# Share of the records in the fullest bin of a residual histogram.
TALLEST_BIN = 0.27


@dataclass(frozen=True, eq=False)
class Outcome:
    """Moments of the error, and the numbers that decide whether they can be relied on."""

    moments: ErrorMoments
    unclipped: float  # share of whole gradients in the final steps
    scale_noise: float  # noise of the residual histogram's largest count over that count
    excursion: float  # largest residual variance on the way over the one at the start
    arrival: float  # residual variance before the final steps over the label noise's
    whitening: Whitening


def follow(problem: Problem, rows: Rows, settings: HuberSettings, budget: Budget) -> Outcome:
    """Follow one fit."""
    n, p, sigma = problem.sample_size, problem.dimension, problem.label_noise_std
    shrink = np.minimum(1.0, problem.feature_norm / np.maximum(rows.norms, 1e-300))
    whitening = whiten(problem, rows, settings, budget, shrink)
    white = rows.energies * shrink[:, None] ** 2 * whitening.squares
    whitened = dataclasses.replace(rows, energies=rows.energies * whitening.squares)
    lengths = np.maximum(np.sqrt(white.sum(axis=1)), 1e-300)
    signal = rows.squared_signal / whitening.squares
    # How a gradient is bounded: by its residual's clip alone, or by the row's length as well.
    leverage = np.ones_like(lengths)
    if settings.common_width:
        leverage = np.minimum(1.0, sqrt(p) / lengths)
        lengths = np.full_like(lengths, sqrt(p))
    ratio = p / n
    slope = 2 * float(ndtr(settings.clip_width)) - 1
    sizes = averaging_step_sizes(settings.warm_up_steps, settings.final_steps)
    typical = _typical(lengths / sqrt(p) * shrink, rows.weights, problem.label_noise_law)
    nodes, weights = _nodes(problem, rows, settings, budget, whitening, slope)
    bias = np.ones((len(signal), nodes.shape[-1]))
    private, sampling = np.zeros_like(bias), np.zeros(len(signal))
    warm_up = settings.warm_up_share / settings.warm_up_steps
    final = settings.final_share / settings.final_steps
    change = float(sum_sensitivity(1.0, neighbours=budget.neighbours))
    own, factors, none = (
        clipped_rows(problem, whitened),
        leverage * shrink**2,
        np.zeros(len(signal)),
    )
    scale, path = 0.0, []
    for step, size in enumerate(sizes):
        late = step >= settings.warm_up_steps
        squared_bias, variance = (bias**2 @ weights) * signal, private @ weights
        total = sigma**2 + whitened.quadratic(finite(squared_bias + variance))
        path.append(float(rows.weights @ total))
        if step <= settings.warm_up_steps:
            # The sample's own residuals are smaller than those of new rows.
            inner = np.maximum(total - sigma**2 * min(ratio, 0.5), 0.0)
            share = sigma**2 / path[-1] if problem.label_noise_law != "gaussian" else 1.0
            unit_scale = _unit_scale(typical, round(min(share, 1.0), 3), problem.label_noise_law)
            scale = unit_scale * sqrt(float(rows.weights @ inner))
        clip = settings.clip_width * scale * sqrt(p)
        widths = clip / lengths / shrink
        slopes, unclipped = clipped_slopes(own, widths, factors, squared_bias, variance)
        if step <= settings.warm_up_steps:
            source = clipped_slopes(own, widths, factors, none, none)[0][2]
        drift, curvature = slopes[0], slopes[1]
        noise = change * clip / (n * sqrt(2 * (final if late else warm_up) * budget.rho))
        newton = late and settings.moment_share > 0
        mean = float(curvature @ rows.multiplicities / p)
        matrix = size / (np.clip(mean, 0.25 * slope, 1.5) if newton else slope)
        step_nodes = matrix * (nodes[1] if newton else np.ones_like(nodes[1]))
        contraction = 1 - step_nodes * curvature[:, None] * nodes[0]
        bias *= 1 - step_nodes * drift[:, None] * nodes[0]
        private = contraction**2 * private + (step_nodes * noise) ** 2
        sampling = (1 - matrix * curvature) * sampling + matrix * np.sqrt(source / n)
    energy = private @ weights
    inflation = _inflation(
        problem, rows, clip / lengths, other_variance=float(rows.weights @ (white @ energy))
    )
    back = whitening.squares
    moved = squared_shift(
        problem,
        rows,
        widths[None],
        leverage=factors,
        covered=1 - bias @ weights,
    )
    moments = ErrorMoments(
        ((bias**2 @ weights) * signal * back)[None],
        (back * (inflation * sampling**2 + nodes_gain(whitening, ratio) * energy))[None],
        moved,
    )
    histogram = float(gram_sensitivity(1.0, neighbours=budget.neighbours)) / sqrt(
        2 * settings.scale_share / (settings.warm_up_steps + 1) * budget.rho
    )
    return Outcome(
        moments,
        unclipped=unclipped,
        scale_noise=histogram / (TALLEST_BIN * n),
        excursion=max(path) / path[0],
        arrival=path[settings.warm_up_steps] / sigma**2,
        whitening=whitening,
    )


def _inflation(problem: Problem, rows: Rows, widths: FloatArray, *, other_variance: float) -> float:
    """Factor of the sampling error in finite samples; nothing is derived for one-hot features."""
    if problem.feature_law == "one_hot":
        return 1.0
    found = sampling_inflation(
        widths[None],
        rows.weights,
        ratio=problem.dimension / problem.sample_size,
        label_noise_std=problem.label_noise_std,
        law=problem.label_noise_law,
        other_variance=other_variance,
    )
    return float(found[0])


def _nodes(
    problem: Problem,
    rows: Rows,
    settings: HuberSettings,
    budget: Budget,
    whitening: Whitening,
    slope: float,
) -> tuple[FloatArray, FloatArray]:
    """Relative curvature and Newton matrix, shape (2, groups or 1, nodes), and weights."""
    n, p = problem.sample_size, problem.dimension
    ratio = p / n
    if problem.feature_law == "one_hot":
        counts, weights = count_nodes(rows.eigenvalues, n)
        return np.array([counts, np.ones_like(counts)]), weights
    left = ratio * ((1 - whitening.weight) ** 2 + 1 / slope - 1) + whitening.variance
    known, newton_noise = 0.0, 0.0
    if settings.moment_share > 0:
        spent = settings.moment_share / 2 * budget.rho
        cap = white_cap(p, sample_size=n, rho=spent)
        change = float(gram_sensitivity(1.0, neighbours=budget.neighbours))
        std = cap**2 * change / (n * sqrt(2 * spent))
        seen = slope**2 * p * left
        known = seen / (seen + std**2 * p * (p + 1) / 2)
        newton_noise = (known * std / slope) ** 2 * p / 2
    first, first_weights = sample_nodes(0.0, extra_variance=min((1 - known) ** 2 * left, 0.2))
    second, second_weights = sample_nodes(0.0, extra_variance=min(newton_noise, 0.1))
    curvature, newton = np.meshgrid(np.maximum(first, 0.05), 1 / np.maximum(second, 0.2))
    weights = np.outer(second_weights, first_weights).ravel()
    return np.array([curvature.ravel(), newton.ravel()])[:, None], weights


def _typical(lengths: FloatArray, weights: FloatArray, law: LabelNoiseLaw) -> tuple[float, ...]:
    """Lengths at equal steps of probability."""
    count = HISTOGRAM_ROWS if law == "gaussian" else MIXTURE_ROWS
    order = np.argsort(lengths, kind="stable")
    mass = np.cumsum(weights[order])
    levels = (np.arange(count) + 0.5) / count
    chosen = lengths[order][np.minimum(np.searchsorted(mass, levels), len(mass) - 1)]
    return tuple(np.round(chosen, 6).tolist())


@lru_cache(maxsize=1024)
def _unit_scale(lengths: tuple[float, ...], noise_share: float, law: LabelNoiseLaw) -> float:
    """`residual_scale` of residuals of variance 1, of which label noise is `noise_share`."""
    squares, weights = squared_scales(law)
    stds = np.sqrt(1 - noise_share + noise_share * squares)[:, None] * np.array(lengths)
    edges = scale_edges(4.0)
    below = 2 * ndtr(edges / np.maximum(stds, 1e-12)[..., None]) - 1
    below = weights @ below.mean(axis=1)
    return residual_scale(np.diff(below, prepend=0.0, append=1.0), edges, sample_size=1.0)
