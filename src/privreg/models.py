"""The linear model with Gaussian features: it draws samples and knows its population risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class LinearModel:
    r"""Gaussian features with a diagonal covariance, a linear target, Gaussian label noise.

    .. math:: y = x^\top\theta^* + z, \qquad x \sim N(0, \mathrm{diag}(\lambda)),\quad
        z \sim N(0, \zeta^2)

    Parameters
    ----------
    eigenvalues : ndarray, shape (dimension,)
        Diagonal of the covariance, at least 0.
    target : ndarray, shape (dimension,)
        theta*.
    label_noise_std : float
        zeta, at least 0.
    """

    eigenvalues: NDArray[np.float64]
    target: NDArray[np.float64]
    label_noise_std: float

    def __post_init__(self) -> None:
        if self.eigenvalues.shape != self.target.shape:
            raise ValueError(
                f"target must have the shape of the eigenvalues, {self.eigenvalues.shape}, "
                f"got {self.target.shape}"
            )

    @classmethod
    def even_target(cls, eigenvalues: ArrayLike, *, label_noise_std: float) -> LinearModel:
        """A target of norm 1 spread evenly over the eigenvectors."""
        values = np.asarray(eigenvalues, dtype=float)
        return cls(values, np.full(values.shape, len(values) ** -0.5), label_noise_std)

    @property
    def dimension(self) -> int:
        return len(self.eigenvalues)

    def excess_risk(self, parameters: ArrayLike) -> NDArray[np.float64]:
        r"""Excess risk :math:`\frac12 \|\Sigma^{1/2}(\theta - \theta^*)\|^2`.

        Parameters
        ----------
        parameters : array_like, shape (..., dimension)
            theta.

        Returns
        -------
        ndarray, shape (...)
            At least 0; the label noise adds zeta^2 / 2 to make the population risk.
        """
        return (np.asarray(parameters) - self.target) ** 2 @ self.eigenvalues / 2

    def sample(
        self, sample_size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw features, shape (sample_size, dimension), and labels, shape (sample_size,)."""
        features = rng.standard_normal((sample_size, self.dimension)) * np.sqrt(self.eigenvalues)
        noise = self.label_noise_std * rng.standard_normal(sample_size)
        return features, features @ self.target + noise
