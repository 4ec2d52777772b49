"""Hidden-state bounds for clipped noisy SGD: a reconstruction of Ye and Shokri (2022)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    ClipNorm,
    Index,
    PositiveDeviation,
    RenyiOrder,
    Rising,
    Some,
    at_most,
)
from privreg.papers.lin2025.setting import Design

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Figure 3(b)"


class Parameters(Strict):
    """Figure 3(b): clipping norms at one noise scale."""

    design: Design
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    order: RenyiOrder = Field(description="Rényi order alpha.")
    clip_norms: Some[ClipNorm] = Field(description="Clipping norms c.")
    steps: Annotated[Rising[Index], Field(min_length=2)] = Field(description="Iterations k.")

    _steps_have_records = at_most("steps", "design.sample_size")


def theory(parameters: Parameters) -> xr.Dataset:
    """Both bounds along the path, and what clipping alone guarantees for one known position."""
    import xarray as xr

    from privreg.theory.noisy_sgd.hidden_state import Bound, shuffled_hidden_state_loss

    design = parameters.design
    kinds: tuple[Bound, ...] = ("reconstruction", "contraction")
    loss = np.array(
        [
            [
                shuffled_hidden_state_loss(
                    parameters.steps,
                    records=design.sample_size,
                    clip_norm=clip_norm,
                    gradient_noise_std=parameters.gradient_noise_std,
                    step_size=design.step_size,
                    strong_convexity=design.ridge,
                    order=parameters.order,
                    bound=kind,
                )
                for clip_norm in parameters.clip_norms
            ]
            for kind in kinds
        ]
    )
    direct = (
        2.0 * parameters.order * np.square(parameters.clip_norms) / parameters.gradient_noise_std**2
    )
    return xr.Dataset(
        {
            "loss": variable(
                ("bound", "clip_norm", "step"),
                loss,
                "hidden-state bound (no guarantee when clipped)",
            ),
            "single_step": variable(
                "clip_norm", direct, "Rényi privacy of all clipped iterates together, a guarantee"
            ),
        },
        coords={
            "bound": variable("bound", list(kinds), "bound"),
            "clip_norm": variable("clip_norm", parameters.clip_norms, "clipping norm c"),
            "step": variable("step", parameters.steps, "iteration k"),
        },
        attrs={
            "guarantee": "none: a clipped full gradient need not contract, which the bound assumes",
            "order": parameters.order,
        },
    )
