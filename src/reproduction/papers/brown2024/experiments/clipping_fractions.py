"""Share of gradients clipped over dimensions and clipping thresholds."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trial, means, per, stage
from reproduction.papers.brown2024.setting import StepSize, descend, draw

PLACE = "Figure 3, section 4.1"
# Shares clipped, for each of which the threshold is located.
CONTOURS = (0.5, 0.1, 0.01)


class Parameters(Strict):
    """Figure 3: thresholds on a grid that all dimensions share, and multiples of sqrt(p)."""

    dimensions: q.Grid[q.Dimension] = Field(description="Features p.")
    samples_per_feature: q.SampleSize = Field(description="n / p; the paper does not state it.")
    budget: q.StatedBudget = Field(description="zCDP budget.")
    steps: q.Steps = Field(description="Gradient steps T; the paper does not state it.")
    step_size: StepSize = Field(description="eta; the paper does not state it.")
    clip_norms: q.ClipAxis = Field(description="Thresholds gamma.")
    clip_constants: q.Some[q.ClipConstant] = Field(description="Values of gamma / sqrt(p).")


AXES = {
    "dimension": Axis("features p", "dimensions"),
    "clip_norm": Axis("clipping threshold gamma", "clip_norms"),
    "clip_constant": Axis("threshold divided by sqrt(p)", "clip_constants"),
    "share": Axis("share of gradients clipped", CONTOURS),
}


@per(
    "dimension",
    clipped_fraction=Quantity("share of gradients clipped, not private", "clip_norm"),
    clipped_fraction_at_factor=Quantity("share of gradients clipped, not private", "clip_constant"),
    any_clip=Quantity("indicator that any gradient was clipped, not private", "clip_constant"),
)
def run(parameters: Parameters, trial: Trial, dimension: int) -> dict:
    """Share of gradients clipped in the whole of one run at every threshold."""
    grid = parameters.clip_norms.values()
    data, _ = draw(dimension * parameters.samples_per_feature, dimension, trial.rng)
    path = descend(
        data,
        clip_norm=np.append(grid, np.asarray(parameters.clip_constants) * np.sqrt(dimension)),
        rho=parameters.budget.rho,
        step_size=parameters.step_size,
        steps=parameters.steps,
        rng=trial.rng,
        screening=False,
    )
    share, at_factor = np.split(path.clipped_fraction.non_private[:, 0].mean(axis=-1), [len(grid)])
    return {
        "clipped_fraction": share,
        "clipped_fraction_at_factor": at_factor,
        "any_clip": at_factor > 0,
    }


@per(
    "share",
    contour_slope=Mean("the log-log slope in the dimension of the threshold that clips this share"),
)
def contour_slope(parameters: Parameters, simulation: Dataset, share: float) -> np.ndarray:
    """Log-log slope in the dimension of the threshold that clips one share of the gradients."""
    logs = np.log(simulation["clip_norm"].values)
    clipped = simulation.clipped_fraction.transpose("trial", "dimension", "clip_norm").values
    threshold = np.apply_along_axis(lambda row: np.interp(-share, -row, logs), -1, clipped)
    axis = np.log(np.asarray(parameters.dimensions, dtype=float))
    weights = (axis - axis.mean()) / np.sum((axis - axis.mean()) ** 2)
    return threshold @ weights


simulate = stage(AXES, run)
summarise = stage(AXES, means(run), contour_slope)
