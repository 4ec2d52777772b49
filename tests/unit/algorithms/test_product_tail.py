"""The smoothed tail of products, and the clip that is chosen from it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chi, lognorm

from privreg.algorithms import product_tail
from privreg.algorithms.product_tail import CONCAVE, CONVEX, ProductTail
from privreg.algorithms.split_budget import NoisyValue
from privreg.theory.bias_aware import bias_aware_quantile

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


@pytest.mark.parametrize("width", [0.7, 1.5, 3.0, 6.0])
def test_without_noise_the_moments_are_those_of_the_law(width):
    """By quadrature of the law; bins of a factor √2 with log-linear masses leave some 1 %."""
    points = LAW.ppf((np.arange(400_000) + 0.5) / 400_000)
    found = tail(1e-3)
    assert found.share_beyond(width) == pytest.approx(np.mean(points > width), rel=0.12)
    assert found.excess(width) == pytest.approx(np.mean(np.maximum(points - width, 0)), rel=0.04)
    square = np.mean(np.minimum(points, width) ** 2)
    assert found.mean_square(width) == pytest.approx(square, rel=0.03)


def test_smoothing_solves_the_penalised_problem(rng):
    """A general minimiser, from the same start, finds no lower value."""
    noise, counts = 60.0, exact_counts()[1:]
    counts = counts + 60.0 * rng.standard_normal(counts.size)
    found, _ = product_tail._smooth(counts, noise_std=noise, sample_size=N)

    def value(eta):
        bends = np.diff(eta, 2)
        width = np.where(bends > 0, CONVEX, CONCAVE)
        misfit = np.sum((counts - np.exp(eta)) ** 2) / (2 * (noise**2 + 1))
        return misfit + np.sum((bends / width) ** 2) / 2

    other = minimize(value, found + 0.01 * rng.standard_normal(found.size), method="BFGS")
    assert value(found) <= other.fun + 1e-4
    np.testing.assert_allclose(found, other.x, atol=0.02)


def test_a_tail_under_noise_goes_on_as_a_power_law():
    """Counts of a power law until noise hides them: the rest is within a factor of 2."""
    masses = N * 0.5 * 2.0 ** (-np.arange(18.0))
    noisy = masses + np.where(masses > 200, 0.0, 40.0 * (-1.0) ** np.arange(18))
    found = ProductTail(EDGES, NoisyValue(noisy, 60.0), N)
    tail_mass, expected = found.smoothed[12:].sum(), masses[12:].sum()
    assert 0.5 < tail_mass / expected < 2
    assert found.seen < EDGES[-1]


def test_noise_is_taken_for_records_as_often_as_said(rng):
    """Of 17 counts of noise the largest is beyond the threshold in 1 - (1 - .01/17)^17 of draws."""
    draws = 20_000
    counts = 5.0 * rng.standard_normal((draws, 17))
    seen = np.mean([product_tail._last_seen(each, noise_std=5.0) >= 0 for each in counts])
    expected = 1 - (1 - product_tail.FALSE_ALARM / 17) ** 17
    assert abs(seen - expected) < 4 * np.sqrt(expected / draws)


def test_a_count_that_is_noise_rarely_widens_the_clip():
    """Tails of normal products with empty bins far out, 150 draws: one in a hundred, not twenty."""
    edges = 0.5 * 2.0 ** (np.arange(17) / 2)
    counts = 2000 * np.diff(chi(1).cdf(edges), prepend=0.0, append=1.0)
    noise = np.random.Generator(np.random.SFC64(3)).standard_normal((150, counts.size))
    widths = [
        ProductTail(edges, NoisyValue(counts + 20 * each, 20.0), 2000.0).best_width(noise=0.03)
        for each in noise
    ]
    share = np.mean(np.array(widths) > 4 * np.median(widths))
    allowed = product_tail.FALSE_ALARM
    assert share <= allowed + 3 * np.sqrt(allowed / 150)


def test_the_best_width_minimises_what_it_says():
    found, noise = tail(30.0), 4e-3
    grid = np.geomspace(0.3, 60, 200)
    lengths = []
    for width in grid:
        std = np.sqrt(found.mean_square(width) / N + (noise * width) ** 2)
        bias = product_tail.LEAN * found.excess(width)
        lengths.append(float(bias_aware_quantile(bias / std)) * std)
    width = found.best_width(noise=noise)
    at = np.interp(width, grid, lengths)
    assert at <= 1.01 * min(lengths)
    assert found.best_width(noise=100 * noise) < width < found.best_width(noise=noise / 100)


@pytest.mark.parametrize(
    ("edges", "counts", "size"),
    [(EDGES[:4], np.ones(5), N), (EDGES, np.ones(5), N), (EDGES, np.ones(18), 0.5)],
)
def test_wrong_arguments_are_refused(edges, counts, size):
    with pytest.raises(ValueError, match=r"edges|counts|sample_size"):
        ProductTail(edges, NoisyValue(counts, 1.0), size)
