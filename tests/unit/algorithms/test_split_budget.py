"""Sums that share a budget, the noise that a share buys, and what is made of noisy matrices."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from privreg.algorithms import whitened_descent
from privreg.algorithms.whitened_descent import (
    SLACK,
    NoisyValue,
    SplitBudget,
    newton_matrix,
    private_count,
    shrunk_curvature,
    whiten,
)
from privreg.noise.exact import UNITS, integer_noise_std
from privreg.privacy.budget import Budget

N, BOUND, SHARE, RHO = 20.0, 3.0, 0.25, 0.5
# A record's part of a sum, in whole numbers, how often its square may be moved by, and a unit.
RELEASES = {
    # Under replacement and under one record more or less; a count moves by 1 in two bins or one.
    "histogram": (UNITS, (2, 1), 1 / UNITS),
    # Two squares of vectors differ by √2 bounds at most, being semidefinite; vectors by two.
    "semidefinite": (UNITS**2, (2, 1), BOUND / UNITS**2 / N),
    "vector": (UNITS, (4, 1), BOUND / UNITS / N),
    # Between 0 and the bound.
    "number": (UNITS, (1, 1), BOUND / UNITS / N),
    # With a rounding of a unit in each entry of three rows.
    "matrix": (UNITS**2 + 2 * UNITS, (4, 1), BOUND / UNITS**2 / N),
}
TOTALS = {
    "semidefinite": np.array([[4, -7, 1], [-7, 9, 0], [1, 0, 1 << 45]], dtype=object),
    "matrix": np.array([[4, -7, 1], [2, 9, 0], [1, 0, 1 << 45]], dtype=object),
    "number": np.array(7, dtype=object),
}


def generator() -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(1))


def released(name: str, shares: SplitBudget) -> tuple[NoisyValue, np.ndarray, float, int]:
    """What is released of a sum, the sum in units, a unit, and the squared sensitivity."""
    total = TOTALS.get(name, np.array([0, 5, -3, 1 << 40], dtype=object))
    reach, moves, unit = RELEASES[name]
    more = () if name == "histogram" else (BOUND, N)
    found = getattr(shares, name)("it", SHARE, total, *more)
    square = moves[shares.budget.neighbours.value != "replace-one"] * reach**2
    whole = np.asarray(total * (UNITS if name == "histogram" else 1), dtype=object)
    return found, whole, unit, square


@pytest.mark.parametrize("name", list(RELEASES))
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove", "zero-out"])
def test_a_share_buys_noise_of_its_sensitivity(name: str, neighbours: str) -> None:
    """The least whole noise that the share pays for, but for a billionth."""
    budget = Budget.zcdp(RHO, neighbours=neighbours)
    found, total, unit, square = released(name, SplitBudget(budget, generator()))
    std = round(found.noise_std / unit)
    assert found.noise_std == unit * std
    rho = Fraction(SHARE) * Fraction(RHO)
    assert square <= 2 * rho * std**2
    assert square > 2 * rho * (1 - Fraction(1, 10**9)) * (std - 1) ** 2
    normals = generator().standard_normal(total.shape)
    if name == "semidefinite":
        # Isotropic in the Frobenius norm.
        normals = (normals + normals.T) / 2
    whole = np.asarray(total + np.rint(std * normals), dtype=float)
    assert_array_equal(found.value, unit * whole)


@pytest.mark.parametrize("name", list(RELEASES))
def test_secret_noise_is_exact_and_no_less(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number has noise of the share's, or off a symmetric diagonal at least 1/√2 of it."""
    drawn: list[int] = []

    def drawer(shape: tuple[int, ...], *, std: int) -> np.ndarray:
        drawn.extend([std] * int(np.prod(shape)))
        return np.full(shape, std)

    monkeypatch.setattr(whitened_descent, "rounded_normals", drawer)
    found, total, unit, _ = released(name, SplitBudget(Budget.zcdp(RHO), None))
    std = round(found.noise_std / unit)
    expected = np.full(total.shape, std)
    if name == "semidefinite":
        least = min(drawn)
        assert 2 * (least - 1) ** 2 < std**2 <= 2 * least**2
        expected = np.where(np.eye(3) > 0, std, least)
    assert len(drawn) == (6 if name == "semidefinite" else total.size)
    assert_array_equal(found.value, unit * np.asarray(total + expected, dtype=float))


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
        std = integer_noise_std(square_sensitivity=UNITS**2, rho=Fraction(rho) * SLACK)
        assert std == pytest.approx(UNITS / np.sqrt(2 * rho), abs=1)
        noise = np.rint(std * generator().standard_normal())
        assert found.value == (500 * UNITS + noise) / UNITS
        assert found.budget == Budget.zcdp(rho)
    rng = generator()
    counts = [private_count(1, budget=Budget.zcdp(1e-3), rng=rng).value for _ in range(40)]
    assert min(counts) == 1.0 < max(counts)
    assert private_count(0, budget=Budget.zcdp(1e6), rng=rng).value == 1.0


def test_ranges_are_those_that_are_said() -> None:
    for rho in (1e-12, 1e12):
        found = SplitBudget(Budget.zcdp(rho), generator()).number("it", 1.0, 0.5, 0.5, 0.5)
        # Up to a whole number of units.
        assert found.noise_std == pytest.approx(1 / np.sqrt(2 * rho), abs=1 / UNITS)
    for rho in (1e13, np.inf):
        with pytest.raises(ValueError, match="budget must be finite"):
            SplitBudget(Budget(rho), generator())
    shares = SplitBudget(Budget.zcdp(RHO), generator())
    assert shares.number("it", 1e-12, 0.0, 0.0, 1.0).noise_std == 0
    for share in (0.0, 1.5, np.nan):
        with pytest.raises(ValueError, match="share must be in"):
            shares.number("it", share, 0.0, 1.0, 1.0)


