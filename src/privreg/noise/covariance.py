r"""Shaped noise: covariances Σ of private noise that are never held as d × d matrices.

For noise N(0, σ²Σ) the sensitivity of a Gaussian mechanism is measured in the norm √(vᵀΣ⁻¹v). A
covariance object therefore multiplies standard normals by a root of Σ and computes this inverse
norm. The cost of both is linear in the dimension. Σ is diagonal, or a multiple of the identity plus
a low-rank matrix of public features; Woodbury's identity inverts this sum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    Immutable,
    frozen,
    require_array,
    require_fields,
    require_frozen,
    require_scale,
)

# Least ridge over the largest eigenvalue beside it: inverse norms then keep seven digits.
CONDITION = 1e-9
_COLUMNS = 4096
# Rows are data. Longer ones are for the caller to shorten; to a sum of squares this is added, more
# than underflow can take from it, so that no inverse norm is too small.
LONGEST, _LOST = 1e60, 1e-290


@runtime_checkable
class NoiseCovariance(Protocol):
    """Positive definite covariance Σ, given by a root of Σ and the inverse norm √(vᵀΣ⁻¹v)."""

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""

    @property
    def draws(self) -> int:
        """Number of standard normals for one noise vector."""

    def root_multiply(self, normals: ArrayLike) -> FloatArray:
        """Vectors of covariance Σ, shape (..., d), from standard normals, shape (..., draws)."""

    def inverse_norms(self, rows: ArrayLike) -> FloatArray:
        """√(vᵀΣ⁻¹v) for each row v, shape (n,), from rows of shape (n, d)."""

    def inverse_trace(self, eigenvalues: ArrayLike) -> float:
        """tr(Σ⁻¹H), H = diag(eigenvalues): mean of xᵀΣ⁻¹x for features x of second moment H."""

    def trace(self, eigenvalues: ArrayLike) -> float:
        """tr(ΣH) for H = diag(eigenvalues)."""


@dataclass(frozen=True)
class DiagonalCovariance(Immutable):
    r"""Covariance of noise with independent coordinates, Σ = diag(s).

    Parameters
    ----------
    diagonal : array_like, shape (d,)
        Variances s, at least 1e-12 and at most 2e12; kept as a read-only copy.

    Examples
    --------
    >>> shape = population_covariance([1.0, 0.25], horizon=4.0)
    >>> shape.diagonal
    array([1.25, 0.5 ])
    >>> round(float(shape.inverse_norms([[1.0, 1.0]])[0]), 4)
    1.6733
    """

    diagonal: FloatArray

    def __post_init__(self) -> None:
        # An eigenvalue plus the inverse of a horizon may be twice the largest number.
        variances = partial(require_frozen, shape=(None,), least=LEAST, most=2 * MOST)
        require_fields(self, diagonal=variances)

    @property
    def dimension(self) -> int:
        return self.diagonal.size

    @property
    def draws(self) -> int:
        return self.diagonal.size

    def root_multiply(self, normals: ArrayLike) -> FloatArray:
        return _normals(normals, self.draws) * np.sqrt(self.diagonal)

    def inverse_norms(self, rows: ArrayLike) -> FloatArray:
        values = _rows(rows, self.dimension)
        squared = np.einsum("ij,ij,j->i", values, values, 1.0 / self.diagonal)
        return np.asarray(np.sqrt(squared + _LOST))

    def inverse_trace(self, eigenvalues: ArrayLike) -> float:
        return float(np.sum(_eigenvalues(eigenvalues, self.dimension) / self.diagonal))

    def trace(self, eigenvalues: ArrayLike) -> float:
        return float(np.sum(_eigenvalues(eigenvalues, self.dimension) * self.diagonal))


def identity_covariance(dimension: int) -> DiagonalCovariance:
    """Covariance of isotropic noise, Σ = I."""
    return DiagonalCovariance(np.ones(dimension))


def population_covariance(eigenvalues: ArrayLike, *, horizon: float) -> DiagonalCovariance:
    r"""Noise covariance that follows the features' covariance H, in the eigenbasis of H.

    .. math:: \Sigma = H + \frac{1}{N\eta} I

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues of H, from 0 to 1e12. H must be known without the private features: no guarantee
        covers a Σ that is computed from them.
    horizon : float
        N η, the number of steps times the step size.

    Source
    ------
    anon2024, equation (3.1) with the λ that Corollary 4.5 chooses.
    """
    values = _eigenvalues(eigenvalues, None)
    return DiagonalCovariance(values + 1.0 / require_scale("horizon", horizon))


@dataclass(frozen=True)
class PublicCovariance(Immutable):
    r"""Noise covariance from public, unlabelled features: low rank plus identity.

    .. math:: \Sigma = \frac1M\big(\lambda I + \tilde X^\top\tilde X\big)

    The rows of X̃, shape (M, d), are the public features. A draw √(λ/M) g + X̃ᵀ h / √M takes d + M
    standard normals, g and h. Inverse norms need the eigenvectors of X̃X̃ᵀ or X̃ᵀX̃, the smaller of
    the two. Several ridges λ share these eigenvectors through `with_ridge`.

    Parameters
    ----------
    features : array_like, shape (M, d)
        X̃, at most 1e12 in size; copied. They must be public: no guarantee covers them.
    ridge : float
        λ, from 1e-9 times the largest eigenvalue of X̃ᵀX̃ to 1e24. With a smaller λ, rounding would
        dominate the inverse norms. For λ = M/(Nη), Σ estimates the
        `population_covariance` with horizon Nη.

    Examples
    --------
    >>> shape = PublicCovariance([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]], ridge=1.0)
    >>> shape.inverse_norms(np.eye(3))
    array([1.        , 0.63245553, 1.41421356])

    Source
    ------
    anon2024, equation (3.2), whose X̃ has the features as columns.
    """

    features: FloatArray
    ridge: float
    gram_eigenvalues: FloatArray = field(init=False, repr=False)
    directions: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        table = partial(require_frozen, shape=(None, None), least=-MOST, most=MOST)
        require_fields(self, features=table)
        features = self.features
        rows, dimension = features.shape
        gram = features @ features.T if rows < dimension else features.T @ features
        values, vectors = np.linalg.eigh(gram)
        object.__setattr__(self, "gram_eigenvalues", frozen(np.maximum(values, 0.0)))
        object.__setattr__(self, "directions", frozen(vectors))
        object.__setattr__(self, "ridge", float(self._ridges("ridge", [self.ridge])[0]))

    def with_ridge(self, ridge: float) -> PublicCovariance:
        """Covariance of the same features with another λ."""
        other = object.__new__(PublicCovariance)
        for name in ("features", "gram_eigenvalues", "directions"):
            object.__setattr__(other, name, getattr(self, name))
        object.__setattr__(other, "ridge", float(self._ridges("ridge", [ridge])[0]))
        return other

    @property
    def dimension(self) -> int:
        return self.features.shape[1]

    @property
    def draws(self) -> int:
        return self.dimension + len(self.features)

    def root_multiply(self, normals: ArrayLike) -> FloatArray:
        values = _normals(normals, self.draws)
        isotropic, shaped = values[..., : self.dimension], values[..., self.dimension :]
        return (np.sqrt(self.ridge) * isotropic + shaped @ self.features) / np.sqrt(
            len(self.features)
        )

    def inverse_norms(self, rows: ArrayLike) -> FloatArray:
        """√(vᵀΣ⁻¹v) for each row v, shape (n,), from rows of shape (n, d).

        Norms are rounded up, so that rows clipped by these norms are short enough.
        """
        # Rounding moves the Gram matrix by some ulp of its largest eigenvalue, in which the inverse
        # norm's condition is that eigenvalue over the ridge.
        condition = 1.0 + float(self.gram_eigenvalues[-1]) / self.ridge
        allowance = sum(self.features.shape) * np.finfo(np.float64).eps * condition
        return (1.0 + allowance) * self.inverse_norms_by_ridge(rows, ridges=[self.ridge])[0]

    def inverse_norms_by_ridge(self, rows: ArrayLike, *, ridges: ArrayLike) -> FloatArray:
        r"""Inverse norms of n rows under k ridges, shape (k, n), from one product with X̃.

        .. math:: v^\top\Sigma^{-1}v
            = \frac M\lambda\Big(\|v\|^2 - \sum_j\frac{(u_j^\top\tilde X v)^2}{\lambda+w_j}\Big)

        where w_j, u_j are the eigenvalues and eigenvectors of X̃X̃ᵀ. If there are more public
        rows than coordinates, u_jᵀX̃v is computed as √w_j r_jᵀv from the eigenvectors r_j of X̃ᵀX̃.
        Rounding may make the norms too small, by a relative 1e-7 at the least ridge.
        """
        values = _rows(rows, self.dimension)
        ridge = self._ridges("ridges", ridges)
        if len(self.features) < self.dimension:
            shared = values @ self.features.T @ self.directions
        else:
            shared = values @ self.directions * np.sqrt(self.gram_eigenvalues)
        squared = np.einsum("ij,ij->i", values, values)
        weights = 1.0 / (ridge[:, None] + self.gram_eigenvalues)
        remainder = np.maximum(squared - weights @ shared.T**2, 0.0)
        return np.asarray(np.sqrt(len(self.features) / ridge[:, None] * (remainder + _LOST)))

    def inverse_trace(self, eigenvalues: ArrayLike) -> float:
        values = _eigenvalues(eigenvalues, self.dimension)
        if len(self.features) < self.dimension:
            weighted = _weighted_gram(self.features, values)
            along = np.einsum("ij,ij->j", self.directions, weighted @ self.directions)
        else:
            along = self.gram_eigenvalues * (values @ self.directions**2)
        covered = np.sum(along / (self.ridge + self.gram_eigenvalues))
        return float(len(self.features) / self.ridge * (np.sum(values) - covered))

    def trace(self, eigenvalues: ArrayLike) -> float:
        values = _eigenvalues(eigenvalues, self.dimension)
        sampled = np.einsum("ij,ij,j->", self.features, self.features, values)
        return float((self.ridge * np.sum(values) + sampled) / len(self.features))

    def _ridges(self, name: str, value: ArrayLike) -> FloatArray:
        least = max(LEAST, CONDITION * float(self.gram_eigenvalues[-1]))
        return require_array(name, value, shape=(None,), least=least, most=MOST**2)


def _weighted_gram(features: FloatArray, weights: FloatArray) -> FloatArray:
    """The product F diag(w) Fᵀ, by a few columns at a time, without a second copy of F."""
    total = np.zeros((len(features), len(features)))
    for first in range(0, weights.size, _COLUMNS):
        block = features[:, first : first + _COLUMNS]
        total += (block * weights[first : first + _COLUMNS]) @ block.T
    return total


def _normals(value: ArrayLike, length: int) -> FloatArray:
    return require_array("normals", value, shape=(..., length))


def _eigenvalues(value: ArrayLike, dimension: int | None) -> FloatArray:
    return require_array("eigenvalues", value, shape=(dimension,), least=0, most=MOST)


def _rows(value: ArrayLike, dimension: int) -> FloatArray:
    return require_array("rows", value, shape=(None, dimension), least=-LONGEST, most=LONGEST)
