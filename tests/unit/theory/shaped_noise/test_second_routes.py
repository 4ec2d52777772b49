"""Shaped noise at random inputs: exact sums, dense matrices and fractions."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from privreg.theory.shaped_noise import (
    ExponentialDecay,
    PowerLawDecay,
    effective_dimension,
    independent_factor,
    privacy_error,
    toeplitz_factor,
    tree_factor,
)

SEEDS = range(6)


# Power laws


@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_law_has_the_sums_of_its_eigenvalues(seed: int) -> None:
    """Cutoffs in whole numbers where they are exact, tails by mpmath's zeta function."""
    rng = np.random.default_rng(seed)
    with mp.workdps(40):
        for _ in range(10):
            r = float(rng.choice([1 + 10.0 ** rng.uniform(-6, 0), 10.0 ** rng.uniform(0.2, 2)]))
            decay = PowerLawDecay(r)
            a = 10.0 ** rng.uniform(-2, 12)
            if rng.random() < 0.5:
                # Next to where the cutoff jumps.
                k = int(rng.integers(1, 2000))
                a = float(mp.mpf(k) ** r) if r * np.log10(k) < 12 else a
                a = float(np.nextafter(a, rng.choice([0.0, np.inf])))
            k = int(mp.floor(mp.mpf(a) ** (1 / mp.mpf(r))))
            cutoff = int(decay.cutoff(a))
            if k < 10**6 and mp.mpf(k) ** r != a:
                near = abs(mp.mpf(max(cutoff, k)) ** r / a - 1) < 1e-13
                # (k + 1)^r is rounded: next to a jump either side is right to a rounding of a.
                assert cutoff == k or near, (r, a)
            wanted = cutoff + mp.mpf(a) * mp.zeta(mp.mpf(r), cutoff + 1)
            assert float(effective_dimension(decay, a)) == pytest.approx(float(wanted), rel=1e-10)
            assert decay.trace == pytest.approx(float(mp.zeta(mp.mpf(r))), rel=1e-13)
            assert decay.squared_trace == pytest.approx(float(mp.zeta(2 * mp.mpf(r))), rel=1e-13)


@pytest.mark.parametrize("power", [2.0, 3.0, 5.0, 7.0])
def test_a_cutoff_below_a_perfect_power_is_the_root_less_one(power: float) -> None:
    roots = np.arange(2.0, 200.0)
    roots = roots[roots**power < 2**52]
    decay = PowerLawDecay(power)
    np.testing.assert_array_equal(decay.cutoff(np.nextafter(roots**power, 0)), roots - 1)
    np.testing.assert_array_equal(decay.cutoff((roots**power).tolist()), roots)


