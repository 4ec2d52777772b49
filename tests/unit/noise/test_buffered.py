"""Buffered mechanisms: coefficients, stated error, privacy of the noise that is used."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise import toeplitz
from privreg.noise.buffered import BufferedToeplitz, buffered_square_root
from privreg.noise.errors import workload_errors
from privreg.noise.sensitivity import (
    multi_participation_sensitivity,
    single_participation_sensitivity,
)


@pytest.mark.parametrize("damping", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_stated_error_is_the_error_at_every_run_length(damping, tolerance):
    mechanism = buffered_square_root(300, damping=damping, tolerance=tolerance)
    assert mechanism.excess_error <= tolerance
    worst = 0.0
    for steps in (1, 2, 3, 10, 57, 299, 300):
        exact = workload_errors(
            toeplitz.damped_square_root(steps, damping=damping),
            sensitivity=single_participation_sensitivity(
                toeplitz.damped_square_root_encoder(steps, damping=damping)
            ),
        )
        found = workload_errors(
            mechanism.decoder()[:steps],
            sensitivity=single_participation_sensitivity(mechanism.encoder(), steps),
        )
        worst = max(worst, abs(found.last / exact.last - 1))
        if damping == 0:
            # The square root has the least largest error of all Toeplitz mechanisms.
            assert found.largest >= exact.largest * (1 - 1e-12)
    assert worst <= mechanism.excess_error + 1e-13


def test_mixture_by_hand():
    mechanism = BufferedToeplitz(np.array([0.5, 0.9]), np.array([0.4, 0.2]), 6)
    t = np.arange(6)
    expected = 0.4 * 0.5**t + 0.2 * 0.9**t
    expected[0] = 1.0
    np.testing.assert_allclose(mechanism.encoder(), expected, rtol=1e-14)
    np.testing.assert_allclose(
        mechanism.decoder(), toeplitz.inverse_coefficients(expected), atol=1e-15
    )


def test_sensitivity_for_several_participations_is_exact():
    encoder = buffered_square_root(400, damping=0.01).encoder()
    found = multi_participation_sensitivity(encoder, participations=4, separation=100)
    matrix = toeplitz.dense_matrix(encoder)
    np.testing.assert_allclose(found, np.linalg.norm(matrix[:, ::100].sum(axis=1)), rtol=1e-13)


def test_few_buffers_suffice():
    assert buffered_square_root(1000).decays.size <= 5
    assert buffered_square_root(1_000_000).decays.size <= 7
    assert buffered_square_root(1000, tolerance=1e-8).decays.size <= 12


@pytest.mark.parametrize(
    "call",
    [
        lambda: BufferedToeplitz(np.array([1.1]), np.array([0.1]), 5),
        lambda: BufferedToeplitz(np.array([0.5]), np.array([-0.1]), 5),
        lambda: BufferedToeplitz(np.array([0.5]), np.array([2.1]), 5),
        lambda: BufferedToeplitz(np.array([0.5]), np.array([0.1, 0.1]), 5),
        lambda: BufferedToeplitz(np.array([0.5]), np.array([0.1]), 0),
        lambda: buffered_square_root(0),
        lambda: buffered_square_root(10, damping=2.0),
        lambda: buffered_square_root(10, tolerance=0.0),
    ],
)
def test_refusals(call):
    with pytest.raises(ValueError, match="must"):
        call()
