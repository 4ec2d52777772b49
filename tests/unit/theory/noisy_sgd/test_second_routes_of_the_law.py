"""The law of noisy SGD on random problems and schedules, against independent computations."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad, solve_ivp

from privreg.checks import AccuracyWarning
from privreg.schedules import ConstantRate, InverseSquareRootRate, RateWithIntegral
from privreg.theory.noisy_sgd.diffusion import (
    HomogenisedSGD,
    RidgeRegression,
    resolved_panels,
    solve_volterra,
    stationary_risk,
)

Array = NDArray[np.float64]
SEEDS = range(8)


@dataclass(frozen=True)
class Steps:
    """A user's piecewise constant rate, with jumps of any sign."""

    breaks: tuple[float, ...]
    values: tuple[float, ...]

    def rate(self, time: ArrayLike) -> Array:
        return np.asarray(self.values)[np.searchsorted(self.breaks, time, side="right")]

    def integral(self, time: ArrayLike) -> Array:
        edges = np.array([0.0, *self.breaks, np.inf])
        t = np.asarray(time, dtype=float)[..., None]
        return np.sum(np.clip(t - edges[:-1], 0.0, np.diff(edges)) * self.values, axis=-1)


@dataclass(frozen=True)
class Decaying:
    """A user's rate c + a exp(-t / tau)."""

    base: float
    extra: float
    scale: float

    def rate(self, time: ArrayLike) -> Array:
        return self.base + self.extra * np.exp(-np.asarray(time) / self.scale)

    def integral(self, time: ArrayLike) -> Array:
        t = np.asarray(time, dtype=float)
        return self.base * t - self.extra * self.scale * np.expm1(-t / self.scale)


def random_problem(rng: np.random.Generator, size: int | None = None) -> RidgeRegression:
    size = int(rng.integers(1, 7)) if size is None else size
    spectrum = 10.0 ** rng.uniform(-2, 0.5, size) * (rng.uniform(size=size) > 0.1)
    return RidgeRegression(
        spectrum,
        rng.standard_normal(size),
        rng.standard_normal(size) * rng.integers(0, 2),
        label_noise_std=rng.uniform(0, 1),
        ridge=rng.choice([0.0, rng.uniform(0, 0.5)]),
        multiplicities=rng.uniform(0.5, 3.0, size) if rng.integers(2) else None,
    )


def random_schedule(
    rng: np.random.Generator, horizon: float
) -> tuple[RateWithIntegral, list[float]]:
    """A schedule, and times between which it is smooth at a scale of its own."""
    peak = 10.0 ** rng.uniform(-1, 0.5)
    scale = horizon * 10.0 ** rng.uniform(-7, 1)
    places = [scale * 4.0**k for k in range(30) if scale * 4.0**k < horizon]
    match rng.integers(4):
        case 0:
            return ConstantRate(peak), []
        case 1:
            return InverseSquareRootRate(peak, scale), places
        case 2:
            return Decaying(peak / 5, 3 * peak, scale), places[:4]
        case _:
            breaks = np.sort(rng.uniform(0, horizon, 3))
            return Steps(tuple(breaks), tuple(10.0 ** rng.uniform(-1.5, 0.3, 4))), list(breaks)


def integrated_variance(
    law: HomogenisedSGD, cuts: list[float], wanted: Array
) -> tuple[Array, Array]:
    """Variances and risks by an adaptive Runge-Kutta method, restarted at the cuts."""
    problem, schedule, sigma = law.problem, law.schedule, law.gradient_noise_std
    times = np.unique(np.concatenate([[0.0], cuts, wanted]))
    state, found = np.zeros(problem.eigenvalues.size), {0.0: np.zeros(problem.eigenvalues.size)}
    for left, right in pairwise(times):
        # Inside, so that a jump at an end is not seen.
        def slope(time: float, variance: Array, left: float = left, right: float = right) -> Array:
            inside = np.clip(time, np.nextafter(left, right), np.nextafter(right, left))
            rate = schedule.rate(inside)
            mean = problem.gradient_flow(schedule.integral(time))
            risk = 0.5 * np.sum(
                problem.multiplicities
                * problem.eigenvalues
                * ((mean - problem.target) ** 2 + variance)
            )
            noise = 2 * (risk + problem.label_noise_std**2 / 2) * problem.eigenvalues + sigma**2
            return -2 * rate * problem.curvatures * variance + rate**2 / problem.dimension * noise

        options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-17}
        state = solve_ivp(slope, (left, right), state, **options).y[:, -1]
        found[right] = state
    variances = np.array([found[t] for t in wanted])
    risks = [
        float(problem.risk(problem.gradient_flow(schedule.integral(t)), v))
        for t, v in zip(wanted, variances, strict=True)
    ]
    return variances, np.array(risks)


@pytest.mark.parametrize("seed", SEEDS)
def test_law_solves_the_equations_of_its_modes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    horizon = 10.0 ** rng.uniform(-1, 1.2)
    problem, (schedule, cuts) = random_problem(rng), random_schedule(rng, horizon)
    law = HomogenisedSGD(problem, schedule, gradient_noise_std=rng.uniform(0.1, 2), horizon=horizon)
    wanted = np.sort(horizon * 10.0 ** rng.uniform(-3, 0, 4))
    variances, risks = integrated_variance(law, cuts, wanted)
    # The reference has errors of its own of about 1e-11 from some hundred steps of 1e-12.
    np.testing.assert_allclose(law.variance(wanted), variances, rtol=3e-10)
    np.testing.assert_allclose(law.risk(wanted), risks, rtol=3e-10)
    flow = problem.gradient_flow(
        [quad(schedule.rate, 0, t, points=cuts or None, limit=500)[0] for t in wanted]
    )
    np.testing.assert_allclose(law.mean(wanted), flow, atol=1e-6)


