"""Hidden-state bounds for the last iterate of noisy SGD: a reconstruction and a tight variant."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.theory.noisy_sgd.shuffled_position import shuffled_loss
from privreg.validation import (
    LARGEST_COUNT,
    require_broadcast,
    require_choice,
    require_count,
    require_counts,
    require_number,
)

Bound = Literal["reconstruction", "contraction"]


def hidden_state_divergence(
    position: ArrayLike,
    later_steps: ArrayLike,
    *,
    clip_norm: float,
    gradient_noise_std: float,
    step_size: float,
    strong_convexity: float,
    order: float,
    bound: Bound = "reconstruction",
) -> NDArray[np.float64]:
    r"""Rényi divergence of the last iterate, some steps after a record was replaced.

    .. math::
        \frac{\alpha(2c)^2}{2\sigma^2}\,L^{2m}\,\frac{s_{\ell+1}}{s_{\ell+m+1}}
        \quad\text{(reconstruction)},\qquad
        \frac{\alpha(2c)^2}{2\sigma^2}\,\frac{L^{2m}}{s_{m+1}}\quad\text{(contraction)},\qquad
        s_k = \sum_{j<k}L^{2j},\quad L = 1-\eta\lambda

    "reconstruction" follows the recursion of the log-Sobolev constant from a deterministic start;
    "contraction" is the best bound that a contraction by L with Gaussian noise allows, and is never
    larger.

    Parameters
    ----------
    position, later_steps : array_like of int
        Steps ℓ before the differing one and m after it, at least 0 and at most 9007199254740992,
        broadcast together.
    clip_norm : float
        Norm c to which each gradient is clipped, more than 0; replacing a record moves it by up
        to 2c.
    gradient_noise_std : float
        Standard deviation σ of the noise on each coordinate of the gradient, more than 0.
    step_size : float
        Discrete step η, more than 0, with ηλ < 1.
    strong_convexity : float
        λ, at least 0, of every record's loss.
    order : float
        Rényi order α, more than 1.
    bound : {"reconstruction", "contraction"}

    Guarantee
    ---------
    Replace-one neighbours, last iterate released, on one condition that clipping can break: a step
    on every record must contract by L = 1 - ηλ, as it does for a λ-strongly convex, β-smooth
    loss with η ≤ 2/(λ + β). Then "contraction" holds by privacy amplification by iteration, and
    the reconstruction, never smaller, holds with it. A clipped full gradient is in general not
    the gradient of such a loss, so for clipped SGD this is a comparison and not a guarantee; the
    guarantee of clipped SGD is the first factor alone.

    Source
    ------
    A reconstruction of the bound of Ye and Shokri (2022) that lin2025 draws in Figure 3(b);
    their theorem's text was not at hand. In their notation the noise is the square root of 2η
    times σ', with σ'² = ησ²/2.
    """
    ell = require_counts("position", position, least=0, most=LARGEST_COUNT)
    later = require_counts("later_steps", later_steps, least=0, most=LARGEST_COUNT)
    require_broadcast(position=ell, later_steps=later)
    clip_norm = require_number("clip_norm", clip_norm, least=1e-30, most=1e30)
    std = require_number("gradient_noise_std", gradient_noise_std, least=1e-30, most=1e30)
    step_size = require_number("step_size", step_size, least=1e-30, most=1e30)
    strong_convexity = require_number("strong_convexity", strong_convexity, least=0, most=1e30)
    order = require_number("order", order, above=1, most=1e100)
    require_choice("bound", bound, ("reconstruction", "contraction"))
    if not step_size * strong_convexity < 1:
        raise ValueError(
            f"strong_convexity must be in [0, {1 / step_size}), got {strong_convexity}"
        )
    log_square = 2.0 * np.log1p(-step_size * strong_convexity)
    single_step = 0.5 * order * (2.0 * clip_norm / std) ** 2
    if bound == "contraction":
        ratio = 1.0 / _geometric_sum(log_square, later + 1)
    else:
        ratio = _geometric_sum(log_square, ell + 1) / _geometric_sum(log_square, ell + later + 1)
    with np.errstate(under="ignore"):
        # In two factors: the power alone may be too small for a double.
        root = np.exp(0.5 * log_square * later)
        return np.asarray(single_step * root * root * ratio)


def shuffled_hidden_state_loss(
    steps: ArrayLike,
    *,
    records: int,
    clip_norm: float,
    gradient_noise_std: float,
    step_size: float,
    strong_convexity: float,
    order: float,
    bound: Bound = "reconstruction",
) -> NDArray[np.float64]:
    r"""The bound of :func:`hidden_state_divergence` for a record at a uniformly random position.

    .. math::
        \frac1{\alpha-1}\ln\Big(\frac{n-k}n
        + \frac1n\sum_{\ell<k}e^{(\alpha-1)D(\ell,k-1-\ell)}\Big)

    Parameters
    ----------
    steps : array_like of int, shape (p,)
        Steps k after which the iterate is released, from 0 to `records`.
    records : int
        Number n of records, one a step.
    clip_norm, gradient_noise_std, step_size, strong_convexity, order, bound
        As for :func:`hidden_state_divergence`.

    Guarantee
    ---------
    As for :func:`hidden_state_divergence`, with the order of the records shuffled and kept secret.
    """
    records = require_count("records", records)
    counts = np.atleast_1d(require_counts("steps", steps, least=0, most=records))
    if counts.ndim != 1:
        raise ValueError(f"steps must have shape (p,), got {counts.shape}")
    losses = np.zeros(counts.size)
    for index, count in enumerate(counts):
        position = np.arange(count)
        divergence = hidden_state_divergence(
            position,
            count - 1 - position,
            clip_norm=clip_norm,
            gradient_noise_std=gradient_noise_std,
            step_size=step_size,
            strong_convexity=strong_convexity,
            order=order,
            bound=bound,
        )
        losses[index] = shuffled_loss(divergence, np.ones(count), horizon=records, order=order)
    return losses


def _geometric_sum(log_square: float, terms: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sum of exp(j log_square) over j < terms."""
    if log_square == 0.0:
        return np.asarray(terms, dtype=np.float64)
    return np.asarray(np.expm1(log_square * terms) / np.expm1(log_square))
