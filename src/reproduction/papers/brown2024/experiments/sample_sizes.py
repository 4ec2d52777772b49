"""Error due to privacy against error due to sampling as the sample size grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import (
    Axis,
    Dataset,
    Estimate,
    Mean,
    Quantity,
    Trial,
    means,
    per,
    stage,
)
from reproduction.engine.summaries import jackknife, loglog_slope, trials_last
from reproduction.papers.brown2024.setting import LABEL_NOISE_STD, StepSize, draw, unit_vector

if TYPE_CHECKING:
    from privreg.algorithms.samples import Samples

PLACE = "Figures 2 and 8, section 4.1, Theorem 1.2"
CURVE_POINTS = 201
# Data of more numbers than this are drawn anew at each pass.
HELD_NUMBERS = 1 << 24
# The error due to privacy, and whether it includes the part left from the start.
KINDS = {"whole": True, "noise_alone": False}
CROSSING_RANGE = 5.0
GRID_POINTS = 4001


class Parameters(Strict):
    """Figures 2 and 8: one dimension, growing sample sizes."""

    dimension: q.Dimension = Field(description="Features p.")
    sample_sizes: q.Grid[q.SampleSize] = Field(description="Sample sizes n.")
    budget: q.StatedBudget = Field(description="zCDP budget.")
    steps: q.Rising[q.Steps] = Field(
        description="Numbers of gradient steps T, each with its own noise."
    )
    step_size: StepSize = Field(description="eta; the paper's experiments do not state it.")
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
    ten_steps_slope="log-log slope in n of the exact privacy error after ten steps",
)
def law(parameters: Parameters) -> dict:
    """Mean squared errors at an identity covariance."""
    # The number of steps of Figure 1, which leaves more of the start.
    ten, sizes = parameters.model_copy(update={"steps": [10]}), np.array(parameters.sample_sizes)
    squares = privacy_square(ten, sizes, bias=True)[0]
    return {
        "privacy_rms": np.sqrt(privacy_square(parameters, parameters.curve, bias=True)),
        "sampling_rms": np.sqrt(sampling_square(parameters, parameters.curve)),
        "ten_steps_slope": np.polyfit(np.log(sizes), 0.5 * np.log(squares), 1)[0],
    }


@per("kind", "steps", crossing="sample size at which the two errors are equal")
def crossing(parameters: Parameters, kind: str) -> np.ndarray:
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
    from privreg.algorithms.full_batch_dpgd import full_batch_dpgd, screen
    from privreg.algorithms.samples import moments
    from privreg.theory.full_batch_dpgd import gradient_descent_law

    data, target = _draw(sample_size, parameters.dimension, trial.rng)
    noise = parameters.gradient_noise_std(sample_size)
    settings: dict[str, Any] = {
        "clip_norm": parameters.clip_norm,
        "step_size": parameters.step_size,
        "steps": parameters.steps[-1],
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
        times=parameters.steps,
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
        last = path.iterates[at, 0, at]
        found["privacy_error"].append(np.linalg.norm(last - exact.minimiser))
        found["noise_error"].append(np.linalg.norm(last - exact.mean(steps)))
        found["law_squared_error"].append(exact.expected_squared_error(steps))
        share = path.clipped_fraction.non_private[at, 0, :steps]
        found["clipped_fraction"].append(share.mean())
    return found | {"sampling_error": np.linalg.norm(exact.minimiser - target)}


@per(
    privacy_error_slope=Estimate("log-log slope in n", "steps"),
    sampling_error_slope=Estimate("log-log slope in n"),
    law_ratio=Mean(
        "the squared distance of DP-GD to the empirical minimiser divided by its exact mean",
        "steps sample_size",
    ),
)
def slopes(parameters: Parameters, simulation: Dataset) -> dict:
    """Slopes of both errors in the sample size, and the simulated error over the law's."""
    ordered = simulation.transpose("steps", "sample_size", "trial", missing_dims="ignore")
    found = {
        f"{name}_slope": loglog_slope(parameters.sample_sizes, trials_last(ordered[name]))
        for name in ("privacy_error", "sampling_error")
    }
    return {**found, "law_ratio": simulation.privacy_error**2 / simulation.law_squared_error}


