"""Effects of samples that are not much larger than the dimension on a Huber regression."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import brentq

from privreg.prediction.clipping import mean_moments, squared_scales
from privreg.prediction.problem import LabelNoiseLaw

FloatArray = NDArray[np.float64]
# A fixed point that still changes by this much is solved for by bracketing.
ITERATIONS, SETTLED = 12, 1e-3
# Between the exponentials of these nothing overflows.
LARGEST_LOGARITHM = 700.0
NODES = 7


def sampling_inflation(
    widths: FloatArray,
    weights: FloatArray,
    *,
    ratio: float,
    label_noise_std: float,
    law: LabelNoiseLaw = "gaussian",
    other_variance: FloatArray | float = 0.0,
) -> FloatArray:
    r"""Sampling variance of a minimiser of Huber losses over that of the sandwich as p/n → 0.

    In the limit of n and p in proportion κ the prediction of a left-out row has variance τ², and

    .. math::
        \kappa = \frac{c}{1 + c}\Pr(|r| \le w(1 + c)), \qquad
        \kappa\tau^2 = c^2\,\mathbb E\,\mathrm{clip}\Big(\frac{r}{1+c}, \pm w\Big)^2, \qquad
        r \sim \sigma\xi + N(0, v + \tau^2)

    for clips w, (settings, rows). Without clipping it is 1/(1 - κ); `inf` where there is no
    solution: too few rows, or clips whose squares are 0 in double precision.

    Source
    ------
    El Karoui, Bean, Bickel, Lim and Yu (2013), system (S), with Huber's loss.
    """
    settings = len(widths)
    other = np.broadcast_to(np.asarray(other_variance, dtype=np.float64), (settings,))
    if ratio < 1e-12:
        return np.ones(settings)
    squares, chances = squared_scales(law)
    noise = (label_noise_std**2 * squares, np.array(chances))
    plain, tau, before, c = _iterated(
        np.array(widths), np.array(weights), ratio, np.array(other), *noise
    )
    # The iteration circles where much is clipped, and is slow where p is near n.
    settled = np.isfinite(c) & (np.abs(tau - before) <= SETTLED * tau)
    sound = np.isfinite(plain) & (plain > 0)
    for index in np.flatnonzero(sound & ~settled):
        # A width beyond all numbers clips nothing.
        with np.errstate(over="ignore"):
            tau[index] = _solved(
                widths[index], weights, noise, ratio=ratio, other=float(other[index])
            )
        c[index] = 0.0 if np.isfinite(tau[index]) else np.inf
    solved = np.isfinite(c) & sound
    return np.where(solved, tau / (ratio * np.where(solved, plain, 1.0)), np.inf)


@njit(nogil=True, cache=True, error_model="numpy")
def _iterated(
    widths: FloatArray,
    weights: FloatArray,
    ratio: float,
    others: FloatArray,
    variances: FloatArray,
    chances: FloatArray,
) -> FloatArray:
    """Variance of the sandwich over that of n records, τ² now and before, and c; (4, settings)."""
    found = np.empty((4, len(widths)))
    for setting, width in enumerate(widths):
        other = others[setting]
        share = mean_moments(width, weights, 1.0, other, variances, chances)[0]
        # Where nothing is left of the residuals there is no minimiser. The privacy noise's part of
        # r is no part of the score at θ*.
        plain = mean_moments(width, weights, 1.0, 0.0, variances, chances)[1] / share**2
        before, tau = 0.0, 1e200
        if ratio * plain < tau:
            tau = ratio * plain
        c = ratio / max(share, ratio)
        for _ in range(ITERATIONS):
            before = tau
            # A width of 0 beside an infinite c: the bracket solves it.
            inside = mean_moments(width, weights, 1 + c, other + tau, variances, chances)[0]
            grown = ratio / max(inside, 1e-12)
            c = grown / (1 - grown) if grown < 0.9 else np.inf
            kept = min(c, 1e6)
            score = mean_moments(width, weights, min(1 + c, 1e6), tau, variances, chances)[1]
            tau = (kept / (1 + kept)) ** 2 * score / ratio
        found[:, setting] = plain, tau, before, c
    return found


def _solved(
    widths: FloatArray,
    weights: FloatArray,
    noise: tuple[FloatArray, FloatArray],
    *,
    ratio: float,
    other: float,
) -> float:
    """τ² of one setting, widths (rows,), by nested brackets; `inf` if p is at least n."""
    if ratio >= 1:
        return np.inf

    def growth(variance: float) -> float:
        # log(1 + c), in which κ's equation increases; at narrow clips c / (1 + c) is nearly 1.
        def excess(log_growth: float) -> float:
            inside, _ = mean_moments(widths, weights, np.exp(log_growth), other + variance, *noise)
            return -float(np.expm1(-log_growth) * inside) - ratio

        low, high = -float(np.log1p(-ratio)), LARGEST_LOGARITHM
        return high if excess(high) <= 0 else float(brentq(excess, low, high, xtol=1e-10))

    def gain(log_variance: float) -> float:
        variance = float(np.exp(log_variance))
        found = growth(variance)
        _, square = mean_moments(widths, weights, np.exp(found), variance, *noise)
        return float(np.expm1(-found) ** 2 * square) / ratio / variance - 1

    low, high = -1.0, 1.0
    while low > -LARGEST_LOGARITHM and gain(low) <= 0:
        low, high = max(4 * low, -LARGEST_LOGARITHM), low
    while high < LARGEST_LOGARITHM and gain(high) >= 0:
        low, high = high, min(4 * abs(high), LARGEST_LOGARITHM)
    if not gain(low) > 0 > gain(high):
        return np.inf
    return float(np.exp(brentq(gain, low, high, xtol=1e-5)))


def sample_nodes(
    ratio: float, *, extra_variance: float = 0.0, nodes: int = NODES
) -> tuple[FloatArray, FloatArray]:
    r"""Quadrature for the eigenvalues of a sample's second moment, relative to the population's.

    They follow the law of Marchenko and Pastur with ratio κ = p/n, whose orthogonal polynomials are
    shifted Chebyshev ones: the Jacobi matrix has diagonal 1, 1 + κ, 1 + κ, ... and off-diagonal √κ.
    An independent symmetric Gaussian error of relative size τ adds τ²p to the off-diagonal's
    square, as for a semicircle, at least in the first three moments.
    """
    variance = ratio + extra_variance
    shift = ratio**2 / variance if variance > 0 else 0.0
    diagonal = np.concatenate([[1.0], np.full(nodes - 1, 1 + shift)])
    beside = np.full(nodes - 1, np.sqrt(variance))
    points, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return points, vectors[0] ** 2


def count_nodes(
    probability: FloatArray, sample_size: int, *, nodes: int = 15
) -> tuple[FloatArray, FloatArray]:
    """Quantiles (groups, nodes) of a category's count over its mean, and weights."""
    from scipy.stats import binom  # a second, for one-hot rows alone

    levels = (np.arange(nodes) + 0.5) / nodes
    counts = binom.ppf(levels, sample_size, np.minimum(probability, 1.0)[:, None])
    means = np.maximum(counts.mean(axis=1, keepdims=True), 1 / nodes)
    return counts / means, np.full(nodes, 1 / nodes)
