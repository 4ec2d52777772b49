"""The mean risk of the diffusion by routes that share nothing but the problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from privreg.experiment.datasets import variable
from privreg.experiment.parameters import Strict
from privreg.experiment.quantities import (
    Deviation,
    Dimension,
    NonNegative,
    Positive,
    PositiveDeviation,
    StepSize,
)

if TYPE_CHECKING:
    import xarray as xr

    from privreg.schedules import RateWithIntegral
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, RidgeRegression

PLACE = "Theorem 4.2, equations (6), (7) and (10)"


class Parameters(Strict):
    """Problems, rates and noise on which the routes are compared."""

    dimension: Annotated[Dimension, Field(ge=2)] = Field(description="Dimension d.")
    horizon: Positive = Field(description="Last time.")
    rate: StepSize = Field(description="Scaled rate gamma at time 0.")
    gradient_noise_std: PositiveDeviation = Field(description="Gradient noise sigma.")
    ridge: Annotated[NonNegative, Field(gt=0)] = Field(
        description="Penalty delta, where there is one."
    )
    scaled_label_noise_std: Deviation = Field(description="Standard deviation of the label noise.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest relative differences between integral equation, modes and closed forms."""
    import xarray as xr

    from privreg.schedules import ConstantRate, InverseSquareRootRate
    from privreg.theory.noisy_sgd.closed_forms import isotropic_risk, stationary_risk
    from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD
    from privreg.theory.noisy_sgd.volterra import solve_volterra

    schedules: dict[str, RateWithIntegral] = {
        "constant": ConstantRate(parameters.rate),
        "inverse root": InverseSquareRootRate(parameters.rate),
    }
    problems = {
        f"{spectrum}, {penalty}": _problem(parameters, spectrum == "isotropic", ridge)
        for spectrum in ("isotropic", "spread")
        for penalty, ridge in (("no penalty", 0.0), ("penalty", parameters.ridge))
    }
    shape = (len(problems), len(schedules))
    risk, regularised, variance = np.empty((3, *shape))
    closed = np.zeros(len(problems))
    for (p, problem), (s, schedule) in _pairs(problems.values(), schedules.values()):
        law = HomogenisedSGD(
            problem,
            schedule,
            gradient_noise_std=parameters.gradient_noise_std,
            horizon=parameters.horizon,
        )
        volterra = solve_volterra(
            problem,
            schedule,
            gradient_noise_std=parameters.gradient_noise_std,
            horizon=parameters.horizon,
        )
        risk[p, s] = np.max(np.abs(volterra.risk / law.risk(volterra.time) - 1.0))
        reference = law.regularised_risk(volterra.time)
        regularised[p, s] = np.max(np.abs(volterra.regularised_risk / reference - 1.0))
        variance[p, s] = _variance_error(law)
        if s == 0 and np.ptp(problem.eigenvalues) == 0.0:
            exact = isotropic_risk(
                volterra.time,
                eigenvalue=problem.eigenvalues[0],
                target=problem.target,
                initial=problem.initial,
                rate=parameters.rate,
                gradient_noise_std=parameters.gradient_noise_std,
                ridge=problem.ridge,
                label_noise_std=problem.label_noise_std,
            )
            closed[p] = max(
                np.max(np.abs(found / exact - 1.0))
                for found in (law.risk(volterra.time), volterra.risk)
            )
    isotropic = [name.startswith("isotropic") for name in problems]
    spread = problems["spread, penalty"]
    long = HomogenisedSGD(
        spread,
        schedules["constant"],
        gradient_noise_std=parameters.gradient_noise_std,
        horizon=200.0,
    )
    limit = stationary_risk(
        spread, rate=parameters.rate, gradient_noise_std=parameters.gradient_noise_std
    )
    root = float(schedules["inverse root"].integral(4.0)) / (2.0 * parameters.rate)
    both = ("problem", "schedule")
    return xr.Dataset(
        {
            "risk_error": variable(
                both, risk, "relative difference of the risk, integral equation against modes"
            ),
            "regularised_risk_error": variable(
                both, regularised, "the same of the regularised risk"
            ),
            "variance_error": variable(
                both, variance, "relative difference of the variance, quadrature against modes"
            ),
            "closed_form_error": variable(
                "isotropic_problem",
                closed[isotropic],
                "relative difference of the risk, both routes against the closed form",
            ),
            "stationary_error": variable(
                (),
                abs(float(long.risk(200.0)) / limit - 1.0),
                "relative difference of the risk at a late time and its limit in closed form",
            ),
            "integrated_rate_error": variable(
                (),
                abs(root / (np.sqrt(5.0) - 1.0) - 1.0),
                "relative difference of the integrated inverse-root rate and its closed form",
            ),
        },
        coords={
            "problem": variable("problem", list(problems), "spectrum and penalty"),
            "schedule": variable("schedule", list(schedules), "schedule"),
        },
    )


def _pairs(first, second):  # type: ignore[no-untyped-def]
    return ((a, b) for a in enumerate(first) for b in enumerate(second))


def _problem(parameters: Parameters, isotropic: bool, ridge: float) -> RidgeRegression:
    from privreg.theory.noisy_sgd.diffusion import RidgeRegression

    grid = (np.arange(parameters.dimension) + 0.5) / parameters.dimension
    return RidgeRegression(
        np.ones(parameters.dimension) if isotropic else 0.1 + 1.8 * grid,
        np.cos(6.0 * grid),
        np.sin(9.0 * grid) - 0.5,
        label_noise_std=parameters.scaled_label_noise_std,
        ridge=ridge,
    )


def _variance_error(law: HomogenisedSGD) -> float:
    """The integral of the propagated noise, by Gauss-Legendre quadrature on panels."""
    end, problem = law.horizon, law.problem
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0.0, end, 41)
    width = np.diff(edges)[:, None]
    times = (edges[:-1, None] + 0.5 * width * (nodes + 1.0)).ravel()
    masses = (0.5 * width * weights).ravel()
    diffusion = 2.0 * law.risk(times)[:, None] * problem.eigenvalues + law.gradient_noise_std**2
    decay = np.array([law.transition(end, time) for time in times])
    rate = law.schedule.rate(times)
    integral = (masses * rate**2) @ (decay**2 * diffusion) / problem.dimension
    return float(np.max(np.abs(integral / law.variance(end) - 1.0)))