@per(
    "kind",
    crossing=Estimate(
        "sample size at which the simulated root mean square errors are equal", "steps"
    ),
)
def simulated_crossing(
    parameters: Parameters, simulation: Dataset, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """The law's crossing moved by the mean log ratio of simulated to exact relative errors.

    The mean runs over the sizes within a factor of five of the law's crossing: one size alone would
    leave twice the Monte-Carlo error. The standard error is the jackknife's.
    """
    bias = KINDS[kind]
    ordered = simulation.transpose("trial", "steps", "sample_size", missing_dims="ignore")
    sampling = ordered.sampling_error.values**2
    sizes = np.asarray(parameters.sample_sizes, dtype=float)
    exact = privacy_square(parameters, sizes, bias) / sampling_square(parameters, sizes)
    square = ordered["privacy_error" if bias else "noise_error"].values ** 2 / exact
    centre = law_crossing(parameters, bias, np.zeros(len(parameters.steps)))
    near = np.abs(np.log(sizes) - np.log(centre)[:, None]) <= np.log(CROSSING_RANGE)

    def moved(kept: np.ndarray) -> np.ndarray:
        gap = 0.5 * np.log(square[kept].mean(axis=0) / sampling[kept].mean(axis=0))
        shifts = [row[use].mean() if use.any() else 0.0 for row, use in zip(gap, near, strict=True)]
        return law_crossing(parameters, bias, np.array(shifts))

    return jackknife(moved, len(sampling))


theory = stage(AXES, law, crossing, sample_size=Axis("sample size n", "curve"))
simulate = stage(AXES, run)
summarise = stage(
    AXES,
    means(run, "privacy_error", "sampling_error", "clipped_fraction"),
    slopes,
    simulated_crossing,
)


def privacy_square(parameters: Parameters, size: np.ndarray, bias: bool) -> np.ndarray:
    """Mean squared distance to the empirical minimiser at identity covariance, (steps, size)."""
    steps = np.asarray(parameters.steps, dtype=float)[:, None]
    contraction = 1 - parameters.step_size
    noise = parameters.gradient_noise_std(1)[:, None] / size
    gain = (1 - contraction ** (2 * steps)) / (1 - contraction**2)
    square = parameters.dimension * (parameters.step_size * noise) ** 2 * gain
    if bias:
        square = square + contraction ** (2 * steps) * (1 + sampling_square(parameters, size))
    return np.asarray(square)


def sampling_square(parameters: Parameters, size: np.ndarray) -> np.ndarray:
    """Mean squared error of least squares, from the mean of an inverse Wishart matrix."""
    return np.asarray(parameters.dimension / (size - parameters.dimension - 1))


def law_crossing(parameters: Parameters, bias: bool, shift: np.ndarray) -> np.ndarray:
    """Least n, by steps, at which log rms privacy error + shift = log rms sampling error.

    With a bias the privacy error is larger again at very large n. `inf` if they are never equal.
    """
    logs = np.linspace(np.log(2.0 * parameters.dimension + 4), np.log(1e12), GRID_POINTS)
    sizes = np.exp(logs)
    ratio = privacy_square(parameters, sizes, bias) / sampling_square(parameters, sizes)
    gap = 0.5 * np.log(ratio) + shift[:, None]
    found = np.full(len(gap), np.inf)
    for row, values in enumerate(gap):
        at = int(np.argmax(values < 0))
        if at > 0:
            # The gap is smooth in log n: interpolation on this grid is good to six digits.
            share = values[at - 1] / (values[at - 1] - values[at])
            found[row] = np.exp(logs[at - 1] + share * (logs[at] - logs[at - 1]))
    return found


def _draw(sample_size: int, dimension: int, rng: np.random.Generator) -> tuple[Samples, np.ndarray]:
    from privreg.algorithms.gaussian_samples import GaussianSamples

    if sample_size * dimension <= HELD_NUMBERS:
        return draw(sample_size, dimension, rng)
    target = unit_vector(dimension, rng)
    seed = np.random.SeedSequence(int(rng.integers(1 << 62)))
    return GaussianSamples(sample_size, target, LABEL_NOISE_STD, seed), target
