"""Linear-Gaussian data sets that are drawn from their seed at every pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privreg.algorithms.samples import ROWS_PER_CHUNK, Chunk, row_norms
from privreg.checks import (
    MOST,
    FloatArray,
    Rebuilt,
    require_count,
    require_frozen,
    require_instance,
    require_number,
    require_scale,
)
from privreg.kernels import standard_normal


@dataclass(frozen=True)
class GaussianSamples(Rebuilt):
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
        θ*; its entries, those of C and m are at most 1e12 in size.
    label_noise_std : float
        σ, 0 or from 1e-12 to 1e12.
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

    _norms_are_own: ClassVar[bool] = True
    sample_size: int
    target: FloatArray
    label_noise_std: float
    seed: np.random.SeedSequence
    covariance_root: FloatArray | None = None
    label_noise_mean: float = 0.0

    def __post_init__(self) -> None:
        require_count("sample_size", self.sample_size)
        require_scale("label_noise_std", self.label_noise_std, zero=True)
        limits = {"least": -MOST, "most": MOST}
        require_number("label_noise_mean", self.label_noise_mean, **limits)
        require_instance("seed", self.seed, np.random.SeedSequence)
        target = require_frozen("target", self.target, shape=(None,), **limits)
        object.__setattr__(self, "target", target)
        if self.covariance_root is not None:
            shape = (target.size, target.size)
            root = require_frozen("covariance_root", self.covariance_root, shape=shape, **limits)
            object.__setattr__(self, "covariance_root", root)

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
