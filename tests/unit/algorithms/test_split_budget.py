"""Sums that share a budget: the noise that a share buys, replayed, and what was spent on what."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.algorithms.split_budget import SplitBudget, private_count
from privreg.privacy.budget import Budget

N, BOUND, SHARE, RHO = 20.0, 3.0, 0.25, 0.5
SENSITIVITIES = {
    # Under replacement and under one record more or less; a count moves by 1 in two bins or one.
    "histogram": (np.sqrt(2), 1.0),
    # Two squares of vectors differ by √2 bounds at most, being semidefinite; vectors by two.
    "semidefinite": (np.sqrt(2) * BOUND / N, BOUND / N),
    "vector": (2 * BOUND / N, BOUND / N),
    # Between 0 and the bound.
    "number": (BOUND / N, BOUND / N),
}


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(1))


@pytest.mark.parametrize("name", list(SENSITIVITIES))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
def test_a_share_buys_noise_of_its_sensitivity(name: str, neighbours: str) -> None:
    shares = SplitBudget(Budget.zcdp(RHO, neighbours=neighbours), generator())
    exact = {"semidefinite": np.arange(9.0).reshape(3, 3), "number": np.array(7.0)}.get(
        name, np.arange(4.0)
    )
    more, mean = (BOUND, N), (exact + exact.T) / (2 * N)
    if name == "histogram":
        more, mean = (), exact
    found = getattr(shares, name)("it", SHARE, exact, *more)
    sensitivity = SENSITIVITIES[name][neighbours != "replace-one"]
    assert found.noise_std == pytest.approx(sensitivity / np.sqrt(2 * SHARE * RHO), rel=1e-12)
    normals = generator().standard_normal(exact.shape)
    if name == "semidefinite":
        # Isotropic in the Frobenius norm.
        normals = (normals + normals.T) / 2
    np.testing.assert_allclose((found.value - mean) / found.noise_std, normals, atol=1e-12)


def test_shares_add_up_under_their_names() -> None:
    shares = SplitBudget(Budget.zcdp(RHO), generator())
    for what, share in (("moments", 0.25), ("steps", 0.5), ("moments", 0.125)):
        shares.number(what, share, 1.0, BOUND, N)
    assert shares.spent == {"moments": 0.375, "steps": 0.5}
    assert shares.spending() == (
        ("moments", Budget.zcdp(0.375 * RHO)),
        ("steps", Budget.zcdp(0.5 * RHO)),
    )
    # Rounding may leave a sum of shares a little above the whole.
    shares.spent = {"all": 1.0 + 1e-16 + 2e-16}
    assert shares.spending() == (("all", Budget.zcdp(RHO)),)
    with pytest.raises(TypeError, match="spent"):
        SplitBudget(Budget.zcdp(RHO), generator(), spent={"it": 0.5})


def test_a_private_count_is_the_count_and_noise_but_at_least_one() -> None:
    for rho in (0.5, 0.02):
        found = private_count(500, budget=Budget.zcdp(rho), rng=generator())
        noise = generator().standard_normal() / np.sqrt(2 * rho)
        assert found.value == pytest.approx(500 + noise, rel=1e-12)
        assert found.budget == Budget.zcdp(rho)
    rng = generator()
    counts = [private_count(1, budget=Budget.zcdp(1e-3), rng=rng).value for _ in range(40)]
    assert min(counts) == 1.0 < max(counts)
    with pytest.raises(ValueError, match="count must be"):
        private_count(-1, budget=Budget.zcdp(1.0), rng=rng)
    assert private_count(0, budget=Budget.zcdp(1e6), rng=rng).value == 1.0


def test_ranges_are_those_that_are_said() -> None:
    """The ends are taken, what is beyond them is refused by name."""
    for rho in (1e-20, 1e20):
        shares = SplitBudget(Budget.zcdp(rho), generator())
        assert shares.number("it", 1.0, 0.5, 0.5, 0.5).noise_std == pytest.approx(
            1 / np.sqrt(2 * rho)
        )
    for rho in (0.9e-20, 1.1e20):
        with pytest.raises(ValueError, match="budget must be finite"):
            SplitBudget(Budget.zcdp(rho), generator())
    shares = SplitBudget(Budget.zcdp(RHO), generator())
    assert shares.number("it", 1e-12, 0.0, 0.0, 1e-9).noise_std == 0
    for share in (0.9e-12, 1.5):
        with pytest.raises(ValueError, match="share must be"):
            shares.number("it", share, 0.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="bound must be"):
        shares.number("it", SHARE, 0.0, -1e-9, 1.0)
    with pytest.raises(ValueError, match="n must be"):
        shares.number("it", SHARE, 0.0, 1.0, 0.9e-9)
