"""One-pass DP-GD's risk on random spectra and schedules, against independent computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from privreg import spectra
from privreg.models import LinearModel
from privreg.schedules import Harmonic, Polynomial, Schedule
from privreg.spectra import Spectrum
from privreg.theory.one_pass_dpgd import deterministic_equivalent, rate_search, volterra
from privreg.theory.one_pass_dpgd.deterministic_equivalent import (
    descent_factor,
    sandwich,
    variance_factor,
)
from privreg.theory.one_pass_dpgd.volterra import risk_path

Array = NDArray[np.float64]
SEEDS = range(8)


@dataclass(frozen=True)
class Steps:
    """A user's schedule, constant between breaks."""

    amplitude: ArrayLike
    breaks: tuple[float, ...]
    values: tuple[float, ...]

    def shape(self, times: ArrayLike) -> Array:
        return np.asarray(self.values)[np.searchsorted(self.breaks, times, side="right")]


@dataclass(frozen=True)
class Broken:
    """A user's schedule, linear between breaks."""

    amplitude: ArrayLike
    breaks: tuple[float, ...]
    values: tuple[float, ...]

    def shape(self, times: ArrayLike) -> Array:
        return np.interp(np.asarray(times, dtype=float), self.breaks, self.values)


def random_schedule(rng: np.random.Generator, largest: float) -> tuple[Schedule, list[float]]:
    """A schedule of one amplitude, and the times at which it is not smooth."""
    peak = largest * 10.0 ** rng.uniform(-1.5, 0)
    match rng.integers(4):
        case 0:
            return Polynomial(peak, float(rng.choice([0.0, 0.5, 1.0, rng.uniform(0.2, 3)]))), []
        case 1:
            offset = 10.0 ** rng.uniform(-2, 1)
            return Harmonic(peak * offset, offset), []
        case 2:
            places = np.sort(rng.uniform(0.02, 0.98, int(rng.integers(1, 5))))
            levels = np.cumprod([1.0, *rng.uniform(0.2, 1, places.size)])
            return Steps(peak, tuple(places), tuple(levels)), list(places)
        case _:
            places = np.sort(rng.uniform(0.05, 0.95, 2))
            levels = (1.0, *np.cumprod(rng.uniform(0.3, 1, 3)))
            return Broken(peak, (0.0, *places, 1.0), levels), list(places)


def random_spectrum(rng: np.random.Generator) -> Spectrum:
    count = int(rng.integers(1, 5))
    values, weights = 10.0 ** rng.uniform(-2, 0.3, count), rng.uniform(0.1, 1, count)
    return Spectrum(values, weights / weights.sum())


def random_setting(rng: np.random.Generator) -> dict[str, float]:
    return {
        "aspect_ratio": 10.0 ** rng.uniform(-3, -0.3),
        "zcdp_root": 10.0 ** rng.uniform(-0.5, 1.5),
        "clip_constant": 10.0 ** rng.uniform(-1.5, 1),
        "label_noise_std": 10.0 ** rng.uniform(-1.5, 0.3),
    }


def cap_crossing(schedule: Schedule, gamma: float) -> list[float]:
    """Where a rate falls below the cap, by bisection."""
    low, high = 0.0, 1.0
    if not schedule.amplitude * schedule.shape(0.0) > 2 / gamma:
        return []
    for _ in range(60):
        middle = (low + high) / 2
        above = schedule.amplitude * float(schedule.shape(middle)) > 2 / gamma
        low, high = (middle, high) if above else (low, middle)
    return [high] if high < 1 else []


