"""Optimal Toeplitz mechanisms: stationarity, known optima, dominance over the families."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from privreg.accuracy import AccuracyWarning
from privreg.noise import errors, optimal, sensitivity, toeplitz

CONTRACTION = 1 - 0.05 / np.arange(1, 9)


def error(encoder, criterion, workload=None, weights=(1.0,)):
    """The root of the weighted sum of the workloads' squared errors, matrix by matrix."""
    steps = len(encoder)
    kernels = np.ones((1, steps)) if workload is None else workload
    decoder = toeplitz.inverse_coefficients(encoder)
    gamma = sensitivity.single_participation_sensitivity(encoder)
    found = [
        getattr(errors.workload_errors(decoder, sensitivity=gamma, workload=kernel), criterion)
        for kernel in kernels
    ]
    return np.sqrt(np.dot(weights, np.square(found)))


@pytest.mark.parametrize("steps", [1, 2, 7, 200])
def test_square_root_is_the_optimum_for_the_largest_error(steps):
    found = optimal.toeplitz_optimum(steps, criterion="largest")
    expected = toeplitz.damped_square_root_encoder(steps, damping=0.0)
    np.testing.assert_allclose(found.encoder, expected, atol=1e-4)
    np.testing.assert_allclose(found.error, expected @ expected, rtol=1e-9)
    assert optimal.best_damping(steps, criterion="last") in (0.0, 1.0 * (steps == 1))


@pytest.mark.parametrize("criterion", ["mean", "last"])
@pytest.mark.parametrize("regression", [False, True])
def test_no_perturbation_is_better(criterion, regression, rng):
    steps = 60
    workload = toeplitz.decaying_sums(steps, contraction=CONTRACTION) if regression else None
    weights = 1 / np.arange(1, 9) if regression else np.ones(1)
    found = optimal.toeplitz_optimum(
        steps,
        criterion=criterion,
        workload=workload,
        weights=weights if regression else None,
        tolerance=1e-13,
    )
    least = error(found.encoder, criterion, workload, weights)
    np.testing.assert_allclose(found.error, least, rtol=1e-10)
    np.testing.assert_allclose(
        toeplitz.product_coefficients(found.encoder, found.decoder),
        toeplitz.identity(steps),
        atol=1e-10,
    )
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(3):
            other = found.encoder + size * np.r_[0.0, rng.standard_normal(steps - 1)] / steps
            assert error(other, criterion, workload, weights) > least * (1 - 1e-9)


@pytest.mark.parametrize("steps", [10, 100, 1000])
def test_best_damping_is_close_to_the_optimum(steps):
    optimum = optimal.toeplitz_optimum(steps).error
    damping = optimal.best_damping(steps)
    found = optimal.damped_error(steps, damping=damping)
    assert optimum <= found <= 1.007 * optimum
    for factor in (0.8, 1.25):
        assert optimal.damped_error(steps, damping=damping * factor) > found


def test_damped_error_with_several_participations():
    steps, damping, fixed = 200, 0.02, {"participations": 4, "separation": 50}
    expected = errors.workload_errors(
        toeplitz.damped_square_root(steps, damping=damping),
        sensitivity=sensitivity.multi_participation_sensitivity(
            toeplitz.damped_square_root_encoder(steps, damping=damping), **fixed
        ),
    )
    for criterion in ("mean", "last"):
        found = optimal.damped_error(steps, damping=damping, criterion=criterion, **fixed)
        np.testing.assert_allclose(found, getattr(expected, criterion), rtol=1e-12)
    assert optimal.best_damping(steps, **fixed) > optimal.best_damping(steps)


def test_bands_restrict_the_encoder_and_only_cost():
    narrow, wide, full = (optimal.toeplitz_optimum(80, bands=bands) for bands in (4, 20, None))
    assert np.all(narrow.encoder[4:] == 0)
    assert narrow.error > wide.error > full.error
    assert optimal.toeplitz_optimum(9, bands=1).error == pytest.approx(np.sqrt(5))


def test_banded_optimum_is_the_best_non_increasing_encoder_for_several_participations():
    steps, separation, participations = 24, 6, 4
    banded = optimal.toeplitz_optimum(steps, bands=separation)

    def squared_error(drops):
        encoder = np.cumsum(drops[::-1])[::-1]
        gamma = sensitivity.multi_participation_bound(
            encoder, participations=participations, separation=separation
        )
        decoder = toeplitz.inverse_coefficients(encoder)
        return errors.workload_errors(decoder, sensitivity=gamma).mean ** 2

    full = toeplitz.damped_square_root_encoder(steps, damping=0.1)
    found = minimize(
        squared_error,
        -np.diff(full, append=0.0),
        method="L-BFGS-B",
        bounds=[(1e-3, None)] + [(0, None)] * (steps - 1),
        options={"maxfun": 50_000, "maxiter": 2000},
    )
    # Forward differences leave the search within about 1e-6 of its optimum.
    np.testing.assert_allclose(found.fun, participations * banded.error**2, rtol=1e-4)
    assert found.fun > participations * banded.error**2 * (1 - 1e-9)


def test_an_optimum_that_stops_short_warns(monkeypatch):
    monkeypatch.setattr(optimal, "MOST_ITERATIONS", 1)
    with pytest.warns(AccuracyWarning, match="optimum has an estimated error"):
        optimal.toeplitz_optimum(200)
