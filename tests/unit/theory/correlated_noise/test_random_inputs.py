"""Each function of a spectrum or a decoder on random inputs, by a second route."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from privreg.theory.correlated_noise import bounds, stationary
from privreg.theory.correlated_noise.stationary import (
    StationaryNoise,
    distance_ratio_integral,
    frequency_rule,
    inverse_distance_integral,
    regression_response,
    squared_distance,
)

SEEDS = pytest.mark.parametrize("seed", range(10))
mp.dps = 60  # differences at 1e-12 cancel twice as many


def rate(rng: np.random.Generator, *, least: float = -12.0) -> float:
    """Log-uniform, but often of ordinary size or 1."""
    return float(10.0 ** (rng.choice([0.0, -1.0, least]) * rng.random()))


def spectrum(rng: np.random.Generator, *, decades: float = 8.0) -> tuple[np.ndarray, float]:
    """Eigenvalues of one size or far apart, and a step size below 1/λ₁."""
    d = int(rng.integers(1, 6))
    spread = rng.choice([0.0, 1.0, decades])
    values = 10.0 ** (rng.uniform(-6, 4) + spread * (rng.random(d) - 0.5))
    return values, float(rate(rng, least=-4.0) * 0.999 / values.max())


def known_noise(rng: np.random.Generator) -> tuple[StationaryNoise, Fraction]:
    nu = rate(rng)
    return StationaryNoise.damped_anti_pgd(nu), Fraction(nu)


def anti_pgd_variance(nu: Fraction, b: Fraction) -> Fraction:
    """Σ β_τ β_k (1-b)^|τ-k| of β = (1, -(1-ν))."""
    beta = (Fraction(1), nu - 1)
    return sum(beta[tau] * beta[k] * (1 - b) ** abs(tau - k) for tau in range(2) for k in range(2))


def graded(function) -> float:
    """Integral over a period of an even function, by Gauss panels in the logarithm of ω."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(np.log(1e-40), np.log(np.pi), 141)
    half = np.diff(edges)[:, None] / 2
    frequency = np.exp(edges[:-1, None] + half * (1 + nodes))
    # What lies below 1e-40 is 1e-28 of the narrowest feature.
    return float(2 * np.sum(half * weights * frequency * function(frequency)))


@SEEDS
def test_distances_and_their_integrals(seed):
    rng = np.random.default_rng(seed)
    a, b, frequency = rate(rng), rate(rng), np.pi * rate(rng)
    exact = abs(1 - mp.mpf(a) - mp.expj(mp.mpf(frequency))) ** 2
    assert float(squared_distance(frequency, a)) == pytest.approx(float(exact), rel=1e-14, abs=0)
    modulus = mp.sqrt(mp.mpf(a) * (2 - mp.mpf(a)))
    agm = 2 * mp.pi / mp.agm(1, modulus)
    assert float(inverse_distance_integral(a)) == pytest.approx(float(agm), rel=1e-13)
    assert float(distance_ratio_integral(a, a)) == pytest.approx(float(agm), rel=1e-12)
    found = float(distance_ratio_integral(a, b))
    wanted = graded(lambda w: np.sqrt(_square(w, a)) / _square(w, b))
    assert found == pytest.approx(wanted, rel=1e-11)
    # At a = 0, the elementary integral.
    found = float(distance_ratio_integral(0.0, b))
    assert found == pytest.approx(graded(lambda w: 2 * np.sin(w / 2) / _square(w, b)), rel=1e-11)
    nodes, weights = frequency_rule(a)
    c = min(1.0, a * 10 ** rng.uniform(0, 2))
    poisson = float(weights @ (1 / _square(nodes, c)))
    assert poisson == pytest.approx(float(2 * mp.pi / (mp.mpf(c) * (2 - mp.mpf(c)))), rel=1e-12)


def _square(w: np.ndarray, c: float) -> np.ndarray:
    return c**2 + 4 * (1 - c) * np.sin(w / 2) ** 2