def integrated(
    slope: Callable[[Array, float, float], Array],
    start: Array,
    schedule: Schedule,
    cuts: list[float],
    energy: float,
    wanted: Array,
) -> Array:
    """States by an adaptive method, restarted at the cuts; the noise enters without a derivative.

    The sum of each state and of the noise still to come, `energy` times the squared rate, is
    continuous and has a slope that does not hold the rate's derivative.
    """
    stops = np.unique(np.concatenate([[0.0, 1.0], cuts, wanted]))

    def rate(time: float) -> float:
        return float(schedule.amplitude) * float(schedule.shape(time))

    total = start + energy * rate(0.0) ** 2
    found = {0.0: start}
    for left, right in pairwise(stops):

        def change(time: float, state: Array, left: float = left, right: float = right) -> Array:
            now = rate(float(np.clip(time, np.nextafter(left, 1), np.nextafter(right, 0))))
            return slope(state - energy * now**2, now, time)

        options = {"method": "LSODA", "rtol": 1e-11, "atol": 1e-13 * np.max(np.abs(total))}
        total = solve_ivp(change, (left, right), total, **options).y[:, -1]
        found[right] = total - energy * rate(right) ** 2
    return np.array([found[t] for t in wanted])


def test_steps_of_a_schedule_are_met() -> None:
    """The error was a thousandfold the tolerance, for a jump had to lie on the grid."""
    setting = {"aspect_ratio": 0.1, "zcdp_root": 1.0, "clip_constant": 1.0, "label_noise_std": 0.3}
    schedule = Steps(3.0, (0.3, 0.71), (1.0, 0.5, 0.1))
    found = deterministic_equivalent.solve(spectra.isotropic(), schedule, **setting)
    assert found.error < 1e-7
    expected = reference(spectra.isotropic(), schedule, [0.3, 0.71], setting, np.array([1.0]))
    assert found.risk[-1] == pytest.approx(expected[0], rel=1e-7)


def reference(
    spectrum: Spectrum,
    schedule: Schedule,
    cuts: list[float],
    setting: dict[str, float],
    times: Array,
    signal: ArrayLike = 0.5,
) -> Array:
    gamma, clip = setting["aspect_ratio"], setting["clip_constant"]
    factors = {"clip_constant": clip, "label_noise_std": setting["label_noise_std"]}
    values, weights = spectrum.eigenvalues, spectrum.weights

    def slope(state: Array, rate: float, _: float) -> Array:
        risk = max(float(weights @ (values * state)), 0.0)
        taken = min(rate, 2 / gamma)
        loss = risk + setting["label_noise_std"] ** 2 / 2
        descent = float(descent_factor(risk, **factors))
        kick = float(variance_factor(risk, **factors)) * loss * gamma
        return -2 * values * taken * descent * state + values * taken**2 * kick

    start = np.broadcast_to(np.asarray(signal, dtype=float), values.shape).copy()
    cuts = [*cuts, *cap_crossing(schedule, gamma)]
    energy = 2 * (clip * gamma / setting["zcdp_root"]) ** 2
    states = integrated(slope, start, schedule, cuts, energy, times)
    return states @ (weights * values)


@pytest.mark.parametrize("seed", SEEDS)
def test_risk_solves_the_equations_of_the_modes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spectrum, setting = random_spectrum(rng), random_setting(rng)
    schedule, cuts = random_schedule(rng, min(3 / setting["aspect_ratio"], 60.0))
    signal = rng.uniform(0.1, 1, spectrum.modes)
    times = np.sort(rng.uniform(0.01, 1, 3))
    found = deterministic_equivalent.solve(
        spectrum, schedule, **setting, signal=signal, times=times
    )
    expected = reference(spectrum, schedule, cuts, setting, times, signal)
    # The reference keeps 1e-11 of the largest sum of risk and noise still to come.
    energy = 2 * (setting["clip_constant"] * setting["aspect_ratio"] / setting["zcdp_root"]) ** 2
    largest = 1 + energy * (float(schedule.amplitude) * float(schedule.shape(0.0))) ** 2
    np.testing.assert_allclose(found.risk, expected, rtol=2e-7, atol=1e-9 * largest)
    assert found.error < 1e-7