def test_fast_start_of_the_inverse_root() -> None:
    """The variance was 19 % low: the first panel was 3 long where the rate falls in 0.001."""
    problem = RidgeRegression([0.3, 0.7, 1.1, 1.9], [1.0, -1.0, 0.5, 2.0], np.zeros(4))
    schedule = InverseSquareRootRate(1.0, 1e-3)
    law = HomogenisedSGD(problem, schedule, gradient_noise_std=0.7, horizon=50.0)
    cuts = [1e-3 * 4.0**k for k in range(8)]
    wanted = np.array([1e-4, 0.003, 0.25, 1.0, 50.0])
    variances, risks = integrated_variance(law, cuts, wanted)
    np.testing.assert_allclose(law.variance(wanted), variances, rtol=1e-10)
    np.testing.assert_allclose(law.risk(wanted), risks, rtol=1e-10)


def test_panels_follow_the_integrated_rate_and_not_the_peak() -> None:
    schedule = InverseSquareRootRate(30.0, 1e-3)
    options = {"horizon": 50.0, "fastest": 2.0, "feedback": 1.5, "minimum": 16}
    edges = resolved_panels(schedule, **options)
    assert edges.size < 100
    length = np.diff(schedule.integral(edges))
    assert np.all(2.0 * 2.0 * length <= 2.0 + 1e-9)
    equal = resolved_panels(ConstantRate(2.0), **options)
    np.testing.assert_array_equal(equal, np.linspace(0.0, 50.0, equal.size))


@pytest.mark.parametrize("seed", SEEDS)
def test_panels_integrate_products_of_the_rate_and_of_decays(seed: int) -> None:
    """Gauss-Legendre rules of 12 nodes on the panels, against quad on pieces."""
    rng = np.random.default_rng(seed)
    schedule, cuts = random_schedule(rng, 5.0)
    speed = 10.0 ** rng.uniform(-1, 1)
    edges = resolved_panels(
        schedule, horizon=5.0, fastest=speed, feedback=1.0, minimum=int(rng.integers(1, 20))
    )
    assert edges[0] == 0.0
    assert edges[-1] == 5.0
    assert np.all(np.diff(edges) > 0)
    end = float(schedule.integral(5.0))

    def integrand(time: ArrayLike) -> Array:
        decay = np.exp(-2 * speed * (end - schedule.integral(time)))
        return schedule.rate(time) ** 2 * decay

    points, weights = np.polynomial.legendre.leggauss(12)
    width = np.diff(edges)[:, None]
    found = np.sum(width / 2 * weights * integrand(edges[:-1, None] + width / 2 * (points + 1)))
    pieces = np.unique([0.0, *cuts, *(5.0 - 5.0 * 0.5 ** np.arange(1, 12)), 5.0])
    expected = sum(
        quad(integrand, np.nextafter(a, b), np.nextafter(b, a), epsabs=0, epsrel=1e-12)[0]
        for a, b in pairwise(pieces)
    )
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_volterra_equations_agree_with_the_law_or_warn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    peak = 10.0 ** rng.uniform(-1, 0.3)
    schedule = InverseSquareRootRate(peak, 10.0 ** rng.uniform(-1, 1))
    options = {"gradient_noise_std": rng.uniform(0, 2), "horizon": 3.0}
    law = HomogenisedSGD(problem, schedule, **options)
    found = solve_volterra(problem, schedule, **options, intervals=40, rtol=1e-2)
    # The estimate is the change in the last extrapolation, of an error that it has removed.
    tolerance = max(found.error, 1e-10)
    np.testing.assert_allclose(found.risk, law.risk(found.time), rtol=tolerance)
    np.testing.assert_allclose(
        found.regularised_risk, law.regularised_risk(found.time), rtol=tolerance
    )


def test_volterra_equations_warn_on_a_grid_that_is_too_coarse() -> None:
    problem = RidgeRegression([0.3, 1.9], [1.0, 2.0], [0.0, 0.0])
    with pytest.warns(AccuracyWarning, match="risk has an estimated error"):
        solve_volterra(
            problem,
            InverseSquareRootRate(1.0, 1e-5),
            gradient_noise_std=0.7,
            horizon=50.0,
            intervals=20,
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_stationary_risks_are_where_the_equations_stand_still(seed: int) -> None:
    """The linear system of the variances' fixed point, by a dense solver."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, 4)
    keep = problem.curvatures > 0
    values, weights = problem.eigenvalues[keep], problem.multiplicities[keep]
    limit = 2 * problem.dimension / np.sum(weights * values**2 / problem.curvatures[keep])
    rate, sigma = float(rng.uniform(0.05, 0.95)) * min(limit, 10.0), rng.uniform(0, 2)
    flow = problem.risk(problem.minimiser)
    share = rate / problem.dimension
    # 2 A V = share (2 P λ + σ²) with P = flow + Σ w λ V / 2.
    matrix = 2 * np.diag(problem.curvatures[keep]) - share * np.outer(values, weights * values)
    variance = np.linalg.solve(matrix, share * (2 * flow * values + sigma**2))
    risk = flow + 0.5 * (weights * values) @ variance
    options = {"rate": rate, "gradient_noise_std": sigma}
    assert stationary_risk(problem, **options) == pytest.approx(risk, rel=1e-10)
