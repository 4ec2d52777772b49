"""Hidden-state bounds for clipped noisy SGD: a reconstruction of Ye and Shokri (2022)."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from privreg.theory.noisy_sgd.last_iterate_loss import Bound, shuffled_hidden_state_loss
from privreg.theory.noisy_sgd.renyi_loss import (
    last_iterate_divergence,
    position_quadrature,
    shuffled_loss,
)
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.lin2025.setting import OneNoise, about, each_record

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


@per("step", possible_loss="approximate loss, unclipped, one pair of possible records per position")
def possible_loss(parameters: Parameters, step: int) -> float:
    """Equation (15) over pairs that may be drawn, observed or not; the worst pair loses more."""
    if not step:
        return 0.0
    design, order = parameters.design, parameters.order
    instance = design.draw(np.random.Generator(np.random.SFC64(0)))
    law = design.law(instance.problem, parameters.gradient_noise_std)
    (mean, std), time = design.coordinate, step / design.dimension
    positions, weights = position_quadrature([time], finest=0.002, nodes_per_panel=3)
    losses = []
    for at in positions:
        # A record along the signs of the distance to the ground truth has the longest gradient.
        away = instance.basis.coordinates(law.mean(at)) - instance.records.target
        rows = mean + np.sqrt(3.0) * std * np.sign([away, np.roll(away, 1)])
        pair = each_record(instance.basis.coordinates(rows), rows @ instance.records.target)
        place = {"time": time, "position": at, "order": order}
        losses.append(
            max(last_iterate_divergence(law, *each, **place) for each in (pair, pair[::-1]))
        )
    return float(shuffled_loss(losses, weights, horizon=law.horizon, order=order))


theory = stage(
    AXES,
    loss,
    possible_loss,
    attributes=lambda parameters: about(
        parameters, "none: a clipped full gradient need not contract, which the bound assumes"
    ),
)
