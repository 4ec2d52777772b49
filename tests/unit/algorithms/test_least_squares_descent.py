"""Private least squares: shares, sums against loops, and where it ends without noise."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import lognorm

from privreg.algorithms import least_squares_descent as home
from privreg.algorithms.huber_descent import HuberSettings
from privreg.algorithms.least_squares_descent import (
    CONCAVE,
    CONVEX,
    LeastSquaresSettings,
    ProductTail,
    default_least_squares_settings,
    least_squares_descent,
    product_edges,
    with_start_of,
)
from privreg.algorithms.records import Point, Records
from privreg.algorithms.samples import ArraySamples
from privreg.algorithms.whitened_descent import NoisyValue, raised, shrunk_curvature
from privreg.noise.exact import UNITS
from privreg.privacy.budget import Budget
from privreg.theory.huber_descent import bias_aware_quantile


def table(rng, n=3000):
    features = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 3))])
    errors = 2 * rng.random(n) ** 3 * (1.0 + features[:, 1])
    return ArraySamples(features, 0.2 * (features @ [0.3, 1.0, -1.0, 0.5] + errors))


def fit(samples, rho, seed=3, **more):
    return least_squares_descent(
        samples,
        feature_norm=2.0,
        label_bound=6.0,
        budget=Budget.zcdp(rho),
        settings=LeastSquaresSettings(),
        rng=np.random.Generator(np.random.SFC64(seed)),
        **more,
    ).value


def test_shares_add_up_and_are_spent_on_what_they_are_for(rng):
    spent = {what: part.rho for what, part in fit(table(rng), 2.0, intercept=True).spending}
    assert sum(spent.values()) == pytest.approx(2.0, rel=1e-12)
    assert spent == pytest.approx(
        {
            "centre and length of rows": 0.06,
            "Gram matrix": 0.14,
            "residual scales": 0.04,
            "warm-up steps": 0.096,
            "tail of products": 0.16,
            "curvature": 0.06,
            "curvature of long rows": 0.04,
            "wide steps": 1.284,
            "second moment for intervals": 0.1,
            "means for intervals": 0.02,
        }
    )


def test_it_starts_at_the_labels_mean_and_buys_no_scales_that_noise_hides(rng):
    samples = table(rng)
    far = ArraySamples(samples.features, samples.labels + 4.0)
    found = fit(far, 0.003, intercept=True)
    spent = dict(found.spending)
    assert {"warm-up steps", "residual scales"}.isdisjoint(spent)
    assert sum(part.rho for part in spent.values()) == pytest.approx(0.003)
    assert spent["wide steps"].rho == pytest.approx(0.003 * (0.642 + 0.02 + 0.048))
    # Without scales the start is the mean itself: its noise is √5 norms of 2, of labels' 6 half.
    std = 2 * 5**0.5 * 6 / 2 / (3000 * (2 * 0.025 * 0.003) ** 0.5)
    assert found.robust_start[0] == pytest.approx(far.labels.mean(), abs=3 * std)
    assert not found.robust_start[1:].any()


def test_hidden_scales_leave_equal_steps_that_go_as_far_as_noise_does_not_explain(rng, monkeypatch):
    features = table(rng).features
    samples = ArraySamples(features, rng.uniform(-6, 6, len(features)))
    found = fit(samples, 0.003, intercept=True)
    (std, *others), newton = found.gradient_noise_stds, 7 * found.step_matrices[-1]
    assert_allclose(others, [std] * 6)
    assert_allclose(found.step_matrices, [newton / k for k in range(1, 8)])
    monkeypatch.setattr(home._LeastSquaresDescent, "_shrunk", lambda self, noise: self.theta)
    plain = fit(samples, 0.003, intercept=True).moved
    square = np.sum(np.linalg.solve(found.whitening, plain) ** 2)
    # A seventh of the steps' share has seven times the noise of all.
    kept = 1 - std**2 / 7 * np.sum(newton**2) / square
    assert 0 < kept < 1
    assert_allclose(found.moved, kept * plain)


def test_a_start_on_labels_of_0_and_1_is_at_their_mean_and_not_at_a_heap(rng, monkeypatch):
    features = table(rng).features
    labels = (rng.random(len(features)) < 0.3).astype(float)
    found = fit(ArraySamples(features, labels), 2.0, intercept=True)
    # The scale is that of the zeros, whose mean is 0.
    assert found.residual_scale < 0.2
    std = 5**0.5 * 6 / (3000 * (2 * 0.025 * 2.0) ** 0.5)
    level = found.robust_start @ features.mean(axis=0)
    assert level == pytest.approx(labels.mean(), abs=4 * std)
    # The noise of the mean row, times slopes of 3, moves no start.
    steep = ArraySamples(features, 3 * features.sum(axis=1))
    start = fit(steep, 0.02, intercept=True).robust_start
    monkeypatch.setattr(home, "LEVEL", np.inf)
    assert_allclose(fit(steep, 0.02, intercept=True).robust_start, start)


@pytest.mark.parametrize("intercept", [False, True])
def test_without_noise_it_ends_at_least_squares(rng, intercept):
    """Skewed, bounded errors that vary with a feature, so that the robust start is elsewhere."""
    samples = table(rng)
    found = fit(samples, 1e9, intercept=intercept)
    truth = np.linalg.lstsq(samples.features, samples.labels, rcond=None)[0]
    robust = np.abs(found.robust_start - truth).max()
    assert robust > 0.02
    assert np.abs(found.parameters - truth).max() < 0.02 * robust
    assert found.tail.share_beyond(found.tail_clip) < 5e-3


def test_a_larger_budget_shortens_fewer_rows_and_ends_at_least_squares(rng):
    """One row of 100 is forty times as long, and the mean bends: shortening moves the target."""
    n = 4000
    size = 0.02 * rng.uniform(-1, 1, n) * np.where(np.arange(n) % 100, 1.0, 40.0)
    features = np.column_stack([rng.uniform(-1, 1, (n, 2)), size])
    labels = features[:, 0] + np.tanh(10 * size) + 0.1 * rng.standard_normal(n)
    samples = ArraySamples(features, labels)
    truth = np.linalg.lstsq(features, labels, rcond=None)[0]
    moved, shortened = [], []
    for rho in (0.5, 1e3, 1e7):
        found = fit(samples, rho)
        white = np.linalg.norm(features @ found.whitening, axis=1)
        shortened.append(np.mean(white > found.cap))
        moved.append(abs(found.parameters[2] / truth[2] - 1))
        # Not longer than the longest row within the bounds.
        assert found.cap <= max(2 * np.linalg.norm(found.whitening, 2), np.sqrt(60)) * 1.000001
    assert shortened[0] > 0
    assert shortened[-1] == 0
    assert moved[-1] < 0.01 < 0.1 < moved[0]


@pytest.mark.parametrize("clip_norm", [0.05, 0.6, 1e3])
@pytest.mark.parametrize("grouped", [False, True])
def test_sums_are_those_of_a_loop(rng, clip_norm, grouped):
    """An entry of a vector is rounded by less than a unit a record, one of a matrix by two."""

    def coarse(shape):
        # Multiples of 2⁻¹², which the grids leave alone.
        return np.rint(4096 * rng.standard_normal(shape)) / 4096

    features, labels = coarse((60, 3)), coarse(60)
    groups = rng.integers(0, 12, 60) if grouped else np.arange(60)
    theta, cap, short = coarse(3), 1.9, 1.1
    whitening = np.eye(3) + coarse((3, 3)) / 4
    gradient, second, curvatures = np.zeros(3), np.zeros((3, 3)), np.zeros((2, 3, 3))
    traces, lengths = np.zeros(2), []
    for person in np.unique(groups):
        rows = features[groups == person] @ whitening
        residuals = labels[groups == person] - features[groups == person] @ theta
        whole = np.sum(rows**2)
        own = min(1, cap**2 / whole) * rows.T @ residuals
        q = np.linalg.norm(own)
        lengths.append(q / np.sqrt(3))
        clipped = own * min(1, clip_norm / q)
        gradient += clipped
        second += np.outer(clipped, clipped)
        traces[1] += clipped @ clipped
        if q <= clip_norm:
            for place, most in enumerate((short, cap)):
                curvatures[place] += min(1, most**2 / whole) * rows.T @ rows
            traces[0] += min(short**2, whole)
    records = Records(ArraySamples(features, labels), 8.0, 8.0, groups if grouped else None)
    at = Point(records, theta, whitening, cap)

    def close(total, expected, bound):
        found = np.asarray(total, dtype=float)
        unit = bound / UNITS ** max(1, found.ndim)
        units = np.abs(found - expected / unit)
        # Rows of a person are rounded one by one.
        assert np.max(units) <= 60 * (2 * UNITS + 1 if found.ndim == 2 else 1.1)

    total = at.gradient_sum(clip_norm=clip_norm)
    close(total, gradient, clip_norm)
    first = at.first_sums(clip_norm=clip_norm, short_cap=short)
    assert_array_equal(first[2], total)
    for total, expected, bound in zip(first[:2], curvatures, (short, cap), strict=True):
        close(total, expected, bound**2)
    last = at.last_sums(clip_norm=clip_norm, short_cap=short)
    close(last[0], second, clip_norm**2)
    for total, expected, bound in zip(last[1:], traces, (short, clip_norm), strict=True):
        close(total, expected, bound**2)
    edges = np.array([0.1, 0.4, 0.9, 2.0])
    counts = at.gradient_length_histogram(edges)
    assert_array_equal(counts, np.bincount(np.searchsorted(edges, lengths), minlength=5))


def test_settings_follow_a_planned_start():
    size = 50_000, 10, Budget.zcdp(0.05)
    assert with_start_of(HuberSettings(), *size) == LeastSquaresSettings()
    start = HuberSettings(gram_share=0.3, scale_share=0.15, warm_up_share=0.2)
    planned = with_start_of(start, *size)
    assert planned.gram_share == pytest.approx(0.21)
    left = LeastSquaresSettings().final_share / LeastSquaresSettings().tail_share
    assert planned.final_share / planned.tail_share == pytest.approx(left)
    few = default_least_squares_settings(sample_size=500, dimension=20, budget=Budget.zcdp(0.01))
    # Noise of such budgets exceeds the edge .8 of the shortest cap at four times the shares.
    assert few.curvature_share / few.tail_share == pytest.approx(4 * 0.03 / 0.08)
    assert few.curvature_share / few.long_share == pytest.approx(0.03 / 0.02)
    assert sum(home.WIDE_SHARES) == pytest.approx(1)
    assert_allclose(home.step_sizes(home.WIDE_SHARES), (1, 2 / 3, 0.7))
    with pytest.raises(ValueError, match="shares must leave a part"):
        replace(few, tail_share=0.9)


def test_curvature_is_raised_where_long_rows_are_seen_to_have_more():
    first = np.diag([1.0, 1.0, 0.5])
    longer = NoisyValue(np.diag([1.0, 2.0, 0.55]), 0.05)
    assert_allclose(raised(first, longer), np.diag([1.0, 2.0, 0.5]), atol=1e-12)
    cautious = raised(first, longer, caution=1.0)
    assert_allclose(cautious, np.diag([1.0, 1.95, 0.5]), atol=1e-12)
    assert_allclose(raised(first, replace(longer, noise_std=3.0)), first)
    # No direction is thinner than the edge of the noise, here .45 of the mean.
    sharp = NoisyValue(np.diag([1.9, 1.0, 0.1]), 0.45 / 6**0.5)
    assert np.linalg.eigvalsh(shrunk_curvature(sharp))[0] == pytest.approx(0.45)
    # Two independent measurements with equal noise are as good as one with half its variance.
    pair = sharp.pooled(NoisyValue(np.diag([2.1, 1.2, 0.3]), sharp.noise_std))
    assert_allclose(pair.value, np.diag([2.0, 1.1, 0.2]))
    assert pair.noise_std == pytest.approx(sharp.noise_std / 2**0.5)
    # A curvature that is noise is its mean, and no direction is far below that.
    assert_allclose(shrunk_curvature(NoisyValue(first, 9.0)), np.eye(3) * 2.5 / 3)


def test_the_grid_reaches_what_labels_and_rows_allow():
    edges = product_edges(0.1, 2.0, cap=6.0, dimension=4)
    assert edges[0] == pytest.approx(0.05)
    assert edges[-2] < 12.0 <= edges[-1] * (1 + 1e-12)
    assert product_edges(3.0, 0.1, cap=1.0, dimension=4)[-1] >= 24.0


N = 100_000.0
EDGES = 0.25 * 2.0 ** (np.arange(17) / 2)
LAW = lognorm(s=0.8, scale=0.8)


def exact_counts():
    below = LAW.cdf(EDGES)
    return N * np.diff(below, prepend=0.0, append=1.0)


def tail(noise_std, rng=None):
    counts = exact_counts()
    if rng is not None:
        counts = counts + noise_std * rng.standard_normal(counts.size)
    return ProductTail(EDGES, NoisyValue(counts, noise_std), N)


def mean_square(found, width):
    by_bin = np.sum(found._shares * np.minimum(found._points, width) ** 2, axis=1)
    first = min(found.edges[0], width) ** 2 / 3 * found.smoothed[0]
    return (by_bin @ found.smoothed[1:] + first) / found.sample_size


@pytest.mark.parametrize("width", [0.7, 1.5, 3.0, 6.0])
def test_without_noise_the_moments_are_those_of_the_law(width):
    """By quadrature of the law; bins of a factor √2 with log-linear masses leave some 1 %."""
    points = LAW.ppf((np.arange(400_000) + 0.5) / 400_000)
    found = tail(1e-3)
    assert found.share_beyond(width) == pytest.approx(np.mean(points > width), rel=0.12)
    assert found.excess(width) == pytest.approx(np.mean(np.maximum(points - width, 0)), rel=0.04)
    square = np.mean(np.minimum(points, width) ** 2)
    assert mean_square(found, width) == pytest.approx(square, rel=0.03)


def test_smoothing_solves_the_penalised_problem(rng):
    """A general minimiser, from the same start, finds no lower value."""
    noise, counts = 60.0, exact_counts()[1:]
    counts = counts + 60.0 * rng.standard_normal(counts.size)
    found, _ = home._smooth(counts, noise_std=noise, sample_size=N)

    def value(eta):
        bends = np.diff(eta, 2)
        width = np.where(bends > 0, CONVEX, CONCAVE)
        misfit = np.sum((counts - np.exp(eta)) ** 2) / (2 * (noise**2 + 1))
        return misfit + np.sum((bends / width) ** 2) / 2

    other = minimize(value, found + 0.01 * rng.standard_normal(found.size), method="BFGS")
    assert value(found) <= other.fun + 1e-4
    assert_allclose(found, other.x, atol=0.02)


def test_noise_is_taken_for_records_at_most_as_often_as_said(rng, monkeypatch):
    """Two neighbouring counts of 3 deviations are seen, as records spread; a single 5 is not."""
    assert home._last_seen(np.array([0.0, 3, 3, 0, 0, 5, 0, 0]), noise_std=1.0) == 1
    monkeypatch.setattr(home, "FALSE_ALARM", 0.05)
    draws = 5.0 * rng.standard_normal((20_000, 17))
    seen = np.mean([home._last_seen(each, noise_std=5.0) >= 0 for each in draws])
    assert 0.04 < seen < 0.05 + 4 * np.sqrt(0.05 / 20_000)


def test_records_that_counts_hide_count_by_their_mean_square():
    """One record in 50 has a product of 8, in a bin that noise hides: of 50 t, 8 - t beyond t."""
    counts = N * np.array([0.98, *np.zeros(len(EDGES))])
    first = 0.98 * EDGES[0] ** 2 / 3
    hidden = ProductTail(EDGES, NoisyValue(counts, 1e4), N, (first + 0.02 * 8**2, 0.0))
    plain = replace(hidden, square=(0.0, 0.0))
    for width in (1.0, 3.0, 7.0):
        allowed = hidden.excess(width) - plain.excess(width)
        assert 0.02 * (8 - width) <= allowed <= 0.02 * 8**2 / (4 * width) + 1e-9
    assert hidden.best_width(noise=0.01) > 2 * plain.best_width(noise=0.01)
    assert hidden.missing == pytest.approx(0.02 * 8**2, rel=0.01)
    assert hidden.rare
    assert not plain.rare
    # What the counts do show is not missing.
    assert tail(30.0).missing == replace(tail(30.0), square=(0.5, 0.0)).missing == 0.0


def test_the_best_width_minimises_what_it_says():
    found, noise = tail(30.0), 4e-3
    grid = np.geomspace(0.3, 60, 200)
    lengths = []
    for width in grid:
        std = np.sqrt(mean_square(found, width) / N + (noise * width) ** 2)
        bias = home.LEAN * found.excess(width)
        lengths.append(float(bias_aware_quantile(bias / std)) * std)
    width = found.best_width(noise=noise)
    at = np.interp(width, grid, lengths)
    assert at <= 1.01 * min(lengths)
    assert found.best_width(noise=100 * noise) < width < found.best_width(noise=noise / 100)
