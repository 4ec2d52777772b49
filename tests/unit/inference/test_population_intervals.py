"""Intervals of a private Huber regression from what it released, number by number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from privreg.algorithms.huber_descent import HuberSettings, default_settings, huber_descent
from privreg.algorithms.records import Point, Records
from privreg.algorithms.samples import ArraySamples
from privreg.inference.population_intervals import (
    CoefficientIntervals,
    LastIterateLaw,
    ShrunkMoments,
    last_iterate_law,
    population_intervals,
    shrunk_moments,
)
from privreg.noise.exact import UNITS
from privreg.privacy.budget import Budget
from privreg.theory.huber_descent import privacy_covariance, sandwich

SECOND_MOMENT = np.array([[1.2, 0.1, 0.0], [0.1, 0.8, 0.2], [0.0, 0.2, 1.0]])
CURVATURE = np.array([[0.8, 0.1, 0.0], [0.1, 0.6, -0.1], [0.0, -0.1, 0.7]])


@pytest.fixture
def fit(rng):
    features = np.column_stack([np.ones(400), rng.standard_normal((400, 2)) * [1.0, 3.0]])
    return huber_descent(
        ArraySamples(features, features @ [0.2, 0.6, -0.3] + rng.standard_normal(400)),
        feature_norm=10.0,
        label_bound=10.0,
        budget=Budget.zcdp(5.0),
        settings=HuberSettings(),
        rng=rng,
    ).value


def moments(**changes):
    return ShrunkMoments(
        **(
            {
                "curvature": CURVATURE,
                "second_moment": SECOND_MOMENT,
                "mean_curvature": 0.7,
                "curvature_noise": 0.02,
                "second_moment_noise": 0.01,
                "gram_noise": np.zeros((3, 3)),
            }
            | changes
        )
    )


@pytest.mark.parametrize("mean", [0.7, 1.4])
@pytest.mark.parametrize("n", [400.0, 5.0])
def test_sampling_is_the_sandwich_with_hubers_factor(fit, n, mean):
    law = last_iterate_law(replace(fit, sample_size=n), moments(mean_curvature=mean))
    factor = 1 + 3 / n * (0.3 / 0.7 if mean < 1 else 0.0)
    expected = n / (n - 3) * factor**2 * sandwich(CURVATURE, SECOND_MOMENT, sample_size=n)
    np.testing.assert_allclose(law.sampling, expected, rtol=1e-12)


def test_fewer_records_than_coefficients_count_as_one_more(fit):
    few, enough, more = (
        last_iterate_law(replace(fit, sample_size=n), moments()).sampling for n in (1.0, 4.0, 4.5)
    )
    np.testing.assert_array_equal(few, enough)
    assert np.all(np.diag(more) < np.diag(enough))


def test_privacy_is_the_law_of_the_released_path(fit):
    """From a start that is away by what the iterates have come, through noise in the curvature."""
    found = last_iterate_law(fit, moments())
    left = np.eye(3)
    for matrix in fit.step_matrices:
        left = (np.eye(3) - matrix @ CURVATURE) @ left
    away = np.linalg.solve(np.eye(3) - left, np.linalg.solve(fit.whitening, fit.parameters))
    expected = privacy_covariance(
        CURVATURE,
        list(fit.step_matrices),
        fit.gradient_noise_stds,
        start_covariance=np.outer(away, away),
        curvature_noise=0.02,
    )
    np.testing.assert_allclose(found.privacy, expected, rtol=1e-9)


def test_a_start_is_found_from_half_of_its_way(fit):
    """Steps A⁻¹/2 and one along a coordinate, without noise: what is left shows what there was."""
    start = np.array([0.5, -1.0, 2.0])
    matrices = np.array([np.linalg.inv(CURVATURE) / 2, np.diag([0.4, 0.0, 0.9])])
    left = start.copy()
    for matrix in matrices:
        left = left - matrix @ CURVATURE @ left
    whitening = np.array([[1.0, 0.3, 0.0], [0.0, 2.0, 0.1], [0.0, 0.0, 0.5]])
    path = replace(
        fit,
        iterates=np.array([whitening @ (start - left)] * 2),
        whitening=whitening,
        step_matrices=matrices,
        gradient_noise_stds=np.zeros(2),
    )
    found = last_iterate_law(path, moments(curvature_noise=0.0)).privacy
    np.testing.assert_allclose(found, np.outer(left, left), atol=1e-12)


def test_a_start_is_not_looked_for_where_no_step_has_come(fit):
    """Of the third coordinate a share of 1e-5 is covered, which private noise can hide."""
    path = replace(
        fit,
        iterates=np.array([[1.0, 2.0, 0.3]]),
        whitening=np.eye(3),
        step_matrices=np.array([np.diag([0.5, 0.5, 1e-5])]),
        gradient_noise_stds=np.zeros(1),
    )
    found = last_iterate_law(path, moments(curvature=np.eye(3), curvature_noise=0.0)).privacy
    np.testing.assert_allclose(found, np.outer([1, 2, 0], [1, 2, 0]), atol=1e-12)


@pytest.mark.parametrize("target", ["population", "empirical"])
@pytest.mark.parametrize("level", [0.5, 0.99])
def test_half_widths_are_students(fit, target, level):
    rows, shift = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]), np.array([0.5, -1.0])
    found = population_intervals(fit, level=level, target=target, functionals=rows, offset=shift)
    common, law = shrunk_moments(fit), last_iterate_law(fit)
    for k, direction in enumerate(rows @ fit.whitening):
        error = np.sqrt(direction @ law.total(target) @ direction)
        noise = common.relative_noise(direction, law.sampling, law.privacy, target)
        assert common.along(fit, direction) is common
        assert found.standard_error[k] == pytest.approx(error, rel=1e-12)
        private = np.sqrt(direction @ law.privacy @ direction)
        assert found.privacy_error[k] == pytest.approx(private, rel=1e-12)
        assert found.degrees_of_freedom[k] == pytest.approx(2 / noise**2, rel=1e-12)
        quantile = student.ppf((1 + level) / 2, 2 / noise**2)
        assert found.half_width[k] == pytest.approx(quantile * error, rel=1e-9)
        assert found.centre[k] == pytest.approx(rows[k] @ fit.parameters + shift[k], rel=1e-12)
    assert (found.level, found.target) == (level, target)


@pytest.mark.parametrize(
    ("degrees", "finite"), [(1.99, False), (2.01, True), (2e12, True), (5e13, True)]
)
def test_an_interval_needs_two_degrees_of_freedom(fit, monkeypatch, degrees, finite):
    """Noise below a millionth is none."""
    noise = np.sqrt(2 / degrees)
    monkeypatch.setattr(ShrunkMoments, "relative_noise", lambda *_: noise)
    found = population_intervals(fit, level=0.9)
    assert found.degrees_of_freedom == pytest.approx([min(degrees, 2e12)] * 3, rel=1e-9)
    assert np.all(np.isfinite(found.half_width)) == finite
    if finite:
        expected = student.ppf(0.95, degrees) * found.standard_error
        np.testing.assert_allclose(found.half_width, expected, rtol=1e-6)


def test_a_direction_that_is_not_seen_has_no_bounds(fit, monkeypatch):
    seen = shrunk_moments(fit)
    monkeypatch.setattr(
        ShrunkMoments, "along", lambda _, __, direction: seen if direction[0] > 0 else None
    )
    rows = np.linalg.inv(fit.whitening) * [[-1.0], [1.0], [1.0]]
    rows = np.array([rows[0], -rows[0], 0 * rows[0], -2 * rows[0]])
    found = population_intervals(fit, functionals=rows)
    assert np.isinf(found.half_width).tolist() == [True, False, False, False]
    assert np.isinf(found.standard_error).tolist() == [True, False, False, False]
    # Nothing is asked, and nothing is uncertain.
    assert found.half_width[2] == found.standard_error[2] == found.centre[2] == 0
    assert found.half_width[3] == pytest.approx(2 * found.half_width[1])
    assert found.half_width[1] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 0.0}, "level must be"),
        ({"level": 1.0}, "level must be"),
        ({"functionals": np.full((1, 3), 1.1e36)}, "functionals must be"),
        ({"functionals": np.full((1, 3), -1.1e36)}, "functionals must be"),
        ({"functionals": np.ones((1, 2))}, "functionals must have shape"),
        ({"target": "populaton"}, "did you mean 'population'"),
        ({"functionals": np.ones((2, 3)), "offset": np.ones(3)}, "offset must have shape"),
        ({"offset": np.ones((3, 1))}, "offset must have shape"),
    ],
)
def test_arguments_are_refused_by_name(fit, change, message):
    with pytest.raises(ValueError, match=message):
        population_intervals(fit, **change)


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
        total = Point(records, theta, fit.whitening).gradient_sum(clip_norm=fit.clip_norm)
        gradient = fit.clip_norm / UNITS * total.astype(float)
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


def test_intervals_are_centre_and_half_width():
    found = CoefficientIntervals(
        centre=np.array([1.0, -2.0]),
        half_width=np.array([0.5, 3.0]),
        standard_error=np.ones(2),
        degrees_of_freedom=np.ones(2),
        level=0.9,
        target="population",
    )
    assert (found.lower.tolist(), found.upper.tolist()) == ([0.5, -5.0], [1.5, 1.0])
    assert found.length.tolist() == [1.0, 6.0]
    # Ends belong to an interval.
    assert found.covers([1.5, -5.0]).tolist() == [True, True]
    assert found.covers([1.6, -4.0]).tolist() == [False, True]
    with pytest.raises(ValueError, match="broadcast"):
        found.covers([1.0, 2.0, 3.0])


def test_a_law_about_the_population_has_both_parts():
    law = LastIterateLaw(sampling=SECOND_MOMENT, privacy=CURVATURE)
    assert np.array_equal(law.total("population"), SECOND_MOMENT + CURVATURE)
    assert law.total("empirical") is CURVATURE


def test_moments_are_those_of_the_fit_by_default(fit):
    default, given = last_iterate_law(fit), last_iterate_law(fit, shrunk_moments(fit))
    np.testing.assert_array_equal(default.sampling, given.sampling)
    np.testing.assert_array_equal(default.privacy, given.privacy)


def test_moments_along_a_direction_are_used_for_it(fit, monkeypatch):
    other = moments()
    monkeypatch.setattr(ShrunkMoments, "along", lambda *_: other)
    law, direction = last_iterate_law(fit, other), fit.whitening[1]
    found = population_intervals(fit)
    assert found.standard_error[1] == pytest.approx(
        np.sqrt(direction @ (law.sampling + law.privacy) @ direction), rel=1e-12
    )
    noise = other.relative_noise(direction, law.sampling, law.privacy, "population")
    assert found.degrees_of_freedom[1] == pytest.approx(2 / noise**2, rel=1e-12)
