"""The conic program: multipliers that hold and that do not, limits, and the quadratic envelope."""

from __future__ import annotations

import numpy as np
import pytest

from privreg.theory.correlated_noise.convex_bound import SectorProgram, quadratic_envelope
from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

pytest.importorskip("cvxpy")
pytest.importorskip("clarabel")


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

    def sound(w):
        return np.where(np.arange(5) == 2, w, -w)

    def ramp(x):
        return np.maximum(x, 0.0)

    def kinked(x):
        return 0.2 * x + 0.8 * np.maximum(np.abs(x) - 1, 0) * np.sign(x)

    for _ in range(200):
        points = rng.standard_normal(12) * 2
        assert sector_sum(ramp, points, sound(weights), mu=0.0, smooth=1.0) >= -1e-12
        assert sector_sum(kinked, points, sound(weights), mu=0.2, smooth=1.0) >= -1e-12
    alternating = np.array([1.0, -1.0] * 6)
    printed = np.array([0.0, 1.0, 1.0, 0.0, 0.0])
    assert sector_sum(ramp, alternating, printed, mu=0.0, smooth=1.0) < -1


def test_without_curvature_to_choose_the_bound_is_that_of_the_quadratic():
    program = SectorProgram(strong_convexity=1 / 1.001, step_size=0.5, lags=3)
    noise = StationaryNoise.damped_square_root(0.5)
    found = program.bound(noise.power(program.frequencies))
    envelope = quadratic_envelope(
        program.frequencies, strong_convexity=1 / 1.001, smoothness=1.0, step_size=0.5
    )
    np.testing.assert_allclose(found.response, envelope, rtol=0.1)
    assert np.all(found.response >= envelope * (1 - 1e-9))


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


def test_bound_of_a_constant_multiplier_is_not_improved_by_symmetry_but_by_lags():
    program = SectorProgram(strong_convexity=0.1, step_size=1.0, lags=10)
    found = program.bound(np.ones_like(program.frequencies))
    short = SectorProgram(strong_convexity=0.1, step_size=1.0, lags=1)
    assert found.excess_risk <= short.bound(np.ones_like(short.frequencies)).excess_risk
    assert not np.allclose(found.multiplier, found.multiplier[::-1], rtol=0.1)


def test_grid_is_fine_enough_and_scales_are_those_of_the_formula():
    powers = StationaryNoise.damped_square_root(0.002).power
    risks = []
    for nodes in (24, 48):
        program = SectorProgram(
            strong_convexity=0.02, step_size=0.1, lags=10, nodes_per_panel=nodes
        )
        risks.append(program.bound(powers(program.frequencies)).excess_risk)
    assert risks[0] == pytest.approx(risks[1], rel=1e-4)
    scaled = program.bound(powers(program.frequencies), dimension=3, clip_norm=2.0, rho=0.5)
    assert scaled.excess_risk == pytest.approx(24 * risks[1], rel=1e-5)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: SectorProgram(strong_convexity=2.0, step_size=1.0), "strong_convexity"),
        (lambda: SectorProgram(strong_convexity=0.5, step_size=-1.0), "step_size"),
        (lambda: SectorProgram(strong_convexity=0.5, step_size=2.0), "step_size"),
        (
            lambda: SectorProgram(strong_convexity=0.5, step_size=1.0, multiplier="print"),
            "multiplier",
        ),
        (lambda: SectorProgram(strong_convexity=0.5, step_size=1.0).bound([1.0]), "power"),
        (
            lambda: quadratic_envelope(0.1, strong_convexity=0.5, smoothness=1.0, step_size=2.0),
            "step_size",
        ),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()
