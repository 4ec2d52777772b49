"""Intervals from iterates and their exact coverage: definitions, limits, simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import nctdtr

from privreg.inference import intervals
from privreg.theory.full_batch_dpgd import GradientDescentLaw

LEVEL = 0.95


def isotropic_law(*, offset: float = 0.0, gradient_noise_std: float = 1.0) -> GradientDescentLaw:
    return GradientDescentLaw([1.0], [[1.0]], [offset], [0.0], 0.25, gradient_noise_std)


def simulate(law: GradientDescentLaw, *, runs: int, steps: int, seed: int) -> np.ndarray:
    """Paths (runs, steps, p) of a law with a diagonal covariance."""
    rng = np.random.default_rng(seed)
    state = np.broadcast_to(law.start - law.minimiser, (runs, law.start.size)).copy()
    path = np.empty((runs, steps, law.start.size))
    for step in range(steps):
        noise = law.gradient_noise_std * rng.standard_normal(state.shape)
        state = law.contraction * state + law.step_size * noise
        path[:, step] = state + law.minimiser
    return path


def correlated(m: int = 5) -> tuple[np.ndarray, np.ndarray]:
    order = np.arange(m)
    matrix = 0.6 ** np.abs(order[:, None] - order) * np.sqrt(np.outer(1 + order, 1 + order))
    return np.linspace(-0.3, 0.8, m), matrix


@pytest.mark.parametrize(("steps", "expected"), [(100, 0.884), (200, 0.927), (1000, 0.947)])
def test_batch_means_undercover_by_a_known_amount(steps, expected):
    bias, covariance = isotropic_law().functionals(
        intervals.replicate_weights("batch_means", gradients=steps)
    )
    exact = intervals.t_interval_coverage(bias, covariance, level=LEVEL)
    assert exact[0] == pytest.approx(expected, abs=0.002)


@pytest.mark.parametrize("construction", [intervals.batch_means, intervals.checkpoints])
def test_simulated_coverage_and_length_agree_with_the_exact_ones(construction):
    # A start far away leaves a bias in the first replicate that the exact value must include.
    law = isotropic_law(offset=60.0, gradient_noise_std=1.0)
    runs, steps = 20_000, 70
    path = simulate(law, runs=runs, steps=steps, seed=1)
    result = construction(path, level=LEVEL)
    moments = law.functionals(intervals.replicate_weights(construction.__name__, gradients=steps))
    exact = float(intervals.t_interval_coverage(*moments, level=LEVEL)[0])
    observed = float(np.mean(result.covers(60.0)))
    assert abs(observed - exact) < 4 * np.sqrt(exact * (1 - exact) / runs)
    assert abs(observed - LEVEL) > 10 * np.sqrt(exact * (1 - exact) / runs)
    half_width = float(intervals.expected_half_width(*moments, level=LEVEL)[0])
    error = result.half_width.std(ddof=1) / np.sqrt(runs)
    assert abs(result.half_width.mean() - half_width) < 4 * error
    for factor in (2 / 3, 3 / 2):
        assert abs(result.half_width.mean() - factor * half_width) > 4 * error


@pytest.mark.parametrize(("m", "level"), [(2, 0.999), (3, 0.5), (40, 0.95)])
def test_independent_unbiased_replicates_are_covered_at_the_level(m, level):
    exact = intervals.t_interval_coverage(0.0, 3.0 * np.eye(m), level=level)
    assert exact == pytest.approx(level, abs=1e-11)


@pytest.mark.parametrize("shift", [0.01, -1.5, 4.0, 30.0])
def test_quadratic_form_and_noncentral_t_agree_under_a_common_bias(shift):
    m, spread = 10, 1.7
    form = intervals.t_interval_coverage(shift * spread, spread**2 * np.eye(m), level=LEVEL)
    quantile, far = stats.t(m - 1).ppf((1 + LEVEL) / 2), shift * np.sqrt(m)
    # The lower tail by reflection: the noncentral t of a far negative argument is not computable.
    inside = nctdtr(m - 1, far, quantile) + nctdtr(m - 1, -far, quantile) - 1
    assert form == pytest.approx(inside, abs=1e-9)


def test_coverage_does_not_depend_on_scale_and_broadcasts():
    bias, covariance = correlated()
    stack = np.stack([covariance, 1e-12 * covariance, 1e9 * covariance])
    scaled = np.stack([bias, 1e-6 * bias, 10**4.5 * bias])
    exact = intervals.t_interval_coverage(scaled, stack, level=LEVEL)
    assert exact.shape == (3,)
    np.testing.assert_allclose(exact, exact[0], atol=1e-10)


def test_coverage_and_half_width_agree_with_draws_of_correlated_biased_replicates():
    bias, covariance = correlated()
    draws = np.random.default_rng(3).multivariate_normal(bias, covariance, size=200_000)
    result = intervals.replicate_interval(draws[..., None], level=0.8)
    exact = float(intervals.t_interval_coverage(bias, covariance, level=0.8))
    error = np.sqrt(exact * (1 - exact) / len(draws))
    assert abs(float(np.mean(result.covers(0.0))) - exact) < 4 * error
    assert abs(exact - 0.8) > 20 * error
    width = float(intervals.expected_half_width(bias, covariance, level=0.8))
    assert abs(result.half_width.mean() - width) < 4 * result.half_width.std() / np.sqrt(len(draws))


def test_interval_is_students_and_vectorised():
    replicates = np.random.default_rng(0).standard_normal((4, 3, 10, 2))
    result = intervals.replicate_interval(replicates, level=LEVEL)
    assert result.centre.shape == result.half_width.shape == (4, 3, 2)
    assert result.degrees_of_freedom == 9
    assert intervals.t_quantile(10, level=LEVEL) == pytest.approx(2.262157, abs=1e-6)
    low, high = stats.ttest_1samp(replicates[1, 2, :, 0], 0.0).confidence_interval(LEVEL)
    centre, half = result.centre[1, 2, 0], result.half_width[1, 2, 0]
    np.testing.assert_allclose([centre - half, centre + half], [low, high], rtol=1e-12)
    np.testing.assert_allclose(result.length, 2 * result.half_width)


def test_constructions_use_the_iterates_that_they_name():
    steps = 127
    path = np.random.default_rng(0).standard_normal((3, steps, 2))
    blocks = path[:, 20:120].reshape(3, 10, 10, 2)
    by_hand = intervals.replicate_interval(blocks.mean(axis=2), level=LEVEL)
    result = intervals.batch_means(path, level=LEVEL)
    np.testing.assert_allclose(result.centre, by_hand.centre, rtol=1e-11)
    np.testing.assert_allclose(result.half_width, by_hand.half_width, rtol=1e-11)
    by_hand = intervals.replicate_interval(path[:, 29:120:10], level=LEVEL)
    result = intervals.checkpoints(path, level=LEVEL)
    np.testing.assert_allclose(result.half_width, by_hand.half_width, rtol=1e-11)
    runs = path[None]
    last = intervals.independent_runs(runs, level=LEVEL, burn_in=steps - 1)
    by_hand = intervals.replicate_interval(path[None, :, -1], level=LEVEL)
    np.testing.assert_allclose(last.half_width, by_hand.half_width, rtol=1e-11)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: intervals.batch_means(np.zeros((25, 1)), level=LEVEL), "burn_in"),
        (lambda: intervals.checkpoints(np.zeros((99, 1)), level=LEVEL, replicates=1), "replicates"),
        (lambda: intervals.batch_means(np.zeros(99), level=LEVEL), "iterates"),
        (lambda: intervals.independent_runs(np.zeros((2, 20, 1)), level=LEVEL), "burn_in"),
        (lambda: intervals.independent_runs(np.zeros((30, 1)), level=LEVEL), "iterates"),
        (lambda: intervals.replicate_interval(np.zeros((1, 1)), level=LEVEL), "replicates"),
        (lambda: intervals.replicate_interval(np.zeros((3, 1)), level=1.0), "level"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_the_smallest_cases_are_answered():
    """Two replicates, blocks of one iterate, no burn-in, one path without a leading axis."""
    path = np.arange(8.0).reshape(4, 2)
    for construction in (intervals.batch_means, intervals.checkpoints):
        blocks = construction(path, level=LEVEL, replicates=4, burn_in=0)
        plain = intervals.replicate_interval(path, level=LEVEL)
        np.testing.assert_allclose(blocks.centre, plain.centre)
        np.testing.assert_allclose(blocks.half_width, plain.half_width)
    runs = np.array([[[1.0], [2.0], [6.0]], [[3.0], [4.0], [8.0]]])
    found = intervals.independent_runs(runs, level=0.9, burn_in=1)
    np.testing.assert_allclose(found.centre, [5.0])
    # The averages are 4 and 6: a standard deviation of √2, over √2.
    np.testing.assert_allclose(found.half_width, [stats.t(1).ppf(0.95)])
    np.testing.assert_allclose(intervals.independent_runs(runs, level=0.9, burn_in=0).centre, [4.0])
    for name in intervals.CONSTRUCTIONS:
        weights = intervals.replicate_weights(name, gradients=2, replicates=2, burn_in=0)
        np.testing.assert_allclose(weights.sum(axis=-1), 1)
    # Half a difference of 2, times t with one degree of freedom.
    two = intervals.replicate_interval([[0.0], [2.0]], level=0.95)
    assert two.half_width[0] == pytest.approx(np.tan(0.475 * np.pi), rel=1e-9)
    with pytest.raises(ValueError, match="m >= 2"):
        intervals.replicate_interval(path[:1], level=LEVEL)


def test_intervals_are_closed():
    interval = intervals.Interval(np.array([2.0]), np.array([0.5]), 9, LEVEL)
    assert interval.covers([1.5, 2.5]).tolist() == [True, True]
    assert interval.covers([1.4999, 2.5001]).tolist() == [False, False]


def level_of(quantile):
    """Of Student's t with one degree of freedom."""
    return 2 * np.arctan(quantile) / np.pi


