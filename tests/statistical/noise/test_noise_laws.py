"""The streams have the law that their privacy and their errors are computed for.

Each law is tested at a two-sided level of 1e-6, and the same test must refuse noise that is two
thirds or three halves as large as it should be.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privreg.noise import toeplitz
from privreg.noise.streams import ToeplitzNoise, TreeNoise, WhiteNoise, tree_matrices

LEVEL = 1e-6
STEPS, DIMENSION, STD = 48, 400, 1.7


def white(rng):
    return WhiteNoise(DIMENSION, rng=rng, std=STD, steps=STEPS), toeplitz.identity(STEPS)


def damped_square_root(rng):
    decoder = toeplitz.damped_square_root(STEPS, damping=0.05)
    return ToeplitzNoise(decoder, dimension=DIMENSION, rng=rng, std=STD), decoder


def anti_pgd(rng):
    decoder = toeplitz.anti_pgd(STEPS)
    return ToeplitzNoise(decoder, dimension=DIMENSION, rng=rng, std=STD), decoder


def tree(rng):
    return TreeNoise(DIMENSION, rng=rng, std=STD, steps=STEPS), tree_matrices(STEPS)[1]


MAKERS = [white, damped_square_root, anti_pgd, tree]


def as_matrix(decoder):
    return toeplitz.dense_matrix(decoder) if decoder.ndim == 1 else decoder


def chi_square_level(squares: float, degrees: int) -> float:
    """Two-sided p-value of a sum of squared standard normals."""
    return 2 * min(stats.chi2.cdf(squares, degrees), stats.chi2.sf(squares, degrees))


@pytest.mark.parametrize("make", MAKERS)
def test_scale(make, rng):
    noise, decoder = make(rng)
    matrix = as_matrix(decoder)
    covariance = matrix @ matrix.T
    sample = noise.draw(STEPS)
    squares = float(np.sum(sample * np.linalg.solve(covariance, sample)))
    degrees = STEPS * DIMENSION
    assert chi_square_level(squares / STD**2, degrees) > LEVEL
    for wrong in (2 / 3, 3 / 2):
        assert chi_square_level(squares / (wrong * STD) ** 2, degrees) < LEVEL


@pytest.mark.parametrize("make", MAKERS)
def test_whitened_noise_is_standard_normal(make, rng):
    noise, decoder = make(rng)
    matrix = as_matrix(decoder)
    factor = np.linalg.cholesky(matrix @ matrix.T)
    whitened = np.linalg.solve(factor, noise.draw(STEPS)) / STD
    assert stats.kstest(whitened.ravel(), "norm").pvalue > LEVEL
    assert stats.kstest(1.5 * whitened.ravel(), "norm").pvalue < LEVEL
    # The squared cosine of independent normal vectors has a beta law, whatever their lengths.
    unit = whitened / np.linalg.norm(whitened, axis=1)[:, None]
    cosines = (unit @ unit.T)[np.tril_indices(STEPS, -1)]
    bound = stats.beta.isf(LEVEL / cosines.size, 0.5, (DIMENSION - 1) / 2)
    assert np.max(cosines**2) < bound


@pytest.mark.parametrize("make", MAKERS)
def test_prefix_error_is_the_computed_one(make, rng):
    noise, decoder = make(rng)
    last = noise.draw(STEPS).sum(axis=0)
    predicted = toeplitz.workload_errors(decoder, sensitivity=STD).last
    assert chi_square_level(float(last @ last) / predicted**2, DIMENSION) > LEVEL
    for wrong in (2 / 3, 3 / 2):
        assert chi_square_level(float(last @ last) / (wrong * predicted) ** 2, DIMENSION) < LEVEL
