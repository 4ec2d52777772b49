"""Schedules, spectra and the linear model over [1e-12, 1e12], against many digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from privreg import spectra
from privreg.models import LinearModel
from privreg.schedules import (
    ConstantRate,
    Harmonic,
    InverseSquareRootRate,
    Polynomial,
    noise_multipliers,
    step_shape,
)

from .magnitudes import magnitude, near

SEEDS = range(12)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


def close(found, wanted, relative):
    assert all(near(x, y, relative) for x, y in zip(np.ravel(found), np.ravel(wanted), strict=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_schedules(seed):
    rng = np.random.default_rng(seed)
    times = [0.0, 1.0, *rng.random(3)]
    exponent, start, offset = float(rng.choice([0.0, 0.5, 3.0])), magnitude(rng), magnitude(rng)
    # Each rounded 1 - t loses an ulp, which a power multiplies.
    close(
        Polynomial(start, exponent).shape(times),
        [(1 - mp.mpf(t)) ** exponent for t in times],
        1e-14,
    )
    close(Harmonic(start, offset).shape(times), [1 / (mp.mpf(t) + offset) for t in times], 1e-14)
    n = int(rng.integers(2, 30))
    wanted = [(1 - mp.mpf(k) / n) ** exponent / n for k in range(1, n + 1)]
    close(step_shape(Polynomial(start, exponent), n), wanted, 1e-12)
    later = [magnitude(rng, 1e-6, 1e6) for _ in range(3)]
    rates = ConstantRate(start), InverseSquareRootRate(start, offset)
    for found in rates:
        close(
            found.integral(later),
            [mp.quad(lambda t, f=found: _rate(f, t), [0, t]) for t in later],
            1e-13,
        )


def _rate(schedule, time):
    scale = getattr(schedule, "scale", None)
    return mp.mpf(schedule.value) / (1 if scale is None else mp.sqrt(1 + time / mp.mpf(scale)))


@pytest.mark.parametrize("seed", SEEDS)
def test_private_noise_of_steps(seed):
    """Each step's noise is the root of what the squares of the steps lose: 0 where they do not."""
    rng = np.random.default_rng(seed)
    steps = np.sort(magnitude(rng) * rng.random(5))[::-1].copy()
    steps[1] = steps[0]
    root = magnitude(rng)
    squares = [mp.mpf(x) ** 2 for x in steps] + [mp.mpf(0)]
    wanted = [mp.sqrt(squares[k] - squares[k + 1]) / root for k in range(5)]
    close(noise_multipliers(steps, zcdp_root=root), wanted, 1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_spectra(seed):
    """Moments up to what the rule integrates."""
    rng = np.random.default_rng(seed)
    high, nodes = magnitude(rng), int(rng.integers(1, 30))
    low = high * float(rng.choice([0.0, rng.random()]))
    spectrum = spectra.uniform(low, high, nodes=nodes)
    start = mp.mpf(low) / high
    for power in {1, nodes, 2 * nodes - 1}:
        wanted = (1 - start ** (power + 1)) / ((power + 1) * (1 - start))
        close(spectrum.mean((spectrum.eigenvalues / high) ** power), [wanted], 1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_excess_risks(seed):
    rng = np.random.default_rng(seed)
    values, target = (
        magnitude(rng) * rng.random(3),
        magnitude(rng, 1e-6, 1e6) * rng.uniform(-1, 1, 3),
    )
    points = target + magnitude(rng, 1e-6, 1e6) * rng.uniform(-1, 1, (4, 3))
    wanted = [
        sum(mp.mpf(v) * mp.mpf(x) ** 2 for v, x in zip(values, row - target, strict=True)) / 2
        for row in points
    ]
    close(LinearModel(values, target, 0.0).excess_risk(points), wanted, 1e-14)
