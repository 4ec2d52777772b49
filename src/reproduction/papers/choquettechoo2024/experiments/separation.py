"""By how much correlated noise wins when all eigenvalues but one are small, and damped anti-PGD."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Dimension, LogAxis, Power, Rising, StepSize
from reproduction.papers.choquettechoo2024.regression import (
    ALGORITHMS,
    Setting,
    exact_risk,
    power_law,
)

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Section 1.3, Section 2.2, Table 2, Proposition C.24"
RULES = ("constant", "over log d")


class Parameters(Strict):
    """Dimensions of the spectrum (1, 1/d, ..., 1/d), and one covariance for anti-PGD."""

    dimensions: Annotated[Rising[Dimension], Field(min_length=2)] = Field(
        description="Dimensions d, increasing."
    )
    step_size: Annotated[StepSize, Field(le=0.5)] = Field(
        description="eta, constant or times 1/log d."
    )
    dimension: Dimension = Field(description="d of the eigenvalues k^-a.")
    decay: Power = Field(description="a.")
    step_sizes: LogAxis = Field(description="eta of anti-PGD.")
    dampings: LogAxis = Field(description="nu of anti-PGD, below 1.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact risks over what the paper prints."""
    import xarray as xr

    d = np.asarray(parameters.dimensions)
    factor = np.zeros((len(RULES), len(d)))
    for (row, column), _ in np.ndenumerate(factor):
        size = int(d[column])
        eta = parameters.step_size / (np.log(size) if row else 1.0)
        setting = Setting(np.append(1.0, np.full(size - 1, 1 / size)), float(eta))
        sgd, ftrl = (exact_risk(setting, name, rho=1.0) for name in ALGORITHMS)
        factor[row, column] = sgd / ftrl
    steps, dampings = parameters.step_sizes.values(), parameters.dampings.values()
    eigenvalues = power_law(parameters.dimension, parameters.decay)
    trace = eigenvalues.sum()
    risk = np.array([[_damped(eigenvalues, eta, nu) for nu in dampings] for eta in steps])
    rate = steps[:, None] * (parameters.dimension * dampings + steps[:, None] * trace / dampings)
    printed = d / np.log(d)
    return xr.Dataset(
        {
            "factor": variable(
                ("rule", "dimension"), factor, "risk of Noisy-SGD over that of nu-Noisy-FTRL"
            ),
            "over_printed": variable(
                ("rule", "dimension"), factor / printed, "that factor over d / log d"
            ),
            "over_squared": variable(
                ("rule", "dimension"),
                factor * np.log(d) / printed,
                "that factor over d / log^2 d",
            ),
            "damped_constant": variable(
                ("step_size", "damping"),
                risk / rate,
                "risk of damped anti-PGD over eta (nu d + eta tr H / nu) / rho",
            ),
            "geometric_constant": variable(
                "step_size",
                [_over_geometric_mean(eigenvalues, eta) for eta in steps],
                "its risk over the geometric mean of Noisy-SGD's and the lower bound",
            ),
            "last_damping_constant": variable(
                (),
                _at_the_largest_step(eigenvalues),
                "risk at eta = 1/(4 tr H), nu = d^(-1/2) over the second rate of Proposition C.24",
            ),
        },
        coords={
            "rule": variable("rule", list(RULES), "how the step size follows the dimension"),
            "dimension": variable("dimension", d, "dimension d"),
            "step_size": variable("step_size", steps, "step size eta"),
            "damping": variable("damping", dampings, "damping nu"),
        },
    )


def _damped(eigenvalues: np.ndarray, step_size: float, damping: float) -> float:
    from privreg.theory.correlated_noise.linear_regression import stationary_error
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    noise = StationaryNoise.damped_anti_pgd(float(damping))
    return stationary_error(
        eigenvalues,
        step_size=float(step_size),
        noise=noise,
        gradient_noise_std=float((noise.squared_sensitivity / 2) ** 0.5),
    ).excess_risk


def _over_geometric_mean(eigenvalues: np.ndarray, step_size: float) -> float:
    from privreg.theory.correlated_noise.bounds import universal_lower_bound

    damping = float(np.sqrt(step_size * eigenvalues.sum() / eigenvalues.size))
    sgd = exact_risk(Setting(eigenvalues, float(step_size)), "noisy_sgd", rho=1.0)
    least = universal_lower_bound(
        eigenvalues, step_size=float(step_size), noise_multiplier=0.5**0.5
    )
    return float(_damped(eigenvalues, step_size, damping) / np.sqrt(sgd * least))


def _at_the_largest_step(eigenvalues: np.ndarray) -> float:
    c, trace, d = 0.25, float(eigenvalues.sum()), eigenvalues.size
    eta = c / trace
    rate = (c**0.5 + c**-0.5) * eta**1.5 * 0.5 * np.sqrt(d * trace)
    return float(_damped(eigenvalues, eta, d**-0.5) / rate)
