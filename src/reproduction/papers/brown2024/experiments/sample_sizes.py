"""Error due to privacy against error due to sampling as the sample size grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    DataArray,
    Dataset,
    Estimate,
    Mean,
    Quantity,
    Trial,
    means,
    per,
    stage,
)
from reproduction.engine.summaries import loglog_slope, trials_last
from reproduction.papers.brown2024 import setting
from reproduction.papers.brown2024.size_crossings import KINDS

if TYPE_CHECKING:
    from privreg.algorithms.samples import Samples

PLACE = "Figures 2 and 8, section 4.1, Theorem 1.2"
CURVE_POINTS = 201
# Data of more numbers than this are drawn anew at each pass.
HELD_NUMBERS = 1 << 24


class Parameters(Strict):
    """Figures 2 and 8: one dimension, growing sample sizes."""

    dimension: q.Dimension = Field(description="Features p.")
    sample_sizes: q.Grid[q.SampleSize] = Field(description="Sample sizes n.")
    budget: q.StatedBudget = Field(description="zCDP budget.")
    steps: q.Rising[q.Steps] = Field(
        description="Numbers of gradient steps T, each with its own noise."
    )
    step_size: setting.StepSize = Field(description="eta; the paper's experiments do not state it.")
    clip_constant: q.ClipConstant = Field(description="gamma / sqrt(p).")

    _more_rows_than_columns = q.more_than("sample_sizes", "dimension")

    @property
    def clip_norm(self) -> float:
        return self.clip_constant * np.sqrt(self.dimension)

    @property
    def curve(self) -> np.ndarray:
        """Sample sizes of the exact law."""
        return np.geomspace(self.sample_sizes[0], 2 * self.sample_sizes[-1], CURVE_POINTS)

    def gradient_noise_std(self, size: int) -> np.ndarray:
        from privreg.algorithms.full_batch_dpgd import full_batch_noise_std

        return full_batch_noise_std(
            clip_norm=self.clip_norm, rho=self.budget.rho, sample_size=size, gradients=self.steps
        )


AXES = {
    "kind": Axis("privacy error, whole or noise alone", list(KINDS)),
    "steps": Axis("gradient steps T", "steps"),
    "sample_size": Axis("sample size n", "sample_sizes"),
}


@per(
    privacy_rms=Quantity(
        "root mean square distance of DP-GD to the empirical minimiser", "steps sample_size"
    ),
    sampling_rms=Quantity(
        "root mean square distance of least squares to the population parameter", "sample_size"
    ),
)
def law(parameters: Parameters) -> dict:
    """Mean squared errors at an identity covariance."""
    from reproduction.papers.brown2024.size_crossings import privacy_square, sampling_square

    size = parameters.curve
    return {
        "privacy_rms": np.sqrt(privacy_square(parameters, size, bias=True)),
        "sampling_rms": np.sqrt(sampling_square(parameters, size)),
    }


@per(ten_steps_slope="log-log slope in n of the exact privacy error after ten steps")
def ten_steps_slope(parameters: Parameters) -> float:
    """With the number of steps of Figure 1, which leaves more of the start."""
    from reproduction.papers.brown2024.size_crossings import privacy_square

    sizes = np.asarray(parameters.sample_sizes, dtype=float)
    squares = privacy_square(parameters.model_copy(update={"steps": [10]}), sizes, bias=True)
    return float(np.polyfit(np.log(sizes), 0.5 * np.log(squares[0]), 1)[0])


@per("kind", "steps", crossing="sample size at which the two errors are equal")
def crossing(parameters: Parameters, kind: str) -> np.ndarray:
    from reproduction.papers.brown2024.size_crossings import law_crossing

    return law_crossing(parameters, KINDS[kind], np.zeros(len(parameters.steps)))


@per(
    "sample_size",
    privacy_error=Quantity("distance of DP-GD to the empirical minimiser", "steps"),
    noise_error=Quantity("distance of DP-GD to its mean in the unclipped law", "steps"),
    law_squared_error=Quantity(
        "exact mean squared distance of unclipped DP-GD to the minimiser", "steps"
    ),
    clipped_fraction=Quantity("share of gradients clipped, not private", "steps"),
    sampling_error="distance of least squares to the population parameter",
)
def run(parameters: Parameters, trial: Trial, sample_size: int) -> dict:
    """Distances in each trial, with the exact expectations given its data."""
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd
    from privreg.algorithms.samples import moments
    from privreg.algorithms.screening import screen
    from privreg.theory.full_batch_dpgd.law import gradient_descent_law

    data, target = _draw(sample_size, parameters.dimension, trial.rng)
    noise = parameters.gradient_noise_std(sample_size)
    settings: dict[str, Any] = {
        "clip_norm": float(parameters.clip_norm),
        "step_size": parameters.step_size,
        "steps": max(parameters.steps),
    }
    screened = screen(
        data,
        **settings,
        gradient_noise_std=float(noise.max()),
        lanes=len(noise),
        start=np.zeros(parameters.dimension),
    )
    gram, moment = moments(data) if screened is None else screened.moments()
    path = full_batch_dpgd(
        data,
        **settings,
        gradient_noise_std=noise,
        times=sorted(parameters.steps),
        rng=trial.rng,
        screening=False if screened is None else screened,
    )
    found: dict = {name: [] for name in run.quantities}
    for at, steps in enumerate(parameters.steps):
        exact = gradient_descent_law(
            gram,
            moment,
            sample_size=sample_size,
            step_size=parameters.step_size,
            gradient_noise_std=float(noise[at]),
        )
        last = path.iterates[at, 0, np.searchsorted(path.times, steps)]
        found["privacy_error"].append(np.linalg.norm(last - exact.minimiser))
        found["noise_error"].append(np.linalg.norm(last - exact.mean(steps)))
        found["law_squared_error"].append(exact.expected_squared_error(steps))
        share = path.clipped_fraction.non_private[at, 0, :steps]
        found["clipped_fraction"].append(share.mean())
    return found | {"sampling_error": np.linalg.norm(exact.minimiser - target)}


@per(
    privacy_error_slope=Estimate("log-log slope in n", "steps"),
    sampling_error_slope=Estimate("log-log slope in n"),
)
def slopes(parameters: Parameters, simulation: Dataset) -> dict:
    ordered = simulation.transpose("steps", "sample_size", "trial", missing_dims="ignore")
    return {
        f"{name}_slope": loglog_slope(parameters.sample_sizes, trials_last(ordered[name]))
        for name in ("privacy_error", "sampling_error")
    }


@per(
    law_ratio=Mean(
        "the squared distance of DP-GD to the empirical minimiser over its exact expectation",
        "steps sample_size",
    )
)
def law_ratio(simulation: Dataset) -> DataArray:
    return simulation.privacy_error**2 / simulation.law_squared_error


@per(
    "kind",
    crossing=Estimate(
        "sample size at which the simulated root mean square errors are equal", "steps"
    ),
)
def simulated_crossing(parameters: Parameters, simulation: Dataset, kind: str) -> tuple:
    from reproduction.papers.brown2024.size_crossings import simulated_crossing

    return simulated_crossing(parameters, simulation, kind)


theory = stage(AXES, law, crossing, ten_steps_slope, sample_size=Axis("sample size n", "curve"))
simulate = stage(AXES, run)
summarise = stage(
    AXES,
    means(run, "privacy_error", "noise_error", "sampling_error", "clipped_fraction"),
    slopes,
    law_ratio,
    simulated_crossing,
)


def _draw(sample_size: int, dimension: int, rng: np.random.Generator) -> tuple[Samples, np.ndarray]:
    from privreg.algorithms.samples import GaussianSamples
    from reproduction.papers.brown2024.synthetic_data import LABEL_NOISE_STD, draw, unit_vector

    if sample_size * dimension <= HELD_NUMBERS:
        return draw(sample_size, dimension, rng)
    target = unit_vector(dimension, rng)
    seed = np.random.SeedSequence(int(rng.integers(1 << 62)))
    return GaussianSamples(sample_size, target, LABEL_NOISE_STD, seed), target