@pytest.mark.parametrize("gap", [0.0, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.9])
def test_half_width_of_two_replicates_is_a_folded_normal_mean(gap, correlation):
    """σ̂ = |x₁ - x₂|/√2, and the half-width t |x₁ - x₂|/2."""
    covariance = 1.7**2 * np.array([[1, correlation], [correlation, 1]])
    std = 1.7 * np.sqrt(2 * (1 - correlation))
    found = intervals.expected_half_width([1.0 + gap, 1.0], covariance, level=0.9)
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
    found = intervals.t_interval_coverage(bias, spread**2 * np.eye(2), level=level_of(quantile))
    assert found == pytest.approx(expected, abs=1e-7)


def test_coverage_is_a_probability():
    """Rounding takes no sum beyond it."""
    for bias, level in ((0.0, 1 - 1e-15), (12.0, 0.3), (30.0, 0.3), (60.0, 0.99)):
        for m in (2, 5, 30):
            assert 0 <= intervals.t_interval_coverage(bias, np.eye(m), level=level) <= 1


def test_a_far_bias_is_missed_or_covered():
    """Replicates that cancel: the mean has a standard deviation of 0.0007 and a bias of 0.5."""
    cancelling = np.array([[1.0, 1e-6 - 1], [1e-6 - 1, 1.0]])
    assert intervals.t_interval_coverage(0.5, cancelling, level=level_of(0.01)) == 0
    # One apart from the other by far more than their mean is from its target.
    assert intervals.t_interval_coverage([1000.0, -1000.0], np.eye(2), level=0.9) == 1


def test_stacks_of_stacks_are_answered_one_by_one(rng):
    roots = rng.standard_normal((3, 1, 4, 4)) + 3 * np.eye(4)
    covariances, biases = roots @ np.swapaxes(roots, -1, -2), rng.standard_normal((3, 1, 4))
    for function in (intervals.t_interval_coverage, intervals.expected_half_width):
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
        intervals.t_interval_coverage(bias, covariance, level=0.9)


def test_covariances_are_symmetric_but_for_rounding():
    rounded = 1e6 * np.array([[1.0, 0.5e-9], [0.0, 1.0]])
    assert intervals.t_interval_coverage(0.0, rounded, level=0.9) == pytest.approx(0.9, abs=1e-8)
