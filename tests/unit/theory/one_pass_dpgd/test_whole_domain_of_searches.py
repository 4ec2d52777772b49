"""Bounds and best rates of one-pass DP-GD over the whole documented domain."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from privreg import spectra
from privreg.accuracy import AccuracyWarning
from privreg.schedules import Harmonic, Polynomial, Schedule
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent, rate_search
from privreg.theory.one_pass_dpgd.clipping import descent_of, variance_of
from privreg.theory.one_pass_dpgd.comparison_odes import sandwich

# Of one run: an adaptive method may take ever smaller steps.
MOST_SLOPES = 3000
PIECES = (0.0, 1e-6, 1e-3, 0.3, 0.9, 0.999, 1 - 1e-6, 1.0)


def size(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10.0 ** rng.uniform(low, high))


def rate_at(schedule: Schedule, time: float) -> float:
    return float(schedule.amplitude * schedule.shape(min(time, 1.0)))


def slope_of(
    schedule: Schedule,
    fall: float,
    kick: float,
    gamma: float,
    clip: float,
    noise: float,
    energy: float,
    whole: float,
) -> Callable[[float, np.ndarray], list[float]]:
    """Of the sum of the risk and the noise still to come, in units of that sum at the start."""

    seen: list[float] = []

    def slope(time: float, state: np.ndarray) -> list[float]:
        seen.append(time)
        if len(seen) > MOST_SLOPES:
            raise TimeoutError
        now = rate_at(schedule, time)
        risk = max(state[0] * whole - energy * now**2, 0.0)
        loss = risk + noise**2 / 2
        ratio = clip / np.sqrt(2 * loss) if loss > 0 else np.inf
        change = -2 * fall * now * descent_of(ratio) * risk
        return [float(change + kick * now**2 * variance_of(ratio) * loss * gamma) / whole]

    return slope


@pytest.mark.filterwarnings("always::privreg.accuracy.AccuracyWarning")
@pytest.mark.filterwarnings("ignore:lsoda")
def test_the_sandwich_over_the_whole_domain(recwarn: pytest.WarningsRecorder) -> None:
    """Its two scalar equations by an adaptive method, in units of the largest term."""
    right = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        gamma, start = size(rng, -20, 20), size(rng, -20, 20)
        noise = float(rng.choice([0.0, size(rng, -32, 32)]))
        near = np.clip(size(rng, -5, 3) * np.sqrt(2 * start + noise**2), 1e-32, 1e32)
        clip = float(rng.choice([near, size(rng, -32, 32)]))
        smallest, largest = (float(rng.choice([1.0, size(rng, *r)])) for r in ((-4, 0), (0, 4)))
        cap = min(2 / gamma, 1e32)
        peak = float(np.clip(size(rng, -6, 2) * rng.choice([1 / largest, cap]), 1e-20, cap))
        near = np.clip(clip * gamma * peak / np.sqrt(start) * size(rng, -3, 6), 1e-30, 1e28)
        rho = float(rng.choice([near, size(rng, -30, 28), np.inf]))
        exponent = float(rng.choice([0.0, 0.5, 1.0, 2.0, 3.3]))
        schedule = Polynomial(peak, exponent) if seed % 3 else Harmonic(peak * (10 - 1e-9), 10.0)
        setting = {"aspect_ratio": gamma, "zcdp_root": rho, "label_noise_std": noise}
        recwarn.clear()
        try:
            bounds = sandwich(
                schedule,
                smallest=smallest,
                largest=largest,
                clip_constant=clip,
                times=[0.3, 1.0],
                start=start,
                **setting,
            )
        except ValueError as error:
            if "double precision" not in str(error):
                raise
            continue
        warned = any(issubclass(found.category, AccuracyWarning) for found in recwarn)
        energy = 2 * (clip * gamma / rho) ** 2
        whole = start + energy * rate_at(schedule, 0.0) ** 2
        for found, a, b in ((bounds.lower, largest, 1.0), (bounds.upper, smallest, largest)):
            slope = slope_of(schedule, a, b, gamma, clip, noise, energy, whole)
            state, wanted = np.ones(1), []
            try:
                for piece in pairwise(PIECES):
                    options = {
                        "method": "LSODA",
                        "rtol": 1e-11,
                        "atol": 1e-13 * max(abs(state[0]), 1e-30),
                    }
                    solved = solve_ivp(slope, piece, state, **options)
                    state = solved.y[:, -1]
                    if piece[1] in (0.3, 1.0):
                        wanted.append(state[0] * whole - energy * rate_at(schedule, piece[1]) ** 2)
            except TimeoutError:
                continue
            # The sum of risk and noise still to come keeps 1e-11 of itself a piece.
            off = np.abs(found - wanted) > 1e-6 * np.abs(wanted) + 1e-9 * whole
            assert not off.any() or warned or not solved.success, seed
            right += not off.any()
    assert right > 40


def drawn_search(seed: int) -> tuple[Spectrum, dict[str, float]]:
    rng = np.random.default_rng(seed)
    values = np.ones(1) if seed % 2 else 10.0 ** (rng.uniform(-20, 20) - 4 * rng.random(2))
    rho = size(rng, -32, 32) if seed % 4 < 2 else size(rng, -6, 6)
    clip = size(rng, -32, 32) if seed % 4 < 2 else size(rng, -5, 5)
    return Spectrum(values, np.full(values.size, 1 / values.size)), {
        "aspect_ratio": size(rng, -32, 32) if seed % 4 < 2 else size(rng, -6, 1),
        "zcdp_root": float(rng.choice([np.inf, rho, rho])),
        "clip_constant": clip,
        "label_noise_std": float(rng.choice([0.0, size(rng, -32, 32), size(rng, -5, 2)])),
        "signal": float(rng.choice([0.5, size(rng, -20, 20)])),
    }


@pytest.mark.parametrize("seed", range(8))
def test_the_best_rate_over_the_whole_domain(seed: int) -> None:
    """Where every rate from 1e-31 on is worse than none, its risk, up to 1e91, was the answer."""
    spectrum, setting = drawn_search(seed)
    exponent = [0.0, 0.5, 1.0, 2.0][seed // 2 % 4]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            best = rate_search.polynomial(spectrum, exponent=exponent, **setting)
        except ValueError as error:
            if "double precision" not in str(error) and "better than none" not in str(error):
                raise
            return
    idle = spectrum.mean(spectrum.eigenvalues * setting["signal"])
    least, top = idle, min(2 / setting["aspect_ratio"], 1e32)
    for amplitude in np.geomspace(max(1e-32, 1e-40 * top), top, 20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                solved = deterministic_equivalent.solve(
                    spectrum, Polynomial(amplitude, exponent), **setting, times=[1.0], rtol=1e-3
                )
            except ValueError:
                continue
        least = min(least, float(solved.final_risk))
    # The risks of the scan are right to 1e-3.
    assert best.final_risk <= least * (1 + 2e-3) or caught


def test_noise_that_outweighs_every_rate_is_refused() -> None:
    setting = {"zcdp_root": 1.5e-32, "clip_constant": 1e31, "label_noise_std": 0.1}
    spectrum = Spectrum(np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="better than none"):
        rate_search.polynomial(spectrum, exponent=2.0, aspect_ratio=2e7, **setting)


@pytest.mark.parametrize("gamma", [1e-32, 1e32])
def test_ends_of_the_range_of_rates_are_searched(gamma: float) -> None:
    """The cap 2 / gamma lies beyond the rates that the risk is known for."""
    setting = {"zcdp_root": np.inf, "clip_constant": 1.0, "label_noise_std": 0.1}
    spectrum = Spectrum(np.ones(1), np.ones(1))
    assert rate_search.polynomial(
        spectrum, exponent=1.0, aspect_ratio=gamma, **setting
    ).final_risk <= 0.5 * (1 + 1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 6, 7, 9])
def test_families_of_rates_over_the_whole_domain(seed: int) -> None:
    """The best of a range of amplitudes, or of all harmonic rates, is that of a scan or less."""
    spectrum, setting = drawn_search(seed)
    rng = np.random.default_rng(1000 + seed)
    schedules: list[Schedule]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if seed % 2:
            low = size(rng, -32, 31)
            high, exponent = min(low * size(rng, 0.1, 40), 1e32), float(rng.choice([0, 0.5, 2, 7]))
            best = rate_search.optimise(
                spectrum, lambda a: Polynomial(a, exponent), low=low, high=high, **setting
            )
            assert low <= np.max(best.schedule.amplitude) <= high * (1 + 1e-9)
            schedules = [Polynomial(a, exponent) for a in np.geomspace(low, high, 12)]
        else:
            best = rate_search.harmonic(spectrum, **setting)
            top = min(2 / setting["aspect_ratio"], 1e28)
            schedules = [
                Harmonic(rate * offset, offset)
                for offset in np.geomspace(1e-15, 1e4, 4)
                for rate in np.geomspace(max(1e-16, 1e-30 * top), top, 5)
            ]
    for schedule in schedules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                risk = deterministic_equivalent.solve(
                    spectrum, schedule, **setting, times=[1.0], rtol=1e-3
                ).final_risk
            except ValueError:
                continue
        assert best.final_risk <= risk * (1 + 2e-3) or caught, schedule


@pytest.mark.parametrize(
    "setting",
    [(4.28e-9, 1.27e7, 1.68e7, 3.39e7), (9.99e-12, 1.94e-29, 3.74e19, 5.14e-27)],
)
def test_only_what_a_search_returns_is_resolved_to_the_last_digits(setting) -> None:
    """Of forty offsets each was solved on a million intervals: 36 seconds at the worst."""
    sizes = []
    integrate = deterministic_equivalent.integrate_settings

    def counted(*arguments):
        sizes.append(len(arguments[3]) - 1)
        return integrate(*arguments)

    names = ("aspect_ratio", "zcdp_root", "clip_constant", "label_noise_std")
    with patch.object(deterministic_equivalent, "integrate_settings", counted):
        rate_search.harmonic(spectra.isotropic(), **dict(zip(names, setting, strict=True)))
    # Of one solution, whose grids are halved nine times at most, and graded once.
    assert sum(each > 2 * rate_search.MOST_INTERVALS for each in sizes) <= 20