@SEEDS
def test_families_of_stationary_noise(seed):
    rng = np.random.default_rng(seed)
    nu, b = rate(rng), rate(rng)
    root = StationaryNoise.damped_square_root(nu)
    wanted = mp.mpf(b) * (2 - mp.mpf(b)) / (2 * mp.pi)
    wanted *= graded(lambda w: np.sqrt(_square(w, nu)) / _square(w, b))
    assert float(root.relative_variance(b)) == pytest.approx(float(wanted), rel=1e-10, abs=0)
    modulus = mp.sqrt(mp.mpf(nu) * (2 - mp.mpf(nu)))
    assert root.squared_sensitivity == pytest.approx(float(1 / mp.agm(1, modulus)), rel=1e-13)
    anti, exact = StationaryNoise.damped_anti_pgd(nu), Fraction(nu)
    law = anti_pgd_variance(exact, Fraction(b))
    assert float(anti.relative_variance(b)) == pytest.approx(float(law), rel=1e-13, abs=0)
    assert anti.squared_sensitivity == pytest.approx(float(1 / (exact * (2 - exact))), rel=1e-13)


@SEEDS
def test_responses_and_their_bounds(seed):
    rng = np.random.default_rng(seed)
    values, eta = spectrum(rng)
    frequency = np.pi * rate(rng, least=-10.0)
    exact = sum(
        mp.mpf(v) / abs(1 - mp.mpf(eta) * mp.mpf(v) - mp.expj(mp.mpf(frequency))) ** 2
        for v in values
    )
    found = float(regression_response(frequency, values, step_size=eta))
    assert found == pytest.approx(float(exact), rel=1e-13, abs=0)
    plain = bounds.universal_lower_bound(
        values, step_size=eta, noise_multiplier=1.5, clip_norm=2.0, label_noise_std=0.3
    )
    trace = sum(map(Fraction, values.tolist()))
    eta_ = Fraction(eta)
    wanted = (2 * eta_ * Fraction(0.3) ** 2 + eta_**2 * 9) * trace / 8
    assert plain == pytest.approx(float(wanted), rel=1e-12, abs=0)


def _risk_by_linear_algebra(values, eta, variances, sigma, zeta):
    """½ Σ λ s of the fixed point of the second moments, in many digits."""
    lam, step = [mp.mpf(v) for v in values], mp.mpf(eta)
    d = len(lam)
    matrix, drive = mp.eye(d), mp.zeros(d, 1)
    for i in range(d):
        for j in range(d):
            # In units of 1/λ, so that all entries are of one size.
            matrix[i, j] -= step**2 * lam[i] * lam[j] * lam[i] / lam[j]
        matrix[i, i] -= 1 - 2 * step * lam[i] + 2 * step**2 * lam[i] ** 2
        noise = mp.mpf(sigma) ** 2 * mp.mpf(variances[i].numerator) / variances[i].denominator
        drive[i] = step**2 * lam[i] * (lam[i] * mp.mpf(zeta) ** 2 + noise)
    return mp.fsum(mp.lu_solve(matrix, drive)) / 2


@SEEDS
def test_stationary_risks_and_their_bounds(seed):
    rng = np.random.default_rng(seed)
    values, eta = spectrum(rng)
    limit = stationary.stability_limit(values)
    # At the limit the fixed point is lost: η/2 Σ λ/(1-ηλ) crosses 1.
    lam = [mp.mpf(v) for v in values]
    crossing = [
        mp.mpf(limit) * s / 2 * mp.fsum(v / (1 - mp.mpf(limit) * s * v) for v in lam) - 1
        for s in (1 - mp.mpf(10) ** -12, 1 + mp.mpf(10) ** -12)
    ]
    if len(values) > 1:
        assert crossing[0] < 0 < crossing[1]
    eta = min(eta, 0.9 * limit)
    noise, nu = known_noise(rng)
    rates = [Fraction(eta) * Fraction(v) for v in values.tolist()]
    variances = [anti_pgd_variance(nu, b) for b in rates]
    sigma, zeta = 10.0 ** rng.uniform(-9, 9, 2)
    scales = {"gradient_noise_std": sigma, "label_noise_std": zeta}
    common = {"step_size": eta, "noise": noise, **scales}
    found = stationary.stationary_error(values, **common)
    wanted = _risk_by_linear_algebra(values, eta, variances, sigma, zeta)
    assert found.excess_risk == pytest.approx(float(wanted), rel=1e-9, abs=0)
    assert 0.5 * values @ found.variances == pytest.approx(float(wanted), rel=1e-9, abs=0)
    s2, z2 = Fraction(sigma) ** 2, Fraction(zeta) ** 2
    below = bounds.stationary_lower_bound(values, **common)
    assert below <= found.excess_risk * (1 + 1e-12)
    private = sum(2 * c / (2 - b) for b, c in zip(rates, variances, strict=True))
    exact = Fraction(eta) * (z2 * sum(map(Fraction, values.tolist())) + s2 * private) / 4
    assert below == pytest.approx(float(exact), rel=1e-11, abs=0)
    moment = Fraction(bounds.fourth_moment_bound(values))
    if Fraction(eta) * moment < Fraction(99, 100):
        above = bounds.stationary_upper_bound(values, **common)
        assert above >= found.excess_risk * (1 - 1e-12)
        x = mp.mpf(eta) * mp.mpf(moment.numerator) / moment.denominator
        spread, moved = 1 / (1 - mp.sqrt(x)) ** 2, sum(variances)
        wanted = (1 + spread) * x * mp.mpf(zeta) ** 2 + (1 + 3 * spread) * mp.mpf(eta) * mp.mpf(
            sigma
        ) ** 2 * mp.mpf(moved.numerator) / mp.mpf(moved.denominator)
        assert above == pytest.approx(float(wanted), rel=1e-9, abs=0)


