"""Rates of anon2024: printed forms, slopes of the balanced and of the minimised bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privreg.theory.shaped_noise import (
    EXPONENTIAL_EXPONENTS,
    ExponentialDecay,
    PowerLawDecay,
    designed_bound,
    designed_exponent,
    designed_threshold,
    fitted_exponent,
    identity_bound,
    identity_exponent,
    identity_threshold,
    minimise_over_step_size,
    nonprivate_exponent,
    switch_points,
)

SEEDS = range(6)
DECAYS = [Fraction(3, 2), Fraction(2), Fraction(3), Fraction(5), Fraction(8)]


@pytest.mark.parametrize("r", DECAYS)
def test_constant_epsilon_gives_the_table(r):
    assert identity_exponent(r) == r / (1 + 2 * r)
    assert designed_exponent(r) == min(r / (3 + r), 2 * r / (1 + 3 * r))


def test_a_power_of_epsilon_enters_as_its_square_in_the_bound():
    # ε = N^p makes τ² = N^-2p; the exponents of τ² in Corollaries 4.4 and 4.6.
    r, p = Fraction(3), Fraction(1, 20)
    assert identity_exponent(r, epsilon_power=p) - identity_exponent(r) == (2 * p * r / (1 + 2 * r))
    assert designed_exponent(r, epsilon_power=p) - designed_exponent(r) == (2 * p * r / (3 + r))


def test_switch_points():
    found = switch_points()
    assert found == {"better": 2, "branch": 5, "threshold": 3, "threshold_better": 2}
    below, above = Fraction(199, 100), Fraction(201, 100)
    assert designed_exponent(below) < identity_exponent(below)
    assert designed_exponent(above) > identity_exponent(above)


# Up to whole numbers that doubles hold; terms of lower order, 1 / ln N among them, are still seen.
SIZES = np.geomspace(1e11, 2.0**53, 7)


def exponent(bound, decay, sizes, *, power=0.0, noise=1.0, **options):
    """Fitted exponent of the minimised bound at τ = noise · N^-power."""
    values = [
        minimise_over_step_size(
            lambda eta, n=n: (
                bound(
                    decay,
                    sample_size=n,
                    step_size=eta,
                    noise_multiplier=noise * n**-power,
                    **options,
                ).total
            ),
            sample_size=n,
        ).value
        for n in sizes
    ]
    return fitted_exponent(sizes, values)


@pytest.mark.parametrize("r", [1.5, 2.0, 3.0, 4.0, 5.0, 6.0])
def test_minimised_bounds_have_the_exponents_of_the_table(r):
    sizes, decay = SIZES, PowerLawDecay(r)
    assert exponent(identity_bound, decay, sizes, noise=0.0) == pytest.approx(
        nonprivate_exponent(r), abs=0.02
    )
    assert exponent(identity_bound, decay, sizes) == pytest.approx(identity_exponent(r), abs=0.02)
    assert exponent(designed_bound, decay, sizes) == pytest.approx(designed_exponent(r), abs=0.02)


def test_exponential_decay_nears_its_exponents():
    found = [
        exponent(identity_bound, ExponentialDecay(), SIZES, noise=0.0),
        exponent(identity_bound, ExponentialDecay(), SIZES),
        exponent(designed_bound, ExponentialDecay(), SIZES),
    ]
    np.testing.assert_allclose(found, [1, 1 / 2, 2 / 3], atol=0.1)


@pytest.mark.parametrize("r", [2.0, 4.0])
def test_the_threshold_of_epsilon_recovers_the_rate_without_privacy(r):
    sizes, decay = SIZES, PowerLawDecay(r)
    for bound, threshold in (
        (identity_bound, identity_threshold),
        (designed_bound, designed_threshold),
    ):
        found = exponent(bound, decay, sizes, power=threshold(r))
        assert found == pytest.approx(nonprivate_exponent(r), abs=0.02)
        # Half the power is not enough.
        assert exponent(bound, decay, sizes, power=threshold(r) / 2) < found - 0.05


def test_the_minimum_is_found_between_grid_points():
    best = minimise_over_step_size(lambda eta: (np.log(eta) + 3.21) ** 2, sample_size=1e8)
    assert np.log(best.step_size) == pytest.approx(-3.21, abs=1e-3)
    for step in 1e-3 ** np.array([0.0, 3e-4, 1.3e-3, 0.9998, 1.0]):
        best = minimise_over_step_size(lambda eta, at=step: np.log(eta / at) ** 2, sample_size=1e3)
        assert best.step_size == pytest.approx(step, rel=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_step_size_is_that_of_a_finer_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 10.0 ** rng.uniform(0, 100)
    centre = np.exp(rng.uniform(np.log(1 / size) - 2, 2))

    def bound(eta: np.ndarray) -> np.ndarray:
        return eta / centre + centre / eta

    best = minimise_over_step_size(bound, sample_size=size)
    inside = np.clip(centre, 1 / size, 1)
    assert best.value == pytest.approx(float(bound(inside)), rel=1e-6)
    assert 1 / size * (1 - 1e-12) <= best.step_size <= 1 + 1e-12
    power, sizes = rng.uniform(-3, 3), 10.0 ** rng.uniform(0, 12, 5)
    assert fitted_exponent(sizes, 7 * sizes**-power) == pytest.approx(power, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_rates_are_slopes_of_the_balanced_bounds(seed: int) -> None:
    """x is the best over η = N^-s of the least exponent among a bound's terms.

    With D = (Nη)^(1/r), by linear programming in s over its breakpoints.
    """
    rng = np.random.default_rng(seed)
    for _ in range(8):
        r = Fraction(int(rng.integers(101, 2000)), 100)
        p = Fraction(int(rng.integers(-100, 100)), 50)

        def exponents(s: Fraction, r: Fraction = r, p: Fraction = p) -> dict[str, list[Fraction]]:
            dimension = (1 - s) / r
            common = [1 - s, 1 - dimension]
            # The paper's noise has τ² of the order of N^-2p.
            noise = 2 * p
            return {
                "plain": common,
                "identity": [*common, noise + s - dimension],
                "designed": [*common, noise + 2 * s - dimension, noise + 1 - 3 * dimension],
            }

        def best(name: str) -> Fraction:
            # Concave and piecewise linear in s: best where two lines meet, or at an end.
            names = exponents(Fraction(0))[name]
            at = [exponents(Fraction(s))[name] for s in (0, 1)]
            lines = [(a, b - a) for a, b in zip(*at, strict=True)]
            candidates = {Fraction(0), Fraction(1)}
            for i in range(len(names)):
                for j in range(i):
                    (a, b), (c, d) = lines[i], lines[j]
                    if b != d and 0 <= (c - a) / (b - d) <= 1:
                        candidates.add((c - a) / (b - d))
            return max(min(a + b * s for a, b in lines) for s in candidates)

        assert nonprivate_exponent(r) == best("plain")
        if identity_exponent(r, epsilon_power=p) >= 0 and p >= 0:
            assert identity_exponent(r, epsilon_power=p) == best("identity")
            assert designed_exponent(r, epsilon_power=p) == best("designed")
        for threshold, exponent in (
            (identity_threshold(r), identity_exponent),
            (designed_threshold(r), designed_exponent),
        ):
            assert exponent(r, epsilon_power=threshold) == nonprivate_exponent(r)
            less = threshold - Fraction(1, 10**6)
            assert exponent(r, epsilon_power=less) < nonprivate_exponent(r)
        for found, function in zip(
            EXPONENTIAL_EXPONENTS,
            (nonprivate_exponent, identity_exponent, designed_exponent),
            strict=True,
        ):
            assert abs(found - function(Fraction(10**12))) < Fraction(1, 10**10)
        for function in (identity_exponent, designed_exponent):
            assert float(function(float(r), epsilon_power=float(p))) == pytest.approx(
                float(function(r, epsilon_power=p)), rel=1e-12, abs=1e-12
            )
