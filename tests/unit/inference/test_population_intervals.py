"""Intervals of a private Huber regression: coverage of either target, and what noise does."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms import record_sums
from privreg.algorithms.huber_descent import HuberSettings, default_settings, huber_descent
from privreg.algorithms.records import Records
from privreg.algorithms.samples import ArraySamples
from privreg.inference.population_intervals import population_intervals
from privreg.privacy.budget import Budget

# Nothing is clipped, and no row is shortened.
WIDE = HuberSettings(clip_width=20.0, common_width=False)
TRUTH = np.array([0.2, 0.6, -0.6, 0.3])


def draw(rng, n=4000, noise="normal"):
    features = np.column_stack([np.ones(n), rng.standard_normal((n, 3))])
    errors = rng.standard_normal(n) if noise == "normal" else rng.standard_t(3, n)
    if noise == "heteroskedastic":
        errors = rng.standard_normal(n) * (0.5 + np.abs(features[:, 1]))
    return ArraySamples(features, features @ TRUTH + errors)


def fitted(samples, rng, rho=0.1, settings=None):
    budget = Budget.zcdp(rho)
    settings = settings or default_settings(
        sample_size=samples.sample_size, dimension=4, budget=budget
    )
    return huber_descent(
        samples,
        feature_norm=6.0,
        label_bound=10.0,
        budget=budget,
        settings=settings,
        rng=rng,
        intercept=True,
    ).value


@pytest.mark.parametrize("noise", ["normal", "heavy", "heteroskedastic"])
def test_the_population_is_covered(rng, noise):
    """480 intervals, nearly independent: a standard error of 1 %."""
    fits = [fitted(draw(rng, noise=noise), rng) for _ in range(120)]
    intervals = [population_intervals(fit) for fit in fits]
    covered = np.mean([each.covers(TRUTH) for each in intervals])
    assert 0.92 < covered < 0.985
    # Standard errors are those of the errors: 480 squares have a relative error of 7 %.
    errors = np.array([each.centre - TRUTH for each in intervals])
    claimed = np.array([each.standard_error for each in intervals])
    assert np.mean(claimed**2) == pytest.approx(np.mean(errors**2), rel=0.25)


def test_the_empirical_target_is_covered_by_shorter_intervals(rng):
    """The minimiser on the same rows: private noise alone, here most of the error."""
    samples, covered = draw(rng), []
    for _ in range(60):
        fit = fitted(samples, rng, rho=0.004, settings=HuberSettings())
        target = minimiser(samples, fit)
        empirical = population_intervals(fit, target="empirical")
        population = population_intervals(fit)
        covered.append(empirical.covers(target))
        assert np.all(empirical.half_width <= population.half_width)
    assert 0.88 < np.mean(covered) <= 1.0


def minimiser(samples, fit):
    """Zero of the clipped gradient of a fit, by whitened descent without noise."""
    records, theta = Records(samples, 6.0, 10.0, common_width=True), fit.parameters
    for _ in range(150):
        gradient = record_sums.gradient_sum(records, theta, fit.whitening, clip_norm=fit.clip_norm)
        theta = theta + fit.whitening @ gradient / samples.sample_size
    assert np.linalg.norm(gradient) < 1e-4 * fit.clip_norm * samples.sample_size
    return theta


def test_with_a_large_budget_intervals_are_those_of_the_sandwich(rng):
    samples = draw(rng, noise="heteroskedastic", n=20_000)
    fit = fitted(samples, rng, rho=1e6, settings=WIDE)
    features, labels = samples.features, samples.labels
    inverse = np.linalg.inv(features.T @ features)
    estimate = inverse @ features.T @ labels
    scores = features * (labels - features @ estimate)[:, None]
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    intervals = population_intervals(fit)
    np.testing.assert_allclose(intervals.centre, estimate, atol=0.02 * robust.min())
    np.testing.assert_allclose(intervals.standard_error, robust, rtol=0.02)
    np.testing.assert_allclose(intervals.half_width, 1.96 * robust, rtol=0.02)


def test_functionals_are_linear(rng):
    fit = fitted(draw(rng), rng)
    plain = population_intervals(fit)
    twice = population_intervals(fit, functionals=2 * np.eye(4), offset=1.0)
    np.testing.assert_allclose(twice.centre, 2 * plain.centre + 1)
    np.testing.assert_allclose(twice.length, 2 * plain.length)
    nothing = population_intervals(fit, functionals=np.zeros((1, 4)))
    assert nothing.half_width.tolist() == [0.0]
    difference = population_intervals(fit, functionals=[[0, 1, -1, 0]])
    assert difference.length[0] < plain.length[1] + plain.length[2]
