"""Sums on a grid: exact, of bounded reach for every row, with discrete Gaussian noise that fits."""

import sys

import numpy as np
import pytest
from scipy import stats

from privreg.noise import discrete
from privreg.privacy.release import Secret, Seeded

HOSTILE = [
    [1e308, -1e308, 1e308],
    [5e-324, 0.0, 0.0],
    [1e-170, 1e-170, 0.0],
    [1e300, 5e-324, -1.0],
    [0.0, 0.0, 0.0],
    [2.0, 0.0, 0.0],
    [-1.1547005383792517, 1.1547005383792517, 1.1547005383792517],
]


@pytest.mark.parametrize("resolution", [1, 7, 1 << 20])
@pytest.mark.parametrize("norm", [1e-12, 2.0, 1e12])
def test_no_row_reaches_further_than_the_grid_says(rng, norm, resolution):
    rows = np.concatenate([HOSTILE, norm * np.array(HOSTILE[5:]), rng.standard_cauchy((100, 3))])
    reach = discrete.grid(norm, dimension=3, resolution=resolution).reach
    for row in discrete.round_to_grid(rows, norm=norm, resolution=resolution).tolist():
        assert sum(entry**2 for entry in row) <= reach**2


def test_rows_within_the_norm_move_by_half_a_unit_and_longer_ones_keep_their_direction(rng):
    rows = rng.standard_normal((400, 5))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = discrete.grid(2.0, dimension=5).unit
    rounded = unit * discrete.round_to_grid(rows, norm=2.0)
    expected = rows * np.minimum(1, 2 / lengths)
    assert 0.4 * unit < np.max(np.abs(rounded - expected)) <= 0.5 * unit * (1 + 1e-6)
    huge = discrete.round_to_grid([[1e308, -1e308]], norm=1.0)
    assert huge[0, 0] == -huge[0, 1] == round((1 << 20) / np.sqrt(2))


def test_sensitivity_is_twice_or_once_the_reach():
    assert discrete.square_sum_sensitivity(7) == 14**2
    assert discrete.square_sum_sensitivity(7, neighbours="add-remove") == 7**2


def test_noise_has_the_law_of_the_discrete_gaussian():
    pytest.importorskip("opendp")
    std, draws = 2, 20_000
    noise = discrete.add_integer_noise(np.zeros(draws, dtype=np.int64), std=std)
    values = np.arange(-9, 10)

    def fits(scale: float) -> float:
        law = np.exp(-(values**2) / (2 * scale**2))
        law = np.append(law, 1e-9)
        observed = [*(np.count_nonzero(noise == value) for value in values)]
        observed.append(draws - sum(observed))
        keep = draws * law / law.sum() > 5
        expected = (draws * law / law.sum())[keep]
        found = np.array(observed)[keep]
        return float(np.sum((found - expected) ** 2 / expected)), int(keep.sum())

    statistic, cells = fits(std)
    assert statistic < stats.chi2.isf(1e-7, cells)
    for wrong in (2 / 3, 0.9, 1.1, 3 / 2):
        statistic, cells = fits(wrong * std)
        assert statistic > stats.chi2.isf(1e-7, cells)


def test_sums_of_any_size_are_limited_and_get_no_further_apart(rng):
    sums = [
        int(x) << int(k)
        for x, k in zip(rng.integers(-9, 9, 200), rng.integers(0, 70, 200), strict=True)
    ]
    limited = discrete.limited(np.array(sums, dtype=object)).tolist()
    assert max(limited) == -min(limited) == discrete.LARGEST_SUM
    for one, other, first, second in zip(sums, sums[1:], limited, limited[1:], strict=False):
        assert abs(first - second) <= abs(one - other)
    small = [each for each in sums if abs(each) < discrete.LARGEST_SUM]
    assert discrete.limited(small).tolist() == small


def test_noisy_sums_saturate():
    pytest.importorskip("opendp")
    ends = discrete.add_integer_noise(np.array([2**63 - 1, -(2**63)]), std=1 << 40)
    assert np.all(np.abs(ends.astype(np.float64)) > 2**62)


def test_without_the_sampler_there_is_no_noise(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    discrete._discrete_gaussian.cache_clear()
    with pytest.raises(ImportError, match="needs OpenDP"):
        discrete.add_integer_noise(np.ones(1, dtype=np.int64), std=1)


def test_sources_repeat_only_what_a_seed_names():
    assert Seeded(3).generator().random() == Seeded(3).generator().random()
    assert Seeded(3).generator().random() != Seeded(4).generator().random()
    draws = {Secret().generator().random() for _ in range(50)}
    assert len(draws) == 50
