"""The sector program: multipliers that hold and that do not, its optimum, limits, the envelope."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from mpmath import mp
from scipy.optimize import minimize

from privreg.checks import AccuracyWarning
from privreg.theory.correlated_noise.bounds import SectorProgram, quadratic_envelope
from privreg.theory.correlated_noise.stationary import StationaryNoise


def sector_sum(gradient, points, multiplier, *, mu, smooth):
    """Left side of inequality (91) in the time domain, on a periodic signal."""
    slope = gradient(points) - mu * points
    slack = smooth * points - gradient(points)
    lags = multiplier.size // 2
    filtered = sum(
        weight * np.roll(slack, lag)
        for lag, weight in zip(range(-lags, lags + 1), multiplier, strict=True)
    )
    return slope @ filtered


def test_sound_multipliers_hold_for_monotone_gradients_and_the_printed_ones_do_not(rng):
    weights = rng.random(5)
    weights[2] = weights.sum() - weights[2]  # λ_0 is the sum of the others

    def ramp(x):
        return np.maximum(x, 0.0)

    def kinked(x):
        return 0.2 * x + 0.8 * np.maximum(np.abs(x) - 1, 0) * np.sign(x)

    sound = np.where(np.arange(5) == 2, weights, -weights)
    for _ in range(50):
        points = rng.standard_normal(12) * 2
        assert sector_sum(ramp, points, sound, mu=0.0, smooth=1.0) >= -1e-12
        assert sector_sum(kinked, points, sound, mu=0.2, smooth=1.0) >= -1e-12
    alternating = np.array([1.0, -1.0] * 6)
    printed = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    assert sector_sum(ramp, alternating, printed, mu=0.0, smooth=1.0) < -1


def inequality(program, multiplier, index, sign):
    """Both sides of the matrix inequality at one frequency: ψ's least value from its definition."""
    w = mp.mpf(float(program.frequencies[index]))
    mu, smooth, eta = map(mp.mpf, (program.strong_convexity, program.smoothness, program.step_size))
    total = mp.fsum(
        mp.mpf(float(x)) * (1 if t == 0 else sign) * mp.expj(w * t)
        for t, x in enumerate(multiplier, start=-program.lags)
    )
    real, d = mp.re(total), 1 - mp.expj(w)
    a = mp.matrix([[eta, 0], [d, -eta]])
    mixed = mu * total + smooth * mp.conj(total)
    right = a.H * mp.matrix([[-2 * mu * smooth * real, mixed], [mp.conj(mixed), -2 * real]]) * a
    # [[-η² - r₀₀, -r₀₁], [-r₁₀, η²ψ - r₁₁]] is semidefinite.
    first = -(eta**2) - mp.re(right[0, 0])
    assert first > 0
    return (mp.re(right[1, 1]) + abs(right[0, 1]) ** 2 / first) / eta**2


@pytest.mark.parametrize("seed", range(12))
def test_bounds_hold_and_are_the_least(seed):
    rng = np.random.default_rng(seed)
    smooth = 10.0 ** rng.uniform(-6, 6)
    mu = smooth * 10.0 ** rng.uniform(-4, -0.1)
    eta = 10.0 ** rng.uniform(-3, 0.2) / smooth
    variant = ("sound", "printed")[seed % 2]
    program = SectorProgram(
        strong_convexity=mu,
        smoothness=smooth,
        step_size=eta,
        lags=3,
        nodes_per_panel=4,
        multiplier=variant,
    )
    noise = StationaryNoise.damped_anti_pgd(10.0 ** rng.uniform(-4, 0))
    power = noise.power(program.frequencies)
    found = program.bound(power)
    for index in rng.integers(power.size, size=4):
        exact = inequality(program, found.multiplier, int(index), -1 if seed % 2 == 0 else 1)
        # (L - µ)²|Λ|² + 2 Re Λ cancels nothing; αx + βy - 1 some digits at most.
        assert float(found.response[index]) == pytest.approx(float(exact), rel=1e-9)
    load = found.weights * power
    gamma = found.weights @ (1 / power) / (2 * np.pi)
    scale = smooth * gamma / (2 * np.pi)
    assert found.excess_risk == pytest.approx(scale * (load @ found.response), rel=1e-12)

    def cost(multiplier):
        within = np.all(multiplier >= 0) and multiplier.sum() <= 2 * multiplier[3]
        if not within or np.any(program._inequality.slack(multiplier) <= 0):
            return np.inf
        return float(load @ program._inequality.response(multiplier))

    # By a search that knows no slopes: from the constants, and from the multiplier found.
    least = cost(found.multiplier)
    for scale in np.geomspace(1e-3, 1e6, 100) / (mu * smooth):
        assert cost(scale * np.eye(7)[3]) >= least * (1 - 1e-7)
    logs = np.log(np.maximum(found.multiplier, 1e-12 * found.multiplier[3]))
    moved = minimize(
        lambda x: cost(np.exp(x)), logs, method="Nelder-Mead", options={"maxfev": 1000}
    )
    assert moved.fun >= least * (1 - 1e-7)


