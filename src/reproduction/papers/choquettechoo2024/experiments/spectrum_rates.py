"""Stationary risks by dimension and step size for the spectra of Table 4, and their exponents."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, below, identity, per, stage
from reproduction.papers.choquettechoo2024 import regression

PLACE = "Tables 1 and 4, Theorem 2.2 and Theorem C.18"


class _Row(NamedTuple):
    """A row of Table 4 at one dimension, without 1/rho; the ratio is the printed one."""

    eigenvalues: np.ndarray
    rates: tuple[float, float]
    ratio: float


class Parameters(Strict):
    """Spectra by name, dimensions and step sizes."""

    dimensions: q.Grid[q.Dimension] = Field(description="Dimensions d.")
    step_size: q.SmallStep = Field(description="Step size, the same for all dimensions.")
    low_exponent: Annotated[q.Decay, Field(gt=0, lt=1)] = Field(description="a < 1 of k^-a.")
    high_exponent: Annotated[q.Decay, Field(gt=1)] = Field(description="a > 1 of k^-a.")
    rho: q.Rho = Field(description="zCDP budget.")

    @property
    def spectra(self) -> list[str]:
        return list(self.rows(2))

    def rows(self, d: int) -> dict[str, _Row]:
        """Table 4 at one dimension, by spectrum."""
        eta, low, high = self.step_size, self.low_exponent, self.high_exponent

        def row(exponent: float, effective: float, power: int, ratio_power: int) -> _Row:
            logarithm = float(np.log((d if exponent else 1) / eta))
            ftrl = eta**2 * effective * logarithm**power
            ratio = eta * effective / d * logarithm**ratio_power
            return _Row(regression.power_law(d, exponent), (eta * d, ftrl), ratio)

        levels = (eta * d, eta**2 * float(np.log(d / eta)) ** 2)
        return {
            "1": row(0.0, d, 2, 2),
            "k^-1/2": row(0.5, d**0.5, 2, 2),
            f"k^-{low:g}": row(low, d ** (1 - low) / (1 - low), 2, 2),
            "k^-1": row(1.0, 1.0, 3, 3),
            # The row's rates have a squared logarithm, its printed ratio a cubed one.
            "k^-2": row(2.0, 1.0, 2, 3),
            f"k^-{high:g}": row(high, high**2 / (high - 1), 2, 2),
            "1, 1/d, ..., 1/d": _Row(regression.two_levels(d), levels, levels[1] / levels[0]),
        }


AXES = {
    "spectrum": Axis("row of Table 4, and the spectrum of Section 2.2", "spectra"),
    "dimension": Axis("dimension d", "dimensions"),
    "algorithm": regression.ALGORITHM,
}


@per(
    "spectrum",
    "dimension",
    risk=Quantity("stationary excess risk", "algorithm"),
    constant=Quantity("risk divided by the printed rate", "algorithm"),
    printed_ratio_constant="printed ratio divided by that of the two printed rates",
    squared_ratio_constant="the quotient of ratios with one logarithm less in the printed one",
    effective_dimension="effective dimension",
    over_lower=Quantity("risk divided by the lower bound for any correlation", "algorithm"),
    lower_constant="lower bound divided by eta^2 d_eff / rho",
    theorem_constant="risk of Noisy-FTRL divided by eta^2 tr H log^2(1/nu) / rho",
)
def constants(parameters: Parameters, spectrum: str, dimension: int) -> dict:
    """Exact risks divided by the printed rates, which stay in a band if the rates are right."""
    from privreg.theory.correlated_noise.bounds import effective_dimension, universal_lower_bound

    eta, rho, row = parameters.step_size, parameters.rho, parameters.rows(dimension)[spectrum]
    eigenvalues, setting = row.eigenvalues, regression.Setting(row.eigenvalues, eta)
    effective = effective_dimension(eigenvalues)
    risk, rate = np.array(regression.exact_risks(setting, rho=rho)), np.array(row.rates) / rho
    lower = universal_lower_bound(eigenvalues, step_size=eta, noise_multiplier=(2 * rho) ** -0.5)
    theorem = eta**2 * eigenvalues.sum() * np.log(1 / regression.damping(setting)) ** 2 / rho
    return {
        "risk": risk,
        "constant": risk / rate,
        "printed_ratio_constant": row.ratio * rate[0] / rate[1],
        "squared_ratio_constant": row.ratio * rate[0] / rate[1] / np.log(dimension / eta),
        "effective_dimension": effective,
        "over_lower": risk / lower,
        "lower_constant": lower * rho / (eta**2 * effective),
        "theorem_constant": risk[1] / theorem,
    }


@per(
    "spectrum",
    exponent=Quantity("log-log slope of the risk in the dimension", "algorithm"),
    printed_exponent=Quantity("log-log slope of the printed rate in the dimension", "algorithm"),
)
def exponents(parameters: Parameters, spectrum: str) -> dict:
    counts, rho = parameters.dimensions, parameters.rho
    risks = [constants(parameters, spectrum, d)["risk"] for d in counts]
    rates = [np.array(parameters.rows(d)[spectrum].rates) / rho for d in counts]
    return {
        "exponent": regression.slope(counts, risks),
        "printed_exponent": regression.slope(counts, rates),
    }


@identity(
    id="steep-row-of-table-4",
    where="Table 4, Table 1",
    compares="For eigenvalues k^-a, the ratio of Table 1's rate to that of Table 4's last row "
    "tends to a as d grows, for a = 1.5, 2 and 3. Table 1's rate is taken at the effective "
    "dimension a/(a - 1) and mu = d^-a.",
    ours=["eta = 0.01, d = 1e300, where d outweighs eta in the logarithms"],
    check=below(0.02),
)
def steep_row_distance() -> float:
    """Largest distance from 1 of Table 1's rate divided by a times that of Table 4's last row."""
    large, small = np.log(1e300), np.log(100.0)
    return max(
        abs(a / (a - 1) * (a * large + small) ** 2 / (a**3 / (a - 1) * (large + small) ** 2) - 1)
        for a in (1.5, 2.0, 3.0)
    )


@per(rank_slope=Quantity("log-log slope of the risk in the stable rank of H^(1/2)", "algorithm"))
def rank_slopes(parameters: Parameters) -> np.ndarray:
    """Slopes of the risk in the stable rank, from equal eigenvalues to nearly rank one."""
    ranks, risks = [], []
    for rest in np.geomspace(1.0, 1e-4, 9):
        eigenvalues = np.append(1.0, np.full(parameters.dimensions[-1] - 1, rest))
        root = np.sqrt(eigenvalues)
        ranks.append(float(np.sum(root**2) / root.max() ** 2))
        setting = regression.Setting(eigenvalues, parameters.step_size)
        risks.append(regression.exact_risks(setting, rho=parameters.rho))
    return regression.slope(ranks, risks)


theory = stage(AXES, constants, exponents, steep_row_distance, rank_slopes)
