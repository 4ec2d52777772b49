"""Feedback of clip norms that follow the residuals, and the step sizes at which runs diverge."""

from __future__ import annotations

from itertools import product

import numpy as np
from pydantic import Field

from privreg.algorithms.samples import ArraySamples
from privreg.noise.covariance import DiagonalCovariance
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Dataset, Quantity, Trial, per, stage
from reproduction.engine.summaries import trials_last
from reproduction.papers.anon2024 import setting
from reproduction.papers.anon2024.setting import SHAPES

PLACE = "Section 3.1, Theorem 4.2, Algorithm 1; the paper runs no experiment"
CONSTANTS = ("paper", "practical")


class Parameters(setting.CappedProblem):
    """Problem, and the sample that estimates its residuals."""

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
        from reproduction.papers.anon2024.published import published_noise_multiplier

        return published_noise_multiplier(
            epsilon=self.epsilon, delta=self.delta, steps=self.sample_size
        )


AXES = {
    "noise_shape": setting.AXES["noise_shape"],
    "constant": Axis("constant C of the clip norm", CONSTANTS),
    "step_size": setting.AXES["step_size"],
    "relative_step": Axis("step size / the paper's cap", "relative_steps", along="step_size"),
    "any_size": Axis("number of rows N", (1e3, 1e4, 1e5, 1e6, 1e7, 1e8)),
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
    "noise_shape",
    "any_size",
    gain_at_the_cap="gain at the largest step size and the C of Theorem 4.2",
    gain_at_the_printed_step="gain at that C and the step sizes of Sections B.3.2 and B.3.4",
)
def gains(parameters: Parameters, noise_shape: str, any_size: float) -> dict[str, float]:
    """Gains of the loop; step sizes of a printed order have the constant 1."""
    r, problem = parameters.decay, parameters.model_copy(update={"sample_size": int(any_size)})
    spread = (any_size ** -(1 + r) * problem.multiplier ** (-2 * r)) ** (1 / (1 + 2 * r))
    steps = [problem.step_cap, any_size ** (-1 / (1 + r)), spread]
    if noise_shape != "identity":
        spread = (any_size ** -(1 + r) * problem.multiplier ** (-2 * r)) ** (1 / (1 + 3 * r))
        cubed = (any_size**-3 * problem.multiplier ** (-2 * r)) ** (1 / (3 + r))
        steps[2:] = [spread, cubed]
    return {
        "gain_at_the_cap": gain(problem, noise_shape, "paper", problem.step_cap),
        "gain_at_the_printed_step": gain(problem, noise_shape, "paper", min(steps)),
    }


@per(*GRID, risk="excess risk, infinite for a run that diverged")
def run(parameters: Parameters, trial: Trial) -> np.ndarray:
    """Runs that estimate their residuals, over the same rows and noise."""
    from privreg.algorithms.shaped_dp_ftrl import ResidualClip, ShapedMechanism, shaped_dp_ftrl

    samples = ArraySamples(*parameters.model.sample(parameters.sample_size, trial.rng))
    estimating = parameters.model.sample(parameters.estimating_rows, trial.rng)
    seed = int(trial.rng.integers(2**63))
    risks, steps = [], parameters.step_sizes.tolist()
    for name, constant, step_size in product(SHAPES, CONSTANTS, steps):
        shape = parameters.shape(name, step_size)
        mechanism = ShapedMechanism(
            DiagonalCovariance(shape),
            setting.correlation_named("tree"),
            ResidualClip(parameters.per_residual(constant, shape), *estimating),
            parameters.multiplier,
            parameters.sample_size,
        )
        found = shaped_dp_ftrl(
            samples, mechanism=mechanism, step_size=step_size, rng=setting.generator(seed)
        )
        risks.append(parameters.excess_risk(found.average))
    return np.reshape(risks, (len(SHAPES), len(CONSTANTS), -1))


@per(
    median_risk=Quantity("median excess risk", "noise_shape constant step_size"),
    diverged_at_cap=Quantity(
        "share of runs that overflowed at the step size closest to the cap", "noise_shape constant"
    ),
    risk_at_start="excess risk of the start",
)
def summary(parameters: Parameters, simulation: Dataset) -> dict:
    """Median risks, infinite where half of the runs overflowed, and shares of overflowed runs."""
    risk = trials_last(simulation.risk)
    closest = int(np.argmin(np.abs(np.log(parameters.relative_steps.values()))))
    return {
        "median_risk": np.median(risk, axis=-1),
        "diverged_at_cap": np.isinf(risk[:, :, closest]).mean(axis=-1),
        "risk_at_start": parameters.excess_risk(np.zeros(parameters.dimension)),
    }


theory = stage(AXES, gain, gains)
simulate = stage(AXES, run)
summarise = stage(AXES, summary)