@pytest.mark.parametrize("strong_convexity", [1.0, 1 / 1.001, 0.03, 1e-4])
@pytest.mark.parametrize("step_size", [1e-3, 1e-2, 1.9])
def test_every_spectrum_of_an_ordinary_problem_has_a_certified_bound(strong_convexity, step_size):
    program = SectorProgram(strong_convexity=strong_convexity, step_size=step_size, lags=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        for damping in (1.0, 1e-2, 1e-4):
            program.bound(StationaryNoise.damped_anti_pgd(damping).power(program.frequencies))


def test_a_quadratic_has_the_bound_of_its_envelope():
    program = SectorProgram(strong_convexity=1.0, step_size=0.5, lags=3)
    noise = StationaryNoise.damped_square_root(0.5)
    found = program.bound(noise.power(program.frequencies))
    envelope = quadratic_envelope(
        program.frequencies, strong_convexity=1.0, smoothness=1.0, step_size=0.5
    )
    # The optimum is at an infinite multiplier: 1e8 leaves 1e-8 of it.
    np.testing.assert_allclose(found.response, envelope, rtol=1e-7)


@pytest.mark.parametrize("step_size", [1.0, 0.1])
@pytest.mark.parametrize("condition", [3.0, 30.0])
def test_bounds_are_ordered(condition, step_size):
    mu = 1 / condition
    risks = {}
    for variant in ("sound", "printed"):
        program = SectorProgram(
            strong_convexity=mu, step_size=step_size, lags=10, multiplier=variant
        )
        grid = program.frequencies
        envelope = quadratic_envelope(
            grid, strong_convexity=mu, smoothness=1.0, step_size=step_size
        )
        damped = StationaryNoise.damped_square_root(step_size * mu)
        independent = program.bound(np.ones_like(grid))
        correlated = program.bound(damped.power(grid))
        optimised = program.optimise(damped.power(grid))
        for found in (independent, correlated, optimised):
            assert np.all(found.response >= envelope * (1 - 1e-9))
            centre = found.multiplier.size // 2
            assert np.all(found.multiplier >= 0)
            assert found.multiplier.sum() <= 2 * found.multiplier[centre] * (1 + 1e-12)
        assert optimised.excess_risk <= correlated.excess_risk < independent.excess_risk
        risks[variant] = independent.excess_risk
    # Neither set holds the other's multipliers; here the false one promises more.
    assert risks["printed"] < risks["sound"]


def test_more_lags_and_an_asymmetric_multiplier_lower_the_bound():
    program = SectorProgram(strong_convexity=0.1, step_size=1.0, lags=10)
    found = program.bound(np.ones_like(program.frequencies))
    short = SectorProgram(strong_convexity=0.1, step_size=1.0, lags=1)
    assert found.excess_risk <= short.bound(np.ones_like(short.frequencies)).excess_risk
    assert not np.allclose(found.multiplier, found.multiplier[::-1], rtol=0.1)


def test_grid_is_fine_enough():
    powers = StationaryNoise.damped_square_root(0.002).power
    coarse, fine = (
        SectorProgram(strong_convexity=0.02, step_size=0.1, lags=10, nodes_per_panel=nodes)
        for nodes in (24, 48)
    )
    found = coarse.bound(powers(coarse.frequencies)).excess_risk
    assert found == pytest.approx(fine.bound(powers(fine.frequencies)).excess_risk, rel=1e-4)