@pytest.mark.parametrize("seed", SEEDS)
def test_sandwich_solves_its_scalar_equations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    setting = random_setting(rng)
    gamma, clip = setting["aspect_ratio"], setting["clip_constant"]
    schedule, cuts = random_schedule(rng, min(2 / gamma, 30.0))
    smallest, largest = 10.0 ** rng.uniform(-1.5, 0), 10.0 ** rng.uniform(0, 0.7)
    start, times = 10.0 ** rng.uniform(-2, 1), np.sort(rng.uniform(0.01, 1, 3))
    factors = {"clip_constant": clip, "label_noise_std": setting["label_noise_std"]}
    energy = 2 * (clip * gamma / setting["zcdp_root"]) ** 2
    bounds = sandwich(
        schedule, smallest=smallest, largest=largest, **setting, times=times, start=start
    )
    for found, a, b in ((bounds.lower, largest, 1.0), (bounds.upper, smallest, largest)):

        def slope(state: Array, rate: float, _: float, a: float = a, b: float = b) -> Array:
            risk = np.maximum(state, 0.0)
            loss = risk + setting["label_noise_std"] ** 2 / 2
            fall = -2 * a * rate * descent_factor(risk, **factors) * risk
            return fall + b * rate**2 * variance_factor(risk, **factors) * loss * gamma

        expected = integrated(slope, np.array([start]), schedule, cuts, energy, times)[:, 0]
        peak = start + energy * (float(schedule.amplitude) * float(schedule.shape(0.0))) ** 2
        np.testing.assert_allclose(found, expected, rtol=2e-7, atol=1e-9 * peak)


