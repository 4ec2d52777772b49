"""Conversions of privacy over the whole domain, in many digits."""

import numpy as np
import pytest
from mpmath import mp

from privreg.privacy.budget import (
    gaussian_epsilon,
    gaussian_rho,
    to_approximate,
    to_approximate_tight,
)
from privreg.privacy.renyi import LowRankUpdate, renyi_divergence

from ..magnitudes import LEAST, magnitude, magnitudes, near

SEEDS = pytest.mark.parametrize("seed", range(25))


def drawn_delta(rng: np.random.Generator) -> float:
    """From next to 0 to next to 1."""
    small = rng.random() < 0.7
    return float(magnitude(rng, LEAST, 0.9) if small else 1 - magnitude(rng, LEAST, 0.5))


@SEEDS
def test_closed_and_tight_conversions(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 60
    rho, delta = magnitude(rng), drawn_delta(rng)
    r, size = mp.mpf(rho), -mp.log(mp.mpf(delta))
    closed = r + 2 * mp.sqrt(r * size)
    assert near(float(to_approximate(rho, delta=delta)), closed, 1e-14)

    def bound(decades: mp.mpf) -> mp.mpf:
        """Of an order, by the logarithm of its excess over 1."""
        gap = mp.sqrt(size / r) * mp.mpf(10) ** decades
        return r * (1 + gap) + (size - mp.log(1 + gap)) / gap + mp.log(gap / (1 + gap))

    best = min((mp.mpf(k) / 10 for k in range(-60, 61)), key=bound)
    low, high = best - mp.mpf("0.1"), best + mp.mpf("0.1")
    for _ in range(60):
        first, second = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, second) if bound(first) < bound(second) else (first, high)
    found = float(to_approximate_tight(rho, delta=delta))
    assert found <= closed * (1 + mp.mpf("1e-12"))
    # A total variation of δ needs no ε, and ρ gives at most √(ρ/2).
    if delta < mp.sqrt(r / 2):
        assert found >= max(bound(low), 0) * (1 - mp.mpf("1e-9"))


def spent_delta(rho: float, epsilon: float) -> mp.mpf:
    """δ of one Gaussian mechanism by the formula of Balle and Wang, whose terms cancel."""
    mu, loss = mp.sqrt(2 * mp.mpf(rho)), mp.mpf(epsilon)

    def mass(x: mp.mpf) -> mp.mpf:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    return mass(mu / 2 - loss / mu) - mp.exp(loss) * mass(-mu / 2 - loss / mu)


@SEEDS
def test_the_gaussian_trade_off_and_its_inverse(seed):
    """Rounded to the safe side, so that δ is never exceeded, and by no more than digits allow."""
    rng = np.random.default_rng(seed)
    rho, epsilon, delta = magnitude(rng), magnitude(rng), drawn_delta(rng)
    found, root = gaussian_epsilon(rho, delta=delta), (2 * rho) ** 0.5
    largest = gaussian_rho(epsilon, delta=delta)
    assert gaussian_epsilon(largest, delta=delta) <= epsilon
    with mp.workdps(100):
        assert spent_delta(rho, found) <= delta
        if found > 0:
            slack = 1e-12 * root * (root / 2 + abs(found / root - root / 2) + 1)
            assert spent_delta(rho, found - slack) > delta
        assert spent_delta(largest, epsilon) <= delta < spent_delta(largest * (1 + 1e-9), epsilon)


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


@SEEDS
@pytest.mark.parametrize("kind", ["diagonal", "low rank"])
def test_divergences_are_right_or_refused(kind, seed):
    """Of orders that are 1, next to it, fractions, and large."""
    rng = np.random.default_rng(seed)
    mp.dps = 120
    near_one = 1 + rng.choice([-1.0, 1.0]) * magnitude(rng, 1e-12, 0.5)
    exact_one = 1.0 if kind == "diagonal" else near_one
    order = float(
        rng.choice([exact_one, near_one, magnitude(rng, LEAST, 1.0), magnitude(rng, 1.0, 1e6)])
    )
    d, unit = int(rng.integers(1, 4)), magnitude(rng)
    p = unit * magnitudes(rng, 1e-6, 1e6, d)
    q = p * (magnitudes(rng, 1e-6, 1e6, d) if rng.random() < 0.5 else rng.uniform(0.5, 1.5, d))
    shift = rng.standard_normal(d) * np.sqrt(unit) * magnitude(rng, LEAST, 1e6)
    first, second = p, q
    exact = [mp.diag([mp.mpf(float(x)) for x in each]) for each in (p, q)]
    if kind == "low rank":
        factors = rng.standard_normal((d, 1)) * np.sqrt(unit)
        cores = magnitude(rng, 1e-8, 1e8) * rng.uniform(0.5, 1.5, 2)
        first, second = (LowRankUpdate(p, factors, [[core]]) for core in cores)
        u = mp.matrix(factors.tolist())
        exact = [exact[0] + mp.mpf(float(core)) * u * u.T for core in cores]
    wanted = divergence(mp.matrix(shift.tolist()), *exact, order)
    try:
        found = renyi_divergence(shift, first, second, order=order)
    except ValueError as error:
        assert "within the range of double precision" in str(error)  # noqa: PT017
        return
    if wanted == mp.inf:
        assert found == np.inf
    else:
        assert near(found, wanted, 1e-6) or abs(mp.mpf(found) - wanted) <= 1e-9
