"""The dense optimum: certified by its bound, never beaten, equal to a second method."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from privreg.accuracy import AccuracyWarning
from privreg.noise import dense, errors, optimal, sensitivity


@pytest.mark.parametrize(("steps", "epochs"), [(1, 1), (2, 2), (12, 3), (64, 1), (60, 4)])
def test_optimum_is_certified_and_has_the_stated_error(steps, epochs):
    found = dense.dense_optimum(steps, epochs=epochs)
    assert -1e-12 < found.gap < 1e-4
    np.testing.assert_allclose(found.encoder @ found.decoder, np.eye(steps), atol=1e-10)
    assert np.array_equal(found.encoder, np.tril(found.encoder))
    gamma = sensitivity.fixed_order_sensitivity(
        found.encoder, participations=epochs, separation=steps // epochs
    )
    np.testing.assert_allclose(gamma, 1, rtol=1e-10)
    error = errors.workload_errors(found.decoder, sensitivity=gamma).mean
    np.testing.assert_allclose(found.error, error, rtol=1e-10)


def test_one_epoch_is_the_fixed_point_of_denisov():
    steps = 40
    ones = np.tri(steps)
    weights = np.ones(steps)
    for _ in range(200):
        root = np.sqrt(weights)
        weights = np.diag(sqrtm(root[:, None] * (ones.T @ ones) * root).real).copy()
    # At the fixed point tr(AᵀA X⁻¹) is the sum of the weights.
    expected = np.sqrt(weights.sum() / steps)
    found = dense.dense_optimum(steps, tolerance=1e-9)
    np.testing.assert_allclose(found.error, expected, rtol=1e-7)
    assert found.gap < 1e-7


def test_dense_is_at_least_as_good_as_toeplitz():
    for epochs in (1, 4):
        toeplitz_error = np.sqrt(epochs) * optimal.toeplitz_optimum(80, bands=80 // epochs).error
        assert dense.dense_optimum(80, epochs=epochs).error < toeplitz_error


def test_a_search_that_stops_short_warns(monkeypatch):
    monkeypatch.setattr(dense, "_MOST_ITERATIONS", 6)
    with pytest.warns(AccuracyWarning, match="optimum has an estimated error"):
        dense.dense_optimum(48, epochs=4, tolerance=1e-12)
