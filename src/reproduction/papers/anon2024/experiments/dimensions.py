"""Excess risk as the dimension grows past the number of rows: it stops changing."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Dataset, Estimate, Trial, per, stage
from reproduction.engine.summaries import jackknife, trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import SHAPES

PLACE = "Corollaries 4.3 and 4.5, no dependence on d; the paper runs no experiment"
ARMS = ("non-private", *(f"tree, {shape}" for shape in SHAPES))


class Parameters(Strict):
    """Dimensions in units of the number of rows; the first coordinates are the same in all."""

    decay: setting.Decay = Field(description="Decay exponent r.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Number N of rows.")
    ratios: q.Grid[q.Count] = Field(description="d / N, increasing.")
    label_noise_std: q.Deviation = Field(description="Standard deviation of the label noise.")
    epsilon: q.Epsilon = Field(description="epsilon, replace-one.")
    delta: q.Delta = Field(description="delta.")
    step_sizes: q.StepSizeAxis = Field(description="Step sizes to choose from.")


AXES = {
    "arm": Axis("correlation and shape", ARMS),
    "ratio": Axis("dimension divided by number of rows", "ratios"),
    "step_size": setting.AXES["step_size"],
}


@per("ratio", "arm", "step_size", risk="excess risk of the average iterate")
def run(parameters: Parameters, trial: Trial) -> list:
    """Excess risks; a trial's normals for the first coordinates are shared by all dimensions."""
    from privreg.algorithms.shaped_dp_ftrl import run_settings

    size, steps = parameters.sample_size, parameters.step_sizes.values()
    largest = max(parameters.ratios) * size
    normals = trial.rng.standard_normal((size, largest))
    label_noise = parameters.label_noise_std * trial.rng.standard_normal(size)
    stream = setting.correlation_named("tree").stream(largest, steps=size - 1, rng=trial.rng)
    noise = stream.draw(size - 1)
    multiplier = setting.noise_multiplier("tree", parameters.epsilon, parameters.delta, size - 1)
    found = []
    for ratio in parameters.ratios:
        problem = setting.Problem(
            decay=parameters.decay,
            dimension=ratio * size,
            sample_size=size,
            label_noise_std=parameters.label_noise_std,
        )
        d = problem.dimension
        features = normals[:, :d] * np.sqrt(problem.eigenvalues)
        shapes = np.array([problem.shape(name, eta) for name in SHAPES for eta in steps])
        clips = np.array([problem.clip_norm(shape) for shape in shapes])
        scale = (multiplier * clips)[:, None] * np.sqrt(shapes)
        norms = np.sqrt(features**2 @ (1 / shapes).T).T
        averages, _ = run_settings(
            features,
            features @ problem.target + label_noise,
            inverse_norms=np.concatenate([np.ones((len(steps), size)), norms]),
            noise=noise[:, :d],
            noise_scale=np.concatenate([np.zeros((len(steps), d)), scale]),
            step_size=np.tile(steps, len(ARMS)),
            clip_norm=np.concatenate([np.full(len(steps), np.inf), clips]),
        )
        found.append(problem.excess_risk(averages).reshape(len(ARMS), -1))
    return found


@per(
    "arm",
    "ratio",
    tuned=Estimate("least mean excess risk over step sizes"),
    relative=Estimate("tuned excess risk divided by that of the smallest dimension"),
)
def tuned(simulation: Dataset) -> dict:
    risk = trials_last(simulation.risk.transpose(*AXES, "trial"))

    def ratio(kept: np.ndarray) -> np.ndarray:
        best = setting.least_over_step_sizes(risk, kept)
        return best / best[:, :1]

    return {"tuned": setting.tuned_risk(risk), "relative": jackknife(ratio, risk.shape[-1])}


simulate = stage(AXES, run)
summarise = stage(AXES, tuned, step_size=AXES["step_size"])
