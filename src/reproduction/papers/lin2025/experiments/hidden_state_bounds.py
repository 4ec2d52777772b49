"""Hidden-state bounds for clipped noisy SGD: a reconstruction of Ye and Shokri (2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.renyi_loss import shuffled_loss
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.lin2025.setting import OneNoise, about

PLACE = "Figure 3(b)"
Bound = Literal["reconstruction", "contraction"]


class Parameters(OneNoise):
    """Figure 3(b): clipping norms at one noise scale."""

    order: q.RenyiOrder = Field(description="Rényi order alpha.")
    clip_norms: q.Some[q.ClipNorm] = Field(description="Clipping norms c.")
    steps: q.Grid[q.Index] = Field(description="Iterations k.")

    _steps_have_records = q.at_most("steps", "design.sample_size")
    _steps_contract = q.less_than(
        "design.ridge", "1 / design.step_size", lambda self: 1 / self.design.step_size
    )


AXES = {
    "bound": Axis("bound", ["reconstruction", "contraction"]),
    "clip_norm": Axis("clipping norm c", "clip_norms"),
    "step": Axis("iteration k", "steps"),
}


@per("bound", "clip_norm", loss=Quantity("hidden-state bound (no guarantee when clipped)", "step"))
def loss(parameters: Parameters, bound: Bound, clip_norm: float) -> np.ndarray:
    return shuffled_hidden_state_loss(
        parameters.steps,
        records=parameters.design.sample_size,
        clip_norm=clip_norm,
        gradient_noise_std=parameters.gradient_noise_std,
        step_size=parameters.design.step_size,
        strong_convexity=parameters.design.ridge,
        order=parameters.order,
        bound=bound,
    )


@per("clip_norm", single_step="Rényi privacy of all clipped iterates together, a guarantee")
def single_step(parameters: Parameters, clip_norm: float) -> float:
    """What clipping alone guarantees for one known position."""
    return 2.0 * parameters.order * clip_norm**2 / parameters.gradient_noise_std**2


theory = stage(
    AXES,
    loss,
    single_step,
    attributes=lambda parameters: about(
        parameters, "none: a clipped full gradient need not contract, which the bound assumes"
    ),
)


def shuffled_hidden_state_loss(
    steps: Sequence[int],
    *,
    records: int,
    clip_norm: float,
    gradient_noise_std: float,
    step_size: float,
    strong_convexity: float,
    order: float,
    bound: Bound,
) -> np.ndarray:
    r"""Bound on the Rényi loss of the last iterate after each number of steps.

    .. math::
        \frac1{\alpha-1}\ln\Big(\frac{n-k}n
        + \frac1n\sum_{\ell<k}e^{(\alpha-1)D(\ell,k-1-\ell)}\Big)

    with the divergence D of `hidden_state_divergence`. "reconstruction" follows the recursion of
    the log-Sobolev constant from a deterministic start; "contraction" is the best bound that a
    contraction by L with Gaussian noise allows, and is never larger.

    Guarantee
    ---------
    Replace-one neighbours, last iterate released, the order of the records shuffled and kept
    secret, on one condition that clipping can break: a step on every record must contract by
    L = 1 - ηλ, as it does for a λ-strongly convex, β-smooth loss with η ≤ 2/(λ + β). Then
    "contraction" holds by privacy amplification by iteration, and the reconstruction, never
    smaller, holds with it. A clipped full gradient is in general not the gradient of such a loss,
    so for clipped SGD this is a comparison and not a guarantee.

    Source
    ------
    A reconstruction of the bound of Ye and Shokri (2022) that lin2025 draws in Figure 3(b);
    their theorem's text was not at hand. In their notation the noise is the square root of 2η
    times σ', with σ'² = ησ²/2.
    """
    log_square = 2.0 * np.log1p(-step_size * strong_convexity)
    single_step = 0.5 * order * (2.0 * clip_norm / gradient_noise_std) ** 2
    losses = np.zeros(len(steps))
    for index, count in enumerate(steps):
        before = np.arange(count)
        divergences = hidden_state_divergence(
            before, count - 1 - before, single_step, log_square, bound
        )
        losses[index] = shuffled_loss(divergences, np.ones(count), horizon=records, order=order)
    return losses


def hidden_state_divergence(
    before: np.ndarray, later: np.ndarray, single_step: float, log_square: float, bound: Bound
) -> np.ndarray:
    r"""Divergence of the last iterate with ℓ steps before the differing one and m after it.

    .. math::
        \frac{\alpha(2c)^2}{2\sigma^2}\,L^{2m}\,\frac{s_{\ell+1}}{s_{\ell+m+1}}
        \quad\text{(reconstruction)},\qquad
        \frac{\alpha(2c)^2}{2\sigma^2}\,\frac{L^{2m}}{s_{m+1}}\quad\text{(contraction)},\qquad
        s_k = \sum_{j<k}L^{2j},\quad L = 1-\eta\lambda

    The first factor, `single_step`, is the guarantee of clipped SGD; `log_square` is ln L².
    """

    def total(terms: np.ndarray) -> np.ndarray:
        if log_square == 0.0:
            return terms.astype(np.float64)
        return np.asarray(np.expm1(log_square * terms) / np.expm1(log_square))

    if bound == "contraction":
        ratio = 1.0 / total(later + 1)
    else:
        ratio = total(before + 1) / total(before + later + 1)
    # In two factors: the power alone may be too small for a double.
    root = np.exp(0.5 * log_square * later)
    return np.asarray(single_step * root * root * ratio)
