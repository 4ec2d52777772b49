"""Intervals of private least squares: coverage whatever the errors are, and reasons for none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privreg import Budget, PrivateLinearRegression
from privreg.algorithms.huber_descent import default_settings, huber_descent
from privreg.algorithms.least_squares_descent import (
    WIDE_SHARES,
    default_least_squares_settings,
    least_squares_descent,
    step_sizes,
)
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.whitened_descent import NoisyValue
from privreg.inference import least_squares_intervals as intervals
from privreg.inference.least_squares_intervals import (
    least_squares_intervals as intervals_of,
)
from privreg.inference.least_squares_intervals import (
    least_squares_law,
    robust_difference,
    robust_gain,
)
from privreg.methods.least_squares import predicted_length
from privreg.methods.problem import Problem

TRUTH = np.array([0.2, 0.6, -0.6, 0.3])
RHO = Budget.approximate(1.0, 1e-6).gaussian().rho


def draw(rng, n, errors):
    features = np.column_stack([np.ones(n), np.clip(rng.standard_normal((n, 3)), -4, 4)])
    mean = features @ TRUTH
    if errors == "normal":
        return features, mean + rng.standard_normal(n)
    if errors == "skewed by x":
        # Of mean 0 given the features, and of a spread that grows with one of them.
        return features, mean + (rng.exponential(size=n) - 1) * np.exp(0.4 * features[:, 1])
    share = np.clip(0.3 + 0.1 * mean, 0, 1)
    return features, (rng.random(n) < share).astype(float)


def target(errors):
    if errors != "0/1":
        return TRUTH
    # No share is cut off within the rows' bounds but beyond five deviations of the mean.
    return np.append(0.3 + 0.1 * TRUTH[0], 0.1 * TRUTH[1:])


def fitted(features, labels, rng, rho=RHO, neighbours="replace-one"):
    budget, p = Budget.zcdp(rho, neighbours=neighbours), features.shape[1]
    return least_squares_descent(
        ArraySamples(features, labels),
        feature_norm=6.0,
        label_bound=12.0,
        budget=budget,
        settings=default_least_squares_settings(
            sample_size=len(labels), dimension=p, budget=budget
        ),
        rng=rng,
        intercept=True,
    ).value


@pytest.mark.parametrize("errors", ["normal", "skewed by x", "0/1"])
def test_least_squares_coefficients_of_the_population_are_covered(rng, errors):
    """60 fits, 240 intervals: a standard error of 1.4 %, one slope's 3 %, and mean rows."""
    covered, means, stories = [], [], []
    for _ in range(60):
        features, labels = draw(rng, 6000, errors)
        fit = fitted(features, labels, rng)
        found = intervals_of(fit)
        covered.append(found.covers(target(errors)))
        means.append(intervals_of(fit, functionals=[[1, 0, 0, 0]]).covers(target(errors)[:1]))
        stories.append(robust_difference(fit).p_value < 0.05)
    assert np.mean(covered) > 0.95 - 3 * 0.014
    # The slope with which errors widen is covered by .93 of 600 such intervals.
    assert np.min(np.mean(covered, axis=0)) > 0.93 - 3.5 * 0.033
    assert np.mean(means) > 0.86
    # A robust fit agrees under normal errors, and not where skewed ones vary with a feature.
    if errors == "normal":
        assert np.mean(stories) < 0.2
    if errors == "skewed by x":
        assert np.mean(stories) > 0.3