@pytest.mark.parametrize(
    ("r", "a"),
    [
        *((r, 10.0**e) for r in (1.5, 2.0, 4.0) for e in (-12, 0, 5)),
        (50.0, 1e12),
        (100.0, 1e-12),
    ],
)
def test_shares_of_a_power_law_add_up(r: float, a: float) -> None:
    found = PowerLawDecay(r).shaped_trace(a)
    with mp.workdps(30):
        power, horizon = mp.mpf(r), mp.mpf(a)
        # A head by terms, and the tail's geometric series of zeta functions where aλ < 1/8.
        head = int((8 * horizon) ** (1 / power)) + 1
        wanted = sum(1 / (1 + mp.mpf(i) ** power / horizon) for i in range(1, min(head, 2000) + 1))
        if head <= 2000:
            first = horizon * mp.mpf(head + 1) ** -power
            for order in range(1, 40):
                s = order * power
                scaled = sum((1 + mp.mpf(i) / (head + 1)) ** -s for i in range(60))
                end = mp.mpf(head + 61)
                rest = (end / (head + 1)) ** -s * (
                    end / (s - 1)
                    + mp.mpf(1) / 2
                    + s / (12 * end)
                    - s * (s + 1) * (s + 2) / (720 * end**3)
                )
                wanted -= (-first) ** order * (scaled + rest)
            assert found == pytest.approx(float(wanted), rel=1e-9)
        else:
            # Bracketed by the integral: terms fall.
            assert found >= float(wanted)
        dimension = float(effective_dimension(PowerLawDecay(r), a))
        assert found <= dimension * (1 + 1e-9)
        assert dimension <= 2 * found * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_exponential_decay_has_the_sums_of_its_eigenvalues(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(5):
        a = 10.0 ** rng.uniform(-12, 12)
        with mp.workdps(30):
            terms = [mp.mpf(a) * mp.exp(-i) for i in range(1, 100)]
            decay = ExponentialDecay()
            wanted = float(sum(min(1, x) for x in terms))
            assert float(effective_dimension(decay, a)) == pytest.approx(wanted, rel=1e-11)
            shaped = float(sum(x / (1 + x) for x in terms))
            assert decay.shaped_trace(a) == pytest.approx(shaped, rel=1e-11)


# Factors of mean gradients


def drawn_shrinkage(rng: np.random.Generator) -> float:
    choices = [
        0.0,
        1.0,
        rng.random(),
        10.0 ** rng.uniform(-12, 0),
        1 - 10.0 ** rng.uniform(-12, 0),
    ]
    return float(rng.choice(choices))


def prefix_nodes(count: int) -> list[tuple[int, int]]:
    """Intervals of whole powers of two whose sums make up the first `count` steps."""
    nodes, start = [], 0
    for height in reversed(range(count.bit_length())):
        if count >> height & 1:
            nodes.append((start, height))
            start += 1 << height
    return nodes


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_are_those_of_the_dense_map(seed: int) -> None:
    """The average's weight on each draw, summed step by step in exact arithmetic."""
    rng = np.random.default_rng(seed)
    for _ in range(2):
        size, x = int(rng.integers(1, 66)), drawn_shrinkage(rng)
        rho = 1 - Fraction(x)
        beta = rng.standard_normal(size) * 10.0 ** rng.uniform(-12, 12)
        # A kick at step t (after the t-th row) enters iterates t, ..., N - 1.
        reach = [sum((rho**k for k in range(size - t)), Fraction(0)) for t in range(size + 1)]
        independent = sum((reach[t] ** 2 for t in range(1, size)), Fraction(0))
        found = independent_factor(x, sample_size=size)
        assert float(found) == pytest.approx(float(independent), rel=1e-12)
        weights: dict[tuple[int, int], Fraction] = {}
        for t in range(1, size):
            for node in prefix_nodes(t):
                # Node in use at t: the prefix sum enters iterate t through its increments.
                weights[node] = weights.get(node, Fraction(0)) + rho ** (size - 1 - t)
        tree = sum((w * w for w in weights.values()), Fraction(0))
        assert float(tree_factor(x, sample_size=size)) == pytest.approx(float(tree), rel=1e-12)
        total = Fraction(0)
        for source in range(1, size):
            gain = sum(
                (Fraction(beta[t - source].item()) * reach[t] for t in range(source, size)),
                Fraction(0),
            )
            total += gain**2
        found = toeplitz_factor(x, decoder=beta, sample_size=size)
        scale = float(np.sum(np.abs(beta)) ** 2 * size**3)
        assert float(found) == pytest.approx(float(total), rel=1e-9, abs=1e-13 * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_factors_of_many_steps_are_their_closed_forms(seed: int) -> None:
    """Up to 2^53 steps: Σ (1 - ρ^k)² / (1 - ρ)² as geometric sums in enough digits."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        size = int(2.0 ** rng.uniform(1, 53))
        x = min(1.0, 10.0 ** rng.uniform(-12, 0))
        with mp.workdps(80):
            rho, n = 1 - mp.mpf(x), size - 1
            first = rho * (1 - rho**n) / (1 - rho)
            second = rho**2 * (1 - rho ** (2 * n)) / (1 - rho**2)
            wanted = (n - 2 * first + second) / mp.mpf(x) ** 2
        found = independent_factor(x, sample_size=size)
        assert float(found) == pytest.approx(float(wanted), rel=1e-9)


def test_a_tree_of_a_power_of_two_without_shrinkage_is_a_triangular_number() -> None:
    for size in (2, 64, 2**20):
        assert tree_factor(0.0, sample_size=size) == size * (size - 1) / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_the_privacy_error_is_a_sum_of_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 6)), int(10 ** rng.uniform(0, 12))
    lam, shape, weight = (10.0 ** rng.uniform(-12, 12, d) for _ in range(3))
    eta, std = 10.0 ** rng.uniform(-12, 12, 2)
    found = privacy_error(
        weight,
        eigenvalues=lam,
        covariance=shape,
        step_size=float(eta),
        sample_size=size,
        noise_std=float(std),
    )
    products = zip(lam.tolist(), shape.tolist(), weight.tolist(), strict=True)
    total = sum(Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in products)
    wanted = total * (Fraction(float(std)) * Fraction(float(eta)) / size) ** 2 / 2
    assert found == pytest.approx(float(wanted), rel=1e-12)
