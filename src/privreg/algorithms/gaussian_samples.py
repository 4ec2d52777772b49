"""Linear-Gaussian data sets that are drawn from their seed at every pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from privreg.algorithms.samples import ROWS_PER_CHUNK, Chunk, row_norms
from privreg.checks import (
    MOST,
    FloatArray,
    Rebuilt,
    instance_of,
    require_count,
    require_fields,
    require_frozen,
    require_number,
    scale_or_zero,
)
from privreg.kernels import standard_normal


@dataclass(frozen=True)
class GaussianSamples(Rebuilt):
    r"""Linear-Gaussian data set, drawn from its seed at every pass and never held in memory.

    .. math::
        \mathbf x_i = C \mathbf g_i,\ \mathbf g_i \sim N(0, I_p), \qquad
        y_i = \mathbf x_i^\top\theta^* + \xi_i,\ \xi_i \sim N(m, \sigma^2)

    Rows do not depend on `sample_size`: a larger data set from this seed starts with the same rows.

    Parameters
    ----------
    sample_size : int
        Number of rows n, at least 1.
    target : array_like, shape (p,)
        True parameters θ*. The mean m and the entries of θ* and C are at most 1e12 in size.
    label_noise_std : float
        Standard deviation σ of the label noise, 0 or from 1e-12 to 1e12.
    seed : SeedSequence
        Source of the rows; each chunk draws from its own child seed.
    covariance_root : array_like, shape (p, p), optional
        Matrix C such that C Cᵀ is the covariance of the features; the identity by default.
    label_noise_mean : float
        Mean m of the label noise, which is 0 in the paper's model.

    Source
    ------
    brown2024, Definition 1.1 and Appendix B (anisotropic features).
    """

    _norms_are_own: ClassVar[bool] = True
    sample_size: int
    target: FloatArray
    label_noise_std: float
    seed: np.random.SeedSequence
    covariance_root: FloatArray | None = None
    label_noise_mean: float = 0.0

    def __post_init__(self) -> None:
        array = partial(require_frozen, least=-MOST, most=MOST)
        require_fields(
            self,
            sample_size=require_count,
            label_noise_std=scale_or_zero,
            label_noise_mean=partial(require_number, least=-MOST, most=MOST),
            seed=instance_of(np.random.SeedSequence),
            target=partial(array, shape=(None,)),
        )
        if self.covariance_root is not None:
            require_fields(self, covariance_root=partial(array, shape=(self.dimension,) * 2))

    @property
    def dimension(self) -> int:
        return self.target.size

    def chunks(self) -> Iterator[Chunk]:
        for number, first in enumerate(range(0, self.sample_size, ROWS_PER_CHUNK)):
            rows = min(ROWS_PER_CHUNK, self.sample_size - first)
            child = np.random.SeedSequence(
                self.seed.entropy, spawn_key=(*self.seed.spawn_key, number)
            )
            rng = np.random.Generator(np.random.SFC64(child))
            draws = standard_normal(rng, (rows, self.dimension + 1))
            features = np.ascontiguousarray(draws[:, :-1])
            if self.covariance_root is not None:
                features = features @ np.asarray(self.covariance_root).T
            noise = self.label_noise_mean + self.label_noise_std * draws[:, -1]
            yield Chunk(features, features @ self.target + noise, row_norms(features))
