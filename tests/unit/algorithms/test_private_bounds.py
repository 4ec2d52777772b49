"""Private bounds: what a record moves, where the bounds lie, and what is certain."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms import private_bounds as module
from privreg.algorithms.private_bounds import private_bounds
from privreg.privacy.budget import Budget

PLENTY = Budget.zcdp(1e6)


class Silent:
    """Noise that is 0, to see what noise is added to."""

    def standard_normal(self, shape):
        return np.zeros(shape)


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(1))


def recorded(monkeypatch, values, budget, groups=None):
    """The noisy counts of both halves, over their noise."""
    seen = []
    plain = module._noisy_counts

    def spy(*arguments):
        seen.append(plain(*arguments))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module, "_noisy_counts", spy)
        patch.setattr(module, "require_rng", lambda _, rng: rng)
        private_bounds(values, budget=budget, rng=Silent(), groups=groups)
    return seen


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_worst_record_costs_the_budget(monkeypatch, columns, neighbours, grouped):
    """Of unit noise a shift Δ costs |Δ|² / 2; both halves together cost ρ, and no record more."""
    budget = Budget.zcdp(0.8, neighbours=neighbours)
    values = np.repeat(np.linspace(-1.0, 1.0, 401)[:, None], columns, axis=1)
    groups = np.arange(401)
    # The last person moves from the upper end to the lower one, or goes; grouped, has three rows.
    rows = 3 if grouped else 1
    before = np.vstack([values, np.ones((rows, columns))])
    replaced = np.vstack([values, -np.ones((rows, columns))])
    after = replaced if neighbours == "replace-one" else values
    names = [np.append(groups, np.full(rows, 999)), None]
    names[1] = names[0][: len(after)]
    costs = [
        np.sum((one - other) ** 2) / 2
        for one, other in zip(
            recorded(monkeypatch, before, budget, names[0]),
            recorded(monkeypatch, after, budget, names[1]),
            strict=True,
        )
    ]
    np.testing.assert_allclose(costs, 0.4, rtol=1e-9)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize(("low", "high"), [(1.01, 3.9), (0.1, 0.9), (3e8, 4e8), (-5.0, 11.0)])
def test_bounds_hold_all_but_a_cell(sign, low, high):
    values = np.sort(sign * np.linspace(low, high, 999))
    found = private_bounds(values[:, None], budget=PLENTY, rng=generator())
    assert found.budget == PLENTY
    (bottom, top), (least, most) = found.value[0], values[[0, -1]]
    # The range of powers of two that the cells divide into 64.
    size = np.array([-(2.0 ** np.ceil(np.log2(-least))) if least < 0 else 0.0, 0.0])
    size[0] = size[0] if least < 0 else 2.0 ** np.floor(np.log2(least))
    size[1] = 2.0 ** np.ceil(np.log2(most)) if most > 0 else -(2.0 ** np.floor(np.log2(-most)))
    cell = (size[1] - size[0]) / 64
    assert bottom <= least < bottom + cell * (1 + 1e-9)
    assert top - cell * (1 + 1e-9) <= most <= top
    for end in (bottom, top):
        steps = (end - size[0]) / cell
        assert steps == pytest.approx(round(steps), abs=1e-6)


def test_columns_have_bounds_of_their_own():
    values = np.column_stack([np.linspace(1.01, 1.99, 500), np.linspace(-7.9, -4.1, 500)])
    found = private_bounds(values, budget=PLENTY, rng=generator()).value
    np.testing.assert_allclose(found, [[1.0, 2.0], [-8.0, -4.0]], atol=4 / 64)


def test_beyond_all_sizes_counts_at_the_ends():
    values = np.array([[1e300, -1e300]] * 50)
    found = private_bounds(values, budget=PLENTY, rng=generator()).value
    assert found[0, 1] == 2.0**40
    assert found[1, 0] == -(2.0**40)
    # Zeros lie in the cell between the smallest sizes.
    zeros = private_bounds(np.zeros((50, 1)), budget=PLENTY, rng=generator()).value
    np.testing.assert_array_equal(zeros, [[0.0, 2.0**-20 / 32]])


@pytest.mark.parametrize(("deviations", "certain"), [(4.4, False), (4.6, True)])
def test_what_noise_could_be_is_not_certain(monkeypatch, deviations, certain):
    """Ten equal values are so many deviations of the noise of a count under replacement."""
    monkeypatch.setattr(module, "require_rng", lambda _, rng: rng)
    budget = Budget.zcdp(2 * (deviations / 10) ** 2)
    values = np.full((10, 1), 1.5)
    found = private_bounds(values, budget=budget, rng=Silent()).value
    if certain:
        np.testing.assert_array_equal(found, [[1.5, 1.5 + 1 / 64]])
    else:
        np.testing.assert_array_equal(found, [[-1.0, 1.0]])


def test_noise_is_added_once_to_each_count():
    values = np.linspace(0.5, 3.0, 200)[:, None]
    weights, budget = np.ones(200), Budget.zcdp(0.3)
    grids = [np.linspace(0, 4, 9)]
    noisy = module._noisy_counts(values, weights, grids, budget, generator())
    exact = module._noisy_counts(values, weights, grids, budget, Silent())
    np.testing.assert_allclose(noisy - exact, generator().standard_normal((1, 8)), atol=1e-12)


def test_a_person_counts_once():
    groups = np.array(["c", "a", "c", "b", "c"])
    np.testing.assert_allclose(module._weights(groups, 5), [1 / 3, 1, 1 / 3, 1, 1 / 3])
    with pytest.raises(ValueError, match=r"groups must have shape \(4,\)"):
        private_bounds(np.ones((4, 1)), budget=PLENTY, rng=generator(), groups=[1, 2, 3])
