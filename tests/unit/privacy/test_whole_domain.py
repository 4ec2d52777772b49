"""Conversions of privacy over whole documented domains, in many digits."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from privreg.privacy.gaussian import renyi_divergence
from privreg.privacy.gaussian_dp import gaussian_epsilon, gaussian_rho
from privreg.privacy.iteration import one_pass_zcdp_root
from privreg.privacy.low_rank import LowRankUpdate
from privreg.privacy.zcdp import (
    compose,
    from_approximate,
    from_approximate_tight,
    gaussian_budget,
    gaussian_noise_std,
    to_approximate,
    to_approximate_tight,
)

from ..magnitudes import magnitude, magnitudes, near

SEEDS = pytest.mark.parametrize("seed", range(40))


def drawn_delta(rng: np.random.Generator, least: float = 1e-300) -> float:
    """From next to 0 to next to 1."""
    if rng.random() < 0.3:
        return float(1 - magnitude(rng, 2.0**-53, 0.5))
    return float(magnitude(rng, least, 0.9))


@SEEDS
def test_budgets_of_one_mechanism(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 50
    shift, spread = magnitude(rng, 1e-300, 1e300), magnitude(rng, 1e-300, 1e300)
    exact = (mp.mpf(shift) / mp.mpf(spread)) ** 2 / 2
    found = float(gaussian_budget(sensitivity=shift, noise_std=spread))
    # Never a promise beyond what the noise gives; what underflows is rounded up.
    assert mp.mpf(found) >= exact * (1 - mp.mpf("1e-15")) or found == np.inf
    if 1e-290 < exact < 1e300:
        assert near(found, exact, 1e-14)
    rho = magnitude(rng, 1e-300, 1e300)
    noise = float(gaussian_noise_std(sensitivity=shift, rho=rho))
    exact = mp.mpf(shift) / mp.sqrt(2 * mp.mpf(rho))
    assert noise > 0
    assert mp.mpf(noise) >= exact * (1 - mp.mpf("1e-15")) or noise == np.inf
    if 1e-290 < exact < 1e300:
        assert near(noise, exact, 1e-14)
    parts = magnitudes(rng, 1e-300, 1e300, 5)
    assert near(float(compose(parts)), mp.fsum(map(mp.mpf, parts)), 1e-15)


@SEEDS
def test_closed_conversions(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 50
    rho, delta = magnitude(rng, 1e-300, 1e300), float(rng.choice([1.0, drawn_delta(rng)]))
    found = float(to_approximate(rho, delta=delta))
    wanted = mp.mpf(rho) + 2 * mp.sqrt(mp.mpf(rho) * -mp.log(mp.mpf(delta)))
    assert near(found, wanted, 1e-14)
    epsilon = magnitude(rng, 1e-300, 1e300)
    found = float(from_approximate(epsilon, delta=delta))
    size = -mp.log(mp.mpf(delta))
    wanted = (mp.mpf(epsilon) / (mp.sqrt(size + mp.mpf(epsilon)) + mp.sqrt(size))) ** 2
    assert near(found, wanted, 1e-14)


@SEEDS
def test_tight_conversion_is_valid_and_near_the_best_order(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 250
    rho, delta = magnitude(rng, 1e-100, 1e100), drawn_delta(rng)
    found = float(to_approximate_tight(rho, delta=delta))
    r, d = mp.mpf(rho), mp.mpf(delta)

    def epsilon(gap: mp.mpf) -> mp.mpf:
        a = 1 + gap
        return r * a + (-mp.log(d) - mp.log(a)) / gap + mp.log(1 - 1 / a)

    # Unimodal enough in the logarithm of the order less 1.
    centre = mp.sqrt(-mp.log(d) / r)
    tried = min(epsilon(centre * mp.mpf(10) ** (mp.mpf(k) / 40)) for k in range(-240, 241))
    closed = r + 2 * mp.sqrt(r * -mp.log(d))
    # A total variation of δ needs no ε, and ρ gives at most √(ρ/2).
    if d >= mp.sqrt(r / 2):
        assert found <= closed
        return
    assert mp.mpf(found) >= max(tried, 0) * (1 - mp.mpf("1e-3")) * (1 - mp.mpf("1e-9"))
    assert mp.mpf(found) <= closed * (1 + mp.mpf("1e-12"))
    if seed < 6:
        target = magnitude(rng, 1e-12, 1e12)
        largest = float(from_approximate_tight(target, delta=delta))
        assert to_approximate_tight(largest, delta=delta) <= target
        assert to_approximate_tight(largest * (1 + 1e-8), delta=delta) > target


def spent_delta(rho: float, epsilon: mp.mpf) -> mp.mpf:
    """δ of one Gaussian mechanism by the formula of Balle and Wang, whose terms cancel."""
    mu = mp.sqrt(2 * mp.mpf(rho))

    def mass(x: mp.mpf) -> mp.mpf:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    return mass(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mass(-mu / 2 - epsilon / mu)


@SEEDS
def test_the_gaussian_trade_off(seed):
    """Rounded up, so that δ is never exceeded: by 1e10 times it was, beside a subnormal δ."""
    rng = np.random.default_rng(seed)
    rho, delta = magnitude(rng, 1e-250, 1e100), drawn_delta(rng, 1e-322)
    found = gaussian_epsilon(rho, delta=delta)
    with mp.workdps(700):
        assert spent_delta(rho, mp.mpf(found)) <= delta
        if found > 0:
            mu = mp.sqrt(2 * mp.mpf(rho))
            terms = mu / 2 + abs(found / mu - mu / 2) + 1
            assert spent_delta(rho, found - mp.mpf("1e-12") * mu * terms) > delta


@SEEDS
def test_the_gaussian_trade_off_inverted(seed):
    rng = np.random.default_rng(seed)
    epsilon, delta = magnitude(rng, 1e-100, 1e99), drawn_delta(rng, 1e-100)
    rho = gaussian_rho(epsilon, delta=delta)
    assert gaussian_epsilon(rho, delta=delta) <= epsilon
    with mp.workdps(700):
        assert spent_delta(rho, mp.mpf(epsilon)) <= delta
        if rho < 1e99:
            assert spent_delta(rho * (1 + 1e-9), mp.mpf(epsilon)) > delta


@pytest.mark.parametrize(
    ("rho", "delta"), [(0.5169394428651595, 1.04e-322), (2480.690688880779, 1.897546454e-315)]
)
def test_subnormal_failures(rho, delta):
    with mp.workdps(400):
        assert spent_delta(rho, mp.mpf(gaussian_epsilon(rho, delta=delta))) <= delta


def test_large_budgets_are_met_from_below():
    """A last digit of ρ was 5 % of δ."""
    epsilon, delta = 3.1253227503415123e28, 0.0033874496141155
    with mp.workdps(400):
        assert spent_delta(gaussian_rho(epsilon, delta=delta), mp.mpf(epsilon)) <= delta


@SEEDS
def test_one_pass_of_any_size(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    steps, noise = magnitudes(rng, 1e-300, 1e300, n), magnitudes(rng, 1e-300, 1e300, n)
    steps *= rng.random(n) < 0.8
    noise *= rng.random(n) < 0.8
    wanted = mp.mpf(0)
    for k in range(n):
        left = mp.sqrt(mp.fsum(mp.mpf(float(x)) ** 2 for x in noise[k:]))
        if steps[k] > 0:
            wanted = max(wanted, mp.mpf(float(steps[k])) / left if left else mp.inf)
    found = float(one_pass_zcdp_root(steps, noise))
    assert found == np.inf if wanted > 1.7e308 else near(found, wanted, 1e-13)
    assert found > 0 or not np.any(steps)


def divergence(delta, p, q, order: float) -> mp.mpf:
    """Of covariances that are matrices of mpmath."""
    alpha = mp.mpf(order)
    if order == 1.0:
        inverse = mp.inverse(q)
        trace = sum((inverse * p)[i, i] for i in range(p.rows))
        log = mp.log(mp.det(q)) - mp.log(mp.det(p))
        return (trace - p.rows + log + (delta.T * inverse * delta)[0]) / 2
    mixture = (1 - alpha) * p + alpha * q
    try:
        mp.cholesky(mixture)
    except ValueError:
        return mp.inf
    log = mp.log(mp.det(mixture)) - (1 - alpha) * mp.log(mp.det(p)) - alpha * mp.log(mp.det(q))
    return alpha / 2 * (delta.T * mp.inverse(mixture) * delta)[0] - log / (2 * (alpha - 1))


def drawn_order(rng: np.random.Generator) -> float:
    """1, next to it, a fraction, or large."""
    near_one = 1 + rng.choice([-1.0, 1.0]) * magnitude(rng, 1e-15, 0.5)
    return float(rng.choice([1.0, near_one, magnitude(rng, 1e-12, 1.0), magnitude(rng, 1.0, 1e6)]))


@SEEDS
@pytest.mark.parametrize("kind", ["diagonal", "low rank"])
def test_divergences_are_right_or_refused(kind, seed):
    rng = np.random.default_rng(seed)
    mp.dps = 120
    d, order = int(rng.integers(1, 4)), drawn_order(rng)
    unit = magnitude(rng, 1e-100, 1e100)
    p = unit * magnitudes(rng, 1e-12, 1e12, d)
    q = (
        p * magnitudes(rng, 1e-12, 1e12, d)
        if rng.random() < 0.5
        else p * (1 + rng.uniform(-0.5, 0.5, d))
    )
    shift = rng.standard_normal(d) * np.sqrt(unit) * magnitude(rng, 1e-30, 1e12)
    first, second = p, q
    exact = [mp.diag([mp.mpf(float(x)) for x in each]) for each in (p, q)]
    if kind == "low rank":
        factors = rng.standard_normal((d, 1)) * np.sqrt(unit)
        cores = magnitude(rng, 1e-8, 1e8) * rng.uniform(0.5, 1.5, 2)
        first, second = (
            LowRankUpdate(each, factors, [[core]]) for each, core in zip((p, p), cores, strict=True)
        )
        u = mp.matrix(factors.tolist())
        exact = [exact[0] + mp.mpf(float(core)) * u * u.T for core in cores]
    wanted = divergence(mp.matrix(shift.tolist()), *exact, order)
    try:
        found = renyi_divergence(shift, first, second, order=order)
    except ValueError as error:
        if "double precision can compute with" in str(error):
            return
        raise
    if wanted > 1.7e308:
        assert found > 1e300
    else:
        assert near(found, wanted, 1e-6) or abs(mp.mpf(found) - wanted) <= mp.mpf("1e-9"), (
            found,
            float(wanted),
            order,
        )
