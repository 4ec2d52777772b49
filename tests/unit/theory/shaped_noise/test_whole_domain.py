"""Risks and bounds of shaped noise at sizes whose squares are no numbers, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from privreg.theory.shaped_noise.bounds import (
    designed_bound,
    fitted_exponent,
    general_bound,
    identity_bound,
    minimise_over_step_size,
)
from privreg.theory.shaped_noise.decay import FiniteDecay, PowerLawDecay
from privreg.theory.shaped_noise.privacy_error import privacy_error, toeplitz_factor
from privreg.theory.shaped_noise.second_moments import private_risk, sgd_risk

from ...magnitudes import magnitude, magnitudes, near, rational

SEEDS = pytest.mark.parametrize("seed", range(40))


def summed_risk(lam, eta, size, moments, kicks=None):
    """½ Σ λ E[S²] of the sum S of the first iterates, all pairs of steps, in rationals.

    `moments` start the errors; a kick z of covariance diag(shape) enters -η β_t times in step t.
    """
    d = len(lam)
    m = [[moments[i] if i == j else Fraction(0) for j in range(d)] for i in range(d)]
    beta, shape = kicks or ([Fraction(0)] * size, [Fraction(0)] * d)
    with_kick = [Fraction(0)] * d
    total = [Fraction(0)] * d
    # By direction: E[u_t²], E[u_t z], and E[S u_t], E[S z].
    own = [m[i][i] for i in range(d)]
    sum_own, sum_kick = list(own), [Fraction(0)] * d
    total = list(own)
    for t in range(1, size):
        push = -eta * beta[t - 1]
        q = sum(v * x for v, x in zip(lam, own, strict=True))
        for i, v in enumerate(lam):
            keep = 1 - eta * v
            fresh = (keep**2 + (eta * v) ** 2) * own[i] + eta**2 * v * q
            fresh += 2 * push * keep * with_kick[i] + push**2 * shape[i]
            sum_own[i] = keep * sum_own[i] + push * sum_kick[i] + fresh
            with_kick[i] = keep * with_kick[i] + push * shape[i]
            own[i] = fresh
            total[i] += 2 * sum_own[i] - fresh
            sum_kick[i] += with_kick[i]
    return sum(v * x for v, x in zip(lam, total, strict=True)) / 2


def exact(values) -> list[Fraction]:
    return [Fraction(float(x)) for x in np.atleast_1d(values)]


@SEEDS
def test_risks_of_any_size(seed):
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 3)), int(rng.integers(1, 6))
    lam = magnitudes(rng, 1e-250, 1e50, d)
    eta = float(np.clip(magnitude(rng, 1e-60, 1.0) / lam.max(), 1e-300, 1e50))
    target = rng.uniform(-1, 1, d) * magnitude(rng, 1e-250, 1e50)
    zeta = float(rng.choice([0.0, magnitude(rng, 1e-250, 1e50)]))
    given = {"step_size": eta, "sample_size": size}
    found = sgd_risk(lam, target=target, label_noise_std=zeta, **given)
    values, step = exact(lam), Fraction(eta)
    bias = summed_risk(values, step, size, [x**2 for x in exact(target)])
    assert near(found.bias, bias / size**2, 1e-11)
    # Label noise of step t enters as a kick of covariance ζ² λ, each step's by itself.
    label = Fraction(0)
    for first in range(1, size):
        kick = [Fraction(int(t == first)) for t in range(1, size)]
        drive = [Fraction(zeta) ** 2 * v for v in values]
        label += summed_risk(values, step, size, [Fraction(0)] * d, (kick, drive))
    assert near(found.label_noise, label / size**2, 1e-11)
    shape = magnitudes(rng, 1e-250, 1e50, d)
    std = float(rng.choice([0.0, magnitude(rng, 1e-250, 1e50)]))
    beta = rng.uniform(-1, 1, max(size - 1, 1)) * magnitude(rng, 1e-250, 1e50)
    common = {"covariance": shape, "noise_std": std, **given}
    wanted = Fraction(0)
    for first in range(1, size):
        kick = [Fraction(0)] * (first - 1) + exact(beta[: size - first])
        wanted += summed_risk(values, step, size, [Fraction(0)] * d, (kick, exact(shape)))
    wanted *= Fraction(std) ** 2 / size**2
    found = private_risk(lam, decoder=beta, **common)
    # Decoders may cancel: to rounding of what enters.
    if size < 3:
        assert near(found, wanted, 1e-10)
    else:
        peak = (Fraction(std) * step * max(map(abs, exact(beta)))) ** 2 * max(exact(shape))
        assert abs(rational(Fraction(found)) - rational(wanted)) <= 1e-12 * rational(
            peak * max(values) * size**5
        ) + mp.mpf("1e-300")
    tree = private_risk(lam, **common)
    # Two steps and their tree are one node that enters once.
    if size == 2:
        one = summed_risk(values, step, 2, [Fraction(0)] * d, ([Fraction(1)], exact(shape)))
        assert near(tree, one * Fraction(std) ** 2 / 4, 1e-11)


def test_a_direction_without_curvature_costs_nothing():
    """Its error is beyond double precision, its risk 0."""
    found = private_risk(
        [0.0, 1.0],
        covariance=[1e50, 1.0],
        noise_std=1e50,
        step_size=1e50,
        sample_size=2,
        decoder=[1e50],
    )
    assert near(found, mp.mpf("1e300") / 8, 1e-12)


@SEEDS
def test_privacy_errors_and_factors_of_any_size(seed):
    rng = np.random.default_rng(seed)
    d, size = int(rng.integers(1, 4)), int(10 ** rng.uniform(0, 12))
    lam, shape, weight = (magnitudes(rng, 1e-300, 1e50, d) * (rng.random(d) < 0.9) for _ in "123")
    eta, std = magnitude(rng, 1e-300, 1e30), magnitude(rng, 1e-300, 1e30)
    if rng.random() < 0.5:
        # A square that rounds to 0 beside products that do not.
        lam, shape, weight = rng.uniform(1e40, 1e50, (3, d))
        eta, std = magnitude(rng, 1e-180, 1e-150), magnitude(rng, 1e-30, 1.0)
    found = privacy_error(
        weight,
        eigenvalues=lam,
        covariance=shape,
        step_size=eta,
        sample_size=size,
        noise_std=std,
    )
    products = zip(exact(lam), exact(shape), exact(weight), strict=True)
    total = sum(a * b * c for a, b, c in products)
    assert near(found, total * (Fraction(std) * Fraction(eta) / size) ** 2 / 2, 1e-12)
    x, steps, unit = float(rng.random()), int(rng.integers(2, 9)), magnitude(rng, 1e-250, 1e50)
    beta = rng.random(steps) * unit
    current, wanted = Fraction(0), Fraction(0)
    for m in range(1, steps):
        current = (1 - Fraction(x)) * current + sum(exact(beta[:m]))
        wanted += current**2
    assert near(float(toeplitz_factor(x, decoder=beta, sample_size=steps)), wanted, 1e-12)


@SEEDS
def test_bounds_of_any_size(seed):
    rng = np.random.default_rng(seed)
    values = magnitudes(rng, 1e-140, 1e150, int(rng.integers(1, 5)))
    given = {
        "sample_size": magnitude(rng, 1.0, 1e100),
        "step_size": magnitude(rng, 1e-100, 1e10),
        "noise_multiplier": float(rng.choice([0.0, magnitude(rng, 1e-200, 1e50)])),
        "target_norm": float(rng.choice([0.0, magnitude(rng, 1e-250, 1e50)])),
        "label_noise_std": float(rng.choice([0.0, magnitude(rng, 1e-250, 1e50)])),
        "residual_scale": magnitude(rng, 1e-200, 1e50),
    }
    mp.dps = 40
    n, e, t, b, z, scale = (mp.mpf(each) for each in given.values())
    lam = [mp.mpf(x) for x in values.tolist()]
    dimension = mp.fsum(min(1, n * e * x) for x in lam)
    bias, variance = b**2 / (n * e), (z**2 / n + b**2 / (n**2 * e)) * dimension
    flat = (scale * t) ** 2 * e * dimension
    squares = mp.fsum(x * x for x in lam)
    shaped = (scale * t) ** 2 * (e**2 * squares * dimension + dimension**3 / n)
    for function, private in ((identity_bound, flat), (designed_bound, shaped)):
        if private > 1e290:
            with pytest.raises(ValueError, match="noise_multiplier must"):
                function(
                    FiniteDecay(values),
                    **{
                        **given,
                        "step_size": 1e10,
                        "residual_scale": 1e50,
                        "noise_multiplier": 1e50,
                    },
                )
            continue
        parts = function(FiniteDecay(values), **given)
        for found, wanted in zip(parts, (bias, variance, private), strict=True):
            assert near(float(found), wanted, 1e-11)


@SEEDS
def test_the_general_bound_of_any_size(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 60
    d = int(rng.integers(1, 4))
    values = np.sort(magnitudes(rng, 1e-30, 1e20, d))[::-1]
    shape = magnitudes(rng, 1e-30, 1e20, d)
    target = rng.uniform(-1, 1, d) * magnitude(rng, 1e-250, 1e20)
    n, s = int(magnitude(rng, 1, 1e15)), magnitude(rng, 1e-10, 1e10)
    tau, psi, zeta = (float(rng.choice([0.0, magnitude(rng, 1e-250, 1e20)])) for _ in range(3))
    most = 0.99 / (s**4 * values.sum())
    if most < 1e-20:
        return
    eta = magnitude(rng, 1e-20, min(most, 1e20))
    parts = general_bound(
        values,
        target=target,
        covariance=shape,
        sample_size=n,
        step_size=eta,
        noise_multiplier=tau,
        clip_norm=psi,
        label_noise_std=zeta,
        feature_scale=s,
    )
    lam, sigma, w = ([mp.mpf(float(x)) for x in each] for each in (values, shape, target))
    e, s4, horizon = mp.mpf(eta), mp.mpf(s) ** 4, n * mp.mpf(eta)
    margin, best = 1 - s4 * e * mp.fsum(lam), None
    along = e * s4 * mp.fsum(a * b for a, b in zip(lam, sigma, strict=True))
    clipped = mp.mpf(psi) ** 2 + mp.mpf(psi) ** 4 + 1
    for k in range(1, d + 1):
        q = [mp.mpf(1) if i < k else horizon * x for i, x in enumerate(lam)]
        r = [1 / x if i < k else horizon**2 * x for i, x in enumerate(lam)]
        g = [along * a + clipped * b for a, b in zip(q, sigma, strict=True)]
        spread = mp.fsum([mp.mpf(k) / n] + [n * e**2 * x**2 for i, x in enumerate(lam) if i >= k])
        bias = mp.fsum(
            y**2 / (x * horizon**2) if i < k else x * y**2
            for i, (x, y) in enumerate(zip(lam, w, strict=True))
        )
        weighted = mp.fsum(a * y**2 for a, y in zip(q, w, strict=True))
        bias += s4 * weighted / (horizon * margin) * spread
        variance = mp.mpf(zeta) ** 2 * s4 * spread
        variance *= 1 + e * mp.fsum(a * x for a, x in zip(q, lam, strict=True))
        q_g, r_g = (mp.fsum(a * b for a, b in zip(each, g, strict=True)) for each in (q, r))
        private = mp.mpf(tau) ** 2 * (s4 * e * q_g * spread + r_g / n)
        if best is None or bias + variance + private < sum(best):
            best = (bias, variance, private)
    assert near(float(parts.total), sum(best), 1e-9)


@SEEDS
def test_the_best_step_size_stays_in_its_range(seed):
    """The ends' logarithms and back may round to beyond them, where bounds refuse step sizes."""
    rng = np.random.default_rng(seed)
    size, largest = magnitude(rng, 1.0, 1e100), magnitude(rng, 1.0, 1e10)
    kink = np.exp(rng.uniform(-np.log(size), np.log(largest)))
    seen = []

    def bound(eta):
        seen.extend([eta.min(), eta.max()])
        return np.where(eta < kink, kink / eta, (eta / kink) ** 0.5 + 0.5)

    best = minimise_over_step_size(bound, sample_size=size, largest=largest)
    assert min(seen) >= 1 / size
    assert max(seen) <= largest
    # The last grid's spacing in the logarithm.
    spacing = np.log(largest * size) / 599 * (2 / 199) ** 2
    assert best.value <= 1 + spacing * 1.01 + 1e-12
    decay = PowerLawDecay(2.0)
    given = {"sample_size": size, "noise_multiplier": 1.0}
    found = minimise_over_step_size(
        lambda eta: identity_bound(decay, step_size=eta, **given).total,
        sample_size=size,
        largest=largest,
    )
    steps = np.clip(np.geomspace(1 / size, largest, 3000), 1 / size, largest)
    tried = identity_bound(decay, step_size=steps, **given).total
    assert found.value <= tried.min() * (1 + 2 * spacing + 1e-3)


@SEEDS
def test_exponents_between_sizes_that_are_close(seed):
    rng = np.random.default_rng(seed)
    mp.dps = 50
    power, first = float(rng.uniform(-2, 2)), magnitude(rng, 1e-100, 1e100)
    sizes = first * (1 + np.arange(3) * magnitude(rng, 1e-12, 1e3))
    risks = np.array([float(mp.mpf(float(x)) ** -power) for x in sizes])
    logs, values = ([mp.log(mp.mpf(float(x))) for x in each] for each in (sizes, risks))
    middle = mp.fsum(logs) / 3
    slope = mp.fsum((x - middle) * y for x, y in zip(logs, values, strict=True))
    wanted = -slope / mp.fsum((x - middle) ** 2 for x in logs)
    assert near(fitted_exponent(sizes, risks), wanted, 1e-13) or abs(power) < 0.1
