"""The linear model with Gaussian features: its parameters, samples and population risk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    Immutable,
    require_array,
    require_count,
    require_fields,
    require_frozen,
    require_rng,
    scale_or_zero,
)
from privreg.kernels import standard_normal


@dataclass(frozen=True)
class LinearModel(Immutable):
    r"""Linear model with Gaussian features of diagonal covariance and Gaussian label noise.

    .. math:: y = x^\top\theta^* + z, \qquad x \sim N(0, \Sigma),\quad
        \Sigma = \mathrm{diag}(\lambda),\quad z \sim N(0, \zeta^2)

    Parameters
    ----------
    eigenvalues, target : array_like, shape (dimension,)
        Diagonal of the covariance, in [0, 1e12]; coefficients theta*, at most 1e12 in size.
    label_noise_std : float
        Standard deviation zeta of the label noise; may be 0.
    """

    eigenvalues: FloatArray
    target: FloatArray
    label_noise_std: float

    def __post_init__(self) -> None:
        vector = partial(require_frozen, most=MOST)
        values = partial(vector, shape=(None,), least=0)
        require_fields(self, eigenvalues=values, label_noise_std=scale_or_zero)
        require_fields(self, target=partial(vector, shape=self.eigenvalues.shape, least=-MOST))

    @classmethod
    def even_target(cls, eigenvalues: ArrayLike, *, label_noise_std: float) -> LinearModel:
        """Create a model whose target has norm 1 and equal coefficients."""
        values = np.asarray(eigenvalues, dtype=float)
        return cls(values, np.full(values.shape, max(values.size, 1) ** -0.5), label_noise_std)

    @property
    def dimension(self) -> int:
        return len(self.eigenvalues)

    def excess_risk(self, parameters: ArrayLike) -> FloatArray:
        r"""Excess risk :math:`\frac12 \|\Sigma^{1/2}(\theta - \theta^*)\|^2`, shape (...).

        The parameters theta have shape (..., dimension). The population risk is larger than the
        excess risk by zeta^2 / 2, the part of the label noise.
        """
        point = require_array("parameters", parameters, shape=(..., self.dimension))
        return np.asarray((point - self.target) ** 2 @ self.eigenvalues / 2)

    def sample(self, sample_size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw features, shape (sample_size, dimension), and labels, shape (sample_size,)."""
        sample_size = require_count("sample_size", sample_size)
        require_rng("rng", rng)
        features = standard_normal(rng, (sample_size, self.dimension)) * np.sqrt(self.eigenvalues)
        noise = self.label_noise_std * standard_normal(rng, sample_size)
        return features, features @ self.target + noise