@pytest.mark.parametrize(
    ("errors", "epsilon"), [("gaussian", 1.0), ("student_t5", 4.0), ("exponential", 1.0)]
)
def test_length_and_error_are_as_predicted(rng, errors, epsilon):
    """Within 10 % and what 24 fits know: a long tail's lengths to 8 %, errors to 12 %."""
    n, p, budget = 10_000, 10, Budget.approximate(epsilon, 1e-6).gaussian()
    draws = {
        "gaussian": lambda: rng.standard_normal(n),
        "student_t5": lambda: rng.standard_t(5, n) / np.sqrt(5 / 3),
        "exponential": lambda: rng.exponential(size=n) - 1,
    }[errors]
    lengths, squares = [], []
    for _ in range(24):
        features = np.column_stack([np.ones(n), rng.standard_normal((n, p - 1))])
        fit = fitted(features / 2, draws(), rng, rho=budget.rho)
        found = intervals_of(fit)
        lengths.append(np.median(found.half_width[1:]) / (1.96 * 2 / np.sqrt(n)))
        squares.append(np.mean(found.centre[1:] ** 2) / (4 / n))
    problem = Problem(n, np.ones(p), signal=0.0, label_noise_std=1.0, label_bound=12.0)
    expected = predicted_length(problem, budget, errors=errors)
    known, error = 1.25 * np.std(lengths) / np.sqrt(24), np.std(squares) / np.sqrt(24)
    assert np.median(lengths) == pytest.approx(expected.length, abs=known + 0.1 * expected.length)
    assert np.mean(squares) == pytest.approx(expected.error, abs=0.1 * expected.error + 3 * error)


def test_with_a_large_budget_intervals_are_those_of_hc1(rng):
    features, labels = draw(rng, 20_000, "0/1")
    fit = fitted(features, labels, rng, rho=1e7)
    inverse = np.linalg.inv(features.T @ features)
    estimate = inverse @ features.T @ labels
    scores = features * (labels - features @ estimate)[:, None]
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))
    found = intervals_of(fit)
    np.testing.assert_allclose(found.centre, estimate, atol=0.05 * robust.min())
    np.testing.assert_allclose(found.standard_error, robust, rtol=0.03)
    np.testing.assert_allclose(found.half_width, 1.96 * robust, rtol=0.05)
    empirical = intervals_of(fit, target="empirical")
    assert np.all(empirical.half_width < 0.2 * found.half_width)


def test_infinite_intervals_have_their_reason(rng):
    features, labels = draw(rng, 3000, "normal")
    twin = features[:, 2] + 0.01 * rng.standard_normal(3000)
    rare = np.where(np.arange(3000) < 3, 1.0, 0.0)
    wide = np.column_stack([features, twin, rare])
    collinear = 0
    for _ in range(8):
        found = intervals_of(fitted(wide, labels, rng, rho=0.2))
        reasons = np.array(found.reasons)
        assert np.array_equal(reasons != "", np.isinf(found.half_width))
        collinear += {intervals.COLLINEAR} == set(reasons[[2, 4]])
        assert reasons[5] in (intervals.NOISY, intervals.UNCERTAIN)
        assert not any(reasons[[1, 3]])
    # Noise shows a thin direction in one fit of twenty, and more where the start has stretched it.
    assert collinear >= 5
    few = intervals_of(fitted(features[:100], labels[:100], rng, rho=0.01))
    assert set(few.reasons) == {intervals.UNSEEN}


def test_the_largest_bias_is_whole_along_the_mean_and_follows_what_moved_elsewhere(rng):
    law = least_squares_law(fitted(*draw(rng, 3000, "normal"), rng))
    along = law.constant
    across, other = np.linalg.svd(along[None])[2][1:3]
    still = replace(law, moved=np.zeros(4), moved_noise=0.01, left_out=0.2)
    assert np.linalg.norm(along) == pytest.approx(1.0)
    assert still.largest_bias(along, 2 * along) == pytest.approx(2 * law.excess)
    assert still.largest_bias(-across, -across) == pytest.approx(0.3 * law.excess)
    # 1.5 deviations of .01 are noise, and .025 more is 1/8 of what the narrow clip left out.
    moved = replace(still, moved=-0.04 * across)
    assert moved.largest_bias(across, across) == pytest.approx(1.3 * law.excess)
    assert moved.largest_bias(2 * across, 2 * across) == pytest.approx(2.6 * law.excess)
    assert moved.largest_bias(other, other) == pytest.approx(0.3 * law.excess)
    far = replace(still, moved=across)
    assert far.largest_bias(across, across) == pytest.approx(2 * law.excess)
    assert far.largest_bias(across, 0 * across) == 0
    # Rare records may all lie along one coefficient, √p with p = 4; others lean at least by 1.
    for rare, share in ((True, 2.0), (False, 1.0)):
        unseen = replace(still, hidden=0.5, rare=rare)
        more = unseen.largest_bias(across, across) - still.largest_bias(across, across)
        assert more == pytest.approx(0.5 * share)
        assert unseen.largest_bias(along, along) == pytest.approx(law.excess + 0.5)