@SEEDS
def test_sizes_of_a_spectrum_are_exact(seed):
    rng = np.random.default_rng(seed)
    values, _ = spectrum(rng)
    values = np.append(values, 0.0)
    lam = [Fraction(v) for v in values.tolist()]
    stable_rank = float(sum(lam) / max(lam))
    assert bounds.effective_dimension(values) == pytest.approx(stable_rank, rel=1e-14)
    # E‖x‖² x xᵀ = 2 H² + tr(H) H, so R² is the largest of these ratios.
    sharp = max((2 * v**2 + sum(lam) * v) / v for v in lam if v)
    assert bounds.fourth_moment_bound(values) == pytest.approx(float(sharp), rel=1e-14, abs=0)
    low, high = min(v for v in lam if v), max(lam)
    eta = float(1 / sharp) * float(rng.uniform(0.01, 0.99))
    step = float(rng.integers(0, 10**6))
    first, last = 10.0 ** rng.uniform(-9, 9, 2)
    found = bounds.transient_bound(
        step, eigenvalues=values[:-1], step_size=eta, initial_risk=first, stationary_risk=last
    )
    ratio = mp.mpf(high.numerator) / high.denominator / (mp.mpf(low.numerator) / low.denominator)
    decay = mp.exp(-mp.mpf(eta) * mp.mpf(low.numerator) / low.denominator * mp.mpf(step))
    wanted = (mp.sqrt(ratio * decay * mp.mpf(first)) + mp.sqrt(mp.mpf(last))) ** 2
    assert float(found) == pytest.approx(float(wanted), rel=1e-9, abs=0)


@SEEDS
def test_mean_estimation(seed):
    rng = np.random.default_rng(seed)
    noise, nu = known_noise(rng)
    eta = rate(rng)
    sigma, spread = 10.0 ** rng.uniform(-9, 9, 2)
    found = stationary.stationary_excess_risk(
        eta, noise=noise, gradient_noise_std=sigma, sample_std=spread
    )
    # The fixed point of s = (1-η)² s + η² (σ² c + Var z).
    step = Fraction(eta)
    drive = Fraction(sigma) ** 2 * anti_pgd_variance(nu, step) + Fraction(spread) ** 2
    wanted = step**2 * drive / (1 - (1 - step) ** 2) / 2
    assert float(found) == pytest.approx(float(wanted), rel=1e-12, abs=0)
    integral = 1 / mp.agm(1, mp.sqrt(mp.mpf(eta) * (2 - mp.mpf(eta))))
    least = stationary.least_private_excess_risk(eta, noise_multiplier=1.5, clip_norm=0.4)
    wanted = (mp.mpf(eta) * mp.mpf(1.5) * mp.mpf(0.4) * integral) ** 2 / 2
    assert float(least) == pytest.approx(float(wanted), rel=1e-12, abs=0)
    ratio = stationary.optimal_risk_ratio(eta)
    wanted = mp.mpf(eta) * (2 - mp.mpf(eta)) * integral**2
    assert float(ratio) == pytest.approx(float(wanted), rel=1e-12, abs=0)
