"""The harmonic schedule's limits and explicit constants, the comparison equations, the prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from privreg import spectra
from privreg.schedules import Harmonic, Polynomial
from privreg.theory.one_pass_dpgd import deterministic_equivalent, rate_search, rates
from privreg.theory.one_pass_dpgd.deterministic_equivalent import (
    descent_factor,
    sandwich,
    variance_factor,
)
from reproduction.papers.bombari2025.experiments.harmonic_limits import explicit_constants
from reproduction.papers.bombari2025.experiments.prior_bounds import (
    prior_density,
    prior_score,
    sample_prior,
)

NOISE = 0.3


def harmonic_risk(numerator, offset, *, gamma, rho, clip_constant):
    return deterministic_equivalent.solve(
        spectra.isotropic(),
        Harmonic(numerator, offset),
        aspect_ratio=gamma,
        zcdp_root=rho,
        clip_constant=clip_constant,
        label_noise_std=NOISE,
        times=[1.0],
    ).final_risk


@pytest.mark.parametrize("clip_constant", [0.1, 1.0])
def test_best_harmonic_risk_reaches_its_limit(clip_constant):
    best = rate_search.harmonic(
        spectra.isotropic(),
        aspect_ratio=1e-7,
        zcdp_root=1.0,
        clip_constant=clip_constant,
        label_noise_std=NOISE,
    )
    limit = float(rates.sampling_limit(clip_constant=clip_constant, label_noise_std=NOISE))
    assert best.final_risk / 1e-7 == pytest.approx(limit, rel=1e-2)
    assert best.schedule.amplitude == pytest.approx(
        1 / descent_factor(0.0, clip_constant=clip_constant, label_noise_std=NOISE), rel=0.05
    )


def test_sampling_limit_is_least_squares_without_clipping_and_signs_with_little():
    loose = rates.sampling_limit(clip_constant=50.0, label_noise_std=NOISE)
    tight = rates.sampling_limit(clip_constant=1e-5, label_noise_std=NOISE)
    assert loose == pytest.approx(NOISE**2 / 2, rel=1e-12)
    assert tight == pytest.approx(np.pi * NOISE**2 / 4, rel=1e-4)


@pytest.mark.parametrize("clip_constant", [1.0, 3.0])
def test_private_noise_alone_is_least_at_three_halves(clip_constant):
    gamma = 1e-12
    rho = gamma**0.7
    scale = 1 / float(descent_factor(0.0, clip_constant=clip_constant, label_noise_std=NOISE))
    offset = 1e-3
    risk = harmonic_risk(
        np.array([1.2, 1.5, 2.0]) * scale, offset, gamma=gamma, rho=rho, clip_constant=clip_constant
    )
    limit = (
        float(rates.privacy_limit(clip_constant=clip_constant, label_noise_std=NOISE))
        * (gamma / rho) ** 2
    )
    assert risk[1] == pytest.approx(limit, rel=0.01)
    assert risk[1] < min(risk[0], risk[2])


def test_no_schedule_gets_below_the_least_risk():
    gamma, clip_constant = 1e-3, 0.5
    least = rates.least_risk(aspect_ratio=gamma, clip_constant=clip_constant, label_noise_std=NOISE)
    found = [
        rate_search.polynomial(
            spectra.isotropic(),
            exponent=exponent,
            aspect_ratio=gamma,
            zcdp_root=np.inf,
            clip_constant=clip_constant,
            label_noise_std=NOISE,
        ).final_risk
        for exponent in (0.0, 0.5, 1.0)
    ]
    found.append(
        rate_search.harmonic(
            spectra.isotropic(),
            aspect_ratio=gamma,
            zcdp_root=1e6,
            clip_constant=clip_constant,
            label_noise_std=NOISE,
        ).final_risk
    )
    assert least < min(found)
    assert min(found) < 1.05 * least


@pytest.mark.parametrize("gamma", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize("rho", [1.0, 0.1])
def test_explicit_constants_keep_their_bound(gamma, rho):
    found = explicit_constants(aspect_ratio=gamma, zcdp_root=rho, label_noise_std=NOISE)
    risk = harmonic_risk(
        found.schedule.numerator,
        found.schedule.offset,
        gamma=gamma,
        rho=rho,
        clip_constant=found.clip_constant,
    )
    assert 0 < risk < found.bound
    # Equations (D.110) and (D.111): the descent rate of the proof times the numerator is 3.
    total = 0.5 + NOISE**2 / 2
    assert found.schedule.numerator / np.sqrt(total + 90) == pytest.approx(3)
    assert found.schedule.numerator / found.schedule.offset < 2 / gamma


def test_sandwich_holds_and_closes_on_the_identity():
    times = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    problem = {
        "aspect_ratio": 0.1,
        "zcdp_root": 1.0,
        "clip_constant": 1.0,
        "label_noise_std": NOISE,
        "times": times,
    }
    for exponent in (0.0, 0.5, 2.0):
        schedule = Polynomial(3.0, exponent)
        closed = sandwich(schedule, smallest=1.0, largest=1.0, **problem)
        identity = deterministic_equivalent.solve(spectra.isotropic(), schedule, **problem).risk
        np.testing.assert_allclose(closed.lower, identity, rtol=1e-5)
        np.testing.assert_allclose(closed.upper, identity, rtol=1e-5)
        bounds = sandwich(schedule, smallest=0.5, largest=1.5, **problem)
        risk = deterministic_equivalent.solve(spectra.uniform(0.5, 1.5), schedule, **problem).risk
        assert np.all(bounds.lower[1:] < risk[1:])
        assert np.all(risk[1:] < bounds.upper[1:])


def test_prior_identities_and_draws():
    dimension = 7
    edge = dimension**-0.5

    def mean(function):
        return quad(lambda z: prior_density(z, dimension) * function(z), -edge, edge)[0]

    def score(z):
        return float(prior_score(z, dimension))

    assert mean(lambda z: 1.0) == pytest.approx(1)
    assert mean(lambda z: -z * score(z)) == pytest.approx(1)
    assert mean(lambda z: score(z) ** 2) == pytest.approx(10 * dimension)
    step = 1e-6
    log_density = [np.log(prior_density(0.2 + s, dimension)) for s in (-step, step)]
    assert (log_density[1] - log_density[0]) / (2 * step) == pytest.approx(score(0.2), rel=1e-6)
    rng = np.random.Generator(np.random.SFC64(1))
    draws = np.array([sample_prior(rng, dimension) for _ in range(4000)])
    squares = np.sum(draws**2, axis=1)
    assert squares.max() < 1
    error = squares.std() / np.sqrt(len(squares))
    variance = dimension * mean(lambda z: z**2)
    assert abs(squares.mean() - variance) < 4 * error
    assert abs(squares.mean() - 1.5 * variance) > 20 * error


def test_lower_bounds_are_below_the_best_harmonic_risk():
    for gamma in (1e-3, 1e-5):
        for rho in (1.0, 0.1, gamma**0.75):
            best = rate_search.harmonic(
                spectra.isotropic(),
                aspect_ratio=gamma,
                zcdp_root=rho,
                clip_constant=0.1,
                label_noise_std=NOISE,
            )
            private = rates.private_bound(aspect_ratio=gamma, zcdp_root=rho, label_noise_std=NOISE)
            statistical = rates.statistical_bound(aspect_ratio=gamma, label_noise_std=NOISE)
            assert best.final_risk > max(private, statistical)


def test_private_bound_has_the_stated_rate():
    bound = rates.private_bound(
        aspect_ratio=np.array([1e-4, 1e-5]), zcdp_root=0.1, label_noise_std=NOISE
    )
    assert bound[0] / bound[1] == pytest.approx(100)
    assert rates.private_bound(
        aspect_ratio=0.5, zcdp_root=1e-9, label_noise_std=NOISE, smallest=0.4
    ) == pytest.approx(0.005)


@pytest.mark.parametrize("seed", range(8))
def test_least_risk_is_the_end_of_the_fastest_descent(seed):
    """In a quarter of these settings the search had no bracket and ended in an IndexError."""
    rng = np.random.default_rng(seed)
    gamma, start = 10.0 ** rng.uniform(-6, 6), 10.0 ** rng.uniform(-6, 6)
    factors = {
        "clip_constant": 10.0 ** rng.uniform(-5, 5),
        "label_noise_std": 10.0 ** rng.uniform(-5, 2),
    }

    def slope(_, depth):
        risk = start * np.exp(-depth)
        kick = variance_factor(risk, **factors) * (risk + factors["label_noise_std"] ** 2 / 2)
        return risk * descent_factor(risk, **factors) ** 2 / kick

    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-11}
    depth = solve_ivp(slope, (0, 1 / gamma), [0.0], **options).y[0, -1]
    found = rates.least_risk(aspect_ratio=gamma, start=start, **factors)
    assert found == pytest.approx(start * np.exp(-depth), rel=1e-6)
