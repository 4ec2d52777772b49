"""The scalar equations that bound the deterministic equivalent of a well-conditioned covariance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import (
    AspectRatio,
    ClipConstant,
    Positive,
    PositiveDeviation,
    Power,
    Some,
    StatedBudget,
    StepSize,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Proposition D.1, equations (4.12)-(4.13)"


class Parameters(Strict):
    """A uniform spectrum, several schedules."""

    smallest: Annotated[Positive, Field(lt=1)] = Field(
        description="Smallest eigenvalue; the mean is 1."
    )
    aspect_ratio: AspectRatio = Field(description="gamma = d / n.")
    budget: StatedBudget = Field(description="Budget of the private output.")
    clip_constant: ClipConstant = Field(description="Clipping constant c.")
    label_noise_std: PositiveDeviation = Field(
        description="Standard deviation zeta of the label noise."
    )
    initial_rate: StepSize = Field(description="Initial learning rate.")
    exponents: Some[Power] = Field(description="Exponents alpha of the schedules.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Risk and bounds on a grid of times that is fine at both ends."""
    import xarray as xr

    from privreg import spectra
    from privreg.schedules import Polynomial
    from privreg.theory.one_pass_dpgd import deterministic_equivalent
    from privreg.theory.one_pass_dpgd.comparison_odes import sandwich

    low, high = parameters.smallest, 2 - parameters.smallest
    spectrum = spectra.uniform(low, high)
    ends = np.geomspace(1e-4, 0.5, 40)
    times = np.concatenate([[0.0], ends, 1 - ends[-2::-1], [1.0]])
    curves = np.empty((3, len(parameters.exponents), len(times)))
    for a, exponent in enumerate(parameters.exponents):
        problem: dict[str, Any] = {
            "aspect_ratio": parameters.aspect_ratio,
            "zcdp_root": parameters.budget.root,
            "clip_constant": parameters.clip_constant,
            "label_noise_std": parameters.label_noise_std,
            "times": times,
        }
        schedule = Polynomial(parameters.initial_rate, exponent)
        bounds = sandwich(schedule, smallest=low, largest=high, **problem)
        risk = deterministic_equivalent.solve(spectrum, schedule, **problem).risk
        curves[:, a] = bounds.lower, risk, bounds.upper
    lower, risk, upper = curves
    later = times > 0
    dims = ("exponent", "time")
    return xr.Dataset(
        {
            "lower": variable(dims, lower, "lower bound on the excess risk"),
            "risk": variable(dims, risk, "excess risk of the deterministic equivalent"),
            "upper": variable(dims, upper, "upper bound on the excess risk"),
            "least_margin_below": variable(
                "exponent",
                np.log(risk / lower)[:, later].min(axis=1),
                "least log ratio of the risk to its lower bound after time 0",
            ),
            "least_margin_above": variable(
                "exponent",
                np.log(upper / risk)[:, later].min(axis=1),
                "least log ratio of the upper bound to the risk after time 0",
            ),
            "trace_ratio": variable(
                (),
                spectrum.mean(spectrum.eigenvalues**2)
                / (high * spectrum.mean(spectrum.eigenvalues)),
                "tr(Sigma^2) over the largest eigenvalue times tr(Sigma)",
            ),
        },
        coords={
            "exponent": variable("exponent", parameters.exponents, "schedule exponent alpha"),
            "time": variable("time", times, "time t"),
        },
    )
