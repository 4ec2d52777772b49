"""The mean risk of the diffusion by independent computations."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from privreg.schedules import ConstantRate, InverseSquareRootRate
from privreg.theory.noisy_sgd import diffusion
from privreg.theory.noisy_sgd.diffusion import HomogenisedSGD, solve_volterra, stationary_risk
from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, below, every, identity, per, stage, stated
from reproduction.papers.lin2025.setting import Scaled

PLACE = "Theorem 4.2, equations (6), (7) and (10)"
ISOTROPIC = ("isotropic, no penalty", "isotropic, penalty")
SPREAD = ("spread, no penalty", "spread, penalty")
SCHEDULES = {"constant": ConstantRate, "inverse root": InverseSquareRootRate}
LATE = 200.0
THEOREM: dict[str, Any] = {
    "kind": "theorem",
    "ours": [
        "dimension 40, up to t = 4 (the covariance at 4), sigma = 0.7",
        "the rates 0.9 and 0.9 / sqrt(1 + t)",
        "eigenvalues equal and spread, penalties 0 and 0.1",
    ],
    "note": "It is compared with the moments' differential equations in the eigenbasis of Sigma.",
}


class Parameters(Scaled):
    """Problems, rates and noise on which the computations are compared."""

    dimension: q.Plural[q.Dimension] = Field(description="Dimension d.")
    ridge: q.Positive = Field(description="Penalty delta, where there is one.")


AXES = {
    "problem": Axis("spectrum and penalty", [*ISOTROPIC, *SPREAD]),
    "isotropic_problem": Axis("spectrum and penalty", ISOTROPIC),
    "schedule": Axis("schedule", list(SCHEDULES)),
}


@per(
    "problem",
    "schedule",
    risk_error=stated(
        "relative difference of the risk between integral equation (6) and the modes",
        where="Theorem 4.2, equation (6)",
        statement="Equation (6) characterises the mean unregularised risk of the diffusion.",
        check=every(below(1e-8)),
        id="volterra-two-routes",
        **THEOREM,
    ),
    regularised_risk_error=stated(
        "relative difference of the regularised risk between integral equation (7) and the modes",
        where="Theorem 4.2, equation (7)",
        statement="Equation (7) characterises the mean regularised risk of the diffusion.",
        check=every(below(1e-8)),
        id="volterra-regularised-risk",
        **THEOREM,
    ),
    variance_error=stated(
        "relative difference of the variance (10) between quadrature and the modes",
        where="Section 4.2, equation (10)",
        statement="The covariance of the linear diffusion is the integral of the propagated noise.",
        check=every(below(1e-9)),
        id="variance-is-propagated-noise",
        **THEOREM,
    ),
)
def routes(parameters: Parameters, problem: str, schedule: str) -> dict:
    law, volterra = _solve(parameters, problem, schedule)
    regularised = law.regularised_risk(volterra.time)
    return {
        "risk_error": _apart(volterra.risk, law.risk(volterra.time)),
        "regularised_risk_error": _apart(volterra.regularised_risk, regularised),
        "variance_error": _apart(_variance(law), law.variance(law.horizon)),
    }


@identity(
    "isotropic_problem",
    id="volterra-closed-form",
    where="Section 4.1, text after Theorem 4.2",
    kind="prose",
    statement="At a constant rate and for an isotropic Sigma the mean risk has a closed form.",
    ours=["dimension 40, up to t = 4, sigma = 0.7", "the rate 0.9", "penalties 0 and 0.1"],
    check=every(below(1e-8)),
    note="The paper prints no form. Ours is compared with (6) and with equations for the moments.",
)
def closed_form_error(parameters: Parameters, isotropic_problem: str) -> float:
    """Largest relative difference of the modes' risk and of that by (6) from the closed form."""
    law, volterra = _solve(parameters, isotropic_problem, "constant")
    exact = isotropic_risk(
        volterra.time,
        eigenvalue=float(law.problem.eigenvalues[0]),
        target=law.problem.target,
        initial=law.problem.initial,
        rate=parameters.rate,
        gradient_noise_std=parameters.gradient_noise_std,
        ridge=law.problem.ridge,
        label_noise_std=law.problem.label_noise_std,
    )
    return max(_apart(law.risk(volterra.time), exact), _apart(volterra.risk, exact))


