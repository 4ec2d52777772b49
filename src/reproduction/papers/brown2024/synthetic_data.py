"""The paper's synthetic data: Gaussian features, a unit target, standard normal label noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privreg.algorithms.samples import ArraySamples

LABEL_NOISE_STD = 1.0


def draw(
    sample_size: int,
    dimension: int,
    rng: np.random.Generator,
    *,
    anisotropic: bool = False,
    label_noise_mean: float = 0.0,
    label_noise_std: float = LABEL_NOISE_STD,
) -> tuple[ArraySamples, NDArray[np.float64]]:
    """A data set and its target, as in Definition 1.1 or, with a random covariance, Appendix B."""
    from privreg.algorithms.samples import ArraySamples
    from privreg.noise.normals import standard_normal

    target = unit_vector(dimension, rng)
    root = covariance_root(dimension, rng) if anisotropic else None
    features = standard_normal(rng, (sample_size, dimension))
    if root is not None:
        features = features @ root.T
    labels = features @ target + label_noise_mean
    labels += label_noise_std * rng.standard_normal(sample_size)
    return ArraySamples(features, labels), target


def unit_vector(dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform on the unit sphere."""
    direction = rng.standard_normal(dimension)
    return np.asarray(direction / np.linalg.norm(direction))


def covariance_root(dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """C with C Cᵀ = U Λ Uᵀ: Λ holds 2, 1 and uniform draws from [1, 2], U is Haar."""
    scales = np.concatenate([[2.0, 1.0], rng.uniform(1, 2, max(dimension - 2, 0))])[:dimension]
    columns, triangle = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    # The signs make the factor unique, without which the rotation is not uniform.
    return np.asarray(columns * np.sign(np.diag(triangle)) * np.sqrt(scales))


def mean_covariance_trace(dimension: int, *, anisotropic: bool) -> float:
    """Expected squared norm of a row of features."""
    return 1.5 * dimension if anisotropic else float(dimension)
