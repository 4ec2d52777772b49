"""Coefficient families: generating functions, inverses, limits between families."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import binom

from privreg.noise import toeplitz

STEPS = st.integers(1, 60)
DAMPINGS = st.floats(0, 1)
# A first entry of 1 and a tail of norm less than 1 keep the inverse from growing.
TAILS = st.integers(0, 40).flatmap(lambda size: arrays(float, size, elements=st.floats(-1, 1)))


def families(steps: int, damping: float) -> dict[str, np.ndarray]:
    return {
        "identity": toeplitz.identity(steps),
        "damped_square_root": toeplitz.damped_square_root(steps, damping=damping),
        "square_root": toeplitz.square_root(steps),
        "anti_pgd": toeplitz.anti_pgd(steps),
        "damped_anti_pgd": toeplitz.damped_anti_pgd(steps, damping=damping),
        "banded": toeplitz.banded_square_root(steps, bands=1 + steps // 3),
    }


@given(steps=STEPS, damping=DAMPINGS)
def test_encoder_times_decoder_is_the_identity(steps, damping):
    for decoder in families(steps, damping).values():
        encoder = toeplitz.inverse_coefficients(decoder)
        product = toeplitz.dense_matrix(encoder) @ toeplitz.dense_matrix(decoder)
        np.testing.assert_allclose(product, np.eye(steps), atol=1e-10)


@given(tail=TAILS, scale=st.floats(0.01, 100))
def test_inverse_of_any_coefficients(tail, scale):
    coefficients = scale * np.concatenate([[1.0], tail / (1 + np.abs(tail).sum())])
    inverse = toeplitz.inverse_coefficients(coefficients)
    product = toeplitz.product_coefficients(coefficients, inverse)
    np.testing.assert_allclose(product, toeplitz.identity(len(product)), atol=1e-10)
    np.testing.assert_allclose(toeplitz.inverse_coefficients(inverse), coefficients, atol=1e-8)


@given(steps=STEPS, damping=DAMPINGS)
def test_square_of_the_square_root_is_its_radicand(steps, damping):
    root = toeplitz.damped_square_root(steps, damping=damping)
    square = toeplitz.product_coefficients(root, root)
    np.testing.assert_allclose(square, toeplitz.damped_anti_pgd(steps, damping=damping), atol=1e-13)


@given(steps=STEPS, damping=DAMPINGS)
def test_encoder_in_closed_form(steps, damping):
    encoder = toeplitz.damped_square_root_encoder(steps, damping=damping)
    decoder = toeplitz.damped_square_root(steps, damping=damping)
    np.testing.assert_allclose(encoder, toeplitz.inverse_coefficients(decoder), atol=1e-13)
    assert np.all(encoder >= 0)
    assert np.all(np.diff(encoder) <= 0)


def test_damped_square_root_is_the_printed_binomial():
    t = np.arange(40)
    expected = (-1.0) ** t * binom(0.5, t) * 0.9**t
    found = toeplitz.damped_square_root(40, damping=0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.all(found[1:] < 0)
    # Its sum is the generating function at 1, √ν, up to a tail below 0.9^400.
    total = toeplitz.damped_square_root(400, damping=0.1).sum()
    np.testing.assert_allclose(total, np.sqrt(0.1), rtol=1e-12)


def test_decay_of_the_coefficients():
    t, damping = 20_000, 1e-4
    last = toeplitz.damped_square_root(t + 1, damping=damping)[-1]
    expected = -(t**-1.5) * (1 - damping) ** t / (2 * np.sqrt(np.pi))
    # The next term of Stirling's series is 3/(8t).
    np.testing.assert_allclose(last, expected, rtol=1 / t)


def test_families_meet_at_their_ends():
    assert np.array_equal(toeplitz.damped_square_root(9, damping=1.0), toeplitz.identity(9))
    assert np.array_equal(toeplitz.damped_anti_pgd(9, damping=1.0), toeplitz.identity(9))
    assert np.array_equal(toeplitz.banded_square_root(9, bands=1), toeplitz.identity(9))
    np.testing.assert_allclose(
        toeplitz.banded_square_root(9, bands=9), toeplitz.square_root(9), atol=1e-15
    )
    assert np.array_equal(
        toeplitz.mean_estimation_optimal(9, step_size=0.3),
        toeplitz.damped_square_root(9, damping=0.3),
    )


def test_banded_encoder_has_its_bands():
    encoder = toeplitz.inverse_coefficients(toeplitz.banded_square_root(30, bands=4))
    np.testing.assert_allclose(encoder[:4], [1, 1 / 2, 3 / 8, 5 / 16], rtol=1e-14)
    np.testing.assert_allclose(encoder[4:], 0, atol=1e-14)


def test_correlated_noise_is_negatively_correlated_at_every_finite_time():
    # The paper remarks it for the stationary noise.
    decoder = toeplitz.dense_matrix(toeplitz.damped_square_root(200, damping=0.05))
    covariance = decoder @ decoder.T
    assert np.all(covariance[~np.eye(200, dtype=bool)] < 0)


def test_decaying_sums_are_powers():
    found = toeplitz.decaying_sums(4, contraction=[0.5, 1.0, 0.0])
    assert np.array_equal(found, [[1, 0.5, 0.25, 0.125], [1, 1, 1, 1], [1, 0, 0, 0]])


@pytest.mark.parametrize(
    "call",
    [
        lambda: toeplitz.identity(0),
        lambda: toeplitz.damped_square_root(5, damping=1.5),
        lambda: toeplitz.damped_square_root(5, damping=float("nan")),
        lambda: toeplitz.damped_square_root_encoder(5, damping=-0.1),
        lambda: toeplitz.mean_estimation_optimal(5, step_size=0.0),
        lambda: toeplitz.banded_square_root(5, bands=6),
        lambda: toeplitz.decaying_sums(5, contraction=[0.5, np.nan]),
        lambda: toeplitz.inverse_coefficients([0.0, 1.0]),
        lambda: toeplitz.inverse_coefficients([1.0, np.nan]),
        lambda: toeplitz.inverse_coefficients([1.0] + [1e200] * 9),
        lambda: toeplitz.product_coefficients([1.0], [1.0, 2.0]),
        lambda: toeplitz.dense_matrix([[1.0]]),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match="must"):
        call()