@identity(
    id="stationary-risk",
    where="Theorem 4.2, equation (6)",
    compares="At a constant rate the mean risk converges to our closed form of (6)'s fixed point.",
    check=below(1e-8),
)
def stationary_error(parameters: Parameters) -> float:
    """Relative difference of the risk at a late time and its limit in closed form."""
    law = _law(parameters, SPREAD[1], "constant", LATE)
    limit = stationary_risk(
        law.problem, rate=parameters.rate, gradient_noise_std=parameters.gradient_noise_std
    )
    return _apart(law.risk(LATE), limit)


theory = stage(AXES, blocks_of=globals())


def _solve(
    parameters: Parameters, problem: str, schedule: str
) -> tuple[HomogenisedSGD, diffusion.VolterraRisk]:
    law = _law(parameters, problem, schedule, parameters.horizon)
    return law, solve_volterra(
        law.problem, law.schedule, gradient_noise_std=law.gradient_noise_std, horizon=law.horizon
    )


def _law(parameters: Parameters, name: str, schedule: str, horizon: float) -> HomogenisedSGD:
    grid = (np.arange(parameters.dimension) + 0.5) / parameters.dimension
    problem = diffusion.RidgeRegression(
        np.ones(parameters.dimension) if name in ISOTROPIC else 0.1 + 1.8 * grid,
        np.cos(6.0 * grid),
        np.sin(9.0 * grid) - 0.5,
        label_noise_std=parameters.scaled_label_noise_std,
        ridge=0.0 if name.endswith("no penalty") else parameters.ridge,
    )
    rate, noise_std = SCHEDULES[schedule](parameters.rate), parameters.gradient_noise_std
    return HomogenisedSGD(problem, rate, gradient_noise_std=noise_std, horizon=horizon)


def _apart(found: np.ndarray | float, reference: np.ndarray | float) -> float:
    return float(np.max(np.abs(found / reference - 1.0)))


def _variance(law: HomogenisedSGD) -> np.ndarray:
    """The integral of the propagated noise, by Gauss-Legendre quadrature on panels."""
    end, problem = law.horizon, law.problem
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0.0, end, 41)
    width = np.diff(edges)[:, None]
    times = (edges[:-1, None] + 0.5 * width * (nodes + 1.0)).ravel()
    masses = (0.5 * width * weights).ravel()
    diffusion = 2.0 * law.risk(times)[:, None] * problem.eigenvalues + law.gradient_noise_std**2
    elapsed = law.schedule.integral(end) - law.schedule.integral(times)
    decay = np.exp(-elapsed[:, None] * problem.curvatures)
    rate = law.schedule.rate(times)
    return (masses * rate**2) @ (decay**2 * diffusion) / problem.dimension


def isotropic_risk(
    time: np.ndarray,
    *,
    eigenvalue: float,
    target: np.ndarray,
    initial: np.ndarray,
    rate: float,
    gradient_noise_std: float,
    ridge: float,
    label_noise_std: float,
) -> np.ndarray:
    r"""Mean population risk for Σ = λI and a constant scaled rate, of the shape of `time`.

    .. math::
        P_t = F(t) + \int_0^t e^{-b(t-u)}\big(\gamma^2\lambda^2F(u)
        + \tfrac12\gamma^2\lambda\sigma^2\big)du,\qquad
        b = 2\gamma(\lambda+\delta)-\gamma^2\lambda^2

    where F, the risk of the gradient flow, is a constant and two exponentials.
    """
    curvature = eigenvalue + ridge
    start = initial - eigenvalue / curvature * target
    # Not the difference, which rounds it away under a small penalty.
    bias = -ridge / curvature * target
    amplitudes = (
        0.5 * eigenvalue * (bias @ bias) + 0.5 * label_noise_std**2,
        eigenvalue * (bias @ start),
        0.5 * eigenvalue * (start @ start),
    )
    decay = 2.0 * rate * curvature - (rate * eigenvalue) ** 2
    risk = 0.5 * rate**2 * eigenvalue * gradient_noise_std**2 * _convolution(time, decay, 0.0)
    for power, amplitude in enumerate(amplitudes):
        speed = power * rate * curvature
        feedback = (rate * eigenvalue) ** 2 * _convolution(time, decay, speed)
        risk = risk + amplitude * (np.exp(-speed * time) + feedback)
    return risk


def _convolution(t: np.ndarray, decay: float, speed: float) -> np.ndarray:
    """Integral over u in [0, t] of exp(-decay (t - u) - speed u), also where the two rates meet."""
    gap = decay - speed
    ratio = t if gap == 0.0 else -np.expm1(-gap * t) / gap
    return np.exp(-speed * t) * ratio
