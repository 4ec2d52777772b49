"""Decoders, workloads and norms at sizes whose squares are no numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from privreg.noise import dense, errors, inverse, optimal, sensitivity
from privreg.noise.covariance import DiagonalCovariance, PublicCovariance, population_covariance
from privreg.noise.discrete import grid, integer_noise_std

from ..magnitudes import magnitude, magnitudes, near, rational
from . import exact

SEEDS = pytest.mark.parametrize("seed", range(40))


@SEEDS
@pytest.mark.parametrize("kind", ["toeplitz", "dense"])
def test_no_inverse_in_any_unit_is_further_off_than_its_bound(kind, seed):
    """An error whose square rounds to 0 was taken for none."""
    rng = np.random.default_rng(seed)
    steps, unit = int(rng.integers(1, 7)), magnitude(rng, 1e-290, 1e290)
    decoder = rng.standard_normal((steps, steps) if kind == "dense" else steps) * unit
    if kind == "dense":
        decoder = np.tril(decoder) + np.diag(np.full(steps, 3 * unit))
    else:
        decoder[0] = (1 + rng.random()) * unit
    found = inverse.require_inverse("decoder", decoder)
    true = exact.inverse(decoder)
    difference = exact.fractions(found.encoder) - true
    columns = difference[:, None] if kind == "toeplitz" else difference
    norm = mp.sqrt(max(rational(sum(x**2 for x in column)) for column in columns.T))
    assert norm <= mp.mpf(found.column_error) * (1 + mp.mpf("1e-9"))
    size = mp.sqrt(max(rational(sum(x**2 for x in column)) for column in np.atleast_2d(true.T)))
    assert found.column_error <= 1e-9 * size + mp.mpf("1e-300")


@SEEDS
def test_inverse_norms_of_minute_rows_are_not_below_the_exact_ones(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 4)), 3
    rows = rng.standard_normal((n, d)) * magnitudes(rng, 1e-290, 1e55, n)[:, None]
    diagonal = magnitudes(rng, 1e-50, 1e50, d)
    found = DiagonalCovariance(diagonal).inverse_norms(rows)
    for row, norm in zip(exact.fractions(rows), found, strict=True):
        square = sum(row**2 / exact.fractions(diagonal))
        assert near(norm, mp.sqrt(rational(square)), 1e-14)
    features = rng.standard_normal((2, d)) * magnitude(rng, 1e-250, 1e20)
    ridge = float(np.clip(magnitude(rng, 1e-50, 1e50), 1e-5 * np.sum(features**2) + 1e-50, 1e50))
    norms = PublicCovariance(features, ridge=ridge).inverse_norms(rows)
    given = mp.matrix(features.tolist())
    with mp.workdps(700):
        shape = (given.T * given + mp.mpf(ridge) * mp.eye(d)) / 2
        for row, norm in zip(rows, norms, strict=True):
            v = mp.matrix(row.tolist())
            wanted = mp.sqrt((v.T * mp.lu_solve(shape, v))[0])
            assert mp.mpf(norm) >= wanted * (1 - mp.mpf("1e-15")) - mp.mpf("1e-300")
            assert near(norm, wanted, 1e-8)
    values = magnitudes(rng, 1e-300, 1e50, d)
    horizon = magnitude(rng, 1e-50, 1e50)
    noise = population_covariance(values, horizon=horizon)
    shape = [Fraction(float(v)) + 1 / Fraction(horizon) for v in values]
    pairs = list(zip(exact.fractions(values), shape, strict=True))
    assert near(noise.trace(values), sum(v * s for v, s in pairs), 1e-14)
    assert near(noise.inverse_trace(values), sum(v / s for v, s in pairs), 1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_optima_in_any_unit_are_the_same_mechanism(seed):
    rng = np.random.default_rng(seed)
    steps, k, m = (
        int(rng.integers(2, 12)),
        int(rng.integers(-900, 160)),
        int(rng.integers(-400, 80)),
    )
    workload, weights = rng.standard_normal((2, steps)), rng.random(2) + 0.1
    other = {"workload": workload * 2.0**k, "weights": weights * 4.0**m}
    plain = {"workload": workload, "weights": weights}
    change = mp.mpf(2) ** (k + m)
    damping = float(rng.random())
    first = optimal.damped_error(steps, damping=damping, **plain)
    # Of the workload's own product with the decoder, by a dense matrix.
    moved = optimal.damped_error(steps, damping=damping, **other)
    assert near(moved, mp.mpf(first) * change, 1e-13)
    assert optimal.best_damping(steps, **other) == pytest.approx(
        optimal.best_damping(steps, **plain), rel=1e-3, abs=1e-6
    )
    first, moved = (optimal.toeplitz_optimum(steps, **each) for each in (plain, other))
    assert near(moved.error, mp.mpf(first.error) * change, 1e-8)
    np.testing.assert_allclose(moved.encoder, first.encoder, atol=1e-3)
    kernel = np.append(1.0, 0.3 * rng.standard_normal(steps - 1))
    first, moved = (dense.dense_optimum(steps, workload=kernel * s) for s in (1.0, 2.0**k))
    assert near(moved.error, mp.mpf(first.error) * mp.mpf(2) ** k, 1e-8)
    assert -1e-9 <= moved.gap < 0.01


def test_a_workload_of_nothing_has_no_optimum():
    with pytest.raises(ValueError, match="workload must not be all 0"):
        optimal.toeplitz_optimum(3, workload=np.zeros(3))
    with pytest.raises(ValueError, match="workload must"):
        optimal.toeplitz_optimum(2, workload=[[0.0, 0.0], [1.0, 1.0]], weights=[1.0, 0.0])
    assert optimal.damped_error(3, damping=0.5, workload=np.zeros(3)) == 0
    found = optimal.toeplitz_optimum(2, workload=[[0.0, 0.0], [1.0, 1.0]])
    assert found.error == pytest.approx(optimal.toeplitz_optimum(2).error, rel=1e-8)


@SEEDS
def test_limits_of_any_damping(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 400
    damping = magnitude(rng, 5e-324, 1.0)
    nu = mp.mpf(damping)
    assert near(sensitivity.damped_anti_pgd_limit(damping), 1 / mp.sqrt(nu * (2 - nu)), 1e-14)
    wanted = 1 / mp.sqrt(mp.agm(1, mp.sqrt(nu * (2 - nu))))
    assert near(sensitivity.damped_square_root_limit(damping), wanted, 1e-13)


@pytest.mark.parametrize("seed", range(15))
def test_limits_of_a_spectrum_in_any_unit(seed):
    rng = np.random.default_rng(seed)
    radius, unit = rng.uniform(0.0, 0.95), 2.0 ** int(rng.integers(-900, 900))
    found = sensitivity.limiting_sensitivity(
        lambda w: unit * (1 + radius**2 - 2 * radius * np.cos(w))
    )
    assert near(found, 1 / mp.sqrt(mp.mpf(unit) * (1 - mp.mpf(radius) ** 2)), 1e-9)


@SEEDS
def test_integers_of_any_budget(seed):
    rng = np.random.default_rng(seed)
    norm, dimension = magnitude(rng, 1e-100, 1e100), int(10 ** rng.uniform(0, 4))
    lattice = grid(norm, dimension=dimension)
    # A vector of that norm, rounded coordinate by coordinate, is within reach.
    longest = (Fraction(norm) / Fraction(lattice.unit)) ** 2
    assert Fraction(lattice.reach) ** 2 >= longest
    square, rho = int(magnitude(rng, 1, 1e30)), magnitude(rng, 1e-12, 1e12)
    try:
        std = integer_noise_std(square_sensitivity=square, rho=rho)
    except ValueError as error:
        if "rho must be larger" not in str(error):
            raise
        assert square / (2 * rho) > 2.0**105
        return
    assert Fraction(square, 2 * std**2) <= Fraction(rho)
    assert std == 1 or Fraction(square, 2 * (std - 1) ** 2) > Fraction(rho)


@SEEDS
def test_errors_of_any_size(seed):
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(1, 6))
    decoder = rng.random(steps) * magnitude(rng, 1e-140, 1e50)
    workload = rng.random(steps) * magnitude(rng, 1e-140, 1e50)
    scale = magnitude(rng, 1e-300, 1e50)
    rows = exact.dense(exact.fractions(workload)) @ exact.dense(exact.fractions(decoder))
    variances = np.sum(rows**2, axis=1)
    found = errors.workload_errors(decoder, sensitivity=scale, workload=workload)
    for value, square in (
        (found.mean, sum(variances) / steps),
        (found.largest, max(variances)),
        (found.last, variances[-1]),
    ):
        assert near(value, mp.mpf(scale) * mp.sqrt(rational(square)), 1e-13)
