"""p-values are the inversion of the intervals, at every level and for every bias."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from privreg.inference.population_intervals import (
    LEAST_DEGREES,
    CoefficientIntervals,
    half_widths,
)
from privreg.theory.huber_descent import bias_aware_quantile

LEVELS = [1e-3, 0.1, 0.5, 0.8, 0.95, 0.99, 1 - 1e-4, 1 - 1e-8]
DEGREES = np.array([2.01, 3.0, 8.0, 40.0, 1e4, 1e12, np.inf])


def p_values(distance, standard_error, degrees_of_freedom, *, bias=None):
    return CoefficientIntervals(
        centre=np.asarray(distance),
        half_width=np.zeros(len(distance)),
        standard_error=np.asarray(standard_error),
        degrees_of_freedom=np.asarray(degrees_of_freedom),
        level=0.95,
        target="population",
        bias=None if bias is None else np.asarray(bias),
    ).p_values()


@pytest.fixture
def cases(rng):
    size = 300
    return {
        "standard_error": rng.exponential(size=size),
        "degrees_of_freedom": rng.choice(DEGREES, size),
        "bias": rng.choice([0.0, 1e-3, 0.3, 2.0, 50.0], size) * rng.exponential(size=size),
    }


@pytest.mark.parametrize("biased", [True, False])
def test_a_p_value_is_below_alpha_where_the_interval_leaves_0_out(rng, cases, biased):
    if not biased:
        cases["bias"] = None
    distance = rng.standard_normal(300) * rng.choice([0.1, 1.0, 5.0, 60.0], 300)
    found = p_values(distance, **cases)
    assert np.all((found >= 0) & (found <= 1))
    rejected = []
    for level in LEVELS:
        outside = np.abs(distance) > half_widths(level=level, **cases)
        np.testing.assert_array_equal(found < 1 - level, outside)
        rejected.append(outside.mean())
    # Both answers occur at the usual levels.
    assert 0.2 < min(rejected[3:6]) <= max(rejected[3:6]) < 0.8


@pytest.mark.parametrize("alpha", [0.9, 0.05, 1e-7])
def test_at_the_end_of_an_interval_p_is_its_alpha(cases, alpha):
    """Levels are doubles next to 1: a quantile is known to one part in 1e-16/α there."""
    half = half_widths(level=1 - alpha, **cases)
    found = p_values(half, **cases)
    np.testing.assert_allclose(found, alpha, rtol=1e-9 + 1e-14 / alpha)


def test_without_bias_it_is_students_test():
    distance = np.array([0.0, 0.5, 2.0, 9.0])
    for degrees in (2.5, 7.0, 1e3):
        args = (np.ones(4), np.full(4, degrees))
        expected = 2 * stats.t.sf(distance, degrees)
        np.testing.assert_allclose(p_values(distance, *args), expected, rtol=1e-9)
    normal = 2 * stats.norm.sf([37.0])
    np.testing.assert_allclose(p_values([37.0], [1.0], [np.inf]), normal, rtol=1e-6)


def test_with_known_variance_it_is_the_largest_chance_under_the_bias():
    """sup over |b| ≤ t of P(|N(b, 1)| > d), on a grid of biases."""
    for largest in (0.0, 0.4, 3.0):
        grid = np.linspace(-largest, largest, 201)
        for distance in (0.2, 1.5, 5.0):
            chance = stats.norm.sf(distance - grid) + stats.norm.cdf(-distance - grid)
            found = p_values([distance], [1.0], [np.inf], bias=[largest])
            assert found[0] == pytest.approx(chance.max(), rel=1e-9)


def test_a_test_of_a_biased_estimate_keeps_its_level(rng):
    """Bias at its bound, and the variance from a χ²: 40,000 draws, 1 % ± .1 % and 5 % ± .2 %."""
    draws, degrees, largest = 40_000, 12.0, 1.3
    estimate = largest + rng.standard_normal(draws)
    found = p_values(estimate, np.ones(draws), np.full(draws, np.inf), bias=np.full(draws, largest))
    ignored = p_values(estimate, np.ones(draws), np.full(draws, np.inf))
    for alpha in (0.01, 0.05):
        error = np.sqrt(alpha * (1 - alpha) / draws)
        assert abs(np.mean(found < alpha) - alpha) < 4 * error
        assert np.mean(ignored < alpha) > 3 * alpha
    spread = np.sqrt(rng.chisquare(degrees, draws) / degrees)
    student = p_values(rng.standard_normal(draws), spread, np.full(draws, degrees))
    assert abs(np.mean(student < 0.05) - 0.05) < 4 * np.sqrt(0.05 * 0.95 / draws)


def test_where_nothing_is_known_p_is_1_and_the_interval_infinite():
    error = np.array([np.inf, 1.0, 1.0, 0.0])
    degrees = np.array([0.0, LEAST_DEGREES, 2.1, np.inf])
    for bias in (None, np.zeros(4)):
        half = half_widths(error, degrees, level=0.95, bias=bias)
        assert np.isinf(half[:2]).all()
        assert np.isfinite(half[2:]).all()
        assert half[3] == 0
        found = p_values(np.full(4, 1e9), error, degrees, bias=bias)
        assert found[:2].tolist() == [1.0, 1.0]
        assert 0 < found[2] < 1e-3
        assert found[3] == 0
        assert p_values([0.0] * 4, error, degrees, bias=bias).tolist() == [1.0] * 4


def test_half_widths_are_the_formula_of_their_docstring(cases):
    level = 0.9
    student = stats.t.ppf(0.95, cases["degrees_of_freedom"]) / stats.norm.ppf(0.95)
    ratio = cases["bias"] / cases["standard_error"]
    expected = student * bias_aware_quantile(ratio, level=level) * cases["standard_error"]
    np.testing.assert_allclose(half_widths(level=level, **cases), expected, rtol=1e-9)


def test_intervals_test_any_value_and_split_their_error():
    found = CoefficientIntervals(
        centre=np.array([2.0, 2.0, 2.0]),
        half_width=np.array([1.0, np.inf, 0.0]),
        standard_error=np.array([0.5, np.inf, 0.0]),
        degrees_of_freedom=np.full(3, np.inf),
        level=0.95,
        target="population",
        bias=np.array([0.2, 0.0, 0.0]),
        privacy_error=np.array([0.3, np.inf, 0.0]),
    )
    assert found.p_values(2.0).tolist() == [1.0, 1.0, 1.0]
    assert found.p_values().tolist()[1:] == [1.0, 0.0]
    mirrored = found.p_values([1.0, 3.0, 1.0])
    assert mirrored[0] == found.p_values([3.0, 1.0, 3.0])[0]
    np.testing.assert_allclose(found.sampling_error, [0.4, np.nan, np.nan])
    np.testing.assert_allclose(found.privacy_share, [0.36, np.nan, np.nan])
    # Of rounding alone, more than the whole.
    more = replace(found, privacy_error=1.1 * found.standard_error)
    assert (more.privacy_share[0], more.sampling_error[0]) == (1.0, 0.0)
