"""Coefficient families: generating functions, inverses, limits between families."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import binom

from privreg.noise import toeplitz
from privreg.noise.toeplitz import step_variances, workload_errors

STEPS = st.integers(1, 60)
DAMPINGS = st.floats(0, 1)
# A first entry of 1 and a tail of norm less than 1 keep the inverse from growing.


def families(steps: int, damping: float) -> dict[str, np.ndarray]:
    return {
        "identity": toeplitz.identity(steps),
        "damped_square_root": toeplitz.damped_square_root(steps, damping=damping),
        "square_root": toeplitz.square_root(steps),
        "anti_pgd": toeplitz.anti_pgd(steps),
        "damped_anti_pgd": toeplitz.damped_anti_pgd(steps, damping=damping),
    }


@given(steps=STEPS, damping=DAMPINGS)
def test_encoder_times_decoder_is_the_identity(steps, damping):
    for decoder in families(steps, damping).values():
        encoder = toeplitz.inverse_coefficients(decoder)
        product = toeplitz.dense_matrix(encoder) @ toeplitz.dense_matrix(decoder)
        assert_allclose(product, np.eye(steps), atol=1e-10)


@given(steps=STEPS, damping=DAMPINGS)
def test_square_of_the_square_root_is_its_radicand(steps, damping):
    root = toeplitz.damped_square_root(steps, damping=damping)
    square = np.convolve(root, root)[:steps]
    assert_allclose(square, toeplitz.damped_anti_pgd(steps, damping=damping), atol=1e-13)


@given(steps=STEPS, damping=DAMPINGS)
def test_encoder_in_closed_form(steps, damping):
    encoder = toeplitz.damped_square_root_encoder(steps, damping=damping)
    decoder = toeplitz.damped_square_root(steps, damping=damping)
    assert_allclose(encoder, toeplitz.inverse_coefficients(decoder), atol=1e-13)
    assert np.all(encoder >= 0)
    assert np.all(np.diff(encoder) <= 0)


def test_damped_square_root_is_the_printed_binomial():
    t = np.arange(40)
    expected = (-1.0) ** t * binom(0.5, t) * 0.9**t
    found = toeplitz.damped_square_root(40, damping=0.1)
    assert_allclose(found, expected, rtol=1e-12)
    assert np.all(found[1:] < 0)
    # Its sum is the generating function at 1, √ν, up to a tail below 0.9^400.
    total = toeplitz.damped_square_root(400, damping=0.1).sum()
    assert_allclose(total, np.sqrt(0.1), rtol=1e-12)


def test_families_meet_at_their_ends():
    assert np.array_equal(toeplitz.damped_square_root(9, damping=1.0), toeplitz.identity(9))
    assert np.array_equal(toeplitz.damped_anti_pgd(9, damping=1.0), toeplitz.identity(9))
    assert np.array_equal(
        toeplitz.mean_estimation_optimal(9, step_size=0.3),
        toeplitz.damped_square_root(9, damping=0.3),
    )


def test_correlated_noise_is_negatively_correlated_at_every_finite_time():
    # The paper remarks it for the stationary noise.
    decoder = toeplitz.dense_matrix(toeplitz.damped_square_root(200, damping=0.05))
    covariance = decoder @ decoder.T
    assert np.all(covariance[~np.eye(200, dtype=bool)] < 0)


def test_errors_are_those_of_rows():
    found = workload_errors(toeplitz.identity(4), sensitivity=3.0)
    assert_allclose(found, 3 * np.sqrt([2.5, 4, 4]), rtol=1e-15)
    # The largest need not be the last.
    decoder = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    found = workload_errors(decoder, sensitivity=1.0)
    assert_allclose(found, np.sqrt([7 / 3, 5, 1]), rtol=1e-15)


def test_restarts_add_up_their_last_errors():
    decoder = toeplitz.square_root(10)
    once = step_variances(decoder)
    found = step_variances(toeplitz.restarted(toeplitz.dense_matrix(decoder), copies=3))
    expected = (once + once[-1] * np.arange(3)[:, None]).ravel()
    assert_allclose(found, expected, rtol=1e-13)
