"""What the recipes of anon2024 share: the paper names no problem, so it is chosen here."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis
from reproduction.engine.summaries import jackknife

if TYPE_CHECKING:
    from privreg.models import LinearModel
    from privreg.noise.correlations import Correlation
    from privreg.privacy.budget import Budget
    from privreg.theory.shaped_noise.second_moments import RiskParts

CORRELATIONS = ("tree", "independent", "square root")
SHAPES = ("identity", "population")
METHODS = ("non-private", "identity", "designed")
# Twice the root mean square of a gradient's inverse norm, were the residual independent of it.
CLIP_FACTOR = 2.0
# The squared sub-Gaussian norm s² of a standard normal: E exp(z²/s²) = 2.
GAUSSIAN_SCALE = 8 / 3

Decays = q.Some[Annotated[q.Decay, Field(gt=1)]]

AXES = {
    "algorithm": Axis("algorithm", METHODS),
    "correlation": Axis("correlation over steps", CORRELATIONS),
    "noise_shape": Axis("noise covariance", SHAPES),
    "decay": Axis("decay exponent r", "decays"),
    "epsilon": Axis("epsilon", "epsilons"),
    "step_size": Axis("step size", "step_sizes"),
}


class Problem(Strict):
    """Eigenvalues i^-r in the eigenbasis, a target of norm 1 with coordinates in i^-1."""

    decay: Annotated[q.Decay, Field(gt=1)] = Field(
        description="Decay exponent r of the eigenvalues."
    )
    dimension: q.Plural[q.Dimension] = Field(description="Dimension d.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Number N of rows.")
    label_noise_std: q.Deviation = Field(description="Standard deviation of the label noise.")

    @property
    def eigenvalues(self) -> np.ndarray:
        return power_law(self.dimension, self.decay)

    @property
    def target(self) -> np.ndarray:
        coordinates = 1.0 / np.arange(1.0, self.dimension + 1)
        return coordinates / np.linalg.norm(coordinates)

    @property
    def model(self) -> LinearModel:
        from privreg.models import LinearModel

        return LinearModel(self.eigenvalues, self.target, self.label_noise_std)

    def excess_risk(self, averages: np.ndarray) -> np.ndarray:
        """½ ‖w - w*‖²_H over the last axis; infinite for a run that overflowed, or would here."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * (averages - self.target) ** 2 @ self.eigenvalues)

    @property
    def residual_scale(self) -> float:
        """Root mean square of the labels, the residuals at the start."""
        return float(np.sqrt(self.eigenvalues @ self.target**2 + self.label_noise_std**2))

    def shape(self, name: str, step_size: float) -> np.ndarray:
        """Diagonal of Σ: the identity, or H + I/(Nη)."""
        if name == "identity":
            return np.ones(self.dimension)
        return self.eigenvalues + 1.0 / (self.sample_size * step_size)

    def clip_norm(self, shape: np.ndarray) -> float:
        """ψ = 2 √(tr(Σ⁻¹H)) times the residual scale: chosen with H and ‖w*‖_H known."""
        return CLIP_FACTOR * self.residual_scale * float(np.sqrt(np.sum(self.eigenvalues / shape)))

    @property
    def step_cap(self) -> float:
        """1 / (16 (1 + σ_z⁴) tr(H) log₂ N), the largest step size of Theorem 4.2."""
        trace = float(self.eigenvalues.sum())
        return 1 / (16 * (1 + GAUSSIAN_SCALE**2) * trace * np.log2(self.sample_size))

    def clip_constant(self, shape: np.ndarray) -> float:
        """C of Theorem 4.2: the clip norm over the estimate of the residual."""
        trace = float(np.sum(self.eigenvalues / shape))
        scale = GAUSSIAN_SCALE * (1 + GAUSSIAN_SCALE) * trace
        return float(6 * np.sqrt(scale) * np.log(self.sample_size))

    def plain_risk(self, step_size: float) -> RiskParts:
        """Exact risk of plain SGD, in its parts."""
        from privreg.theory.shaped_noise.second_moments import sgd_risk

        return sgd_risk(
            self.eigenvalues,
            target=self.target,
            label_noise_std=self.label_noise_std,
            step_size=step_size,
            sample_size=self.sample_size,
        )

    def noise_risk(self, shape: np.ndarray, step_size: float, correlation: str = "tree") -> float:
        """What noise of unit deviation adds to it, exactly."""
        from privreg.theory.shaped_noise.second_moments import private_risk

        return private_risk(
            self.eigenvalues,
            covariance=shape,
            noise_std=1.0,
            step_size=step_size,
            sample_size=self.sample_size,
            decoder=decoder(correlation, self.sample_size),
        )

    def increments(self, correlation: str, length: int, seed: int) -> np.ndarray:
        """Standard normal noise of all steps in a correlation, shape (N - 1, length)."""
        steps = self.sample_size - 1
        stream = correlation_named(correlation).stream(length, steps=steps, rng=generator(seed))
        return stream.draw(steps)


def power_law(dimension: int, decay: float) -> np.ndarray:
    """Eigenvalues i^-r."""
    return np.arange(1.0, dimension + 1) ** -decay


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def unclipped(settings: int, rows: int) -> dict[str, Any]:
    """Arguments of `run_settings` that clip nothing."""
    return {
        "inverse_norms": np.ones((settings, rows)),
        "clip_norm": np.full(settings, np.inf),
    }


def least_over_step_sizes(risk: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Least mean risk over step sizes, (..., step size, trial) -> (...), of some of the trials."""
    return risk[..., trials].mean(axis=-1).min(axis=-1)


def tuned_risk(risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same of all trials, and its standard error."""
    return jackknife(lambda kept: least_over_step_sizes(risk, kept), risk.shape[-1])


def correlation_named(name: str) -> Correlation:
    """The correlation over steps; the square root is choquettechoo2024's mechanism at ν = 0."""
    from privreg.noise.correlations import (
        IndependentCorrelation,
        SquareRootCorrelation,
        TreeCorrelation,
    )

    if name == "square root":
        return SquareRootCorrelation(0.0)
    return TreeCorrelation() if name == "tree" else IndependentCorrelation()


def decoder(correlation: str, steps: int) -> np.ndarray | None:
    """Toeplitz coefficients of a correlation, None for the tree, which has none."""
    from privreg.noise.toeplitz import identity, square_root

    if correlation == "tree":
        return None
    return identity(steps) if correlation == "independent" else square_root(steps)


@cache
def noise_multiplier(correlation: str, epsilon: float, delta: float, steps: int) -> float:
    """tau of an (epsilon, delta) budget for replace-one neighbours."""
    from privreg.algorithms.shaped_accounting import shaped_noise_multiplier

    return shaped_noise_multiplier(
        _budget(epsilon, delta), correlation=correlation_named(correlation), steps=steps
    )


# The conversion searches for its rho: once a budget is enough.
@cache
def _budget(epsilon: float, delta: float) -> Budget:
    from privreg.privacy.budget import Budget

    return Budget.approximate(epsilon, delta)
