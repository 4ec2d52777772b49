"""Covariance of coefficients: standard errors of the intervals, units, and what is released."""

from __future__ import annotations

import numpy as np
import pytest

from privreg import Budget, PrivateLinearRegression
from privreg.methods.adassp import AdaSSP

BUDGET = Budget.approximate(1.0, 1e-6)
BOUNDS = {"feature_bounds": (-4, 4), "label_bounds": (-8, 8)}


def table(rng, n=4000, p=3):
    features = rng.standard_normal((n, p)).clip(-4, 4)
    features[:, 1] = (0.7 * features[:, 0] + 0.5 * features[:, 1]).clip(-4, 4)
    return features, features @ np.linspace(1, -1, p) + rng.standard_normal(n)


@pytest.fixture(params=["least_squares", "huber"])
def model(request, rng):
    return PrivateLinearRegression(BUDGET, **BOUNDS, target=request.param, random_state=3).fit(
        *table(rng)
    )


@pytest.mark.parametrize("target", ["population", "empirical"])
def test_its_diagonal_is_the_intervals_and_it_is_a_covariance(model, target):
    found, intervals = model.covariance(target), model.confidence_intervals(target=target)
    np.testing.assert_allclose(np.sqrt(np.diag(found.total)), intervals.standard_error, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.diag(found.privacy)), intervals.privacy_error, rtol=1e-12)
    for part in (found.sampling, found.privacy, found.total):
        np.testing.assert_array_equal(part, part.T)
        least = np.linalg.eigvalsh(part).min()
        assert least >= -1e-12 * np.abs(part).max()
    assert (target == "empirical") == (not found.sampling.any())
    assert np.all(found.privacy.diagonal() > 0)


def test_it_follows_the_units_of_features_and_labels(rng):
    features, labels = table(rng)
    scale, unit = np.array([2.0, 0.25, 16.0]), 8.0
    settings = {"random_state": 5}
    one = PrivateLinearRegression(BUDGET, **BOUNDS, **settings).fit(features, labels)
    other = PrivateLinearRegression(
        BUDGET,
        feature_bounds=(-4 * scale, 4 * scale),
        label_bounds=(-8 * unit, 8 * unit),
        **settings,
    ).fit(features * scale, labels * unit)
    change = unit / np.append(scale, 1.0)
    for part in ("sampling", "privacy"):
        expected = change[:, None] * getattr(one.covariance(), part) * change
        np.testing.assert_allclose(getattr(other.covariance(), part), expected, rtol=1e-9)
    # A test knows no units.
    np.testing.assert_allclose(
        one.confidence_intervals().p_values(), other.confidence_intervals().p_values(), rtol=1e-6
    )


def test_correlated_features_have_correlated_coefficients(rng):
    """The sampling part is that of least squares: a large budget, and 4,000 rows."""
    features, labels = table(rng)
    found = PrivateLinearRegression(Budget.zcdp(1e4), **BOUNDS, random_state=1).fit(
        features, labels
    )
    design = np.column_stack([features, np.ones(len(features))])
    expected = np.linalg.inv(design.T @ design)
    sampling = found.covariance().sampling
    for k in range(4):
        assert sampling[k, k] == pytest.approx(expected[k, k], rel=0.1)
    correlation = sampling[0, 1] / np.sqrt(sampling[0, 0] * sampling[1, 1])
    wanted = expected[0, 1] / np.sqrt(expected[0, 0] * expected[1, 1])
    assert correlation == pytest.approx(wanted, abs=0.05)
    assert wanted < -0.5


def test_private_noise_over_seeds_has_the_private_part(rng):
    """40 fits of the same rows: a variance is known to 22 %, its mean over coefficients to 12 %."""
    features, labels = table(rng)
    fits = [
        PrivateLinearRegression(BUDGET, **BOUNDS, random_state=seed).fit(features, labels)
        for seed in range(40)
    ]
    seen = np.cov(np.array([[*fit.coef_, fit.intercept_] for fit in fits]).T)
    expected = np.mean([fit.covariance().privacy for fit in fits], axis=0)
    ratio = np.diag(seen) / np.diag(expected)
    assert 0.5 < np.median(ratio) < 1.3
    # What the private part is a part of would be three times as much.
    whole = np.mean([np.diag(fit.covariance().total) for fit in fits], axis=0)
    assert np.median(np.diag(seen) / whole) < 0.75


def test_what_nothing_bounds_has_infinite_variance(rng):
    features, labels = table(rng)
    features[:, 2] = 0.0
    found = PrivateLinearRegression(BUDGET, **BOUNDS, random_state=0).fit(features, labels)
    whole = found.covariance().total
    assert np.isinf(whole[2, 2])
    assert np.isnan(whole[2, [0, 1, 3]]).all()
    assert np.isfinite(whole[np.ix_([0, 1, 3], [0, 1, 3])]).all()
    # A method without intervals bounds nothing.
    found = PrivateLinearRegression(BUDGET, **BOUNDS, settings=AdaSSP(0.05), random_state=0).fit(
        features, labels
    )
    assert np.isinf(np.diag(found.covariance().total)).all()
    assert found.summary().columns["p_value"] == [1.0] * 4
