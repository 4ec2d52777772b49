"""Shared setting of anon2024: the paper names no problem, so one is chosen here."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from privreg.models import LinearModel
from privreg.privacy.budget import Budget
from privreg.theory.shaped_noise import Minimum, minimise_over_step_size
from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis
from reproduction.engine.summaries import jackknife

if TYPE_CHECKING:
    from privreg.noise.streams import Correlation
    from privreg.theory.shaped_noise import Decay as Law
    from privreg.theory.shaped_noise import RiskParts

CORRELATIONS = ("tree", "independent", "square root")
SHAPES = ("identity", "population")
METHODS = ("non-private", "identity", "designed")
# psi over a gradient's root mean square, for a residual that is independent of the feature.
CLIP_FACTOR = 2.0
# The squared sub-Gaussian norm s² of a standard normal: E exp(z²/s²) = 2.
GAUSSIAN_SCALE = 8 / 3
# Entries state what config/papers has for the problems of Appendix B.
CAPPED = "eigenvalues i^-2, d = 128, N = 64; step sizes from 0.01 to 1 times Theorem 4.2's largest"

Decay = Annotated[q.Decay, Field(gt=1)]

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

    decay: Decay = Field(description="Decay exponent r of the eigenvalues.")
    dimension: q.Plural[q.Dimension] = Field(description="Dimension d.")
    sample_size: q.Plural[q.SampleSize] = Field(description="Number N of rows.")
    label_noise_std: q.Deviation = Field(description="Standard deviation of the label noise.")

    @property
    def eigenvalues(self) -> np.ndarray:
        return power_law(self.dimension, self.decay)

    @property
    def target(self) -> np.ndarray:
        coordinates = power_law(self.dimension, 1.0)
        return coordinates / np.linalg.norm(coordinates)

    @property
    def model(self) -> LinearModel:
        return LinearModel(self.eigenvalues, self.target, self.label_noise_std)

    def excess_risk(self, averages: np.ndarray) -> np.ndarray:
        """½ ‖w - w*‖²_H over the last axis; infinite if a run overflowed or its square does."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * (averages - self.target) ** 2 @ self.eigenvalues)

    def shape(self, name: str, step_size: float) -> np.ndarray:
        """Diagonal of Σ: the identity, or H + I/(Nη)."""
        if name == "identity":
            return np.ones(self.dimension)
        return self.eigenvalues + 1.0 / (self.sample_size * step_size)

    def clip_norm(self, shape: np.ndarray) -> float:
        """ψ = 2 √(tr(Σ⁻¹H)) √(E y²); it needs H and ‖w*‖_H."""
        labels = float(np.sqrt(self.eigenvalues @ self.target**2 + self.label_noise_std**2))
        return CLIP_FACTOR * labels * float(np.sqrt(np.sum(self.eigenvalues / shape)))

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
        from privreg.theory.shaped_noise import sgd_risk

        return sgd_risk(
            self.eigenvalues,
            target=self.target,
            label_noise_std=self.label_noise_std,
            step_size=step_size,
            sample_size=self.sample_size,
        )

    def noise_risk(self, shape: np.ndarray, step_size: float, correlation: str = "tree") -> float:
        """Exact risk added by noise of unit deviation."""
        from privreg.theory.shaped_noise import private_risk

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


class CappedProblem(Problem):
    """A problem, with step sizes in units of the largest that Theorem 4.2 allows."""

    relative_steps: q.LogAxis = Field(description="Step sizes over that largest one.")

    @property
    def step_sizes(self) -> np.ndarray:
        return self.step_cap * self.relative_steps.values()


def power_law(dimension: int, decay: float) -> np.ndarray:
    """Eigenvalues i^-r."""
    return np.arange(1.0, dimension + 1) ** -decay


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


def unclipped(settings: int, rows: int) -> dict[str, Any]:
    """Arguments of `run_settings` that clip nothing."""
    return {"inverse_norms": np.ones((settings, rows)), "clip_norm": np.full(settings, np.inf)}


