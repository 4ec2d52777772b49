"""Optimal Toeplitz mechanisms: stationarity, known optima, dominance over the families."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.optimize import minimize

from privreg.checks import AccuracyWarning
from privreg.noise import optimal, sensitivity, toeplitz


@pytest.mark.parametrize("steps", [1, 2, 7, 200])
def test_square_root_is_the_optimum_for_the_largest_error(steps):
    found = optimal.toeplitz_optimum(steps, criterion="largest")
    expected = toeplitz.damped_square_root_encoder(steps, damping=0.0)
    assert_allclose(found.encoder, expected, atol=1e-4)
    assert_allclose(found.error, expected @ expected, rtol=1e-9)
    assert optimal.best_damping(steps, criterion="last") in (0.0, 1.0 * (steps == 1))


@pytest.mark.parametrize("steps", [10, 100, 1000])
def test_best_damping_is_close_to_the_optimum(steps):
    optimum = optimal.toeplitz_optimum(steps).error
    damping = optimal.best_damping(steps)

    def error(nu):
        gamma = np.linalg.norm(toeplitz.damped_square_root_encoder(steps, damping=nu))
        decoder = toeplitz.damped_square_root(steps, damping=nu)
        return toeplitz.workload_errors(decoder, sensitivity=gamma).mean

    assert optimum <= error(damping) <= 1.007 * optimum
    for factor in (0.8, 1.25):
        assert error(damping * factor) > error(damping)


def test_bands_restrict_the_encoder_and_only_cost():
    narrow, wide, full = (optimal.toeplitz_optimum(80, bands=bands) for bands in (4, 20, None))
    assert np.all(narrow.encoder[4:] == 0)
    assert narrow.error > wide.error > full.error
    assert optimal.toeplitz_optimum(9, bands=1).error == pytest.approx(np.sqrt(5))
    # The decoder of 1, c is (-c)^t.
    shares = np.linspace(0, 1, 1001)
    sums = np.cumsum((-shares[:, None]) ** np.arange(9), axis=1)
    least = np.sqrt(np.min((1 + shares**2) * (sums**2 @ np.arange(9, 0, -1))) / 9)
    assert optimal.toeplitz_optimum(9, bands=2).error == pytest.approx(least, rel=1e-6)


def test_banded_optimum_is_the_best_non_increasing_encoder_for_several_participations():
    steps, separation, participations = 24, 6, 4
    banded = optimal.toeplitz_optimum(steps, bands=separation)

    def squared_error(drops):
        encoder = np.cumsum(drops[::-1])[::-1]
        gamma = sensitivity.multi_participation_bound(
            encoder, participations=participations, separation=separation
        )
        decoder = toeplitz.inverse_coefficients(encoder)
        return toeplitz.workload_errors(decoder, sensitivity=gamma).mean ** 2

    full = toeplitz.damped_square_root_encoder(steps, damping=0.1)
    found = minimize(
        squared_error,
        -np.diff(full, append=0.0),
        method="L-BFGS-B",
        bounds=[(1e-3, None)] + [(0, None)] * (steps - 1),
        options={"maxfun": 50_000, "maxiter": 2000},
    )
    # Forward differences leave the search within about 1e-6 of its optimum.
    assert_allclose(found.fun, participations * banded.error**2, rtol=1e-4)
    assert found.fun > participations * banded.error**2 * (1 - 1e-9)


def test_an_optimum_that_stops_short_warns(monkeypatch):
    monkeypatch.setattr(optimal, "MOST_ITERATIONS", 1)
    with pytest.warns(AccuracyWarning, match="optimum has an estimated error"):
        optimal.toeplitz_optimum(200)


def test_one_epoch_is_the_fixed_point_of_denisov():
    steps = 40
    ones = np.tri(steps)
    weights = np.ones(steps)
    for _ in range(200):
        root = np.sqrt(weights)
        weights = np.diag(sqrtm(root[:, None] * (ones.T @ ones) * root).real).copy()
    # At the fixed point tr(AᵀA X⁻¹) is the sum of the weights.
    expected = np.sqrt(weights.sum() / steps)
    found = optimal.dense_optimum(steps, tolerance=1e-9)
    assert_allclose(found.error, expected, rtol=1e-7)
    assert found.gap < 1e-7
    # The gap of a worse mechanism is that to the dual bound at its own multipliers.
    found = optimal.dense_optimum(steps, tolerance=0.1)
    weights = np.sum((ones @ found.decoder @ found.decoder.T) ** 2, axis=0)
    root = np.sqrt(weights)
    bound = np.trace(sqrtm(root[:, None] * (ones.T @ ones) * root).real) / np.sqrt(weights.sum())
    assert found.gap > 1e-6
    assert_allclose(found.error / (1 + found.gap), bound / np.sqrt(steps), rtol=1e-9)


def test_dense_is_at_least_as_good_as_toeplitz():
    for epochs in (1, 4):
        toeplitz_error = np.sqrt(epochs) * optimal.toeplitz_optimum(80, bands=80 // epochs).error
        assert optimal.dense_optimum(80, epochs=epochs).error < toeplitz_error


def test_a_search_that_stops_short_warns(monkeypatch):
    monkeypatch.setattr(optimal, "_MOST_ITERATIONS", 6)
    with pytest.warns(AccuracyWarning, match="optimum has an estimated error"):
        optimal.dense_optimum(48, epochs=4, tolerance=1e-12)
