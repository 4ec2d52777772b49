"""Sensitivities against the number of steps and risks against the step size, by row of Table 2."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Table 2, Propositions C.22 and C.24"
# Undamped families are damped ones at nu = 0.
FAMILIES = {
    "fichtenberger": "damped_square_root",
    "nu_noisy_ftrl": "damped_square_root",
    "anti_pgd": "damped_anti_pgd",
    "damped_anti_pgd": "damped_anti_pgd",
}
DAMPED = ("nu_noisy_ftrl", "damped_anti_pgd")


class Parameters(regression.Covariance):
    """One covariance; steps for the sensitivities, step sizes and dampings for the risks."""

    steps: q.Grid[q.Steps] = Field(description="Steps T of the sensitivities.")
    damping: q.Probability = Field(description="nu of the damped families' sensitivities.")
    step_sizes: q.SmallStepAxis = Field(description="eta of the risks.")
    dampings: q.ShareAxis = Field(description="nu as it tends to 0, at the least step size.")
    rho: q.Rho = Field(description="zCDP budget.")

    def risk(self, family: str, step_size: float, damping: float) -> float:
        noise = regression.family_noise(FAMILIES[family], damping if family in DAMPED else 0.0)
        return regression.stationary(self.eigenvalues, step_size, noise, rho=self.rho).excess_risk


AXES = {
    "family": Axis("coefficients", tuple(FAMILIES)),
    "damped_family": Axis("damped coefficients", DAMPED),
    "steps": Axis("steps T", "steps"),
    "step_size": Axis("step size eta", "step_sizes"),
    "damping": Axis("damping nu", "dampings"),
}


@per(
    "family",
    squared_sensitivity=Quantity("squared sensitivity over T steps", "steps"),
    sensitivity_slope="slope of the squared sensitivity in the logarithm of T",
    limiting_sensitivity="squared sensitivity over infinitely many steps",
)
def sensitivities(parameters: Parameters, family: str) -> dict:
    from privreg.noise.toeplitz import damped_square_root_encoder, inverse_coefficients

    counts, nu = np.asarray(parameters.steps), parameters.damping if family in DAMPED else 0.0
    if family.endswith("anti_pgd"):
        decoder = regression.coefficients(family, int(counts.max()), nu)
        encoder = inverse_coefficients(decoder)
    else:
        encoder = damped_square_root_encoder(counts.max(), damping=nu)
    squared = np.cumsum(encoder**2)[counts - 1]
    return {
        "squared_sensitivity": squared,
        "sensitivity_slope": np.polyfit(np.log(counts), squared, 1)[0],
        "limiting_sensitivity": regression.family_noise(FAMILIES[family], nu).squared_sensitivity,
    }


@per("family", "step_size", risk="stationary excess risk; nu as the table says")
def risk(parameters: Parameters, family: str, step_size: float) -> float:
    """Risk, which is infinite without damping, since the limiting sensitivity is."""
    eigenvalues = parameters.eigenvalues
    nu = step_size * eigenvalues.min()
    if family == "damped_anti_pgd":
        # The best order of the damping for Proposition C.24.
        nu = np.sqrt(step_size * eigenvalues.sum() / parameters.dimension)
    return parameters.risk(family, step_size, float(nu))


@per(
    "damped_family",
    risk_constant=Quantity("risk divided by the printed rate", "step_size"),
    risk_slope="log-log slope of the risk in the step size",
)
def rates(parameters: Parameters, damped_family: str) -> dict:
    eta, eigenvalues = parameters.step_sizes.values(), parameters.eigenvalues
    risks = np.array([risk(parameters, damped_family, step) for step in eta])
    trace = eigenvalues.sum()
    if damped_family == "nu_noisy_ftrl":
        printed = eta**2 * trace * np.log(1 / (eta * eigenvalues.min())) ** 2
    else:
        printed = eta**1.5 * np.sqrt(parameters.dimension * trace)
    return {
        "risk_constant": risks * parameters.rho / printed,
        "risk_slope": regression.slope(eta, risks),
    }


@per(
    "damped_family",
    "damping",
    vanishing_risk="risk as the damping tends to 0",
    vanishing_response="risk as the damping tends to 0, divided by the squared sensitivity",
)
def vanishing(parameters: Parameters, damped_family: str, damping: float) -> dict:
    """Risk as the damping tends to 0; the response is the risk at a given noise multiplier."""
    found = parameters.risk(damped_family, parameters.step_sizes.low, damping)
    noise = regression.family_noise(FAMILIES[damped_family], damping)
    return {"vanishing_risk": found, "vanishing_response": found / noise.squared_sensitivity}


@per("damped_family", vanishing_growth="growth of the risk to nu = 1e-12 divided by that to 1e-10")
def vanishing_growth(parameters: Parameters, damped_family: str) -> float:
    """Second rise of the risk divided by the first; the damping falls twice by a factor of 100."""
    eta, dampings = parameters.step_sizes.low, (1e-12, 1e-10, 1e-8)
    risks = [parameters.risk(damped_family, eta, each) for each in dampings]
    return (risks[0] - risks[1]) / (risks[1] - risks[2])


@per("damping", vanishing_constant="risk of nu-Noisy-FTRL divided by eta^2 tr H log^2(1/nu) / rho")
def vanishing_constant(parameters: Parameters, damping: float) -> float:
    """Constant of the rate at the least step size, for each damping."""
    eta = parameters.step_sizes.low
    rate = eta**2 * parameters.eigenvalues.sum() * np.log(1 / damping) ** 2 / parameters.rho
    return parameters.risk("nu_noisy_ftrl", eta, damping) / rate


theory = stage(AXES, blocks_of=globals())