def least_over_step_sizes(risk: np.ndarray, trials: np.ndarray) -> np.ndarray:
    """Least mean risk over step sizes, (..., step size, trial) -> (...), of some of the trials."""
    return risk[..., trials].mean(axis=-1).min(axis=-1)


def tuned_risk(risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tuned risk of all trials, and its standard error."""
    return jackknife(lambda kept: least_over_step_sizes(risk, kept), risk.shape[-1])


def correlation_named(name: str) -> Correlation:
    """The correlation over steps; the square root is choquettechoo2024's mechanism at ν = 0."""
    from privreg.noise import streams

    if name == "square root":
        return streams.SquareRootCorrelation(0.0)
    tree = name == "tree"
    return streams.TreeCorrelation() if tree else streams.IndependentCorrelation()


def decoder(correlation: str, steps: int) -> np.ndarray | None:
    """Toeplitz coefficients of a correlation; None for the tree, which is not Toeplitz."""
    from privreg.noise.toeplitz import identity, square_root

    if correlation == "tree":
        return None
    return identity(steps) if correlation == "independent" else square_root(steps)


@cache
def noise_multiplier(correlation: str, epsilon: float, delta: float, steps: int) -> float:
    """tau of an (epsilon, delta) budget for replace-one neighbours."""
    from privreg.algorithms.shaped_dp_ftrl import shaped_noise_multiplier

    budget = Budget.approximate(epsilon, delta)
    return shaped_noise_multiplier(budget, correlation=correlation_named(correlation), steps=steps)


def least_bound(method: str, law: Law, size: float, noise_multiplier: float) -> Minimum:
    """Least bound of a method of Table 1; "weighted" has the best weights in (B.16)."""
    from privreg.theory import shaped_noise
    from privreg.theory.shaped_noise import effective_dimension

    formula = shaped_noise.designed_bound if method == "designed" else shaped_noise.identity_bound
    noise = noise_multiplier if method in ("identity", "designed") else 0.0

    def total(eta: np.ndarray) -> np.ndarray:
        found = formula(law, sample_size=size, step_size=eta, noise_multiplier=noise).total
        if method != "weighted":
            return found
        # Parts c psi^2 and psi^2 / c of a cross term, the best c > 0, psi^2 of order D.
        private = 1 / size + 2 * eta * np.sqrt(law.squared_trace / size)
        return found + (noise_multiplier * effective_dimension(law, size * eta)) ** 2 * private

    return minimise_over_step_size(total, sample_size=size)


def leave_one_out_forms(lam: np.ndarray, normals: np.ndarray, ridge: float) -> np.ndarray:
    """z_i' A_{-i}^-1 z_i of all directions i, by Sherman and Morrison; normals (M, d)."""
    matrix = np.eye(len(normals)) + (normals * (lam / ridge)) @ normals.T
    whole = np.einsum("mi,mi->i", normals, np.linalg.solve(matrix, normals))
    return np.asarray(whole / (1 - lam / ridge * whole))


def public_bounds(lam: np.ndarray, rows: int, ridge: float) -> tuple[float, float]:
    """Lemma B.10 on the trace and Lemma B.16 on the forms of public features, constants 1."""
    tails = np.append(np.cumsum(lam[::-1])[::-1], 0.0)
    # k: M times the eigenvalue after it is at most lambda plus the sum after it.
    place = int(np.argmax(np.append(lam, 0.0) * rows <= ridge + tails))
    tail = float(tails[place])
    trace = place * (ridge + tail) / ridge + rows * tail / ridge
    return trace, ridge * rows / (ridge + tail)


def shared_nodes(steps: int) -> NDArray[np.int64]:
    """Number of nodes that each two prefixes of 0, ..., `steps` vectors share."""
    from privreg.noise.streams import tree_matrices

    prefixes = np.cumsum(tree_matrices(steps)[1], axis=0)
    return np.pad(prefixes @ prefixes.T, (1, 0)).astype(np.int64)
