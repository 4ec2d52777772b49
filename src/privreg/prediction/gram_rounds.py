r"""Features' scales after the rounds of the private Gram matrix of `huber_descent`.

Each round caps the rows' lengths, adds noise to their second moment and whitens for the next one.
The first cap is read from a noisy histogram, so that it is random: too short a cap makes the
whitened rows too long, too long a cap makes the first matrix noise. The rounds after it undo both
unless they are too far off. Whether they do is followed for each cap that the histogram may give,

.. math:: \Pr(c) = \Pr(\text{the first cap is } c), \qquad
    e(c) = \frac1p \operatorname{tr} W(c)^\top \Sigma\, W(c),

and a run counts as overshooting where e, the length of a step, leaves (1/2, 2): beyond 2 a full
step leaves more error than it found.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.huber_scales import QUANTILE_ABOVE, length_cap, length_edges, white_cap
from privreg.immutable import frozen
from privreg.noise.normals import standard_normal
from privreg.prediction.finite_sample import sample_nodes
from privreg.prediction.problem import Problem
from privreg.prediction.rows import Rows
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import gram_sensitivity
from privreg.theory.huber_descent.known_noise import noise_edge

FloatArray = NDArray[np.float64]
HISTOGRAMS, SEED = 256, 20250711
# Length of a step beyond which, or below whose inverse, a run counts as overshooting.
FARTHEST = 2.0
# Three points and weights of a Gauss rule for the noise of the first matrix's mean.
DEVIATIONS = np.array([0.0, -sqrt(3), sqrt(3)])
DEVIATION_WEIGHTS = np.array([2 / 3, 1 / 6, 1 / 6])


@dataclass(frozen=True, eq=False)
class Whitening:
    """Whitening that the rounds of the private Gram matrix leave, and how often it fails."""

    squares: FloatArray  # squared entries of the diagonal whitening, (groups,)
    weight: float  # of the noisy matrix in the last shrunk one: 0 where noise hid it
    # Of the last matrix's noise, relative and summed over a row: that of its shape, and that of its
    # mean eigenvalue, which sets the length of steps.
    variance: float
    overshooting: float  # probability of steps more than twice too long or too short
    thinness: float  # edge of the first matrix's noise over its smallest eigenvalue


def whiten(
    problem: Problem, rows: Rows, settings: HuberSettings, budget: Budget, shrink: FloatArray
) -> Whitening:
    """Expected whitening of each group, and how often it fails."""
    n, p = problem.sample_size, problem.dimension
    change = float(gram_sensitivity(1.0, neighbours=budget.neighbours))
    likely, caps, chances = _caps(
        rows.norms * shrink,
        rows.weights,
        problem,
        change / sqrt(2 * settings.norm_share * budget.rho),
    )
    # The first run has the likely cap and no noise in its mean; the others are all that may happen.
    cap = np.concatenate([[likely], np.repeat(caps, len(DEVIATIONS))])
    deviations = np.concatenate([[0.0], np.tile(DEVIATIONS, len(caps))])
    energies = rows.energies * shrink[:, None] ** 2
    squares = np.ones((len(cap), len(rows.eigenvalues)))
    weight, variance, thinness = np.zeros(len(cap)), np.zeros(len(cap)), 0.0
    for number, share in enumerate(settings.gram_shares):
        spent = share * budget.rho
        if number:
            cap = np.full(len(cap), white_cap(p, sample_size=n, rho=spent))
        lengths = energies @ squares.T
        capped = np.minimum(1.0, cap**2 / np.maximum(lengths, 1e-300))
        values = squares * ((rows.weights[:, None] * capped).T @ energies) / rows.multiplicities
        std = cap**2 * change / (n * sqrt(2 * spent))
        centre = values @ rows.multiplicities / p
        edge = np.array([noise_edge(p, noise_std=float(each)) for each in std])
        if number == 0:
            thinness = float(edge[0] / values[0].min())
            values *= (np.maximum(1 + deviations * _relative(std, centre, p), 0.0))[:, None]
            centre = np.maximum(values @ rows.multiplicities / p, std / sqrt(p))
        hidden = std**2 * p * (p + 1) / 2
        apart = (values - centre[:, None]) ** 2 @ rows.multiplicities
        seen = apart + centre**2 * p * (p + 1) / n
        weight = seen / (seen + hidden)
        # The noisy matrix estimates the weight; below its own spread it is 0 half of the time.
        floor = np.minimum(weight * edge, centre)
        shrunk = centre[:, None] + weight[:, None] * (values - centre[:, None])
        variance = (weight * std / centre) ** 2 * p / 2 + _relative(std, centre, p) ** 2
        squares = squares / np.maximum(shrunk, floor[:, None])
    steps = squares @ (rows.multiplicities * rows.eigenvalues) / p
    lost = (steps[1:] > FARTHEST) | (steps[1:] < 1 / FARTHEST)
    return Whitening(
        squares[0],
        float(weight[0]),
        float(variance[0]),
        float(np.outer(chances, DEVIATION_WEIGHTS).ravel() @ lost),
        thinness,
    )


def nodes_gain(whitening: Whitening, ratio: float) -> float:
    """Mean of WᵀΣW over its nominal value: the whitening inverts a noisy matrix."""
    points, weights = sample_nodes(
        whitening.weight**2 * ratio, extra_variance=min(whitening.variance, 0.15)
    )
    return float(weights @ (1 / np.maximum(points, 0.15)))


def _relative(std: FloatArray, centre: FloatArray, dimension: int) -> FloatArray:
    """Noise of a matrix's mean eigenvalue over that mean."""
    return std / (centre * sqrt(dimension))


def _caps(
    lengths: FloatArray,
    weights: FloatArray,
    problem: Problem,
    noise: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Cap of the first round without noise in its histogram; all caps with noise, and chances."""
    n = problem.sample_size
    edges = length_edges(problem.feature_norm)
    bins = np.searchsorted(edges, lengths, side="left")
    counts = n * np.bincount(bins, weights, len(edges) + 1).astype(float)
    likely = length_cap(counts, edges, noise_std=noise, sample_size=n)
    # `length_cap` for many histograms at once.
    above = np.cumsum((counts + noise * _noises(len(counts)))[:, ::-1], axis=1)[:, ::-1]
    threshold = np.maximum(QUANTILE_ABOVE * n, 2 * noise * np.sqrt(np.arange(len(counts), 0, -1)))
    over = above > threshold
    last = np.where(over.any(axis=1), len(counts) - 1 - over[:, ::-1].argmax(axis=1), len(edges))
    found, numbers = np.unique(np.minimum(last, len(edges) - 1), return_counts=True)
    return likely, edges[found], numbers / HISTOGRAMS


@lru_cache(maxsize=4)
def _noises(bins: int) -> FloatArray:
    rng = np.random.Generator(np.random.SFC64(SEED))
    return frozen(standard_normal(rng, (HISTOGRAMS, bins)))
