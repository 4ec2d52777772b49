"""Whole numbers of bounded length for every record, and exact normal noise, rounded."""

from collections.abc import Iterator
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from privreg.noise import exact
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


@pytest.mark.parametrize("starts", [None, [0, 1, 4, 9]])
def test_no_record_is_longer_than_its_bound_whatever_multiplies_it(rng, starts):
    """Factors that shorten too little put the record to 0, and so does what is not finite."""
    rows = np.concatenate([HOSTILE, 2 * np.eye(3), rng.standard_cauchy((200, 3))])
    ends = None if starts is None else np.array(starts)
    for power in (-300, -6, 0, 6, 300):
        for factors in (10.0**power * rng.uniform(0, 2, len(rows)), np.full(len(rows), np.inf)):
            whole = exact.truncated(rows, factors, 2.0, ends)
            squares = np.sum(whole**2, axis=1)
            if ends is not None:
                squares = np.add.reduceat(squares, ends)
            assert np.all(squares <= exact.UNITS**2)
            assert_array_equal(whole, np.trunc(whole))
            if starts is None:
                assert_array_equal(exact.truncated_sum(rows, factors, 2.0), np.sum(whole, axis=0))


@pytest.mark.parametrize("p", [1, 2, 3, 4, 9, 16, 60])
def test_rounding_puts_no_record_within_its_bound_to_zero(rng, p):
    """Along an axis, with equal entries, and anywhere on the sphere; entries never grow."""
    drawn = rng.standard_normal((300, p))
    rows = np.concatenate([np.eye(p), np.ones((1, p)), drawn])
    lengths = np.linalg.norm(rows, axis=1)
    whole = exact.truncated(rows, 7.0 / lengths, 7.0)
    assert np.all(np.sum(whole**2, axis=1) > (exact.UNITS - 2 * p) ** 2)
    entries = exact.UNITS * np.abs(rows) / lengths[:, None]
    assert np.all((np.abs(whole) > entries - 1.001) & (np.abs(whole) <= entries * (1 + 1e-15)))
    # A ten-thousandth more is too long.
    assert np.all(exact.truncated(rows, 7.0007 / lengths, 7.0) == 0)


def test_numbers_stay_between_zero_and_their_bound():
    given = np.array([-1.0, 0.0, 0.5, 3.0, 3.1, np.inf, np.nan, 5e-324])
    expected = exact.UNITS * np.array([0, 0, 1 / 6, 1, 1, 1, 0, 0])
    assert_array_equal(exact.whole_numbers(given, 3.0), np.rint(expected))


def test_noise_of_any_size_is_drawn(monkeypatch):
    for std, size, call, kind in (
        (10**30, 2000, exact.FIRST_CALLS, int),
        (1000, exact.FEW, 0, np.int64),
        (1000, exact.FEW, exact.FIRST_CALLS, np.int64),
    ):
        slow = Mock(wraps=exact._draw_slowly)
        monkeypatch.setattr(exact, "_draw_slowly", slow)
        monkeypatch.setattr(exact, "_calls", iter([call]))
        drawn = exact.rounded_normals(size, std=std)
        assert slow.called == (kind is int or call == 0)
        assert all(type(each) is kind for each in drawn)
        assert 0.7 < np.std((drawn / std).astype(float)) < 1.3


def misfit(found: np.ndarray, std: float, low: int = -40, high: int = 40) -> float:
    """p-value of a chi-square test of whole numbers against rounded normals."""
    values = np.arange(low, high + 1)
    law = stats.norm.cdf((values + 0.5) / std) - stats.norm.cdf((values - 0.5) / std)
    expected = len(found) * law
    seen = np.array([np.count_nonzero(found == value) for value in values])
    cells = expected > 5
    excess = np.sum((seen - expected)[cells] ** 2 / expected[cells])
    return float(stats.chi2.sf(excess, np.count_nonzero(cells)))


@pytest.mark.parametrize("std", [1, 2, 3])
def test_noise_has_the_law_of_rounded_normals(std):
    noise = exact.rounded_normals((200, 200), std=std).ravel()
    assert misfit(noise, std) > 1e-7
    for wrong in (2 / 3, 0.95, 1.05, 3 / 2):
        assert misfit(noise, wrong * std) < 1e-7


def words(rng: np.random.Generator, width: int) -> Iterator[int]:
    """Endless uniform words of so many binary digits."""
    while True:
        yield from rng.integers(0, 1 << width, 4096, dtype=np.uint64).tolist()


@pytest.mark.parametrize("width", [1, 2])
def test_ties_of_digits_leave_the_law_exact(rng, width):
    """Of one or two digits nearly every comparison and every rounding is undecided at first."""
    source = words(rng, width)
    assert misfit(np.array([exact._draw_slowly(source, 3, width) for _ in range(5_000)]), 3) > 1e-7


@pytest.mark.parametrize("std", [0, 1, 1000, 1 << 53])
def test_the_quick_sampler_is_the_slow_one_or_stops(rng, std):
    """On words of which many are equal, too: then it says where a draw is undecided."""
    for few in (False, True):
        drawn, least = np.empty(500, dtype=np.int64), 0 if few else 500
        listed = np.fromiter(words(rng, 64 - 60 * few), dtype=np.uint64, count=20_000) << (60 * few)
        count, used, undecided = exact._draw(listed, std, drawn, np.zeros(1, int))
        assert count >= least
        assert undecided == few
        source = iter(listed.tolist())
        assert [exact._draw_slowly(source, std) for _ in range(count)] == drawn[:count].tolist()
        assert len([*source]) == listed.size - used
    assert exact._draw(listed[:0], std, drawn, np.zeros(1, int)) == (0, 0, False)


def test_sources_repeat_only_what_a_seed_names():
    assert Seeded(3).generator().random() == Seeded(3).generator().random()
    assert Seeded(3).generator().random() != Seeded(4).generator().random()
    draws = {Secret().generator().random() for _ in range(50)}
    assert len(draws) == 50
