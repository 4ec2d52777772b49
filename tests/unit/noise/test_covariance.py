"""Shapes of private noise: roots, inverse norms and traces against the dense matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privreg.noise.covariance import PublicCovariance, identity_covariance, population_covariance
from privreg.noise.streams import IndependentCorrelation, SquareRootCorrelation, TreeCorrelation

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
def test_roots_norms_and_traces_are_those_of_the_dense_matrix(name):
    shape, dense = shapes()[name]
    root = shape.root_multiply(np.eye(shape.draws))
    assert_allclose(root.T @ root, dense, atol=1e-14)
    rows = np.random.default_rng(1).standard_normal((20, DIMENSION))
    inverse = np.linalg.inv(dense)
    expected = np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
    assert_allclose(shape.inverse_norms(rows), expected, rtol=1e-12)
    if isinstance(shape, PublicCovariance):
        # Ridges share one decomposition.
        other = PublicCovariance(shape.features, ridge=2.0).inverse_norms(rows)
        assert_allclose(shape.with_ridge(2.0).inverse_norms(rows), other, rtol=1e-12)
        both = shape.inverse_norms_by_ridge(rows, ridges=[0.3, 2.0])
        assert_allclose(both, [expected, other], rtol=1e-12)
    eigenvalues = np.arange(1.0, DIMENSION + 1) ** -1.5
    for trace, matrix in ((shape.inverse_trace, inverse), (shape.trace, dense)):
        assert trace(eigenvalues) == pytest.approx(np.diag(matrix) @ eigenvalues, rel=1e-12)


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


CORRELATIONS = [TreeCorrelation(), IndependentCorrelation(), SquareRootCorrelation(0.1)]


def decoder(correlation, steps):
    """The map from white vectors to increments, one basis vector for each step."""

    class Basis:
        """Stands for a generator whose t-th vector is the t-th unit vector."""

        def __init__(self):
            self.next = 0

        def standard_normal(self, shape):
            rows = np.eye(steps)[self.next : self.next + shape[0]]
            self.next += shape[0]
            return rows.copy()

    stream = correlation.stream(steps, steps=steps, rng=np.random.default_rng(0))
    # It takes NumPy's generator alone.
    stream._rng = Basis()
    return np.array(list(stream))


@pytest.mark.parametrize("correlation", CORRELATIONS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("steps", [1, 6, 16])
def test_sensitivity_is_the_largest_column_of_the_inverse(correlation, steps):
    dense = decoder(correlation, steps)
    assert np.array_equal(np.diag(dense), np.ones(steps))
    norms = np.linalg.norm(np.linalg.inv(dense), axis=0)
    assert correlation.sensitivity(steps) == pytest.approx(norms.max(), rel=1e-12)


@pytest.mark.parametrize("correlation", CORRELATIONS[:2], ids=["tree", "independent"])
def test_increment_terms_are_the_rows_of_the_decoder(correlation):
    steps = 21
    dense, kept = decoder(correlation, steps), set()
    for step in range(1, steps + 1):
        row = np.zeros(steps)
        row[step - 1] = 1.0
        kept.add(step)
        taken_back, forgotten = correlation.increment_terms(step)
        assert set(taken_back) <= kept
        row[np.array(taken_back, dtype=int) - 1] = -1.0
        assert_array_equal(row, dense[step - 1])
        kept -= set(forgotten)
        assert len(kept) <= steps.bit_length()
