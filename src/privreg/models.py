"""The linear model with Gaussian features: it draws samples and knows its population risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.checks import (
    Immutable,
    require_array,
    require_count,
    require_frozen,
    require_number,
    require_rng,
)
from privreg.kernels import standard_normal


@dataclass(frozen=True)
class LinearModel(Immutable):
    r"""Gaussian features with a diagonal covariance, a linear target, Gaussian label noise.

    .. math:: y = x^\top\theta^* + z, \qquad x \sim N(0, \mathrm{diag}(\lambda)),\quad
        z \sim N(0, \zeta^2)

    Parameters
    ----------
    eigenvalues : array_like, shape (dimension,)
        Diagonal of the covariance, at least 0 and at most 1e50.
    target : array_like, shape (dimension,)
        theta*, at least -1e50 and at most 1e50.
    label_noise_std : float
        zeta, at least 0 and at most 1e50.
    """

    eigenvalues: NDArray[np.float64]
    target: NDArray[np.float64]
    label_noise_std: float

    def __post_init__(self) -> None:
        values = require_frozen("eigenvalues", self.eigenvalues, shape=(None,), least=0, most=1e50)
        target = require_frozen("target", self.target, shape=values.shape, least=-1e50, most=1e50)
        noise = require_number("label_noise_std", self.label_noise_std, least=0, most=1e50)
        for name, value in (("eigenvalues", values), ("target", target)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "label_noise_std", noise)

    @classmethod
    def even_target(cls, eigenvalues: ArrayLike, *, label_noise_std: float) -> LinearModel:
        """A target of norm 1 spread evenly over the eigenvectors; arguments as for the class."""
        values = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=1e50)
        return cls(values, np.full(values.shape, len(values) ** -0.5), label_noise_std)

    @property
    def dimension(self) -> int:
        return len(self.eigenvalues)

    def excess_risk(self, parameters: ArrayLike) -> NDArray[np.float64]:
        r"""Excess risk :math:`\frac12 \|\Sigma^{1/2}(\theta - \theta^*)\|^2`.

        Parameters
        ----------
        parameters : array_like, shape (..., dimension)
            theta, at least -1e100 and at most 1e100.

        Returns
        -------
        ndarray, shape (...)
            At least 0; the label noise adds zeta^2 / 2 to make the population risk.
        """
        point = require_array(
            "parameters", parameters, shape=(..., self.dimension), least=-1e100, most=1e100
        )
        gap = point - self.target
        risk = np.asarray(gap**2 @ self.eigenvalues / 2)
        # Where squares are too small for a double, each is weighted before it is one.
        small = risk < 1e-240
        if np.any(small):
            risk[small] = np.sum(gap[small] * self.eigenvalues * gap[small], axis=-1) / 2
        return risk

    def sample(
        self, sample_size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw features, shape (sample_size, dimension), and labels, shape (sample_size,).

        Parameters
        ----------
        sample_size : int
            At least 1.
        rng : Generator
            Source of both.
        """
        sample_size = require_count("sample_size", sample_size)
        require_rng("rng", rng)
        features = standard_normal(rng, (sample_size, self.dimension)) * np.sqrt(self.eigenvalues)
        noise = self.label_noise_std * standard_normal(rng, sample_size)
        return features, features @ self.target + noise
