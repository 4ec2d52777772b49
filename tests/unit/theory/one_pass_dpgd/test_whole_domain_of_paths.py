"""Paths and Volterra risks of one-pass DP-GD over the whole documented domain, in eighty digits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from privreg.models import LinearModel
from privreg.schedules import Harmonic, Polynomial, Schedule
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent, volterra
from privreg.theory.one_pass_dpgd.homogenised_sde import risk_path

Exact = Any


def size(rng: np.random.Generator, end: float) -> float:
    return float(10.0 ** rng.uniform(-end, end))


def drawn_schedule(rng: np.random.Generator, peak: float) -> Schedule:
    if rng.integers(2):
        return Polynomial(peak, float(rng.choice([0.0, 0.5, 1.0, 2.0, 10.0 ** rng.uniform(-2, 1)])))
    offset = size(rng, 3)
    return Harmonic(min(peak * offset, 1e50), offset)


def factors(loss: Exact, clip: float) -> tuple[Exact, Exact]:
    """Shares of the drift and of the second moment that clipping leaves."""
    ratio = mp.inf if loss == 0 else mp.mpf(clip) / mp.sqrt(2 * loss)
    if ratio > 50:
        return mp.mpf(1), mp.mpf(1)
    drift = mp.erf(ratio / mp.sqrt(2))
    if ratio < 1e-20:
        # Below what eighty digits tell apart after the terms of order 1 have cancelled.
        return drift, ratio**2
    tail = mp.sqrt(2 / mp.pi) * ratio * mp.exp(-(ratio**2) / 2)
    return drift, ratio**2 * (1 - drift) + drift - tail


def numbers(values: Any) -> list[Exact]:
    return [mp.mpf(float(value)) for value in values]


def test_paths_over_the_whole_domain() -> None:
    """Tiny clipping constants gave variances wrong by half; a risk of 0 divided by zero."""
    right = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        d, n, steps = (
            int(rng.integers(1, 4)),
            int(10.0 ** rng.uniform(0, 9)),
            int(rng.integers(1, 8)),
        )
        values = np.minimum(size(rng, 50) * 10.0 ** (rng.choice([0, 5]) * rng.random(d)), 1e50)
        values *= rng.random(d) > 0.1
        target = np.clip(size(rng, 50) * rng.standard_normal(d), -1e50, 1e50) * (rng.random() > 0.1)
        noise = float(rng.choice([0.0, size(rng, 50)]))
        scale = np.sqrt(max(values @ target**2, noise**2, 1e-60))
        clip = float(np.clip(rng.choice([1.0, scale]) * size(rng, 20), 1e-32, 1e32))
        rho = float(rng.choice([np.inf, size(rng, 32)]))
        near = float(np.clip(size(rng, 3) / max(values.max(), 1e-50), 1e-50, 1e50))
        schedule = drawn_schedule(rng, float(rng.choice([near, size(rng, 50)])))
        try:
            found = risk_path(
                LinearModel(values, target, noise),
                schedule,
                np.random.default_rng(seed),
                sample_size=n,
                zcdp_root=rho,
                clip_constant=clip,
                times=np.arange(steps + 1) / steps,
                steps=steps,
            )
        except ValueError as error:
            if "double precision" not in str(error):
                raise
            continue
        draws = np.random.default_rng(seed)
        with mp.workdps(80):
            spectrum, gap = numbers(values), numbers(-target)
            reach, cap = [abs(x) for x in gap], mp.mpf(2) * n / d
            rates = numbers(schedule.amplitude * schedule.shape(np.linspace(0, 1, steps + 1)))
            private = (2 * mp.sqrt(d) * clip / (n * mp.mpf(rho))) ** 2 if rho < np.inf else 0
            for step in range(steps + 1):
                risk = mp.fsum(v * x * x for v, x in zip(spectrum, gap, strict=True)) / 2
                largest = mp.fsum(v * x * x for v, x in zip(spectrum, reach, strict=True)) / 2
                # A few roundings a step of all that enters; each doubles with the loss it changes.
                off = abs(mp.mpf(float(found[step])) - risk)
                assert off <= 1e-9 * largest + mp.mpf("1e-290"), (seed, step)
                if step == steps:
                    break
                loss = risk + mp.mpf(noise) ** 2 / 2
                drift, kept = factors(loss, clip)
                taken = min(rates[step], cap)
                fresh = private * (rates[step] ** 2 - rates[step + 1] ** 2)
                for i, value in enumerate(spectrum):
                    normal = mp.mpf(draws.standard_normal())
                    variance = taken**2 * 2 / (mp.mpf(n) * steps) * kept * loss * value + fresh
                    kick, pull = mp.sqrt(variance) * normal, taken / steps * drift * value
                    gap[i] = gap[i] + kick - pull * gap[i]
                    reach[i] += abs(kick) + pull * reach[i]
        right += 1
    assert right > 80


@pytest.mark.filterwarnings("always::privreg.accuracy.AccuracyWarning")
def test_volterra_risks_over_the_whole_domain(recwarn: pytest.WarningsRecorder) -> None:
    """Memory of noise was lost or spurious where eigenvalues were far from 1."""
    right = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        modes = int(rng.integers(1, 4))
        values = size(rng, 30) * 10.0 ** (-rng.choice([0, 1, 6, 20]) * rng.random(modes))
        values[0] *= rng.random() > 0.1
        shares = 10.0 ** (-rng.choice([0, 1, 8]) * rng.random(modes))
        shares /= shares.sum()
        signal = size(rng, 20) * rng.uniform(0.1, 1, modes)
        rho = float(rng.choice([np.inf, size(rng, 32)]))
        clip = np.inf if np.isinf(rho) and rng.integers(2) else size(rng, 32)
        noise = float(rng.choice([0.0, size(rng, 32)]))
        near = size(rng, 2) / max(values.max(), 1e-30)
        peak = float(np.clip(rng.choice([near, size(rng, 32)]), 1e-32, 1e32))
        gamma = float(np.clip(rng.choice([size(rng, 3) / peak, size(rng, 32)]), 1e-32, 1e32))
        schedule = drawn_schedule(rng, peak)
        early = np.sort(rng.random(4)) * rng.choice([1, 1e-3, 1e-9])
        times = np.unique(np.concatenate([[0.0], early, [1.0]]))
        setting = {"aspect_ratio": gamma, "zcdp_root": rho, "label_noise_std": noise}
        recwarn.clear()
        kernels = volterra.spectrum_kernels(Spectrum(values, shares), signal)
        try:
            found = volterra.solve(kernels, schedule, times, clip_constant=clip, **setting)
        except ValueError as error:
            if "double precision" not in str(error):
                raise
            continue
        if recwarn:
            continue
        with mp.workdps(80):
            wanted = marched(values, shares, signal, schedule, times, found, clip, **setting)
            # The noise of an interval is a difference of rounded squares of rates.
            peak = mp.mpf(float(schedule.amplitude * schedule.shape(0.0)))
            noise_sum = 2 * (mp.mpf(clip) * gamma * peak / mp.mpf(rho)) ** 2 if rho < np.inf else 0
            lost = 4e-16 * noise_sum * mp.mpf(float(shares @ values))
            for at, each in enumerate(wanted):
                # An interval's end is found to 1e-4, three times at least.
                off = abs(mp.mpf(float(found[at])) - each)
                assert off <= 1e-3 * each + times.size * lost + mp.mpf("1e-290"), (seed, at)
        right += 1
    assert right > 150


def marched(
    values: np.ndarray,
    shares: np.ndarray,
    signal: np.ndarray,
    schedule: Schedule,
    times: np.ndarray,
    risk: np.ndarray,
    clip: float,
    *,
    aspect_ratio: float,
    zcdp_root: float,
    label_noise_std: float,
) -> list[Exact]:
    """Right-hand sides of the equation on the grid, of coefficients at the risks given."""
    gamma, cap = mp.mpf(aspect_ratio), 2 / mp.mpf(aspect_ratio)
    energy = 0 if np.isinf(zcdp_root) else 2 * (mp.mpf(clip) * gamma / mp.mpf(zcdp_root)) ** 2
    rates, moments = numbers(schedule.amplitude * schedule.shape(times)), numbers(times)
    drifts, kicks = [], []
    for rate, excess in zip(rates, numbers(risk), strict=True):
        loss = excess + mp.mpf(label_noise_std) ** 2 / 2
        drift, kept = factors(loss, clip)
        drifts.append(min(rate, cap) * drift)
        kicks.append(min(rate, cap) ** 2 * kept * loss * gamma)
    widths = [b - a for a, b in pairwise(moments)]
    descent = [mp.mpf(0)]
    for at, width in enumerate(widths):
        descent.append(descent[-1] + width * (drifts[at] + drifts[at + 1]) / 2)
    modes = list(zip(numbers(values), numbers(shares), numbers(signal), strict=True))

    def mean(value: Exact, low: Exact, high: Exact) -> Exact:
        """Of exp(-2 value x) over [low, high]."""
        width = 2 * value * (high - low)
        return mp.exp(-2 * value * low) * (1 if width == 0 else -mp.expm1(-width) / width)

    found = []
    for at, end in enumerate(descent):
        total = mp.fsum(w * s * v * mp.exp(-2 * v * end) for v, w, s in modes)
        for k in range(at):
            kick = widths[k] * (kicks[k] + kicks[k + 1]) / 2
            fresh = energy * (rates[k] ** 2 - rates[k + 1] ** 2)
            ago = end - descent[k + 1], end - descent[k]
            total += mp.fsum(w * v * (kick * v + fresh) * mean(v, *ago) for v, w, _ in modes)
        found.append(total)
    return found


class Rising:
    """A user's schedule that grows."""

    amplitude = 0.5

    def shape(self, times: Any) -> np.ndarray:
        return 1.0 + np.asarray(times, dtype=float)


def test_private_noise_of_a_rising_rate_is_refused() -> None:
    """Its variance would be negative; without noise a rate may rise."""
    spectrum = Spectrum(np.ones(1), np.ones(1))
    setting = {"aspect_ratio": 0.1, "clip_constant": 1.0, "label_noise_std": 0.1}
    kernels, model = volterra.spectrum_kernels(spectrum), LinearModel([1.0], [1.0], 0.1)

    def path(rho: float) -> Any:
        rng = np.random.default_rng(0)
        options = {"sample_size": 10, "clip_constant": 1.0, "times": [1.0]}
        return risk_path(model, Rising(), rng, zcdp_root=rho, **options)

    for solve in (
        lambda rho: deterministic_equivalent.solve(spectrum, Rising(), zcdp_root=rho, **setting),
        lambda rho: volterra.solve(kernels, Rising(), [0.0, 0.5, 1.0], zcdp_root=rho, **setting),
        path,
    ):
        solve(np.inf)
        with pytest.raises(ValueError, match="schedule must not increase"):
            solve(1.0)
