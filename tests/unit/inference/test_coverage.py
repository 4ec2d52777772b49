"""Exact coverage and length at the ends of what is answered, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from privreg.inference.coverage import (
    expected_half_width,
    t_interval_coverage,
)


def level_of(quantile):
    """Of Student's t with one degree of freedom."""
    return 2 * np.arctan(quantile) / np.pi


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.9])
def test_half_width_of_two_replicates_is_a_folded_normal_mean(gap, correlation):
    """σ̂ = |x₁ - x₂|/√2, and the half-width t |x₁ - x₂|/2."""
    covariance = 1.7**2 * np.array([[1, correlation], [correlation, 1]])
    std = 1.7 * np.sqrt(2 * (1 - correlation))
    found = expected_half_width([1.0 + gap, 1.0], covariance, level=0.9)
    expected = stats.t(1).ppf(0.95) / 2 * stats.foldnorm(gap / std, scale=std).mean()
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("mean", "gap", "quantile"),
    [(0.1, 0.5, 4.0), (3.0, 0.0, 4.0), (3.0, 5.0, 4.0), (90.0, 0.5, 300.0), (280.0, 0.0, 300.0)],
)
def test_coverage_of_two_replicates_is_that_of_a_cone(mean, gap, quantile):
    """|x̄| ≤ t |x₁ - x₂|/2, with a mean and a difference that are independent."""
    spread = 1.3
    differences = np.linspace(-12, 12, 200_001)
    edge = quantile * np.abs(gap + np.sqrt(2) * spread * differences) / 2
    std = spread / np.sqrt(2)
    inside = stats.norm.cdf((edge - mean) / std) - stats.norm.cdf((-edge - mean) / std)
    expected = np.trapezoid(inside * stats.norm.pdf(differences), differences)
    bias = [mean + gap / 2, mean - gap / 2]
    found = t_interval_coverage(bias, spread**2 * np.eye(2), level=level_of(quantile))
    assert found == pytest.approx(expected, abs=1e-7)


def test_coverage_is_a_probability():
    """Rounding takes no sum beyond it."""
    for bias, level in ((0.0, 1 - 1e-15), (12.0, 0.3), (30.0, 0.3), (60.0, 0.99)):
        for m in (2, 5, 30):
            assert 0 <= t_interval_coverage(bias, np.eye(m), level=level) <= 1


@pytest.mark.parametrize(("ratio", "answered"), [(40.2, True), (39.8, False)])
def test_a_far_bias_is_answered_beyond_forty_deviations(ratio, answered):
    """For x ~ N(b 1, I) of two: x̄² - t²(x₁ - x₂)²/4 has mean b² + 1/2 - t²/2 and deviation

    √(2b² + 1/2 + t⁴/2).
    """
    square = 1e5
    quantile = np.sqrt(
        min(
            t2
            for t2 in np.roots(
                [
                    0.25 - ratio**2 / 2,
                    -(square + 0.5),
                    (square + 0.5) ** 2 - ratio**2 * (2 * square + 0.5),
                ]
            )
            if t2 > 0
        )
    )
    level = level_of(quantile)
    if answered:
        assert t_interval_coverage(np.sqrt(square), np.eye(2), level=level) == 0
    else:
        with pytest.raises(ValueError, match="bias must be within 316 standard deviations"):
            t_interval_coverage(np.sqrt(square), np.eye(2), level=level)


def test_a_far_bias_is_missed_or_covered():
    """Replicates that cancel: the mean has a standard deviation of 0.0007 and a bias of 0.5."""
    cancelling = np.array([[1.0, 1e-6 - 1], [1e-6 - 1, 1.0]])
    assert t_interval_coverage(0.5, cancelling, level=level_of(0.01)) == 0
    # One apart from the other by far more than their mean is from its target.
    assert t_interval_coverage([1000.0, -1000.0], np.eye(2), level=0.9) == 1


def test_stacks_of_stacks_are_answered_one_by_one(rng):
    roots = rng.standard_normal((3, 1, 4, 4)) + 3 * np.eye(4)
    covariances, biases = roots @ np.swapaxes(roots, -1, -2), rng.standard_normal((3, 1, 4))
    for function in (t_interval_coverage, expected_half_width):
        found = function(biases, covariances, level=0.9)
        assert found.shape == (3, 1)
        for k in range(3):
            alone = function(biases[k, 0], covariances[k, 0], level=0.9)
            assert found[k, 0] == pytest.approx(float(alone), rel=1e-12)


SKEW = np.array([[1.0, 0.1], [0.2, 1.0]])


@pytest.mark.parametrize(
    ("bias", "covariance", "message"),
    [
        (0.0, np.ones((2, 3)), r"shape \(..., m, m\), m >= 2"),
        (0.0, np.ones((1, 1)), r"shape \(..., m, m\), m >= 2"),
        (0.0, SKEW, "covariance must be symmetric"),
        (0.0, np.stack([np.eye(2), SKEW]), "covariance must be symmetric"),
        (0.0, np.zeros((2, 2)), "positive definite, got a diagonal"),
        (0.0, -np.eye(3), "covariance must be"),
        (np.zeros((1, 2)), np.eye(2), r"bias must broadcast to \(2,\)"),
        (np.zeros((3, 2)), np.eye(2), r"bias must broadcast to \(2,\)"),
        # A bias along a contrast as well as along the mean, on the edge of the interval.
        (1e4 * (stats.t(1).ppf(0.95) + np.array([1.0, -1.0])), np.eye(2), "bias must be within"),
    ],
)
def test_biases_and_covariances_are_refused(bias, covariance, message):
    with pytest.raises(ValueError, match=message):
        t_interval_coverage(bias, covariance, level=0.9)


def test_covariances_are_symmetric_but_for_rounding():
    rounded = 1e6 * np.array([[1.0, 0.5e-9], [0.0, 1.0]])
    assert t_interval_coverage(0.0, rounded, level=0.9) == pytest.approx(0.9, abs=1e-8)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_level_lies_between_nothing_and_certainty(level):
    for call in (
        lambda: t_interval_coverage(0.0, np.eye(2), level=level),
        lambda: expected_half_width(0.0, np.eye(2), level=level),
    ):
        with pytest.raises(ValueError, match="level must be"):
            call()
