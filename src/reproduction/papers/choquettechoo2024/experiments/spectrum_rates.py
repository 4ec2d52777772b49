"""Stationary risks over dimension and step size for the spectra of Table 4, and their exponents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Dimension, Power, Rho, Rising, StepSize
from reproduction.papers.choquettechoo2024.regression import (
    ALGORITHMS,
    Setting,
    damping,
    exact_risk,
    power_law,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import xarray as xr

PLACE = "Tables 1 and 4, Theorem 2.2 and Theorem C.18"


class Parameters(Strict):
    """Spectra by name, dimensions and step sizes."""

    dimensions: Annotated[Rising[Dimension], Field(min_length=2)] = Field(
        description="Dimensions d."
    )
    step_size: StepSize = Field(description="Step size, the same for all dimensions.")
    low_exponent: Annotated[Power, Field(gt=0, lt=1)] = Field(description="a < 1 of k^-a.")
    high_exponent: Annotated[Power, Field(gt=1)] = Field(description="a > 1 of k^-a.")
    rho: Rho = Field(description="zCDP budget.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Exact risks over the printed rates: constants that stay in a band if the rate is right."""
    import xarray as xr

    from privreg.theory.correlated_noise.bounds import effective_dimension, universal_lower_bound

    names = list(_rows(parameters))
    d = np.asarray(parameters.dimensions)
    shape = (len(names), len(d))
    risk, rate = np.zeros((*shape, 2)), np.zeros((*shape, 2))
    effective, lower, theorem, ratio = (np.zeros(shape) for _ in range(4))
    for row, name in enumerate(names):
        for column, dimension in enumerate(parameters.dimensions):
            eigenvalues, printed, ratio[row, column] = _rows(parameters)[name](dimension)
            setting = Setting(eigenvalues, parameters.step_size)
            effective[row, column] = effective_dimension(eigenvalues)
            risk[row, column] = [
                exact_risk(setting, algorithm, rho=parameters.rho) for algorithm in ALGORITHMS
            ]
            rate[row, column] = np.array(printed) / parameters.rho
            lower[row, column] = universal_lower_bound(
                eigenvalues,
                step_size=setting.step_size,
                noise_multiplier=(2 * parameters.rho) ** -0.5,
            )
            theorem[row, column] = (
                setting.step_size**2
                * eigenvalues.sum()
                * np.log(1 / damping(setting)) ** 2
                / parameters.rho
            )
    exponents = np.stack(
        [np.polyfit(np.log(d), np.log(risk[row]), 1)[0] for row in range(len(names))]
    )
    rate_exponents = np.stack(
        [np.polyfit(np.log(d), np.log(rate[row]), 1)[0] for row in range(len(names))]
    )
    dims = ("spectrum", "dimension")
    return xr.Dataset(
        {
            "risk": variable((*dims, "algorithm"), risk, "stationary excess risk"),
            "printed_rate": variable((*dims, "algorithm"), rate, "rate of Table 4"),
            "constant": variable((*dims, "algorithm"), risk / rate, "risk over the printed rate"),
            "printed_ratio_constant": variable(
                dims,
                ratio * rate[..., 0] / rate[..., 1],
                "printed ratio over that of the two printed rates; 1 if the row agrees with itself",
            ),
            "effective_dimension": variable(dims, effective, "effective dimension"),
            "lower_bound": variable(dims, lower, "lower bound for any correlation"),
            "over_lower": variable(
                (*dims, "algorithm"), risk / lower[..., None], "risk over the lower bound"
            ),
            "separation": variable(
                dims, risk[..., 0] / risk[..., 1], "risk of Noisy-SGD over that of Noisy-FTRL"
            ),
            "lower_constant": variable(
                dims,
                lower * parameters.rho / (parameters.step_size**2 * effective),
                "lower bound over eta^2 d_eff / rho",
            ),
            "theorem_constant": variable(
                dims, risk[..., 1] / theorem, "risk of Noisy-FTRL over eta^2 tr H log^2(1/nu) / rho"
            ),
            "exponent": variable(
                ("spectrum", "algorithm"), exponents, "log-log slope of the risk over dimension"
            ),
            "printed_exponent": variable(
                ("spectrum", "algorithm"),
                rate_exponents,
                "log-log slope of the printed rate over dimension",
            ),
        },
        coords={
            "spectrum": variable("spectrum", names, "row of Table 4, and what its text calls"),
            "dimension": variable("dimension", d, "dimension d"),
            "algorithm": variable("algorithm", list(ALGORITHMS), "algorithm"),
        },
    )


Row = tuple[np.ndarray, tuple[float, float], float]


def _rows(parameters: Parameters) -> dict[str, Callable[[int], Row]]:
    """Eigenvalues, the rates of Noisy-SGD and Noisy-FTRL without 1/rho, and the printed ratio."""
    eta, low, high = parameters.step_size, parameters.low_exponent, parameters.high_exponent

    def row(exponent: float, effective: float, d: int, power: int, ratio_power: int) -> Row:
        logarithm = float(np.log((d if exponent else 1) / eta))
        ftrl = eta**2 * effective * logarithm**power
        ratio = eta * effective / d * logarithm**ratio_power
        return power_law(d, exponent), (eta * d, ftrl), ratio

    def two_levels(d: int) -> Row:
        rate = (eta * d, eta**2 * float(np.log(d / eta)) ** 2)
        return np.append(1.0, np.full(d - 1, 1 / d)), rate, rate[1] / rate[0]

    return {
        "1": lambda d: row(0.0, d, d, 2, 2),
        "k^-1/2": lambda d: row(0.5, d**0.5, d, 2, 2),
        f"k^-{low:g}": lambda d: row(low, d ** (1 - low) / (1 - low), d, 2, 2),
        "k^-1": lambda d: row(1.0, 1.0, d, 3, 3),
        # The row's rates have a squared logarithm, its printed ratio a cubed one.
        "k^-2": lambda d: row(2.0, 1.0, d, 2, 3),
        f"k^-{high:g}": lambda d: row(high, high**2 / (high - 1), d, 2, 2),
        "1, 1/d, ..., 1/d": two_levels,
    }
