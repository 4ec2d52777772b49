"""Adaptive clipping feeds back: where runs diverge, with the paper's constants and smaller ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.quantities import Epsilon, LogAxis, Probability, SampleSize
from reproduction.papers.anon2024.setting import Problem

if TYPE_CHECKING:
    import xarray as xr

    from reproduction.experiment.trials import Trials

PLACE = "Theorem 4.2, Algorithm 1; the paper runs no experiment"
SHAPES = ("identity", "population")
CONSTANTS = ("paper", "practical")
DIMS = ("noise_shape", "constant", "step_size")
# E exp(z²/s) ≤ 2 for a standard normal z from s = 8/3 on.
GAUSSIAN_SCALE = 8 / 3


class Parameters(Problem):
    """Step sizes in units of the largest that Theorem 4.2 allows."""

    relative_steps: LogAxis = Field(description="Step sizes over the paper's cap.")
    estimating_rows: SampleSize = Field(description="Public labelled rows m of the estimate.")
    epsilon: Epsilon = Field(description="epsilon of the paper's noise.")
    delta: Probability = Field(description="delta of the paper's noise.")

    @property
    def cap(self) -> float:
        """1 / (16 (1 + σ_z⁴) tr(H) log₂ N)."""
        trace = float(np.sum(self.eigenvalues))
        return 1 / (16 * (1 + GAUSSIAN_SCALE**2) * trace * np.log2(self.sample_size))

    def per_residual(self, constant: str, shape: np.ndarray) -> float:
        """C of Theorem 4.2, or 2 √(tr(Σ⁻¹H))."""
        trace = float(np.sum(self.eigenvalues / shape))
        if constant == "practical":
            return 2.0 * np.sqrt(trace)
        scale = 6 * np.sqrt(GAUSSIAN_SCALE * (1 + GAUSSIAN_SCALE) * trace)
        return float(scale * np.log(self.sample_size))

    @property
    def multiplier(self) -> float:
        from privreg.algorithms.shaped_accounting import published_noise_multiplier

        return published_noise_multiplier(
            epsilon=self.epsilon, delta=self.delta, steps=self.sample_size
        )

    @property
    def step_sizes(self) -> np.ndarray:
        return self.cap * self.relative_steps.values()


def theory(parameters: Parameters) -> xr.Dataset:
    """The gain of the loop, noise in the residual for each unit of residual."""
    import xarray as xr

    gain = np.zeros((len(SHAPES), len(CONSTANTS), len(parameters.step_sizes)))
    for i, name in enumerate(SHAPES):
        for k, eta in enumerate(parameters.step_sizes):
            shape = parameters.shape(name, eta)
            along = np.sum(parameters.eigenvalues * shape) * np.log2(parameters.sample_size)
            for j, constant in enumerate(CONSTANTS):
                gain[i, j, k] = (
                    eta * parameters.multiplier * parameters.per_residual(constant, shape)
                    * np.sqrt(2 * along)
                )  # fmt: skip
    return xr.Dataset(
        {
            "gain": variable(DIMS, gain, "step size times tau C root(2 tr(H Sigma) log2 N)"),
            "cap": variable((), parameters.cap, "largest step size that Theorem 4.2 allows"),
        },
        coords=_coordinates(parameters),
    )


def simulate(parameters: Parameters, trials: Trials) -> xr.Dataset:
    """Excess risk of runs that estimate their residuals, infinite where they diverge."""
    import xarray as xr

    from privreg.algorithms.samples import ArraySamples
    from privreg.algorithms.shaped_dp_ftrl import ResidualClip, ShapedMechanism, shaped_dp_ftrl
    from privreg.noise.correlations import TreeCorrelation
    from privreg.noise.covariance import DiagonalCovariance
    from reproduction.experiment.progress import track

    model, steps = parameters.model, parameters.step_sizes
    risk = np.empty((len(SHAPES), len(CONSTANTS), len(steps), len(trials)))
    clip_norm = np.empty_like(risk)
    for at, trial in enumerate(track(trials, total=len(trials), label="clip feedback")):
        samples = ArraySamples(*model.sample(parameters.sample_size, trial.rng))
        estimating = model.sample(parameters.estimating_rows, trial.rng)
        seed = int(trial.rng.integers(2**63))
        for i, j, k in np.ndindex(risk.shape[:-1]):
            shape = parameters.shape(SHAPES[i], float(steps[k]))
            mechanism = ShapedMechanism(
                DiagonalCovariance(shape),
                TreeCorrelation(),
                ResidualClip(parameters.per_residual(CONSTANTS[j], shape), *estimating),
                parameters.multiplier,
                parameters.sample_size,
            )
            run = shaped_dp_ftrl(
                samples,
                mechanism=mechanism,
                step_size=float(steps[k]),
                rng=np.random.Generator(np.random.SFC64(seed)),
            )
            risk[i, j, k, at] = parameters.excess_risk(run.average)
            clip_norm[i, j, k, at] = run.largest_clip_norm
    dims = (*DIMS, "trial")
    return xr.Dataset(
        {
            "risk": variable(dims, risk, "excess risk, infinite for a run that diverged"),
            "clip_norm": variable(dims, clip_norm, "largest clip norm of the run"),
        },
        coords=_coordinates(parameters),
    )


def summarise(parameters: Parameters, simulation: xr.Dataset) -> xr.Dataset:
    """Medians, which may be infinite, and shares of runs that overflowed or learnt nothing."""
    import xarray as xr

    risk = simulation.risk.values
    at_cap = int(np.argmin(np.abs(np.log(parameters.relative_steps.values()))))
    at_start = float(parameters.excess_risk(np.zeros(parameters.dimension)))
    return xr.Dataset(
        {
            "median_risk": variable(DIMS, np.median(risk, axis=-1), "median excess risk"),
            "diverged": variable(
                DIMS, np.mean(np.isinf(risk), axis=-1), "share of runs that overflowed"
            ),
            "worse_than_start": variable(
                DIMS, np.mean(risk > at_start, axis=-1), "share of runs worse than the start"
            ),
            "diverged_at_cap": variable(
                DIMS[:-1],
                np.mean(np.isinf(risk[:, :, at_cap]), axis=-1),
                "share of runs that overflowed at the step size closest to the cap",
            ),
            "risk_at_start": variable((), at_start, "excess risk of the start"),
        },
        coords=_coordinates(parameters) | {"trial": simulation.trial.variable},
    )


def _coordinates(parameters: Parameters) -> dict[str, tuple]:
    return {
        "noise_shape": variable("noise_shape", list(SHAPES), "noise covariance"),
        "constant": variable("constant", list(CONSTANTS), "constant C of the clip norm"),
        "step_size": variable("step_size", parameters.step_sizes, "step size"),
        "relative_step": variable(
            "step_size", parameters.relative_steps.values(), "step size over the paper's cap"
        ),
    }
