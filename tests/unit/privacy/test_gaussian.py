"""The Rényi divergence of two Gaussian laws: direction, finiteness, and low rank against dense."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privreg.privacy.renyi import LowRankUpdate, combine, diagonal_matrix, renyi_divergence


def random_update(
    rng: np.random.Generator, dimension: int, rank: int, *, dependent: bool = False
) -> LowRankUpdate:
    factors = rng.standard_normal((dimension, rank)) / np.sqrt(dimension)
    if dependent:
        factors[:, -1] = 2.0 * factors[:, 0]
    core = rng.standard_normal((rank, rank))
    core = 0.2 * (core + core.T) / np.linalg.norm(core, 2)
    return LowRankUpdate(rng.uniform(0.8, 1.2, dimension), factors, core)


@pytest.mark.parametrize("order", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("dependent", [False, True])
def test_low_rank_equals_dense(order: float, dependent: bool) -> None:
    rng = np.random.default_rng(7)
    for dimension, rank in ((5, 3), (60, 2), (300, 4)):
        p = random_update(rng, dimension, rank, dependent=dependent)
        q = random_update(rng, dimension, rank, dependent=dependent)
        q = LowRankUpdate(1.5 * q.diagonal, q.factors, q.core)
        shift = rng.standard_normal(dimension) / np.sqrt(dimension)
        fast = renyi_divergence(shift, p, q, order=order)
        dense = renyi_divergence(shift, p.dense(), q.dense(), order=order)
        assert fast == pytest.approx(dense, rel=1e-11)
        assert renyi_divergence(shift, p.dense(), q, order=order) == dense


@pytest.mark.parametrize("change", [1e-6, 1e-5])
def test_small_divergences_keep_their_digits(change: float) -> None:
    """One variance of many larger by c: D_2 = -ln(1 - c²) / 2; Δ one deviation long adds 1."""
    ratio, shift = np.eye(20), np.eye(20)[1]
    ratio[0, 0] += change
    found = renyi_divergence(np.zeros(20), ratio, np.eye(20), order=2.0)
    # Logarithms near 0 keep their digits; twenty of 460 would leave errors of 1e-12.
    assert found == pytest.approx(-0.5 * np.log1p(-(change**2)), abs=5e-15)
    assert renyi_divergence(shift, ratio, np.eye(20), order=2.0) == pytest.approx(1.0, rel=1e-9)
    # With a common diagonal nothing of the size of the dimension is subtracted.
    diagonal = np.linspace(0.5, 2.0, 500)
    direction = np.eye(500)[:, :1] * np.sqrt(diagonal[0])
    p = LowRankUpdate(diagonal, direction, [[change]])
    value = renyi_divergence(np.zeros(500), p, diagonal, order=2.0)
    assert value == pytest.approx(0.5 * change**2, rel=1e-4 * change / 1e-6)


@pytest.mark.parametrize("gap", [-5e-4, 1e-12, 5e-4])
def test_next_to_order_one_no_digits_are_lost(gap: float) -> None:
    """Of one variance larger by x = 0.3: the logarithms of 1 + x and 1 - (α - 1)x."""
    mixed = np.log1p(-gap * 0.3) / gap
    found = renyi_divergence([0.0], [[1.3]], [[1.0]], order=1 + gap)
    assert found == pytest.approx(0.5 * (-mixed - np.log1p(0.3)), rel=1e-9)


def test_infinite_where_the_mixture_is_not_definite() -> None:
    assert renyi_divergence([0.0], [3.0], [1.0], order=2.0) == np.inf
    assert renyi_divergence([0.0], [[3.0]], [[1.0]], order=2.0) == np.inf
    ones = diagonal_matrix(np.ones(50))
    wide = LowRankUpdate(np.ones(50), np.eye(50)[:, :1], [[1.1]])
    assert renyi_divergence(np.zeros(50), wide, ones, order=2.0) == np.inf
    assert renyi_divergence(np.zeros(50), wide.dense(), np.eye(50), order=2.0) == np.inf
    assert np.isfinite(renyi_divergence(np.zeros(50), ones, wide, order=2.0))
    assert np.isfinite(renyi_divergence(np.zeros(50), wide, ones, order=1.8))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_mixture_that_the_low_rank_part_repairs(scale: float) -> None:
    """A mixture of diagonals that is negative in one entry, made definite by the factors.

    One direction of p repairs one entry, whatever directions without weight q brings.
    """
    p = LowRankUpdate(scale * np.array([6.0, 1.5, 1.5, 1.5]), np.eye(4)[:, :1], [[-4.0 * scale]])
    q = LowRankUpdate(np.full(4, 2.0 * scale), np.eye(4)[:, 1:2], [[0.0]])
    assert combine(p, q, first_weight=-1.0, second_weight=2.0) is None
    found = renyi_divergence(np.ones(4), p, q, order=2.0)
    assert found == pytest.approx(
        renyi_divergence(np.ones(4), p.dense(), q.dense(), order=2.0), rel=1e-12
    )
    assert np.isfinite(found)
    p = LowRankUpdate([3.0, 1.0, 1.0, 1.0], np.eye(4)[:, :1], [[-2.0]])
    q = diagonal_matrix(np.ones(4))
    assert renyi_divergence(np.ones(4), p, q, order=2.0) == pytest.approx(4.0, rel=1e-12)


def test_laws_of_a_divergence() -> None:
    rng = np.random.default_rng(9)
    p, q = random_update(rng, 30, 2), random_update(rng, 30, 2)
    shift = 0.3 * rng.standard_normal(30)
    orders = [0.3, 0.9, 1.0, 1.1, 1.5, 2.0, 2.3]
    values = [renyi_divergence(shift, p, q, order=a) for a in orders]
    assert np.all(np.diff(values) > 0)
    assert values[0] > 0
    near = 0.5 * sum(renyi_divergence(shift, p, q, order=1 + h) for h in (-1e-4, 1e-4))
    assert values[2] == pytest.approx(near, rel=1e-6)
    for same in (p, p.dense(), p.diagonal):
        assert 0 <= renyi_divergence(np.zeros(30), same, same, order=1.7) <= 1e-14
    skew = renyi_divergence(shift, p, q, order=0.3) / 0.3
    assert skew == pytest.approx(renyi_divergence(shift, q, p, order=0.7) / 0.7, rel=1e-11)


def test_inverse_and_determinant() -> None:
    rng = np.random.default_rng(10)
    matrix = random_update(rng, 40, 3, dependent=True)
    vectors = rng.standard_normal((40, 2))
    expected = vectors.T @ np.linalg.solve(matrix.dense(), vectors)
    assert_allclose(matrix.inverse_form(vectors), expected, rtol=1e-11)
    ratio = np.linalg.slogdet(matrix.dense())[1] - np.log(matrix.diagonal).sum()
    assert matrix.log_determinant_ratio() == pytest.approx(ratio, rel=1e-11)
    assert not LowRankUpdate([1.0], [[1.0]], [[-1.0]]).is_positive_definite
    negative = LowRankUpdate(np.ones(3), np.eye(3)[:, :1], [[-2.0]])
    assert negative.log_determinant_ratio() == -np.inf
    # Along a combination F c of its factors, (I + k F Fᵀ)⁻¹ is |c|² / k but for 1/k of itself.
    large = LowRankUpdate(np.ones(40), matrix.factors[:, :2], 1e12 * np.eye(2))
    along = matrix.factors[:, :2] @ [[1.0], [2.0]]
    assert 1e12 * large.inverse_form(along)[0, 0] == pytest.approx(5.0, rel=1e-9)


def test_combinations_are_weighted_sums() -> None:
    rng = np.random.default_rng(13)
    first, second = random_update(rng, 5, 2), random_update(rng, 5, 1)
    both = combine(first, second, first_weight=0.2, second_weight=0.1)
    assert both is not None
    assert_allclose(both.dense(), 0.2 * first.dense() + 0.1 * second.dense(), rtol=0, atol=1e-15)
    halves = [diagonal_matrix([2.0, 3.0]), diagonal_matrix([1.0, 2.0])]
    assert combine(*halves, first_weight=-1.0, second_weight=2.0) is None
