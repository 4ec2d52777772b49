"""Settings and scales of private Huber regression: shares, clip widths, grids, what noise hides."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from privreg.algorithms.huber_descent import HuberSettings, best_clip_width, default_settings
from privreg.algorithms.whitened_descent import (
    length_cap,
    length_edges,
    residual_scale,
    scale_edges,
    scale_is_hidden,
    white_cap,
)
from privreg.privacy.budget import Budget, Neighbours

# Neighbours on the grid of widths: 200 of them over a factor of 10.
STEP = 10 ** (1 / 199)
SHARES = ("norm_share", "gram_share", "scale_share", "warm_up_share", "mean_share")


def test_the_clip_is_narrow_where_privacy_decides():
    widths = [best_clip_width(price) for price in (0.0, 0.1, 1.0, 10.0)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(2.5)
    settings = [
        default_settings(sample_size=n, dimension=10, budget=Budget.zcdp(0.1))
        for n in (1_000, 100_000)
    ]
    assert [each.moment_share > 0 for each in settings] == [False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clip_width": 0.9e-3}, "clip_width must be"),
        ({"clip_width": 1000.5}, "clip_width must be"),
        *(({name: 0}, name) for name in ("final_steps", "warm_up_steps", "gram_rounds")),
        *(({share: 1.0}, f"{share} must be .*less than 1") for share in SHARES),
        ({"moment_share": -1e-9}, "moment_share must be at least 0"),
        ({"moment_share": 1.0}, "moment_share must be .*less than 1"),
        ({"gram_share": 0.8}, "shares must leave a part of the budget for the final steps"),
    ],
)
def test_settings_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        replace(HuberSettings(), **change)


def test_nothing_may_be_left_over_but_not_nothing_for_the_final_steps():
    quarters = dict.fromkeys(("norm_share", "gram_share", "scale_share"), 0.25)
    eighths = dict.fromkeys(("warm_up_share", "mean_share"), 0.125)
    with pytest.raises(ValueError, match="got shares that add up to 1"):
        HuberSettings(**quarters, **eighths, moment_share=0.0)
    left = HuberSettings(**(quarters | {"gram_share": 0.125}), **eighths, moment_share=0.0)
    assert left.final_share == 0.125
    assert [HuberSettings(clip_width=width).clip_width for width in (1e-3, 1e3)] == [1e-3, 1e3]


def test_shares_add_up_and_later_rounds_have_more():
    settings = HuberSettings(gram_rounds=4, gram_share=0.2, moment_share=0.05)
    shares = [getattr(settings, share) for share in SHARES]
    assert sum(shares) + settings.moment_share + settings.final_share == pytest.approx(1.0)
    assert settings.gram_shares == pytest.approx([0.02, 0.04, 0.06, 0.08])
    assert settings.steps == settings.warm_up_steps + settings.final_steps == 7


def variance(width, price):
    """Of a Huber estimate at the standard normal law, by quadrature, in units of 1/n."""
    square = 2 * quad(lambda x: min(x, width) ** 2 * norm.pdf(x), 0, 12, points=[width])[0]
    return (square + price * width**2) / (norm.cdf(width) - norm.cdf(-width)) ** 2


def narrow_width(price):
    return minimize_scalar(
        variance, args=(price,), bounds=(0.25, 2.5), method="bounded", options={"xatol": 1e-9}
    ).x


@pytest.mark.parametrize("price", [0.003, 0.05])
def test_a_wide_clip_is_the_minimiser(price):
    narrow = narrow_width(price)
    assert narrow > 1.15
    # Of the grid: neither neighbour is better, so that it lies within one step.
    assert 1 / STEP < best_clip_width(price) / narrow < STEP


def test_a_clip_is_widened_to_what_skewed_errors_like():
    price = 0.2
    assert narrow_width(price) < 1.05
    assert variance(1.09, price) < 1.01 * variance(narrow_width(price), price)
    assert best_clip_width(price) == 1.09


@pytest.mark.parametrize("price", [3.0, 1e12])
def test_a_clip_is_widened_by_a_hundredth_of_the_variance_at_most(price):
    least = variance(narrow_width(price), price)
    widest = brentq(lambda width: variance(width, price) / least - 1.01, narrow_width(price), 1.09)
    assert 1 / STEP < best_clip_width(price) / widest <= 1 + 1e-6


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_the_clip_is_that_of_the_noise_in_the_final_steps(neighbours):
    """γ = w√p; a mean moves by 2γ/n under replace-one and by γ/n otherwise."""
    budget = Budget.zcdp(0.1, neighbours=neighbours)
    settings = default_settings(sample_size=20_000, dimension=12, budget=budget)
    moved = (2 if neighbours is Neighbours.REPLACE_ONE else 1) * np.sqrt(12) / 20_000
    noise_variance = moved**2 / (2 * 0.1 * settings.final_share)
    assert settings.clip_width == pytest.approx(best_clip_width(20_000 * noise_variance), rel=1e-12)


@pytest.mark.parametrize(
    ("rho", "n", "paid"), [(20, 119, False), (20, 120, True), (5, 239, False), (5, 240, True)]
)
def test_second_moments_are_paid_where_their_noise_is_an_eighth(rho, n, paid):
    """Noise √2 R²/(n √(2ρ)) of a mean near 1, at R² = 1.2 p + 3 = 15 and half a tenth of ρ."""
    settings = default_settings(sample_size=n, dimension=10, budget=Budget.zcdp(rho))
    assert (settings.moment_share > 0) == paid
    assert settings.gram_share == (0.10 if paid else 0.16)
    assert settings.final_share == pytest.approx(0.63 if paid else 0.67)


def test_settings_have_defaults_and_the_smallest_problem_has_some():
    settings = HuberSettings()
    assert (settings.clip_width, settings.gram_rounds, settings.common_width) == (1.0, 3, True)
    one = {"sample_size": 1, "dimension": 1, "budget": Budget.zcdp(1.0)}
    assert default_settings(**one).clip_width > 0


EDGES = np.array([1.0, 2.0, 4.0, 8.0])


def test_grids_are_geometric_below_their_bounds():
    scales, lengths = scale_edges(3.0), length_edges(5.0)
    assert (scales[0], scales[-1]) == pytest.approx((12.0 * 2.0**-17, 12.0))
    assert_allclose(scales[1:] / scales[:-1], np.sqrt(2))
    assert (lengths[0], lengths[-1]) == pytest.approx((5.0 / 256, 10.0))
    assert_allclose(lengths[1:] / lengths[:-1], 2**0.25)


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


def test_scales_and_caps_lie_within_their_edges():
    for bin_, scale in ((0, 2.0), (4, 8.0)):
        counts = np.where(np.arange(5) == bin_, 100.0, 0.0)
        assert residual_scale(counts, EDGES, sample_size=100.0) == pytest.approx(scale)
    assert residual_scale(np.array([1.0, 1.0, 0.0]), EDGES[:2], sample_size=1.0) == 2.0
    assert length_cap([0.0, 0.0, 0.0, 0.0, 100.0], EDGES, noise_std=0.0, sample_size=100) == 8.0


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
