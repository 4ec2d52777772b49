"""Laws of noisy SGD with rates that vary, over sixty decades of every argument, in many digits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import mpmath as mp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.accuracy import AccuracyWarning
from privreg.schedules import InverseSquareRootRate, RateWithIntegral
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression
from privreg.theory.noisy_sgd.volterra import solve_volterra

from ..draws import Exact, numbers, size


@dataclass(frozen=True)
class Steps:
    """A user's piecewise constant rate, with jumps of any sign."""

    breaks: tuple[float, ...]
    values: tuple[float, ...]

    def rate(self, time: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(self.values)[np.searchsorted(self.breaks, time, side="right")]

    def integral(self, time: ArrayLike) -> NDArray[np.float64]:
        edges = np.array([0.0, *self.breaks, inf])
        t = np.asarray(time, dtype=float)[..., None]
        return np.sum(np.clip(t - edges[:-1], 0.0, np.diff(edges)) * self.values, axis=-1)


def drawn_problem(rng: np.random.Generator, count: int, top: float) -> RidgeRegression:
    values = top * 10.0 ** (-rng.choice([0, 0, 1, 6, 20]) * rng.random(count))
    values[-1] *= count == 1 or rng.random() > 0.15
    ridge = float(rng.choice([0.0, size(rng, -30, 30), top * size(rng, -20, 1)]))
    target, start = (size(rng, -29, 29) * rng.standard_normal(count) for _ in range(2))
    return RidgeRegression(
        values,
        np.clip(target, -1e30, 1e30),
        np.clip(rng.choice([0.0, 1.0]) * start, -1e30, 1e30),
        label_noise_std=float(rng.choice([0.0, size(rng, -30, 30)])),
        ridge=min(ridge, 1e30),
    )


class ExactLaw:
    """Variances and risk by exponentials of one matrix a stretch of constant rate."""

    def __init__(self, problem: RidgeRegression, sigma: float) -> None:
        self.values, self.target, self.start = (
            numbers(getattr(problem, name)) for name in ("eigenvalues", "target", "initial")
        )
        self.ridge, self.zeta = mp.mpf(problem.ridge), mp.mpf(problem.label_noise_std)
        self.sigma, self.d = mp.mpf(sigma), len(self.values)
        self.slopes = [v + self.ridge for v in self.values]
        self.rest = [
            v * x / s if s else y
            for v, s, x, y in zip(self.values, self.slopes, self.target, self.start, strict=True)
        ]

    def flow(self, length: Exact) -> list[Exact]:
        parts = zip(self.rest, self.slopes, self.start, strict=True)
        return [r + mp.exp(-s * length) * (y - r) for r, s, y in parts]

    def risk(self, mean: list[Exact], variance: list[Exact]) -> Exact:
        parts = zip(self.values, mean, self.target, variance, strict=True)
        return (mp.fsum(v * ((m - x) ** 2 + u) for v, m, x, u in parts) + self.zeta**2) / 2

    def after(
        self, variance: list[Exact], mean: list[Exact], rate: Exact, width: Exact
    ) -> list[Exact]:
        """Variances after a stretch: they, the gap to the rest, and its squares are linear."""
        d = self.d
        bias = [r - x for r, x in zip(self.rest, self.target, strict=True)]
        gap = [m - r for m, r in zip(mean, self.rest, strict=True)]
        matrix = mp.zeros(3 * d + 1, 3 * d + 1)
        flow = mp.fsum(v * b * b for v, b in zip(self.values, bias, strict=True))
        for i, value in enumerate(self.values):
            square = rate**2 / d * value
            for j, other in enumerate(self.values):
                matrix[i, j] += square * other
                matrix[i, d + j] += square * other * 2 * bias[j] * gap[j]
                matrix[i, 2 * d + j] += square * other * gap[j] ** 2
            matrix[i, i] -= 2 * rate * self.slopes[i]
            matrix[i, 3 * d] = square * (flow + self.zeta**2) + rate**2 / d * self.sigma**2
            matrix[d + i, d + i] = -rate * self.slopes[i]
            matrix[2 * d + i, 2 * d + i] = -2 * rate * self.slopes[i]
        matrix *= width
        state = mp.matrix([*variance, *([1] * (2 * d + 1))])
        # In units of what drives each variance: an exponential's digits are its largest entry's.
        units = [
            max(abs(variance[i]), *(abs(matrix[i, j]) for j in range(d, 3 * d + 1))) or mp.mpf(1)
            for i in range(d)
        ]
        units += [mp.mpf(1)] * (2 * d + 1)
        for i, j in np.ndindex(3 * d + 1, 3 * d + 1):
            matrix[i, j] *= units[j] / units[i]
        scaled = mp.matrix([state[i] / units[i] for i in range(3 * d + 1)])
        end = mp.expm(matrix, method="taylor") * scaled
        return [end[i] * units[i] for i in range(d)]


def drawn_steps(rng: np.random.Generator) -> tuple[RidgeRegression, Steps, float, float]:
    top = size(rng, -28, 28)
    problem = drawn_problem(rng, int(rng.integers(1, 3)), top)
    curvature = float(problem.curvatures.max())
    jumps = int(rng.integers(0, 4))
    rates = (
        size(rng, -5, 0.3) / curvature * 10.0 ** (rng.choice([-8, -1, 1]) * rng.random(jumps + 1))
    )
    rates = np.clip(rates, 1e-30, 1e30)
    horizon = min(size(rng, -4, 1.5) / (rates.max() * curvature), 1e30)
    places = rng.choice([rng.random(), size(rng, -12, 0), 1 - size(rng, -12, 0)], jumps)
    breaks = np.unique(horizon * places)
    breaks = breaks[(breaks > 0) & (breaks < horizon)]
    schedule = Steps(tuple(breaks), tuple(rates[: breaks.size + 1]))
    return problem, schedule, horizon, float(rng.choice([0.0, size(rng, -30, 30)]))


def close(found: ArrayLike, wanted: list[Exact], rel: float) -> bool:
    pairs = zip(np.ravel(found), wanted, strict=True)
    return all(abs(mp.mpf(float(x)) - y) <= rel * abs(y) + mp.mpf("1e-280") for x, y in pairs)


def test_laws_of_rates_with_jumps() -> None:
    right = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        problem, schedule, horizon, sigma = drawn_steps(rng)
        try:
            law = HomogenisedSGD(problem, schedule, gradient_noise_std=sigma, horizon=horizon)
            variance, risk = law.variance(horizon), law.risk(horizon)
        except ValueError as error:
            if "must" not in str(error):
                raise
            continue
        with mp.workdps(120):
            exact = ExactLaw(problem, sigma)
            state, mean = [mp.mpf(0)] * exact.d, list(exact.start)
            passed = mp.mpf(0)
            ends = numbers([0.0, *schedule.breaks, horizon])
            for value, (begin, end) in zip(numbers(schedule.values), pairwise(ends), strict=True):
                state = exact.after(state, mean, value, end - begin)
                passed += value * (end - begin)
                mean = exact.flow(passed)
            wanted = exact.risk(mean, state)
            assert close(variance, state, 1e-9), (seed, variance, state)
            assert close(risk, [wanted], 1e-9), seed
        right += 1
    assert right > 6


def exact_inverse_root(
    problem: RidgeRegression, schedule: InverseSquareRootRate, horizon: float, sigma: float
) -> tuple[Exact, Exact]:
    """Variance and risk of one mode in integrated rate G, where γ = γ_0 / (1 + G / (2 γ_0 τ))."""
    law = ExactLaw(problem, sigma)
    value, slope = law.values[0], law.slopes[0]
    first, scale = mp.mpf(schedule.value), mp.mpf(schedule.scale)
    root = mp.sqrt(1 + mp.mpf(horizon) / scale)
    end, unit = 2 * first * mp.mpf(horizon) / (root + 1), 2 * first * scale

    def integrand(at: Exact) -> Exact:
        rate = first / (1 + at / unit)
        flow = value * (law.flow(at)[0] - law.target[0]) ** 2 + law.zeta**2
        # The integrating factor of V' = -2 a V + γ λ² V + ...
        grown = first * unit * value**2 * mp.log((1 + end / unit) / (1 + at / unit))
        return rate * (value * flow + law.sigma**2) * mp.exp(grown - 2 * slope * (end - at))

    speed = 2 * slope + first * value**2 + 1 / unit
    marks = [end * mp.mpf(2) ** -k for k in range(1, 60) if end * mp.mpf(2) ** -k * speed > 1e-2]
    back = [end - x for x in marks]
    pieces = sorted({mp.mpf(0), *marks, *back, end})
    variance = mp.quad(integrand, pieces, method="gauss-legendre", maxdegree=4)
    return variance, law.risk(law.flow(end), [variance])


def test_laws_of_the_inverse_root() -> None:
    right = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        problem = drawn_problem(rng, 1, size(rng, -28, 28))
        curvature = float(problem.curvatures.max())
        rate = float(np.clip(size(rng, -5, 0.3) / curvature, 1e-30, 1e30))
        horizon = min(size(rng, -4, 1.5) / (rate * curvature), 1e30)
        schedule = InverseSquareRootRate(
            rate, float(np.clip(horizon * size(rng, -9, 3), 1e-50, 1e50))
        )
        sigma = float(rng.choice([0.0, size(rng, -30, 30)]))
        try:
            law = HomogenisedSGD(problem, schedule, gradient_noise_std=sigma, horizon=horizon)
        except ValueError as error:
            if "must" not in str(error):
                raise
            continue
        with mp.workdps(30):
            variance, risk = exact_inverse_root(problem, schedule, horizon, sigma)
            assert close(law.variance(horizon), [variance], 1e-9), seed
            assert close(law.risk(horizon), [risk], 1e-9), seed
        right += 1
    assert right > 10


def test_volterra_equations_of_any_size() -> None:
    """They are right to 1e-6, warn, or are refused; errors beside a jump did neither."""
    right = 0
    for seed in (*range(9), 14):
        rng = np.random.default_rng(seed)
        schedule: RateWithIntegral
        problem, schedule, horizon, sigma = drawn_steps(rng)
        if seed % 2:
            scale = float(np.clip(horizon * size(rng, -3, 3), 1e-50, 1e50))
            schedule = InverseSquareRootRate(schedule.values[0], scale)
        options = {"gradient_noise_std": sigma, "horizon": horizon}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                law = HomogenisedSGD(problem, schedule, **options)
                found = solve_volterra(problem, schedule, **options, intervals=40)
            except ValueError as error:
                if "must" not in str(error):
                    raise
                continue
        assert all(issubclass(each.category, AccuracyWarning) for each in caught), seed
        if caught:
            continue
        for risk, wanted in (
            (found.risk, law.risk(found.time)),
            (found.regularised_risk, law.regularised_risk(found.time)),
        ):
            np.testing.assert_allclose(risk, wanted, rtol=1e-6, atol=1e-280, err_msg=str(seed))
        right += 1
    assert right > 4
