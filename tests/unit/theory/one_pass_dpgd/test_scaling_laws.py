"""Theorem 4's exponents against a search over the learning rate, and the rate search itself."""

import numpy as np
import pytest

from privreg import spectra
from privreg.schedules import Harmonic, Polynomial
from privreg.theory.one_pass_dpgd import deterministic_equivalent, rate_search
from privreg.theory.one_pass_dpgd.deterministic_equivalent import descent_factor, variance_factor
from privreg.theory.one_pass_dpgd.rates import (
    critical_privacy_power,
    limiting_exponent,
    optimal_exponent,
    term_exponents,
)

NAMES = ("spectrum_power", "signal_power", "schedule_power", "privacy_power")
ISOTROPIC = {"aspect_ratio": 1e-3, "zcdp_root": 0.5, "clip_constant": 0.1, "label_noise_std": 0.3}


def powers_of_each_case(rng, count):
    for _ in range(count):
        schedule = rng.choice([0.0, 0.5, *rng.uniform(1, 12, 3)])
        spectrum = rng.choice([rng.uniform(-2, 1), 2 / (schedule + 1)])
        if spectrum < 1:
            signal = 1 - spectrum - rng.exponential()
            yield spectrum, signal, schedule, rng.uniform(-0.5, 1)


@pytest.mark.parametrize("seed", range(3))
def test_best_exponent_is_the_largest_smallest_one(seed):
    cases = set()
    for powers in powers_of_each_case(np.random.default_rng(seed), 200):
        rates = np.linspace(-1, 0, 4001)
        smallest = term_exponents(rates, **dict(zip(NAMES, powers, strict=True))).min(axis=0)
        found = optimal_exponent(*powers)
        cases.add(found.case)
        # No slope in the rate exceeds that of the signal's or the private noise's term.
        steepest = max(2 - powers[0] - powers[1], 2.0)
        assert 0 <= found.risk - smallest.max() <= steepest * 0.25e-3 + 1e-12
        # The terms are concave in the rate: the grid's best is within one spacing of 2.5e-4.
        assert found.learning_rate == pytest.approx(rates[np.argmax(smallest)], abs=2.5e-4 + 1e-9)
        assert -1 < found.learning_rate < 0
    assert cases == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("decay", "schedule", "zcdp_root", "rate", "risk", "free"),
    [
        (1.5, 0.0, 0.25, -0.4, 0.6, True),
        (1.5, 0.0, 0.4, -12 / 35, 18 / 35, False),
        (30.0, 2.0, 0.4, -3 / 91, 90 / 91, True),
        (1.5, 10.0, 0.4, -11 / 17.5, 16.5 / 17.5, True),
    ],
)
def test_figures_10_to_13(decay, schedule, zcdp_root, rate, risk, free):
    found = optimal_exponent(0.0, 2 - decay, schedule, zcdp_root)
    assert found.learning_rate == pytest.approx(rate, rel=1e-12)
    assert found.risk == pytest.approx(risk, rel=1e-12)
    assert (found.case in (1, 3)) == free
    assert not found.logarithm


@pytest.mark.parametrize("shift", [-1e-9, 1e-9])
def test_the_exponent_is_continuous_at_the_critical_power(shift):
    for spectrum, schedule in ((0.25, 1.0), (0.8, 4.0)):
        at = critical_privacy_power(spectrum, 0.1, schedule)
        either = optimal_exponent(spectrum, 0.1, schedule, at + shift)
        assert (either.case in (1, 3)) == (shift < 0)
        assert either.risk == pytest.approx(optimal_exponent(spectrum, 0.1, schedule, at).risk)


def test_the_logarithm_stands_where_both_limits_meet():
    powers = dict(zip(NAMES, (0.5, 0.0, 3.0, 0.6), strict=True))
    found = optimal_exponent(*powers.values())
    assert (found.case, found.logarithm) == (4, True)
    assert not optimal_exponent(0.51, 0.0, 3.0, 0.6).logarithm
    ratio = 1e-8
    terms = term_exponents(found.learning_rate, **powers, aspect_ratio=ratio)
    printed = found.risk + np.log(found.learning_rate * np.log(ratio)) / np.log(ratio)
    assert terms.min() == pytest.approx(printed)
    assert term_exponents(found.learning_rate, **powers).min() == pytest.approx(found.risk)


