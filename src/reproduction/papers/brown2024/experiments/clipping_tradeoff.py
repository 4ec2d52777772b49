"""Error, bias and variance of DP-GD over clipping thresholds, and the share clipped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Mean, Quantity, Trials, means, per, stage
from reproduction.papers.brown2024.setting import OneSize, descend, draw

PLACE = "Figures 4 and 7, section 4.1 and Appendix B"


class Parameters(OneSize):
    """Figures 4 and 7: data sets of one size, several numbers of steps, a grid of thresholds."""

    budget: q.StatedBudget = Field(description="zCDP budget.")
    steps: q.Rising[q.Steps] = Field(description="Numbers of gradient steps T.")
    clip_norms: q.ClipAxis = Field(description="Thresholds gamma.")
    runs: q.Plural[q.Count] = Field(
        description="Runs on each data set, to tell bias from variance."
    )

    @property
    def standard_clip_norm(self) -> float:
        """The paper's threshold."""
        return 5.0 * np.sqrt(self.dimension)

    @property
    def every_clip_norm(self) -> np.ndarray:
        return np.sort(np.append(self.clip_norms.values(), self.standard_clip_norm))


AXES = {
    "steps": Axis("gradient steps T", "steps"),
    "clip_norm": Axis("clipping threshold gamma", "every_clip_norm"),
}


@per(
    squared_error=Quantity("mean squared distance to the empirical minimiser", "steps clip_norm"),
    squared_bias=Quantity(
        "squared bias relative to the empirical minimiser, an unbiased estimate", "steps clip_norm"
    ),
    variance=Quantity("variance of the runs on one data set", "steps clip_norm"),
    clipped_fraction=Quantity("share of gradients clipped, not private", "steps clip_norm"),
)
def run(parameters: Parameters, trials: Trials) -> Iterator[list[dict]]:
    """Squared bias and variance over the runs on each data set, about its minimiser."""
    from privreg.algorithms.ols import ols

    for trial in trials:
        data, _ = draw(parameters.sample_size, parameters.dimension, trial.rng)
        minimiser = ols(data).coefficients
        found = []
        for steps in parameters.steps:
            path = descend(
                data,
                clip_norm=parameters.every_clip_norm,
                rho=parameters.budget.rho,
                step_size=parameters.step_size,
                steps=steps,
                runs=parameters.runs,
                rng=trial.rng,
                screening=False,
            )
            gap = path.iterates[:, :, 0] - minimiser
            variance = np.sum(gap.var(axis=1, ddof=1), axis=-1)
            # The mean of finitely many runs is off by their variance over their number.
            bias = np.sum(gap.mean(axis=1) ** 2, axis=-1) - variance / parameters.runs
            found.append(
                {
                    "squared_error": np.mean(np.sum(gap**2, axis=-1), axis=-1),
                    "squared_bias": bias,
                    "variance": variance,
                    "clipped_fraction": path.clipped_fraction.non_private.mean(axis=(1, 2)),
                }
            )
        yield found


@per(
    "steps",
    clipped_at_best=Mean("the share clipped at the best threshold"),
    half_clipped_log_ratio=Mean(
        "the logarithm of the error with half of the gradients clipped divided by the least error"
    ),
    half_clipped_over_standard=Mean(
        "the logarithm of the error with half of the gradients clipped divided by that at 5 sqrt(p)"
    ),
)
def thresholds(parameters: Parameters, simulation: Dataset, steps: int) -> dict:
    """Best threshold, its share of clipped gradients, and the cost of clipping half of them."""
    at = simulation.sel(steps=steps).transpose("trial", "clip_norm")
    square, share = at.squared_error.values, at.clipped_fraction.values
    best = square.mean(axis=0).argmin()
    standard = np.searchsorted(at["clip_norm"].values, parameters.standard_clip_norm)
    pairs = zip(share, square, strict=True)
    half = np.exp([np.interp(-0.5, -share, np.log(error)) for share, error in pairs])
    return {
        "clipped_at_best": share[:, best],
        "half_clipped_log_ratio": np.log(half / square[:, best]) / 2,
        "half_clipped_over_standard": np.log(half / square[:, standard]) / 2,
    }


simulate = stage(
    AXES,
    run,
    attributes=lambda parameters: {
        "standard_clip_norm": parameters.standard_clip_norm,
        "sample_size": parameters.sample_size,
    },
)
summarise = stage(AXES, means(run), thresholds)