TURN = np.linalg.qr(np.random.default_rng(1).standard_normal((2, 2)))[0]


def turned(first: float, second: float) -> np.ndarray:
    """A matrix with these eigenvalues."""
    return TURN @ np.diag([first, second]) @ TURN.T


def eigenvalues_of_root(gram: np.ndarray, noise_std: float) -> np.ndarray:
    """Of the second moment whose inverse root was taken, along the matrix's own directions."""
    root = whiten(NoisyValue(gram, noise_std)).root
    back = TURN.T @ np.linalg.inv(root @ root) @ TURN
    assert abs(back[0, 1]) <= 1e-6 * np.max(back)
    return np.diag(back)


def weight(first: float, second: float, noise_std: float) -> float:
    """1 - s² p(p+1)/2 over the squared distance to the mean, for two dimensions."""
    return 1 - 3 * noise_std**2 / ((first - second) ** 2 / 2)


def test_without_noise_rows_become_white() -> None:
    rng = np.random.default_rng(2)
    gram = np.cov(rng.standard_normal((4, 30)))
    found = whiten(NoisyValue(gram, 0.0))
    assert found.weight == 1.0
    assert_allclose(found.root.T @ gram @ found.root, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(
    ("pair", "noise_std", "expected"),
    [
        # A billionth of the mean is the floor where noise leaves none.
        ((20.0, 1e-12), 0.0, (20.0, 1e-8)),
        # Noise alone: the mean, or what noise leaves of a mean that is no length.
        ((3.0, 3.0), 0.0, (3.0, 3.0)),
        ((3.0, 1.0), 5.0, (5.0 / np.sqrt(2), 5.0 / np.sqrt(2))),
        ((30.0, 26.0), 5.0, (28.0, 28.0)),
        ((-3.0, -1.0), 5.0, (5.0 / np.sqrt(2), 5.0 / np.sqrt(2))),
    ],
)
def test_floors(pair: tuple, noise_std: float, expected: tuple) -> None:
    found = eigenvalues_of_root(turned(*pair), noise_std)
    assert_allclose(found, expected, rtol=1e-4)


def test_a_share_of_the_noise_is_the_floor() -> None:
    """At a weight ω the spectrum of the noise ends at ω s √(2p); it is never above the mean."""
    kept = weight(10.0, 0.1, 0.5)
    found = eigenvalues_of_root(turned(10.0, 0.1), 0.5)
    assert_allclose(found, [5.05 + kept * 4.95, kept * 0.5 * 2], rtol=1e-9)
    assert whiten(NoisyValue(turned(10.0, 0.1), 0.5)).weight == pytest.approx(kept)
    kept, centre = weight(1.5, -1.4, 0.5), 0.5 / np.sqrt(2)
    assert kept * 0.5 * 2 > centre
    found = eigenvalues_of_root(turned(1.5, -1.4), 0.5)
    assert_allclose(found, [0.05 + kept * 1.45, centre], rtol=1e-9)


def test_newton_matrices_invert_the_symmetric_part() -> None:
    matrix = np.array([[1.0, 0.2], [0.0, 0.8]])
    found = newton_matrix(NoisyValue(matrix, 0.0), 0.5)
    assert_allclose(found, np.linalg.inv((matrix + matrix.T) / 2), rtol=1e-12)


@pytest.mark.parametrize(
    ("pair", "noise_std", "slope", "expected"),
    [
        # Below three tenths of the mean is the floor.
        ((1.0, 0.01), 0.0, 0.5, (1.0, 0.3 * 0.505)),
        ((1.0, 0.16), 0.0, 0.5, (1.0, 0.3 * 0.58)),
        # Noise alone: the mean, between a quarter of the slope and 1.5.
        ((1.1, 1.0), 9.0, 0.5, (1.05, 1.05)),
        ((6.0, 4.0), 9.0, 0.5, (1.5, 1.5)),
        ((0.1, -0.2), 9.0, 0.8, (0.2, 0.2)),
        ((-6.0, -4.0), 9.0, 0.5, (0.125, 0.125)),
    ],
)
def test_newton_matrices_stay_within_reach(
    pair: tuple, noise_std: float, slope: float, expected: tuple
) -> None:
    found = newton_matrix(NoisyValue(turned(*pair), noise_std), slope)
    assert_allclose(np.diag(TURN.T @ np.linalg.inv(found) @ TURN), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("seen", "noise_std", "for_steps", "for_intervals"),
    [(0.05, 0.04, 0.2, 0.07), (-0.03, 0.04, 0.2, 0.02), (0.05, 0.8, 0.2, 0.2), (0.0, 0.0, 0.2, 0)],
)
def test_a_thin_direction_bounds_steps_and_widens_intervals(
    seen: float, noise_std: float, for_steps: float, for_intervals: float
) -> None:
    """Steps take it for a fifth of the mean; intervals for what is seen and half a deviation."""
    noisy = NoisyValue(turned(2.0 - seen, seen), noise_std)
    for thin, expected in ((False, for_steps), (True, for_intervals)):
        found = TURN.T @ shrunk_curvature(noisy, thin=thin) @ TURN
        apart = noise_std**2 * 3 / (2 * (1.0 - seen) ** 2)
        shrunk = 1.0 - max(1.0 - apart, 0.0) * (1.0 - seen)
        assert found[1, 1] == pytest.approx(max(expected, shrunk), abs=2e-9)
        assert found[1, 1] > 0
        assert abs(found[0, 1]) < 1e-9
