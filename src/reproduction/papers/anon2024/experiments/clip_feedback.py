"""Clip norms too small or too large; adaptive ones feed back, and where their runs diverge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import SHAPES

if TYPE_CHECKING:
    from privreg.algorithms.shaped_mechanism import ShapedMechanism

PLACE = "Section 3.1, Theorem 4.2, Algorithm 1; the paper runs no experiment"
CONSTANTS = ("paper", "practical")


class Parameters(setting.Problem):
    """Step sizes in units of the largest that Theorem 4.2 allows."""

    relative_steps: q.LogAxis = Field(description="Step sizes over the paper's cap.")
    estimating_rows: q.SampleSize = Field(description="Public labelled rows m of the estimate.")
    epsilon: q.Epsilon = Field(description="epsilon of the paper's noise.")
    delta: q.Delta = Field(description="delta of the paper's noise.")

    def per_residual(self, constant: str, shape: np.ndarray) -> float:
        """C of Theorem 4.2, or 2 √(tr(Σ⁻¹H))."""
        if constant == "paper":
            return self.clip_constant(shape)
        return setting.CLIP_FACTOR * np.sqrt(np.sum(self.eigenvalues / shape))

    @property
    def multiplier(self) -> float:
        from privreg.algorithms.shaped_accounting import published_noise_multiplier

        return published_noise_multiplier(
            epsilon=self.epsilon, delta=self.delta, steps=self.sample_size
        )

    @property
    def step_sizes(self) -> np.ndarray:
        return self.step_cap * self.relative_steps.values()

    @property
    def risk_at_start(self) -> float:
        return float(self.excess_risk(np.zeros(self.dimension)))


AXES = {
    "noise_shape": setting.AXES["noise_shape"],
    "constant": Axis("constant C of the clip norm", CONSTANTS),
    "step_size": setting.AXES["step_size"],
    "clip_share": Axis("clip norm over twice the typical norm", (0.01, 0.1, 1.0, 10.0, 100.0)),
    "relative_step": Axis("step size over the paper's cap", "relative_steps", along="step_size"),
}
GRID = tuple(AXES)[:3]


@per(*GRID, gain="step size times tau C root(2 tr(H Sigma) log2 N)")
def gain(parameters: Parameters, noise_shape: str, constant: str, step_size: float) -> float:
    """The gain of the loop, noise in the residual for each unit of residual."""
    shape = parameters.shape(noise_shape, step_size)
    along = np.sum(parameters.eigenvalues * shape) * np.log2(parameters.sample_size)
    clip_constant = parameters.per_residual(constant, shape)
    return step_size * parameters.multiplier * clip_constant * np.sqrt(2 * along)


@per(
    plain_risk_by_clip=Quantity("risk over that of the start, without noise", "clip_share"),
    noisy_risk_by_clip=Quantity("risk over that of the start, with the tree's noise", "clip_share"),
)
def clip_norms() -> dict:
    """Means of 20 runs for the average iterate, N = 256, d = 64, tau = 1, eta tr(H) = 1/4."""
    from privreg.algorithms.shaped_settings import run_settings

    problem = setting.Problem(decay=2.0, dimension=64, sample_size=256, label_noise_std=0.5)
    eta, identity_shape = 0.25 / problem.eigenvalues.sum(), np.ones(problem.dimension)
    clip_norm = problem.clip_norm(identity_shape) * np.array(AXES["clip_share"].values)
    found: dict[str, list] = {"plain_risk_by_clip": [], "noisy_risk_by_clip": []}
    for seed in range(20):
        features, labels = problem.model.sample(problem.sample_size, setting.generator(seed))
        norms = np.tile(np.linalg.norm(features, axis=1), (len(clip_norm), 1))
        for name, multiplier in zip(found, (0.0, 1.0), strict=True):
            averages, _ = run_settings(
                features,
                labels,
                inverse_norms=norms,
                noise=problem.increments("tree", problem.dimension, seed),
                noise_scale=multiplier * clip_norm[:, None] * identity_shape,
                step_size=np.full(len(clip_norm), eta),
                clip_norm=clip_norm,
            )
            found[name].append(problem.excess_risk(averages))
    start = problem.excess_risk(np.zeros(problem.dimension))
    return {name: np.mean(runs, axis=0) / start for name, runs in found.items()}


@per(cap="largest step size that Theorem 4.2 allows")
def cap(parameters: Parameters) -> float:
    return parameters.step_cap


@per(
    *GRID,
    risk="excess risk, infinite for a run that diverged",
    clip_norm="largest clip norm of the run",
)
def run(parameters: Parameters, trial: Trial) -> list:
    """Runs that estimate their residuals, over the same rows and noise."""
    from privreg.algorithms.samples import ArraySamples
    from privreg.algorithms.shaped_dp_ftrl import shaped_dp_ftrl

    samples = ArraySamples(*parameters.model.sample(parameters.sample_size, trial.rng))
    estimating = parameters.model.sample(parameters.estimating_rows, trial.rng)
    seed = int(trial.rng.integers(2**63))

    def once(name: str, constant: str, step_size: float) -> dict:
        shape = parameters.shape(name, step_size)
        found = shaped_dp_ftrl(
            samples,
            mechanism=_mechanism(parameters, constant, shape, estimating),
            step_size=step_size,
            rng=setting.generator(seed),
        )
        return {"risk": parameters.excess_risk(found.average), "clip_norm": found.largest_clip_norm}

    return [
        [
            [once(name, constant, float(eta)) for eta in parameters.step_sizes]
            for constant in CONSTANTS
        ]
        for name in SHAPES
    ]


@per(
    *GRID,
    median_risk="median excess risk",
    diverged="share of runs that overflowed",
)
def shares(parameters: Parameters, simulation: Dataset) -> dict:
    """Medians, which may be infinite, and shares of runs that overflowed or learnt nothing."""
    risk = trials_last(simulation.risk)
    return {
        "median_risk": np.median(risk, axis=-1),
        "diverged": np.isinf(risk).mean(axis=-1),
    }


@per(
    *GRID[:2],
    diverged_at_cap="share of runs that overflowed at the step size closest to the cap",
)
def at_cap(parameters: Parameters, simulation: Dataset) -> np.ndarray:
    closest = int(np.argmin(np.abs(np.log(parameters.relative_steps.values()))))
    return np.isinf(trials_last(simulation.risk.isel(step_size=closest))).mean(axis=-1)


@per(risk_at_start="excess risk of the start")
def start(parameters: Parameters) -> float:
    return parameters.risk_at_start


theory = stage(AXES, gain, clip_norms, cap)
simulate = stage(AXES, run)
summarise = stage(AXES, shares, at_cap, start)


def _mechanism(
    parameters: Parameters, constant: str, shape: np.ndarray, estimating: tuple
) -> ShapedMechanism:
    from privreg.algorithms.shaped_mechanism import ResidualClip, ShapedMechanism
    from privreg.noise.correlations import TreeCorrelation
    from privreg.noise.covariance import DiagonalCovariance

    return ShapedMechanism(
        DiagonalCovariance(shape),
        TreeCorrelation(),
        ResidualClip(parameters.per_residual(constant, shape), *estimating),
        parameters.multiplier,
        parameters.sample_size,
    )
