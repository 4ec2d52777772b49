"""What noise costs under mean gradients: factors against the dense linear map."""

import numpy as np
import pytest

from privreg.noise.streams import tree_matrices
from privreg.noise.toeplitz import damped_square_root, dense_matrix, identity
from privreg.theory.shaped_noise import independent_factor, toeplitz_factor, tree_factor

SIZES = [1, 2, 3, 5, 8, 13, 16, 31, 33, 64]
SHRINKAGES = np.array([0.0, 1e-12, 1e-6, 1e-2, 0.3, 1.0])


def weights(size, shrinkage):
    """Weight of the increment of step s in minus the sum of the iterates, s from 1 to N - 1."""
    powers = (1 - shrinkage) ** np.arange(size)
    return np.array([np.sum(powers[: size - s]) for s in range(1, size)])


@pytest.mark.parametrize("size", SIZES)
def test_factors_are_norms_of_the_dense_map(size):
    damped = damped_square_root(size, damping=0.05)
    found = {
        "tree": tree_factor(SHRINKAGES, sample_size=size),
        "independent": independent_factor(SHRINKAGES, sample_size=size),
        "toeplitz": toeplitz_factor(SHRINKAGES, decoder=damped, sample_size=size),
    }
    for at, shrinkage in enumerate(SHRINKAGES):
        weight = weights(size, shrinkage)
        expected = {
            "tree": np.sum((weight @ tree_matrices(size - 1)[1]) ** 2) if size > 1 else 0.0,
            "independent": np.sum(weight**2),
            "toeplitz": np.sum((weight @ dense_matrix(damped[:-1])) ** 2) if size > 1 else 0.0,
        }
        for name, value in expected.items():
            assert found[name][at] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_a_power_of_two_without_shrinkage_is_a_triangular_number():
    for size in (2, 64, 2**20):
        assert tree_factor(0.0, sample_size=size) == size * (size - 1) / 2


def test_independent_noise_keeps_its_digits_where_the_closed_form_cancels():
    size = 10**6
    # To first order in Nηλ the sum is N³/3 (1 - 3/4 Nηλ).
    small = 1e-12
    assert independent_factor(small, sample_size=size) == pytest.approx(
        (size - 1) * size * (2 * size - 1) / 6 * (1 - 0.75 * small * size), rel=1e-9
    )
    x = 0.4
    closed = (
        (size - 1)
        - 2 * (1 - x) * (1 - (1 - x) ** (size - 1)) / x
        + (1 - x) ** 2 / (1 - (1 - x) ** 2)
    ) / x**2
    assert independent_factor(x, sample_size=size) == pytest.approx(closed, rel=1e-12)


def test_a_toeplitz_identity_is_independent_noise():
    np.testing.assert_allclose(
        toeplitz_factor(SHRINKAGES, decoder=identity(40), sample_size=40),
        independent_factor(SHRINKAGES, sample_size=40),
        rtol=1e-9,
    )
