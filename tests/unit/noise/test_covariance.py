"""Shapes of private noise: roots, inverse norms and traces against the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.noise.covariance import (
    DiagonalCovariance,
    PublicCovariance,
    identity_covariance,
    population_covariance,
)

DIMENSION = 9


def shapes():
    rng = np.random.default_rng(0)
    eigenvalues = np.arange(1.0, DIMENSION + 1) ** -2
    features = rng.standard_normal((5, DIMENSION)) * np.sqrt(eigenvalues)
    return {
        "identity": (identity_covariance(DIMENSION), np.eye(DIMENSION)),
        "population": (
            population_covariance(eigenvalues, horizon=40.0),
            np.diag(eigenvalues) + np.eye(DIMENSION) / 40,
        ),
        "public": (
            PublicCovariance(features, ridge=0.3),
            (0.3 * np.eye(DIMENSION) + features.T @ features) / 5,
        ),
        "more public rows than coordinates": (
            PublicCovariance(np.tile(features, (4, 1)), ridge=0.3),
            (0.3 * np.eye(DIMENSION) + 4 * features.T @ features) / 20,
        ),
    }


@pytest.mark.parametrize("name", list(shapes()))
def test_a_root_times_its_transpose_is_the_covariance(name):
    shape, dense = shapes()[name]
    root = shape.root_multiply(np.eye(shape.draws))
    np.testing.assert_allclose(root.T @ root, dense, atol=1e-14)


@pytest.mark.parametrize("name", list(shapes()))
def test_norms_and_traces_are_those_of_the_dense_matrix(name):
    shape, dense = shapes()[name]
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((20, DIMENSION))
    inverse = np.linalg.inv(dense)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
    np.testing.assert_allclose(shape.inverse_norms(rows), expected, rtol=1e-12)
    eigenvalues = np.arange(1.0, DIMENSION + 1) ** -1.5
    assert shape.inverse_trace(eigenvalues) == pytest.approx(
        np.trace(inverse @ np.diag(eigenvalues)), rel=1e-12
    )
    assert shape.trace(eigenvalues) == pytest.approx(
        np.trace(dense @ np.diag(eigenvalues)), rel=1e-12
    )


def test_ridges_share_one_decomposition():
    shape, _ = shapes()["public"]
    rows = np.random.default_rng(2).standard_normal((4, DIMENSION))
    both = shape.inverse_norms_by_ridge(rows, ridges=[0.3, 2.0])
    np.testing.assert_allclose(both[0], shape.inverse_norms(rows), rtol=1e-13)
    np.testing.assert_allclose(both[1], shape.with_ridge(2.0).inverse_norms(rows), rtol=1e-13)
    np.testing.assert_allclose(
        both[1], PublicCovariance(shape.features, ridge=2.0).inverse_norms(rows), rtol=1e-12
    )


def test_many_public_rows_find_the_population_shape():
    eigenvalues = np.arange(1.0, 31) ** -2
    rng = np.random.default_rng(3)
    horizon, count = 50.0, 20_000
    features = rng.standard_normal((count, 30)) * np.sqrt(eigenvalues)
    public = PublicCovariance(features, ridge=count / horizon)
    population = population_covariance(eigenvalues, horizon=horizon)
    # Relative error of a sample covariance, √(d/M) = 0.04.
    assert public.inverse_trace(eigenvalues) == pytest.approx(
        population.inverse_trace(eigenvalues), rel=0.04
    )
    # H's share is an unbiased mean with relative deviation at most √(2/M) = 0.01.
    assert public.trace(eigenvalues) == pytest.approx(population.trace(eigenvalues), rel=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: DiagonalCovariance([1.0, 0.0]),
            "diagonal must be at least 1e-50 .*, got others in 1 of 2 rows",
        ),
        (lambda: DiagonalCovariance([[1.0]]), "diagonal must have shape"),
        (
            lambda: population_covariance([1.0, np.nan], horizon=1.0),
            "eigenvalues must be at least 0 .*, got others in 1 of 2 rows",
        ),
        (lambda: population_covariance([1.0], horizon=0.0), "horizon must be at least 1e-50"),
        (lambda: PublicCovariance(np.ones((2, 3)), ridge=-1.0), "ridge must be .* got others"),
        (lambda: PublicCovariance(np.ones(3), ridge=1.0), "features must have shape"),
        (lambda: identity_covariance(0), "dimension must be a whole number"),
        (lambda: identity_covariance(3).inverse_norms([[1.0, 2.0]]), "rows must have shape"),
        (lambda: identity_covariance(3).root_multiply([1.0]), "normals must have shape"),
        (lambda: identity_covariance(2).trace([1.0, -1.0]), "eigenvalues must be at least 0"),
    ],
)
def test_values_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_ridge_at_which_inverse_norms_lose_their_digits_is_refused():
    """With public rows 1e10 long and a ridge of 1 the inverse norm would come out as 0."""
    features = [[1e10, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match="ridge must be at least 1e"):
        PublicCovariance(features, ridge=1.0)
    shape = PublicCovariance(features, ridge=1e12)
    for bad in (1.0, 1e10):
        with pytest.raises(ValueError, match="ridge must be at least 1e"):
            shape.with_ridge(bad)
    dense = np.linalg.inv((1e12 * np.eye(2) + np.diag([1e20, 1.0])) / 2)
    row = np.array([1.0, 0.5])
    exact = np.sqrt(row @ dense @ row)
    assert shape.inverse_norms(row[None])[0] == pytest.approx(exact, rel=1e-7)
    assert shape.inverse_norms([[1.0, 0.0]])[0] == pytest.approx(np.sqrt(dense[0, 0]), rel=1e-7)
