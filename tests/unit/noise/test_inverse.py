"""Inverses of decoders, the bound on their error and sensitivities, in rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privreg.algorithms.dp_ftrl import FTRLMechanism
from privreg.noise import sensitivity, toeplitz

from . import exact


def bound(decoder: np.ndarray) -> toeplitz.BoundedInverse:
    try:
        return toeplitz.bounded_inverse("decoder", decoder)
    except ValueError as refused:
        assert "double precision can represent" in str(refused)  # noqa: PT017
        return toeplitz.BoundedInverse(decoder, np.inf)


@pytest.mark.parametrize("route", ["direct", "newton", "dense"])
@pytest.mark.parametrize("seed", range(25))
def test_column_error_bounds_the_exact_one(route, seed, monkeypatch):
    if route == "newton":
        monkeypatch.setattr(toeplitz, "DIRECT_PRODUCTS", 0)
    decoder = exact.decoders(np.random.default_rng(seed), dense=route == "dense")
    found, error = bound(decoder)
    if np.isinf(error):
        return
    difference = exact.fractions(found) - exact.inverse(decoder)
    columns = difference.reshape(len(decoder), -1)
    worst = max(sum(column**2) for column in columns.T)
    assert worst <= Fraction(error) ** 2


@pytest.mark.parametrize("dense", [False, True])
def test_most_decoders_have_a_bound_and_hopeless_ones_none(dense):
    found = [
        bound(exact.decoders(np.random.default_rng(seed), dense=dense)).column_error
        for seed in range(40)
    ]
    assert 0.05 < np.mean(np.isinf(found)) < 0.7


@pytest.mark.parametrize("damping", [0.0, 1e-3])
@pytest.mark.parametrize("steps", [1000, 16_000])
def test_forward_substitution_is_right_to_some_ulp(damping, steps):
    decoder = toeplitz.damped_square_root(steps, damping=damping)
    encoder, error = toeplitz.bounded_inverse("decoder", decoder)
    gamma = np.linalg.norm(encoder)
    assert error <= 16 * exact.ULP * gamma
    closed = toeplitz.damped_square_root_encoder(steps, damping=damping)
    # What makes the closed form is right to some ulp an entry too.
    assert np.linalg.norm(encoder - closed) <= error + 40 * exact.ULP * gamma
    # So small an error is not added: sensitivities of these lengths are those of the encoder.
    found = FTRLMechanism(decoder, 0.0, 1.0, steps).sensitivity
    assert found == sensitivity.single_participation_sensitivity(encoder)


@pytest.mark.parametrize("damping", [0.0, 1e-3])
def test_newton_is_forward_substitution_to_its_bound(damping):
    steps = 20_000
    decoder = toeplitz.damped_square_root(steps, damping=damping)
    assert steps**2 > toeplitz.DIRECT_PRODUCTS
    encoder, error = toeplitz.bounded_inverse("decoder", decoder)
    closed = toeplitz.damped_square_root_encoder(steps, damping=damping)
    gamma = np.linalg.norm(closed)
    assert np.linalg.norm(encoder - closed) <= error <= 1e-13 * steps * gamma
    found = FTRLMechanism(decoder, 0.0, 1.0, steps).sensitivity
    assert gamma < found < gamma * (1 + 1e-13 * steps)


def test_bands_are_inverted_in_their_own_length():
    steps = 200_000
    encoder = toeplitz.inverse_coefficients(toeplitz.damped_anti_pgd(steps, damping=0.5))
    assert_array_equal(encoder[:40], 0.5 ** np.arange(40))
    assert toeplitz.bounded_inverse("decoder", toeplitz.anti_pgd(steps)).column_error < 1e-20


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("dense", [False, True])
def test_no_mechanism_has_less_than_its_exact_sensitivity(dense, seed):
    rng = np.random.default_rng(seed)
    decoder = exact.decoders(rng, dense=dense)
    steps = len(decoder)
    epochs = int(rng.choice([k for k in range(1, steps + 1) if steps % k == 0]))
    try:
        found = FTRLMechanism(decoder, 0.0, 1.0, steps // epochs, epochs).sensitivity
    except ValueError as refused:
        assert "double precision can represent" in str(refused)  # noqa: PT017
        return
    encoder = exact.inverse(decoder)
    matrix = encoder if dense else exact.dense(encoder)
    visits = [range(first, steps, steps // epochs) for first in range(steps // epochs)]
    square = exact.largest_square(matrix, [tuple(each) for each in visits])
    # Those that the encoder's error may hide, and the sum's and the root's own.
    assert exact.shortfall(found, square) <= 20 * exact.ULP
    if epochs == 1:
        # And not much more: the inflation is no larger than the error that is bounded.
        assert exact.shortfall(found, square) >= -0.5


def test_a_decoder_that_grows_too_fast_is_refused():
    """Entries of the inverse are the powers of 1e12, of which doubles hold a few digits."""
    growing = [1.0, -1e12, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="decoder must have an inverse that double precision"):
        toeplitz.bounded_inverse("decoder", growing)
    with pytest.raises(ValueError, match="coefficients must have an inverse that double"):
        toeplitz.inverse_coefficients(growing)