def test_a_direction_seen_to_be_thin_widens_intervals_of_all_that_lean_on_it(rng):
    """Curvature .05 along one whitened direction, where steps take it for a fifth of the mean."""
    fit = fitted(*draw(rng, 3000, "normal"), rng, rho=1.0)
    seen = np.diag([1.0, 1.0, 1.0, 0.05])
    thin = replace(
        fit,
        curvature=NoisyValue(seen, 0.02),
        long_curvature=NoisyValue(seen, 0.02),
        step_matrices=np.multiply.outer(step_sizes(WIDE_SHARES), np.diag([1.0, 1.0, 1.0, 5.0])),
    )
    curvature = least_squares_law(thin).curvature
    assert curvature[3, 3] == pytest.approx(0.06, rel=1e-3)
    leaning = np.array([np.linalg.solve(fit.whitening.T, [0, 1, 0, k]) for k in (0.0, 0.4)])
    own, beside = intervals_of(thin, functionals=leaning).standard_error
    # Sampling alone: 1 + .4²/.06 times the variance, 1 + .4²/.2 at what steps take it for.
    assert beside > 1.5 * own


def test_intervals_at_rows_and_at_the_mean(rng):
    features, labels = draw(rng, 6000, "0/1")
    model = PrivateLinearRegression(
        Budget.zcdp(0.5), feature_bounds=(-4, 4), label_bounds=(0, 1), random_state=1
    ).fit(features[:, 1:], labels)
    at = model.intervals_at(features[:4, 1:], 0.9)
    np.testing.assert_allclose(at.centre, model.predict(features[:4, 1:]), rtol=1e-9)
    mean = model.intervals_at()
    assert mean.centre == pytest.approx(labels.mean(), abs=0.05)
    assert mean.half_width < model.intervals_at(2 * np.ones((1, 3))).half_width
    bare = PrivateLinearRegression(
        Budget.zcdp(0.5),
        feature_bounds=(-4, 4),
        label_bounds=(0, 1),
        fit_intercept=False,
        random_state=1,
    ).fit(features[:, 1:], labels)
    assert bare.intervals_at(features[:2, 1:]).centre.shape == (2,)
    with pytest.raises(ValueError, match="X must be given if the fit released no mean"):
        bare.intervals_at()


ROWS, BETA = 4_000, np.array([0.2, 0.3, -0.2, 0.1])


def both(budget, seed):
    """A least-squares and a robust fit of the same records."""
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(ROWS), rng.uniform(-1, 1, (ROWS, 3))])
    labels = features @ BETA + 0.1 * rng.standard_normal(ROWS)
    drawn = ArraySamples(features, labels.clip(-1, 1))
    options = {"feature_norm": 2.0, "label_bound": 1.0, "budget": budget, "intercept": True}
    size = {"sample_size": ROWS, "dimension": 4, "budget": budget}
    least, robust = default_least_squares_settings(**size), default_settings(**size)
    return (
        least_squares_descent(drawn, settings=least, rng=rng, **options).value,
        huber_descent(drawn, settings=robust, rng=rng, **options).value,
    )


def test_the_gain_is_that_of_simulated_errors():
    """Of a typical fit: one least-squares fit in fifty has an error far beyond the others."""
    gram = np.diag([1, 1 / 3, 1 / 3, 1 / 3])
    ratios, gains = [], []
    for seed in range(100):
        fits = both(Budget.zcdp(0.01), seed)
        least, robust = (
            (fit.iterates[-1] - BETA) @ gram @ (fit.iterates[-1] - BETA) for fit in fits
        )
        ratios.append(np.log(least / robust))
        gains.append(robust_gain(fits[0]))
    # Logarithms of χ² of 4 degrees of freedom: a standard error of .11.
    error = np.std(ratios) / np.sqrt(100)
    assert error < 0.15
    assert abs(np.log(np.median(gains)) - np.mean(ratios)) < 3 * error
    assert np.median(gains) > 1.3


def test_nothing_is_gained_where_the_budget_is_large():
    fit, _ = both(Budget.zcdp(1e6), 0)
    assert robust_gain(fit) == pytest.approx(1, abs=1e-3)
