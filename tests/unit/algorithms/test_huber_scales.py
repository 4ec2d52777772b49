"""Scales from noisy histograms: the grids, the nearest normal law, and what noise hides."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from privreg.algorithms.huber_scales import (
    length_cap,
    length_edges,
    require_edges,
    residual_scale,
    scale_edges,
    scale_is_hidden,
    white_cap,
)

EDGES = np.array([1.0, 2.0, 4.0, 8.0])


def test_the_scale_is_found_wherever_it_lies(rng):
    """Half a bin of √2 at n = 20,000 and noise of 100 a bin, over five orders of magnitude."""
    edges = scale_edges(10.0)
    for scale in 10.0 ** np.arange(-3, 2):
        values = scale * np.abs(rng.standard_normal(20_000))
        counts = np.bincount(np.searchsorted(edges, values), minlength=edges.size + 1)
        noisy = counts + 100 * rng.standard_normal(counts.size)
        assert residual_scale(noisy, edges, sample_size=20_000) == pytest.approx(scale, rel=0.1)


def test_the_cap_leaves_a_tenth_above_or_what_noise_hides():
    lengths = np.linspace(0, 1, 10_000)
    edges = 2.0 ** (np.arange(-32, 1) / 4)
    counts = np.bincount(np.searchsorted(edges, lengths), minlength=34).astype(float)
    assert 0.8 < length_cap(counts, edges, noise_std=0.0, sample_size=10_000) <= 1.0
    hidden = length_cap(counts, edges, noise_std=900.0, sample_size=10_000)
    assert 0.1 < hidden < 0.9
    assert length_cap(0 * counts, edges, noise_std=900.0, sample_size=10_000) == 1.0


def test_grids_are_geometric_below_their_bounds():
    scales, lengths = scale_edges(3.0), length_edges(5.0)
    assert (scales[0], scales[-1]) == pytest.approx((12.0 * 2.0**-17, 12.0))
    np.testing.assert_allclose(scales[1:] / scales[:-1], np.sqrt(2))
    assert (lengths[0], lengths[-1]) == pytest.approx((5.0 / 256, 10.0))
    np.testing.assert_allclose(lengths[1:] / lengths[:-1], 2**0.25)


@pytest.mark.parametrize(
    ("grid", "name"), [(scale_edges, "label_bound"), (length_edges, "feature_norm")]
)
def test_bounds_of_grids_are_refused_by_name(grid, name):
    for wrong in (0.9e-100, 1.1e100, np.nan):
        with pytest.raises(ValueError, match=f"{name} must be"):
            grid(wrong)
    assert np.all(np.isfinite(grid(1e-100)))
    assert np.all(np.isfinite(grid(1e100)))


def test_a_whitened_row_is_as_long_as_noise_allows():
    """R² with noise √2 R²/(n √(2ρ)) = 0.2 / √(2p), within [1.2 p + 3, 20 p]."""
    assert white_cap(8, sample_size=2000.0, rho=1e-4) ** 2 == pytest.approx(12.6)
    assert white_cap(8, sample_size=2000.0, rho=1e9) ** 2 == pytest.approx(160.0)
    for longest, square in ((10.0, 160.0), (50.0, 2500.0)):
        found = white_cap(8, sample_size=2000.0, rho=1e9, longest=longest)
        assert found**2 == pytest.approx(square)
    assert white_cap(8, sample_size=2000.0, rho=1e-4, longest=50.0) ** 2 == pytest.approx(12.6)
    between = white_cap(8, sample_size=2000.0, rho=0.25) ** 2
    assert 2**0.5 * between / (2000.0 * 0.5**0.5) == pytest.approx(0.2 / 4)
    assert between == pytest.approx(50.0)
    assert white_cap(1, sample_size=0.5, rho=0.5) > 2


def squared_distance(counts, edges, n, scale):
    mass = np.diff([0.0, *(2 * norm.cdf(edges / scale) - 1), 1.0])
    return np.sum((counts / n - mass) ** 2)


@pytest.mark.parametrize("seed", range(6))
def test_the_scale_is_that_of_the_nearest_normal_law(seed):
    """Of the grid, eight scales an edge: none is nearer to any histogram, sensible or not."""
    rng, edges = np.random.Generator(np.random.SFC64(seed)), scale_edges(7.0)
    values = np.abs(rng.standard_cauchy(500)) * 10.0 ** -(seed % 3)
    counts = np.histogram(values, [0, *edges, np.inf])[0] + 20 * rng.standard_normal(36)
    found = residual_scale(counts, edges, sample_size=400.0)
    candidates = np.geomspace(edges[1], edges[-1], 280)
    distances = [squared_distance(counts, edges, 400.0, scale) for scale in candidates]
    assert found == pytest.approx(candidates[np.argmin(distances)], rel=1e-9)


def test_scales_lie_between_the_second_edge_and_the_last():
    for bin_, scale in ((0, 2.0), (4, 8.0)):
        counts = np.where(np.arange(5) == bin_, 100.0, 0.0)
        assert residual_scale(counts, EDGES, sample_size=100.0) == pytest.approx(scale)
    assert residual_scale([1.0, 1.0, 0.0], EDGES[:2], sample_size=1.0) == 2.0


def test_a_scale_is_hidden_by_noise_of_eight_hundredths():
    assert not scale_is_hidden(noise_std=0.079 * 500, sample_size=500)
    assert scale_is_hidden(noise_std=0.081 * 500, sample_size=500)
    assert not scale_is_hidden(noise_std=0.0, sample_size=0.5)


def test_a_tenth_of_the_records_exceeds_the_edge_below():
    """Of 100, 12 are longer than 2 and 20 longer than 1."""
    counts = np.array([80.0, 8.0, 12.0, 0.0, 0.0])
    assert length_cap(counts, EDGES, noise_std=0.0, sample_size=100) == 4.0
    # Twelve are no more than a tenth of 120, nor 20 of 200, nor 100 of 1,000.
    assert length_cap(counts, EDGES, noise_std=0.0, sample_size=120) == 2.0
    assert length_cap(counts, EDGES, noise_std=0.0, sample_size=200) == 1.0
    assert length_cap(counts, EDGES, noise_std=0.0, sample_size=1000) == 8.0


def test_noise_of_the_bins_above_hides_what_is_in_them():
    """Twice the noise of a sum: of 3 bins above 2, of 4 above 1, of all 5."""
    counts = np.array([80.0, 8.0, 12.0, 0.0, 0.0])
    for bins, seen, cap in ((3, 12.0, 4.0), (4, 20.0, 2.0), (5, 100.0, 1.0)):
        most = seen / 2 / np.sqrt(bins)
        assert length_cap(counts, EDGES, noise_std=0.99 * most, sample_size=100) == cap
        assert length_cap(counts, EDGES, noise_std=1.01 * most, sample_size=100) == (
            cap / 2 if bins < 5 else 8.0
        )


def test_the_cap_is_never_beyond_the_last_edge():
    counts = np.array([0.0, 0.0, 0.0, 0.0, 100.0])
    assert length_cap(counts, EDGES, noise_std=0.0, sample_size=100) == 8.0


@pytest.mark.parametrize(
    "wrong", [[1.0, 1.0], [2.0, 1.0], [1.0, 3.0, 2.0], [0.9e-100, 1.0], [1.0, 1.1e101], [[1.0]]]
)
def test_edges_increase(wrong):
    with pytest.raises(ValueError, match="edges must"):
        require_edges(np.array(wrong))
    assert require_edges(np.array([1e-100, 1e101])).tolist() == [1e-100, 1e101]


COUNTS = np.ones(5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: residual_scale(COUNTS[:2], EDGES[:1], sample_size=1), "edges must be two or more"),
        (lambda: residual_scale(COUNTS[:4], EDGES, sample_size=1), "counts must have shape"),
        (lambda: residual_scale(-1.1e100 * COUNTS, EDGES, sample_size=1), "counts must be"),
        (lambda: residual_scale(1.1e100 * COUNTS, EDGES, sample_size=1), "counts must be"),
        (lambda: residual_scale(COUNTS, EDGES, sample_size=0.9e-9), "sample_size must be"),
        (lambda: residual_scale(COUNTS, EDGES, sample_size=1.1e100), "sample_size must be"),
        (lambda: length_cap(COUNTS[:4], EDGES, noise_std=0, sample_size=1), "counts must have"),
        (lambda: length_cap(1.1e100 * COUNTS, EDGES, noise_std=0, sample_size=1), "counts must be"),
        (lambda: length_cap(-1.1e100 * COUNTS, EDGES, noise_std=0, sample_size=1), "counts must"),
        (lambda: length_cap(COUNTS, EDGES, noise_std=-1e-9, sample_size=1), "noise_std must be"),
        (lambda: length_cap(COUNTS, EDGES, noise_std=1.1e100, sample_size=1), "noise_std must be"),
        (lambda: length_cap(COUNTS, EDGES, noise_std=0, sample_size=0.9e-9), "sample_size must"),
        (lambda: length_cap(COUNTS, EDGES, noise_std=0, sample_size=1.1e100), "sample_size must"),
        (lambda: scale_is_hidden(noise_std=-1e-9, sample_size=1), "noise_std must be"),
        (lambda: scale_is_hidden(noise_std=1.1e100, sample_size=1), "noise_std must be"),
        (lambda: scale_is_hidden(noise_std=0, sample_size=0), "sample_size must be"),
        (lambda: scale_is_hidden(noise_std=0, sample_size=1.1e100), "sample_size must be"),
        (lambda: white_cap(0, sample_size=1, rho=1), "dimension must be"),
        (lambda: white_cap(1, sample_size=0, rho=1), "sample_size must be"),
        (lambda: white_cap(1, sample_size=1.1e100, rho=1), "sample_size must be"),
        (lambda: white_cap(1, sample_size=1, rho=0), "rho must be"),
        (lambda: white_cap(1, sample_size=1, rho=1.1e100), "rho must be"),
        (lambda: white_cap(1, sample_size=1, rho=1, longest=-1.0), "longest must be"),
    ],
)
def test_arguments_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_in_range_is_taken():
    for call in (
        lambda: residual_scale(1e100 * COUNTS, EDGES, sample_size=1e-9),
        lambda: residual_scale(-1e100 * COUNTS, EDGES, sample_size=1e100),
        lambda: length_cap(1e100 * COUNTS, EDGES, noise_std=0, sample_size=1e-9),
        lambda: length_cap(-1e100 * COUNTS, EDGES, noise_std=1e100, sample_size=1e100),
    ):
        assert 1.0 <= call() <= 8.0
