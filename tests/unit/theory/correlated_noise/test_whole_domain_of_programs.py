"""The sector program at random settings: a feasible bound, no worse than others, in any unit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from mpmath import mp

from privreg.accuracy import AccuracyWarning
from privreg.theory.correlated_noise.convex_bound import SectorProgram, quadratic_envelope
from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

from ...magnitudes import magnitude, near

pytest.importorskip("cvxpy")
pytest.importorskip("clarabel")

SEEDS = pytest.mark.parametrize("seed", range(16))


def least_response(program: SectorProgram, multiplier: np.ndarray, index: int) -> mp.mpf:
    """The least ψ at one frequency for which the matrix of the inequality is definite."""
    w = mp.mpf(float(program.frequencies[index]))
    mu, smooth, eta = (
        mp.mpf(each) for each in (program.strong_convexity, program.smoothness, program.step_size)
    )
    shifts = range(-program.lags, program.lags + 1)
    total = mp.fsum(
        (mp.mpf(float(x)) * (1 if t == 0 else -1)) * mp.expj(w * t)
        for t, x in zip(shifts, multiplier, strict=True)
    )
    real, d = mp.re(total), 1 - mp.expj(w)
    a = mp.matrix([[eta, 0], [d, -eta]])
    middle = mp.matrix(
        [
            [-2 * mu * smooth * real, mu * total + smooth * mp.conj(total)],
            [mu * mp.conj(total) + smooth * total, -2 * real],
        ]
    )
    right = a.H * middle * a
    # [[-η² - r₀₀, -r₀₁], [-r₁₀, η²ψ - r₁₁]] is semidefinite.
    first = -(eta**2) - mp.re(right[0, 0])
    assert first > 0
    return max((mp.re(right[1, 1]) + abs(right[0, 1]) ** 2 / first) / eta**2, mp.mpf(0))


@SEEDS
def test_bounds_hold_and_are_nearly_the_least(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 50
    smooth, ratio = magnitude(rng, 1e-50, 1e50), magnitude(rng, 1e-6, 0.9)
    mu = max(smooth * ratio, 1e-50)
    eta = magnitude(rng, max(1e-4, 1e-8 * smooth / mu), 1.0) / smooth
    program = SectorProgram(
        strong_convexity=mu, smoothness=smooth, step_size=eta, lags=3, nodes_per_panel=4
    )
    noise = StationaryNoise.damped_anti_pgd(magnitude(rng, 1e-3, 1.0))
    power = noise.power(program.frequencies) * magnitude(rng, 1e-20, 1e20)
    given = {"clip_norm": magnitude(rng, 1e-50, 1e50), "rho": magnitude(rng, 1e-50, 1e50)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AccuracyWarning)
        found = program.bound(power, dimension=7, **given)
    for index in rng.integers(power.size, size=4):
        exact = least_response(program, found.multiplier, int(index))
        assert near(float(found.response[index]), exact, 1e-6)
    envelope = quadratic_envelope(
        program.frequencies,
        strong_convexity=mu,
        smoothness=smooth,
        step_size=min(eta, 1 / smooth),
    )
    assert np.all(found.response * smooth**2 >= envelope * smooth**2 * (1 - 1e-6))
    middle = program.lags
    assert found.multiplier.sum() <= 2 * found.multiplier[middle] * (1 + 1e-12)
    load = found.weights * power
    cost = load @ found.response
    scale = smooth * 7 * mp.mpf(given["clip_norm"]) ** 2 / mp.mpf(given["rho"])
    gamma = mp.mpf(float(found.weights @ (1 / power))) / (2 * mp.pi)
    wanted = scale * gamma * mp.mpf(float(cost)) / (2 * mp.pi)
    if wanted < 1e300:
        assert near(found.excess_risk, wanted, 1e-12)
    if caught:
        return
    # No constant multiplier does better, nor one nearby.
    for _ in range(30):
        other = found.multiplier * (1 + 0.1 * rng.standard_normal(found.multiplier.size))
        if rng.random() < 0.3:
            other = np.zeros_like(other)
            other[middle] = 10.0 ** rng.uniform(-3, 6) / (mu * smooth)
        other[middle] = max(other[middle], other.sum() - other[middle])
        forms = [form @ other for form in program._forms]
        slack = forms[0] - 1
        if np.all(slack > 0):
            response = np.maximum((forms[2] ** 2 + forms[3] ** 2) / slack - forms[1], 0)
            assert load @ response >= cost * (1 - 2e-3)


def test_a_bound_far_above_the_least_warns():
    """A third less is attainable there, and the solver called it solved."""
    program = SectorProgram(strong_convexity=0.01, step_size=1e-3, lags=3, nodes_per_panel=4)
    noise = StationaryNoise.damped_anti_pgd(0.01)
    with pytest.warns(AccuracyWarning, match="sector bound"):
        program.bound(noise.power(program.frequencies))