@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_are_traces_of_matrix_exponentials(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 6
    values = np.repeat(10.0 ** rng.uniform(-2, 0.5, 3), [1, 2, 3])
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    covariance = basis @ np.diag(values) @ basis.T
    spectrum = spectra.explicit(values)
    signal = rng.uniform(0, 1, spectrum.modes)
    start = basis @ np.diag(signal[np.searchsorted(spectrum.eigenvalues, values)]) @ basis.T
    kernels = volterra.spectrum_kernels(spectrum, signal)
    for x in 10.0 ** rng.uniform(-3, 1.5, 3):
        left = expm(-2 * x * covariance)
        for kernel, matrix in (
            (kernels.signal, start @ covariance),
            (kernels.sampling, covariance @ covariance),
            (kernels.private, covariance),
            (kernels.mass, np.eye(size)),
        ):
            expected = np.trace(matrix @ left) / size
            assert float(kernel(x)) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_volterra_equation_has_the_risk_of_the_modes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    spectrum, setting = random_spectrum(rng), random_setting(rng)
    schedule, cuts = random_schedule(rng, min(2 / setting["aspect_ratio"], 20.0))
    rising = np.geomspace(1e-5, 0.5, 40)
    both = [[np.nextafter(cut, 0), cut] for cut in cuts]
    coarse = np.unique(np.concatenate([[0.0], rising, 1 - rising, [1.0], *both]))
    fine = np.unique(np.concatenate([coarse, (coarse[1:] + coarse[:-1]) / 2]))
    kernels = volterra.spectrum_kernels(spectrum)
    first = volterra.solve(kernels, schedule, coarse, **setting)
    second = volterra.solve(kernels, schedule, fine, **setting)[np.searchsorted(fine, coarse)]
    modes = deterministic_equivalent.solve(spectrum, schedule, **setting, times=coarse).risk
    # An error of order 2 is a third of the change by halving.
    error = np.max(np.abs(second / first - 1))
    assert error < 0.3
    np.testing.assert_allclose(second, modes, rtol=error + 1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_path_is_that_of_a_loop_in_numpy(seed: int) -> None:
    """The same draws, coordinate by coordinate, through the definition of each term."""
    rng = np.random.default_rng(seed)
    size, samples, steps = 4, int(rng.integers(5, 60)), int(rng.integers(3, 40))
    model = LinearModel(
        eigenvalues=rng.uniform(0.1, 2, size),
        target=rng.standard_normal(size),
        label_noise_std=rng.uniform(0.1, 1),
    )
    setting = random_setting(rng)
    clip, rho, gamma = setting["clip_constant"], setting["zcdp_root"], size / samples
    schedule, _ = random_schedule(rng, 3 / gamma)
    record = np.arange(0, steps + 1)
    found = risk_path(
        model,
        schedule,
        np.random.default_rng(seed),
        sample_size=samples,
        zcdp_root=rho,
        clip_constant=clip,
        times=record / steps,
        steps=steps,
    )
    draws = np.random.default_rng(seed)
    gap = -model.target
    expected = []
    for step in record:
        risk = float(gap @ (model.eigenvalues * gap)) / 2
        expected.append(risk)
        if step == steps:
            break
        now, later = (
            float(schedule.amplitude) * float(schedule.shape(at / steps)) for at in (step, step + 1)
        )
        taken = min(now, 2 / gamma)
        factors = {"clip_constant": clip, "label_noise_std": model.label_noise_std}
        loss = risk + model.label_noise_std**2 / 2
        sampling = taken**2 * 2 * float(variance_factor(risk, **factors)) * loss / samples / steps
        private = 4 * size * (clip / (samples * rho)) ** 2 * max(now**2 - later**2, 0.0)
        deviation = np.sqrt(sampling * model.eigenvalues + private)
        pull = taken * float(descent_factor(risk, **factors)) / steps
        normal = np.array([draws.standard_normal() for _ in range(size)])
        gap = gap - pull * model.eigenvalues * gap + deviation * normal
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def scanned(
    spectrum: Spectrum, setting: dict[str, float], family: Callable[[Array], Schedule], top: float
) -> float:
    """Least final risk over 400 amplitudes from 1e-14 of the largest on."""
    amplitudes = np.geomspace(1e-14 * top, top, 400)
    risks = deterministic_equivalent.solve(
        spectrum, family(amplitudes), **setting, times=[1.0], rtol=1e-3
    ).final_risk
    return float(np.min(risks))


def search_setting(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    # Down to noise that outweighs any descent.
    return random_setting(rng) | {"zcdp_root": 10.0 ** rng.uniform(-6, 1)}


@pytest.mark.filterwarnings("ignore::privreg.checks.AccuracyWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_best_polynomial_rate_is_that_of_a_wide_scan(seed: int) -> None:
    setting, exponent = search_setting(seed), [0.0, 0.5, 1.0, 2.0][seed % 4]
    top = 2 / setting["aspect_ratio"]
    least = scanned(spectra.uniform(), setting, lambda a: Polynomial(a, exponent), top)
    best = rate_search.polynomial(spectra.uniform(), exponent=exponent, **setting)
    # Neighbours of the scan differ by 8 %, whose half moves a parabola by 1e-3 at most.
    assert best.final_risk <= least * (1 + 1e-4)
    assert best.final_risk >= least * (1 - 5e-3)


@pytest.mark.filterwarnings("ignore::privreg.checks.AccuracyWarning")
@pytest.mark.parametrize("seed", range(6))
def test_best_harmonic_rate_is_that_of_a_wide_scan(seed: int) -> None:
    setting = search_setting(seed)
    cap = 2 / setting["aspect_ratio"]
    least = min(
        scanned(spectra.isotropic(), setting, lambda a, t=offset: Harmonic(a, t), cap * offset)
        for offset in np.geomspace(1e-4, 1e5, 28)
    )
    best = rate_search.harmonic(spectra.isotropic(), **setting)
    assert best.final_risk <= least * (1 + 1e-4)
    assert best.final_risk >= least * (1 - 3e-2)


def test_search_under_heavy_noise_does_not_end_at_its_lowest_rate() -> None:
    """Risks were up to 1e8; no rate at all has 1/2."""
    setting = {"aspect_ratio": 0.3, "zcdp_root": 1e-6, "clip_constant": 8.0, "label_noise_std": 0.1}
    isotropic = spectra.isotropic()
    assert rate_search.polynomial(isotropic, exponent=1.0, **setting).final_risk <= 0.5
    assert rate_search.harmonic(isotropic, **setting).final_risk <= 0.5
