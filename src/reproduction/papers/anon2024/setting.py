"""What the simulations of anon2024 share: the paper names no problem, so it is chosen here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Deviation, Dimension, Power, SampleSize

if TYPE_CHECKING:
    from privreg.models import LinearModel
    from privreg.noise.correlations import Correlation

CORRELATIONS = ("tree", "independent", "square root")
# Twice the root mean square of a gradient's inverse norm, were the residual independent of it.
CLIP_FACTOR = 2.0


class Problem(Strict):
    """Eigenvalues i^-r in the eigenbasis, a target of norm 1 with coordinates in i^-1."""

    decay: Annotated[Power, Field(gt=1)] = Field(description="Decay exponent r of the eigenvalues.")
    dimension: Annotated[Dimension, Field(ge=2)] = Field(description="Dimension d.")
    sample_size: Annotated[SampleSize, Field(ge=2)] = Field(description="Number N of rows.")
    label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")

    @property
    def eigenvalues(self) -> np.ndarray:
        return np.arange(1.0, self.dimension + 1) ** -self.decay

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
