"""Sensitivities over the number of steps and risks over the step size, for the rows of Table 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    Dimension,
    Power,
    Probability,
    Rho,
    Rising,
    ShareAxis,
    Steps,
    StepSizeAxis,
)
from reproduction.papers.choquettechoo2024.regression import power_law

if TYPE_CHECKING:
    import xarray as xr

    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

PLACE = "Table 2, Propositions C.22 and C.24"
FAMILIES = ("fichtenberger", "nu_noisy_ftrl", "anti_pgd", "damped_anti_pgd")


class Parameters(Strict):
    """One covariance; steps for the sensitivities, step sizes and dampings for the risks."""

    dimension: Dimension = Field(description="d.")
    decay: Power = Field(description="a of the eigenvalues k^-a.")
    steps: Annotated[Rising[Steps], Field(min_length=2)] = Field(
        description="Steps T of the sensitivities."
    )
    damping: Probability = Field(description="nu of the damped families' sensitivities.")
    step_sizes: StepSizeAxis = Field(description="eta of the risks.")
    dampings: ShareAxis = Field(description="nu as it tends to 0, at the least step size.")
    rho: Rho = Field(description="zCDP budget.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact sensitivities and exact risks; a family without damping has none in the limit."""
    import xarray as xr

    from privreg.noise.toeplitz import damped_square_root_encoder

    counts = np.asarray(parameters.steps)
    nu = parameters.damping
    powers = {
        "fichtenberger": damped_square_root_encoder(counts.max(), damping=0.0),
        "nu_noisy_ftrl": damped_square_root_encoder(counts.max(), damping=nu),
        "anti_pgd": np.ones(counts.max()),
        "damped_anti_pgd": (1 - nu) ** np.arange(counts.max()),
    }
    sensitivity = np.stack([np.cumsum(powers[name] ** 2)[counts - 1] for name in FAMILIES])
    eigenvalues = power_law(parameters.dimension, parameters.decay)
    eta = parameters.step_sizes.values()
    risk = np.stack([_risks(parameters, eigenvalues, step) for step in eta], axis=1)
    small = parameters.dampings.values()
    near = np.stack(
        [
            [_risk(parameters, eigenvalues, eta[0], _family(name, value)) for value in small]
            for name in ("nu_noisy_ftrl", "damped_anti_pgd")
        ]
    )
    trace, d = eigenvalues.sum(), parameters.dimension
    with np.errstate(invalid="ignore"):
        slope = np.polyfit(np.log(eta), np.log(risk[[1, 3]]).T, 1)[0]
    printed = np.stack(
        [
            eta**2 * trace * np.log(1 / (eta * eigenvalues.min())) ** 2,
            eta**1.5 * np.sqrt(d * trace),
        ]
    )
    return xr.Dataset(
        {
            "squared_sensitivity": variable(
                ("family", "steps"), sensitivity, "squared sensitivity over T steps"
            ),
            "sensitivity_slope": variable(
                "family",
                np.polyfit(np.log(counts), sensitivity.T, 1)[0],
                "slope of the squared sensitivity over the logarithm of T",
            ),
            "limiting_sensitivity": variable(
                "family",
                [_family(name, nu).squared_sensitivity for name in FAMILIES],
                "squared sensitivity over infinitely many steps",
            ),
            "risk": variable(
                ("family", "step_size"), risk, "stationary excess risk; nu as the table says"
            ),
            "risk_constant": variable(
                ("damped_family", "step_size"),
                risk[[1, 3]] * parameters.rho / printed,
                "risk over the printed rate",
            ),
            "risk_slope": variable(
                "damped_family", slope, "log-log slope of the risk over the step size"
            ),
            "vanishing_risk": variable(
                ("damped_family", "damping"), near, "risk as the damping tends to 0"
            ),
        },
        coords={
            "family": variable("family", list(FAMILIES), "coefficients"),
            "damped_family": variable(
                "damped_family", ["nu_noisy_ftrl", "damped_anti_pgd"], "damped coefficients"
            ),
            "steps": variable("steps", counts, "steps T"),
            "step_size": variable("step_size", eta, "step size eta"),
            "damping": variable("damping", small, "damping nu"),
        },
    )


def _family(name: str, damping: float) -> StationaryNoise:
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    value = 0.0 if name in ("fichtenberger", "anti_pgd") else damping
    if name.endswith("anti_pgd"):
        return StationaryNoise.damped_anti_pgd(value)
    return StationaryNoise.damped_square_root(value)


def _risks(parameters: Parameters, eigenvalues: np.ndarray, step_size: float) -> list[float]:
    dampings = {
        "nu_noisy_ftrl": step_size * eigenvalues.min(),
        # The best order of the damping for Proposition C.24.
        "damped_anti_pgd": np.sqrt(step_size * eigenvalues.sum() / parameters.dimension),
    }
    return [
        _risk(parameters, eigenvalues, step_size, _family(name, float(dampings.get(name, 0.0))))
        for name in FAMILIES
    ]


def _risk(
    parameters: Parameters, eigenvalues: np.ndarray, step_size: float, noise: StationaryNoise
) -> float:
    from privreg.theory.correlated_noise.linear_regression import stationary_error

    std = float((noise.squared_sensitivity / (2 * parameters.rho)) ** 0.5)
    return stationary_error(
        eigenvalues, step_size=step_size, noise=noise, gradient_noise_std=std
    ).excess_risk