def test_long_schedules_approach_the_corollary():
    rng = np.random.default_rng(5)
    for spectrum, signal, _, zcdp_root in powers_of_each_case(rng, 100):
        limit = limiting_exponent(spectrum, signal, zcdp_root)
        assert optimal_exponent(spectrum, signal, 1e7, zcdp_root).risk == pytest.approx(
            limit, abs=1e-6
        )
    assert limiting_exponent(-0.5, 0.0, 0.5) == 1.0
    assert limiting_exponent(0.5, 0.0, 0.5) == pytest.approx(1.5 / 2)


def test_tuned_risk_follows_the_exponent():
    # phi = 0, psi = 0, alpha = 1, rho = 1: h = 4/5.
    spectrum = spectra.power_law(0.0, panels=18, nodes=4)
    ratios = np.array([1e-5, 1e-6])
    risk = [
        rate_search.polynomial(
            spectrum,
            exponent=1.0,
            aspect_ratio=ratio,
            zcdp_root=1.0,
            clip_constant=0.1,
            label_noise_std=0.3,
        ).final_risk
        for ratio in ratios
    ]
    slope = np.log(risk[0] / risk[1]) / np.log(ratios[0] / ratios[1])
    assert slope == pytest.approx(optimal_exponent(0.0, 0.0, 1.0, 0.0).risk, abs=0.01)


def test_search_finds_the_best_of_a_fine_grid():
    best = rate_search.polynomial(spectra.isotropic(), exponent=0.5, **ISOTROPIC)
    grid = np.geomspace(1.0, 1999.0, 800)
    risk = deterministic_equivalent.solve(
        spectra.isotropic(), Polynomial(grid, 0.5), **ISOTROPIC, times=[1.0], rtol=1e-6
    ).final_risk
    # The grid's own spacing, one percent, costs it up to 2e-4.
    assert risk.min() * (1 - 3e-4) < best.final_risk < risk.min() * (1 + 3e-5)
    assert float(best.schedule.amplitude) == pytest.approx(grid[np.argmin(risk)], rel=0.03)
    assert not best.at_bound


def test_search_is_as_fine_at_tiny_ratios():
    setting = ISOTROPIC | {"aspect_ratio": 1e-28}
    best = rate_search.polynomial(spectra.isotropic(), exponent=0.0, **setting)
    near = float(best.schedule.amplitude) * np.geomspace(0.97, 1.03, 121)
    risk = deterministic_equivalent.solve(
        spectra.isotropic(), Polynomial(near, 0.0), **setting, times=[1.0], rtol=1e-6
    ).final_risk
    assert best.final_risk < risk.min() * (1 + 5e-4)


@pytest.mark.parametrize("best", [1e-12, 1e-9, 3e-5, 0.1, 0.7, 10.0, 2e4, 1e9, 1e12])
def test_a_search_leaves_its_first_grid_on_either_side_up_to_the_bounds(best):
    grid, bounds = np.geomspace(0.1, 10, 41), {"lowest": 1e-9, "highest": 1e9, "finest": 0.01}
    found, _ = rate_search._zoom(lambda values: np.log(values / best) ** 2, grid, **bounds)
    # Zooms quarter a step of 12 percent until it is below one, of which half may be missed.
    assert found == pytest.approx(np.clip(best, 1e-9, 1e9), rel=0.004)


def test_search_says_when_the_cap_binds():
    # Hardly any samples and no privacy: the largest step is the best of a fast-decaying schedule.
    best = rate_search.polynomial(
        spectra.isotropic(),
        exponent=5.0,
        aspect_ratio=0.5,
        zcdp_root=np.inf,
        clip_constant=0.01,
        label_noise_std=0.3,
    )
    assert best.at_bound
    assert float(best.schedule.amplitude) == pytest.approx(4.0)


def test_harmonic_search_reaches_the_limit_constant():
    # nu(0) zeta^2 / (2 mu(0)^2) times gamma, with the numerator at 1 / mu(0).
    ratio, clip_constant, label_noise_std = 1e-6, 1.0, 0.3
    best = rate_search.harmonic(
        spectra.isotropic(),
        aspect_ratio=ratio,
        zcdp_root=1.0,
        clip_constant=clip_constant,
        label_noise_std=label_noise_std,
    )
    factors = {"clip_constant": clip_constant, "label_noise_std": label_noise_std}
    descent = float(descent_factor(0.0, **factors))
    limit = float(variance_factor(0.0, **factors)) * label_noise_std**2 / (2 * descent**2)
    assert best.final_risk / ratio == pytest.approx(limit, rel=0.01)
    assert isinstance(best.schedule, Harmonic)
    assert float(best.schedule.numerator) == pytest.approx(1 / descent, rel=0.1)
