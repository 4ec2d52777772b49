"""The sector program at random settings: a feasible bound, no worse than others, in any unit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from mpmath import mp
from scipy.optimize import minimize

from privreg.accuracy import AccuracyWarning
from privreg.theory.correlated_noise.convex_bound import SectorProgram, quadratic_envelope
from privreg.theory.correlated_noise.sector_multiplier import least_multiplier
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


@pytest.mark.parametrize(
    ("strong_convexity", "step_size", "damping"),
    [(1e-2, 1e-3, 1e-2), (1e-1, 1e-2, 1e-2), (1e-4, 1e-3, 1e-3), (1e-3, 1e-3, 1e-4)],
)
def test_a_damped_spectrum_has_the_least_bound(strong_convexity, step_size, damping):
    """Bounds were up to 150 times as large, for a solver that called them solved."""
    program = SectorProgram(
        strong_convexity=strong_convexity, step_size=step_size, lags=3, nodes_per_panel=4
    )
    power = StationaryNoise.damped_anti_pgd(damping).power(program.frequencies)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AccuracyWarning)
        found = program.bound(power)
    load = program.weights * power
    least = load @ found.response

    def cost(multiplier: np.ndarray) -> float:
        first, second, real, imaginary = (form @ multiplier for form in program._forms)
        slack = first - 1
        within = np.all(slack > 0) and np.all(multiplier >= 0)
        if not within or multiplier.sum() > 2 * multiplier[3]:
            return np.inf
        return float(load @ ((real**2 + imaginary**2) / slack - second))

    # By a search that knows no slopes, from the constants and from what was found.
    constant = np.zeros(7)
    for start in (0.0, -2.0, -4.0):
        scales = np.geomspace(10.0**start, 1e6, 200) / strong_convexity
        for scale in scales:
            constant[3] = scale
            assert cost(constant) >= least * (1 - 1e-9)
    logs = np.log(np.maximum(found.multiplier, 1e-12 * found.multiplier[3]))
    moved = minimize(
        lambda x: cost(np.exp(x)), logs, method="Nelder-Mead", options={"maxfev": 4000}
    )
    assert moved.fun >= least * (1 - 1e-3)
    # The certificate holds from elsewhere, too.
    start = np.zeros(7)
    start[3] = 4 / strong_convexity
    again, distance = least_multiplier(program._forms, load, start)
    assert distance <= 1e-5
    assert cost(again) == pytest.approx(least, rel=2e-5)
