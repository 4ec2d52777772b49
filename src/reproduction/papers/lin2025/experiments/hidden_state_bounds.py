"""Hidden-state bounds for clipped noisy SGD: a reconstruction of Ye and Shokri (2022)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.last_iterate_loss import Bound, shuffled_hidden_state_loss
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.lin2025.setting import OneNoise, about

PLACE = "Figure 3(b)"


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
