"""The law of homogenised SGD, computed by routes that share nothing but the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

from privreg.schedules import ConstantRate, InverseSquareRootRate, RateWithIntegral
from privreg.theory.noisy_sgd import diffusion
from privreg.theory.noisy_sgd.diffusion import (
    HomogenisedSGD,
    RidgeRegression,
    solve_volterra,
    stationary_risk,
)
from reproduction.papers.lin2025.experiments.volterra_routes import isotropic_risk

SCHEDULES: list[RateWithIntegral] = [ConstantRate(0.8), InverseSquareRootRate(0.9)]


def spread_problem(size: int = 40, *, ridge: float = 0.1) -> RidgeRegression:
    rng = np.random.default_rng(1)
    return RidgeRegression(
        rng.uniform(0.0, 2.0, size),
        rng.standard_normal(size),
        rng.standard_normal(size),
        label_noise_std=0.3**0.5,
        ridge=ridge,
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedule_integral(schedule: RateWithIntegral) -> None:
    integral = quad(lambda t: float(schedule.rate(t)), 0, 4, epsrel=1e-13)[0]
    assert float(schedule.integral(4.0)) == pytest.approx(integral, rel=1e-12)


def test_two_extrapolations_of_the_trapezoid_rule_have_sixth_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(diffusion, "EXTRAPOLATIONS", 2)
    problem, schedule = spread_problem(), SCHEDULES[1]
    law = HomogenisedSGD(problem, schedule, gradient_noise_std=0.7, horizon=4.0)
    errors = [
        solve_volterra(
            problem,
            schedule,
            gradient_noise_std=0.7,
            horizon=4.0,
            intervals=n,
            rtol=0.01,
        ).risk[-1]
        - law.risk(4.0)
        for n in (25, 50)
    ]
    assert errors[0] / errors[1] == pytest.approx(64.0, rel=0.1)


@pytest.mark.parametrize("rate", [0.5, 1.1 / 0.7**2])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_isotropic_closed_form(rate: float, ridge: float) -> None:
    """Both routes against the closed form, also where two of its exponentials meet."""
    rng = np.random.default_rng(2)
    target, initial = rng.standard_normal((2, 30))
    options = {"ridge": ridge, "label_noise_std": 0.2**0.5}
    problem = RidgeRegression(np.full(30, 0.7), target, initial, **options)
    law = HomogenisedSGD(problem, ConstantRate(rate), gradient_noise_std=0.6, horizon=3.0)
    volterra = solve_volterra(problem, ConstantRate(rate), gradient_noise_std=0.6, horizon=3.0)
    closed = isotropic_risk(
        volterra.time,
        eigenvalue=0.7,
        target=target,
        initial=initial,
        rate=rate,
        gradient_noise_std=0.6,
        **options,
    )
    np.testing.assert_allclose(law.risk(volterra.time), closed, rtol=1e-8)
    np.testing.assert_allclose(volterra.risk, closed, rtol=1e-8)


def test_stability_condition() -> None:
    problem = spread_problem()
    limit = 2 * problem.dimension / np.sum(problem.eigenvalues**2 / problem.curvatures)
    assert np.isfinite(stationary_risk(problem, rate=0.999 * limit, gradient_noise_std=0.1))
    assert stationary_risk(problem, rate=1.001 * limit, gradient_noise_std=0.1) == np.inf
    unstable = HomogenisedSGD(
        problem, ConstantRate(1.5 * limit), gradient_noise_std=0.1, horizon=40.0
    )
    assert float(unstable.risk(40.0)) > 100 * float(unstable.risk(10.0)) > 0


def test_multiplicities_stand_for_repeated_coordinates() -> None:
    values: dict[str, Any] = {
        "eigenvalues": [0.5, 2.0],
        "target": [1.0, -1.0],
        "initial": [0.3, 0.7],
    }
    copies: dict[str, Any] = {k: np.repeat(v, [3, 5]) for k, v in values.items()}
    repeated = RidgeRegression(**copies, ridge=0.2)
    weighted = RidgeRegression(**values, ridge=0.2, multiplicities=[3, 5])
    laws = [
        HomogenisedSGD(p, SCHEDULES[1], gradient_noise_std=0.4, horizon=2.0)
        for p in (repeated, weighted)
    ]
    times = np.linspace(0, 2, 9)
    np.testing.assert_allclose(laws[0].risk(times), laws[1].risk(times), rtol=1e-13)
    np.testing.assert_allclose(
        laws[0].regularised_risk(times), laws[1].regularised_risk(times), rtol=1e-13
    )
    assert stationary_risk(repeated, rate=0.4, gradient_noise_std=0.4) == pytest.approx(
        stationary_risk(weighted, rate=0.4, gradient_noise_std=0.4), rel=1e-14
    )


def test_direction_without_curvature_only_diffuses() -> None:
    problem = RidgeRegression([0.0, 1.0], [2.0, 2.0], [0.5, 0.5])
    law = HomogenisedSGD(problem, ConstantRate(0.5), gradient_noise_std=1.2, horizon=2.0)
    assert law.mean(2.0)[0] == 0.5
    assert law.variance(2.0)[0] == pytest.approx(0.5**2 * 1.2**2 * 2.0 / 2, rel=1e-12)
    assert np.isfinite(stationary_risk(problem, rate=0.5, gradient_noise_std=1.2))
