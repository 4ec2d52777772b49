"""Schedules, spectra and the linear model over their whole documented domain, in many digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    rate,
    step_shape,
)

from .theory.draws import LEAST, near, numbers, size

SEEDS = range(200)


def test_shapes_of_schedules() -> None:
    """A power of 1e12 took what 1 - t had rounded away: 3e-5 of the rate."""
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            times = np.append(np.minimum(size(rng, -20, 0) * rng.random(3), 1.0), [0.0, 1.0])
            exponent = float(rng.choice([0.0, 0.5, size(rng, -12, 12)]))
            start, offset = size(rng, -320, 50), size(rng, -50, 50)
            # A rounded 1 - t is a power of digits lost.
            digits = 1e-13 if exponent > 1 else 1e-15
            wanted = [
                mp.mpf(1) if exponent == 0 else (1 - t) ** mp.mpf(exponent) for t in numbers(times)
            ]
            found = Polynomial(start, exponent).shape(times)
            assert near(found, wanted, digits), seed
            assert near(
                rate(Polynomial(start, exponent), times), [start * x for x in wanted], digits
            )
            wanted = [1 / (t + mp.mpf(offset)) for t in numbers(times)]
            assert near(Harmonic(start, offset).shape(times), wanted, 1e-15), seed
            n = int(size(rng, 0, 2))
            found = step_shape(Polynomial(start, exponent), n)
            wanted = [(1 - mp.mpf(k) / n) ** mp.mpf(exponent) / n for k in range(1, n)]
            last = [mp.mpf(1) / n if exponent == 0 else mp.mpf(0)]
            # k / n is rounded, and so is the step's distance to the last.
            digits = 1e-15 * (1 + exponent * n)
            assert near(found, wanted + last, digits) or exponent * n > 1e12, seed


def test_rates_with_integrals() -> None:
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            value, scale = size(rng, -320, 50), size(rng, -50, 50)
            times = np.append(size(rng, -50, 50) * rng.random(3), 0.0)
            for found, form in (
                (ConstantRate(value), lambda t, v, _: (v, v * t)),
                (
                    InverseSquareRootRate(value, scale),
                    lambda t, v, s: (
                        v / mp.sqrt(1 + t / s),
                        2 * v * s * (mp.sqrt(1 + t / s) - 1) if t > s * 1e-20 else v * t,
                    ),
                ),
            ):
                pairs = [form(t, mp.mpf(value), mp.mpf(scale)) for t in numbers(times)]
                assert near(found.rate(times), [x for x, _ in pairs], 1e-15), seed
                assert near(found.integral(times), [x for _, x in pairs], 2e-15), seed


@pytest.mark.parametrize("kind", [int, np.float32])
def test_rates_are_double_whatever_they_are_given_as(kind: Callable[..., Any]) -> None:
    """The square of a whole rate of 10^10 wrapped around."""
    assert ConstantRate(kind(10**10)).rate([1.0]) ** 2 == 1e20
    assert ConstantRate(kind(3)).rate([1.0]).dtype == np.float64


def test_private_noise_of_steps() -> None:
    """Steps of 1e-170 had none: the difference of their squares vanished."""
    with mp.workdps(700):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            steps = size(rng, -300, 100) * 10.0 ** (-rng.choice([0, 1, 200]) * rng.random(5))
            steps = np.sort(steps)[::-1] * rng.choice([1.0, 1 + 1e-13], 5)
            steps = np.minimum.accumulate(np.minimum(steps, 1e100))
            steps[3:] *= float(rng.choice([0.0, 1.0]))
            root = size(rng, -100, 100)
            squares = [x * x for x in numbers(steps)] + [mp.mpf(0)]
            wanted = [mp.sqrt(max(squares[k] - squares[k + 1], 0)) / mp.mpf(root) for k in range(5)]
            found = noise_multipliers(steps, zcdp_root=root)
            assert near(found, wanted, 1e-14, mp.mpf("1e-300")), seed


def test_quantiles_of_power_laws() -> None:
    """Next to phi = 1 a rounded share of the mass took up to half of the digits."""
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            phi = 1 - size(rng, -15, 15)
            d = int(size(rng, 0, 2.5))
            share = 1 - mp.mpf(phi)
            edge = (2 - mp.mpf(phi)) / share
            assert near(spectra.power_law_edge(phi), edge, 1e-15), seed
            wanted = [edge * ((mp.mpf(k) + 0.5) / d) ** (1 / share) for k in range(d)]
            assert near(spectra.power_law_quantiles(d, phi), wanted, 2e-13), seed


def test_signals_of_power_laws() -> None:
    with mp.workdps(40):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            phi = float(rng.uniform(-20, 0.95))
            psi = float(rng.uniform(-3, 1 - phi))
            scale = size(rng, -300, 300)
            try:
                spectrum, signal = spectra.power_law_with_signal(
                    phi, signal_power=psi, signal_scale=scale
                )
            except ValueError as error:
                if "double precision" not in str(error):
                    raise
                continue
            some = rng.integers(0, spectrum.modes, 8)
            wanted = [
                mp.mpf(scale) * v ** -mp.mpf(psi) for v in numbers(spectrum.eigenvalues[some])
            ]
            assert near(signal[some], wanted, 1e-14), seed


def test_uniform_spectra() -> None:
    """Moments up to what the rule integrates, and the mean of the midpoints."""
    with mp.workdps(60):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            high = size(rng, -300, 300)
            low = high * float(rng.choice([0.0, rng.uniform(0, 1), 1 - 1e-9]))
            nodes = int(rng.integers(1, 30))
            spectrum = spectra.uniform(low, high, nodes=nodes)
            points = [v / mp.mpf(high) for v in numbers(spectrum.eigenvalues)]
            start = mp.mpf(low) / mp.mpf(high)
            for power in {1, nodes, 2 * nodes - 1}:
                wanted = (1 - start ** (power + 1)) / ((power + 1) * (1 - start))
                found = mp.fsum(
                    w * x**power for w, x in zip(numbers(spectrum.weights), points, strict=True)
                )
                assert abs(found - wanted) < 1e-13, seed
            d = int(size(rng, 0, 3))
            middle = spectra.uniform_midpoints(d, low, high)
            mean = mp.fsum(v / d for v in numbers(middle))
            assert near(mean, (mp.mpf(low) + mp.mpf(high)) / 2, 1e-14), seed


def test_means_over_spectra() -> None:
    with mp.workdps(700):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            values = size(rng, -300, 300) * 10.0 ** (-rng.choice([0, 1, 200]) * rng.random(6))
            listed = rng.choice(np.append(values, 0.0), 12)
            spectrum = spectra.explicit(listed)
            assert near(
                spectrum.mean(spectrum.eigenvalues), mp.fsum(numbers(listed)) / 12, 1e-14
            ), seed


def test_excess_risks() -> None:
    """Squares of distances of 1e-170 vanished beside eigenvalues of 1e50."""
    with mp.workdps(500):
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            largest = size(rng, *rng.choice([[-300, 50], [30, 50]]))
            values = np.minimum(largest * 10.0 ** (-20 * rng.random(3)), 1e50)
            target = rng.choice([0.0, 1.0]) * size(rng, -50, 50) * rng.uniform(-1, 1, 3)
            apart = size(rng, *rng.choice([[-300, 99], [-172, -150]])) * rng.uniform(-1, 1, (4, 3))
            model = LinearModel(values, target, 0.0)
            wanted = [
                mp.fsum(
                    v * (p - x) ** 2
                    for v, p, x in zip(numbers(values), numbers(row), numbers(target), strict=True)
                )
                / 2
                for row in target + apart
            ]
            # The distance of two points is rounded once.
            assert near(model.excess_risk(target + apart), wanted, 1e-14, LEAST / 10**10), seed
            assert near(model.excess_risk(target + apart[0]), wanted[0], 1e-14, LEAST / 10**10)
