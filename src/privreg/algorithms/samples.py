"""Data sets for full-batch algorithms, walked in chunks of rows as often as needed.

Rows lie in arrays or are drawn again from their seed at every pass, so that n × p numbers need
never exist together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
ROWS_PER_CHUNK = 1024


class Chunk(NamedTuple):
    """Some rows: features (rows, p), labels (rows,) and Euclidean norms of the features (rows,)."""

    features: FloatArray
    labels: FloatArray
    norms: FloatArray


class Samples(Protocol):
    """A data set of n rows with p features that can be walked any number of times."""

    @property
    def sample_size(self) -> int:
        """Number of rows n."""

    @property
    def dimension(self) -> int:
        """Number of features p."""

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in the same order and with the same values at every call."""


@dataclass(frozen=True)
class ArraySamples:
    """A data set in memory.

    Parameters
    ----------
    features : array_like, shape (n, p)
        Finite features.
    labels : array_like, shape (n,)
        Finite labels.
    """

    features: FloatArray
    labels: FloatArray
    norms: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        features = np.ascontiguousarray(self.features, dtype=np.float64)
        labels = np.ascontiguousarray(self.labels, dtype=np.float64)
        if features.ndim != 2 or 0 in features.shape:
            raise ValueError(f"features must be a matrix (n, p), got shape {features.shape}")
        if labels.shape != features.shape[:1]:
            raise ValueError(f"labels must have shape {features.shape[:1]}, got {labels.shape}")
        for name, array in (("features", features), ("labels", labels)):
            if not np.all(np.isfinite(array)):
                raise ValueError(f"{name} must be finite")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "norms", _row_norms(features))

    @property
    def sample_size(self) -> int:
        return self.features.shape[0]

    @property
    def dimension(self) -> int:
        return self.features.shape[1]

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, self.sample_size, ROWS_PER_CHUNK):
            rows = slice(first, first + ROWS_PER_CHUNK)
            yield Chunk(self.features[rows], self.labels[rows], self.norms[rows])


@dataclass(frozen=True)
class GaussianSamples:
    r"""A linear-Gaussian data set that is drawn from its seed at every pass and never held.

    .. math::
        \mathbf x_i = C \mathbf g_i,\ \mathbf g_i \sim N(0, I_p), \qquad
        y_i = \mathbf x_i^\top\theta^* + \xi_i,\ \xi_i \sim N(m, \sigma^2)

    The first rows do not depend on `sample_size`: growing data sets of one seed are nested.

    Parameters
    ----------
    sample_size : int
        Number of rows n, at least 1.
    target : array_like, shape (p,)
        θ*.
    label_noise_std : float
        σ, at least 0.
    seed : SeedSequence
        Source of the rows; each chunk draws from its own child.
    covariance_root : array_like, shape (p, p), optional
        C with C Cᵀ the covariance of the features; the identity by default.
    label_noise_mean : float
        m, 0 in the model.

    Source
    ------
    brown2024, Definition 1.1 and Appendix B (anisotropic features).
    """

    sample_size: int
    target: FloatArray
    label_noise_std: float
    seed: np.random.SeedSequence
    covariance_root: FloatArray | None = None
    label_noise_mean: float = 0.0

    def __post_init__(self) -> None:
        if self.sample_size < 1:
            raise ValueError(f"sample_size must be at least 1, got {self.sample_size}")
        if not self.label_noise_std >= 0:
            raise ValueError(f"label_noise_std must be at least 0, got {self.label_noise_std}")
        object.__setattr__(self, "target", np.asarray(self.target, dtype=np.float64))

    @property
    def dimension(self) -> int:
        return self.target.size

    def chunks(self) -> Iterator[Chunk]:
        for number, first in enumerate(range(0, self.sample_size, ROWS_PER_CHUNK)):
            rows = min(ROWS_PER_CHUNK, self.sample_size - first)
            child = np.random.SeedSequence(
                self.seed.entropy, spawn_key=(*self.seed.spawn_key, number)
            )
            draws = np.random.Generator(np.random.SFC64(child)).standard_normal(
                (rows, self.dimension + 1)
            )
            features = np.ascontiguousarray(draws[:, :-1])
            if self.covariance_root is not None:
                features = features @ np.asarray(self.covariance_root).T
            noise = self.label_noise_mean + self.label_noise_std * draws[:, -1]
            yield Chunk(features, features @ self.target + noise, _row_norms(features))


def moments(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Gram matrix XᵀX, shape (p, p), and moment Xᵀy, shape (p,), in one pass. Not private."""
    p = samples.dimension
    gram, moment = np.zeros((p, p)), np.zeros(p)
    for features, labels, _ in samples.chunks():
        gram += features.T @ features
        moment += features.T @ labels
    return gram, moment


def _row_norms(features: FloatArray) -> FloatArray:
    return np.sqrt(np.einsum("ij,ij->i", features, features))
