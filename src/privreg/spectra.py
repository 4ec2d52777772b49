"""Covariance spectra: eigenvalues with weights, a finite list or the quadrature of a limit law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of a covariance and the share of the dimensions that each stands for.

    Parameters
    ----------
    eigenvalues : ndarray, shape (modes,)
        At least 0.
    weights : ndarray, shape (modes,)
        At least 0, of sum 1.
    """

    eigenvalues: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.eigenvalues.ndim != 1 or self.eigenvalues.shape != self.weights.shape:
            raise ValueError(
                f"weights must be one for each of the eigenvalues, {self.eigenvalues.shape}, "
                f"got shape {self.weights.shape}"
            )
        if not (np.all(self.eigenvalues >= 0) and np.all(self.weights >= 0)):
            raise ValueError("eigenvalues and weights must be at least 0, got a negative number")
        if not np.isclose(self.weights.sum(), 1.0, rtol=1e-9):
            raise ValueError(f"weights must have sum 1, got {self.weights.sum()}")

    @property
    def modes(self) -> int:
        """Number of distinct eigenvalues or quadrature nodes."""
        return len(self.eigenvalues)

    def mean(self, values: ArrayLike = 1.0) -> float:
        r"""Normalised trace :math:`\frac1d \mathrm{tr}\, f(\Sigma)` of `values`, shape (modes,)."""
        return float(np.sum(self.weights * np.asarray(values)))


def isotropic() -> Spectrum:
    """The identity: one mode."""
    return Spectrum(np.ones(1), np.ones(1))


def explicit(eigenvalues: ArrayLike) -> Spectrum:
    """The spectrum of a finite covariance, equal eigenvalues grouped into one mode.

    Parameters
    ----------
    eigenvalues : array_like, shape (dimension,)
        At least 0.
    """
    values, counts = np.unique(np.asarray(eigenvalues, dtype=float), return_counts=True)
    return Spectrum(values, counts / counts.sum())


def uniform(low: float = 0.0, high: float = 2.0, *, nodes: int = 48) -> Spectrum:
    """Eigenvalues uniform on [low, high] in the limit of many dimensions: Gauss-Legendre nodes."""
    if not 0 <= low < high:
        raise ValueError(f"low and high must satisfy 0 <= low < high, got {low} and {high}")
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return Spectrum(low + (high - low) * (points + 1) / 2, weights / 2)


def uniform_midpoints(dimension: int, low: float = 0.0, high: float = 2.0) -> NDArray[np.float64]:
    """`dimension` equally spaced eigenvalues whose mean is exactly that of the uniform law.

    Returns
    -------
    ndarray, shape (dimension,)
        Midpoints of equal cells of [low, high], increasing.
    """
    return low + (high - low) * (np.arange(dimension) + 0.5) / dimension


def power_law_edge(exponent: float) -> float:
    r"""Largest eigenvalue :math:`C_\phi = (2-\phi)/(1-\phi)`, which makes the mean eigenvalue 1."""
    if not exponent < 1:
        raise ValueError(f"exponent must be less than 1, got {exponent}")
    return (2 - exponent) / (1 - exponent)


def power_law(
    exponent: float, *, panels: int = 30, nodes: int = 5, smallest: float = 1e-11
) -> Spectrum:
    r"""Power-law eigenvalue density, as a quadrature rule fine towards zero.

    .. math:: p(\lambda) = (1-\phi)\, C_\phi^{\phi-1}\, \lambda^{-\phi}, \qquad
        0 < \lambda < C_\phi = \tfrac{2-\phi}{1-\phi}

    where the mean eigenvalue is 1. The nodes are those of Gauss and Legendre in the logarithm of
    the eigenvalue, on equal panels of it, so that :math:`\lambda^a e^{-\lambda x}` is integrated
    well for every x up to about 1 / `smallest`; each panel carries its exact mass.

    Parameters
    ----------
    exponent : float
        Density exponent phi, less than 1; 0 is the uniform law on [0, 2].
    panels : int
        Geometric panels between `smallest` and 1, in units of the largest eigenvalue; one more
        panel covers what lies below.
    nodes : int
        Nodes a panel.
    smallest : float
        Upper end of the lowest panel, in units of the largest eigenvalue.

    Source
    ------
    bombari2025, Assumption 3; the quantile function is derived from it.
    """
    edge = power_law_edge(exponent)
    points, weights = np.polynomial.legendre.leggauss(nodes)
    ends = np.geomspace(smallest, 1.0, panels + 1)
    growth = ends[1] / ends[0]
    inner = ends[:-1, None] * growth ** ((points + 1) / 2)
    share = weights * inner ** (1 - exponent)
    share *= np.diff(ends ** (1 - exponent))[:, None] / share.sum(axis=1, keepdims=True)
    # Below the lowest end the mass itself is the coordinate.
    lowest_mass = smallest ** (1 - exponent)
    lowest = smallest * ((points + 1) / 2) ** (1 / (1 - exponent))
    return Spectrum(
        edge * np.concatenate([lowest, inner.ravel()]),
        np.concatenate([lowest_mass * weights / 2, share.ravel()]),
    )


def power_law_quantiles(dimension: int, exponent: float) -> NDArray[np.float64]:
    """Eigenvalues of a finite power-law covariance: the law's quantiles at cell midpoints.

    Returns
    -------
    ndarray, shape (dimension,)
        Increasing.
    """
    mass = (np.arange(dimension) + 0.5) / dimension
    return power_law_edge(exponent) * mass ** (1 / (1 - exponent))
