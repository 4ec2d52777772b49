"""The integrals and inequalities that the proofs rest on, on grids, against quadrature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Finite, Index, Probability, ShareAxis, Some

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Lemmas C.21 and F.12 to F.17, Properties F.8 to F.11"


class Parameters(Strict):
    """Rates a and b of the moduli |1 - a - exp(iw)|, and lags."""

    rates: ShareAxis = Field(description="a and b, less than 1.")
    lags: Some[Index] = Field(description="l of the cosine in Lemma F.12.")
    sequences: Count = Field(description="Random sequences for Lemma F.17.")
    moduli: Some[Probability] = Field(description="m of Properties F.8 and F.9, below 1.")
    characteristics: Some[Annotated[Finite, Field(lt=1)]] = Field(
        description="alpha^2 of Property F.9, below 1 and not -m; of F.11 those above 0."
    )
    cutoffs: ShareAxis = Field(description="Where the integral of Lemma F.14 is cut off.")


def theory(parameters: Parameters) -> xr.Dataset:
    """Largest relative error of each closed form, largest ratio of each inequality."""
    import xarray as xr
    from scipy.special import ellipkm1

    from privreg.theory.correlated_noise.spectral_integrals import (
        distance_ratio_integral,
        frequency_rule,
        inverse_distance_integral,
        squared_distance,
    )

    rates = parameters.rates.values()
    first, second = (grid.ravel() for grid in np.meshgrid(rates, rates))
    by_rule = np.empty_like(first)
    for at, (a, b) in enumerate(zip(first, second, strict=True)):
        grid, weights = frequency_rule(min(a, b))
        by_rule[at] = weights @ (np.sqrt(squared_distance(grid, a)) / squared_distance(grid, b))
    ratio = distance_ratio_integral(first, second)
    single = np.array([_by_rule(rate) for rate in rates])
    cosine = [_poisson(rate, lag) for rate in rates for lag in parameters.lags]
    rational = [_rational(rate) for rate in rates]
    small = (first <= second) & (second <= 0.25) & (first <= 1e-3)
    complement = rates * (2 - rates)
    elliptic, logarithm = ellipkm1(complement), np.log(4 / np.sqrt(complement))
    values = {
        "ratio_integral_error": (
            np.abs(by_rule / ratio - 1).max(),
            "Lemma F.16 against quadrature, relative",
        ),
        "inverse_integral_error": (
            np.abs(single / inverse_distance_integral(rates) - 1).max(),
            "Lemma F.15 against quadrature, relative",
        ),
        "cosine_integral_error": (max(cosine), "Lemma F.12 against quadrature, relative"),
        "rational_integral_error": (max(rational), "Lemma F.13 against quadrature, relative"),
        "equal_rates_ratio": (
            (inverse_distance_integral(rates) / (5 * np.log(8 / rates))).max(),
            "largest I(a, a) over 5 log(8/a)",
        ),
        "unequal_rates_ratio": (
            (ratio[small] / (128 / 49 * np.log(8 / first[small]))).max(),
            "largest I(a, b) over (128/49) log(8/a) for a <= b <= 1/4 and a <= 1e-3",
        ),
        "elliptic_over_lower": ((elliptic / logarithm).min(), "least K(k) over log(4/k')"),
        "elliptic_over_upper": (
            (elliptic / ((1 + complement / 4) * logarithm)).max(),
            "largest K(k) over (1 + k'^2/4) log(4/k')",
        ),
        "quadratic_form_ratio": (
            _quadratic_forms(rates, parameters.sequences),
            "largest quadratic form over (1 + c)/(1 - c) times the squared norm",
        ),
        "first_kind_error": (
            max(_first_kind(m) for m in parameters.moduli),
            "Property F.8 against quadrature, relative",
        ),
        "third_kind_error": (
            max(_third_kind(m, a) for m in parameters.moduli for a in parameters.characteristics),
            "Property F.9 against quadrature, relative",
        ),
        "third_kind_constant": (
            max(
                _third_kind_excess(rate, a)
                for rate in rates
                for a in parameters.characteristics
                if a > 0
            ),
            "largest (ratio of Property F.11 without its O - 1) over k'^2",
        ),
        "divergence_slope": (
            _divergence_slope(parameters.cutoffs.values()),
            "slope of the integral of Lemma F.14 over the logarithm of 1/cutoff",
        ),
    }
    return xr.Dataset({name: variable((), *found) for name, found in values.items()})


def _by_rule(rate: float) -> float:
    """The integral of Lemma F.15 by quadrature."""
    from privreg.theory.correlated_noise.spectral_integrals import (
        frequency_rule,
        squared_distance,
    )

    grid, weights = frequency_rule(rate)
    return float(weights @ squared_distance(grid, rate) ** -0.5)


def _poisson(rate: float, lag: int) -> float:
    """Lemma F.12 with a = 1 and b = 1 - rate: relative distance from quadrature."""
    from privreg.theory.correlated_noise.spectral_integrals import (
        frequency_rule,
        squared_distance,
    )

    grid, weights = frequency_rule(min(rate, 1.0), nodes_per_panel=20 + 4 * lag)
    found = weights @ (np.cos(lag * grid) / squared_distance(grid, rate))
    exact = 2 * np.pi / (rate * (2 - rate)) * (1 - rate) ** lag
    return float(abs(found - exact) * rate * (2 - rate) / (2 * np.pi))


def _rational(rate: float) -> float:
    """Lemma F.13 at a = rate - 1: relative distance from quadrature."""
    from privreg.theory.correlated_noise.spectral_integrals import frequency_rule

    grid, weights = frequency_rule(float(np.sqrt(rate)))
    found = weights @ (1 / (rate + 2 * (1 - rate) * np.sin(grid / 2) ** 2))
    return float(abs(found * np.sqrt(rate * (2 - rate)) / (2 * np.pi) - 1))


def _quadratic_forms(rates: np.ndarray, sequences: int) -> float:
    """Lemma F.17 for slowly and quickly varying random sequences."""
    rng = np.random.Generator(np.random.SFC64(0))
    length = 200
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    largest = 0.0
    for rate in rates[rates > 1e-3]:
        form = (1 - rate) ** distance
        for _ in range(sequences):
            beta = np.cumsum(rng.standard_normal(length)) if rng.random() < 0.5 else np.ones(length)
            largest = max(largest, beta @ form @ beta / (beta @ beta) * rate / (2 - rate))
    return float(largest)


def _quarter_rule() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return np.pi / 4 * (nodes + 1), np.pi / 4 * weights


def _third(characteristic: float, parameter: float) -> float:
    """The complete integral of the third kind, by Carlson's forms; the parameter is k^2."""
    from scipy.special import elliprf, elliprj

    rest = 1 - parameter
    third = elliprj(0, rest, 1, 1 - characteristic)
    return float(elliprf(0, rest, 1) + characteristic / 3 * third)


def _first_kind(m: float) -> float:
    from scipy.special import ellipk

    grid, weights = _quarter_rule()
    found = weights @ (1 / np.sqrt(1 + m * np.sin(grid) ** 2))
    return float(abs(ellipk(m / (1 + m)) / np.sqrt(1 + m) / found - 1))


def _third_kind(m: float, characteristic: float) -> float:
    from scipy.special import ellipk

    grid, weights = _quarter_rule()
    squares = np.sin(grid) ** 2
    found = weights @ (1 / ((1 - characteristic * squares) * np.sqrt(1 + m * squares)))
    whole, parameter = m + characteristic, m / (1 + m)
    printed = m * ellipk(parameter) + characteristic * _third(whole / (1 + m), parameter)
    return float(abs(printed / (whole * np.sqrt(1 + m)) / found - 1))


def _third_kind_excess(rate: float, characteristic: float) -> float:
    """Of Property F.11 at k' = rate."""
    found = _third(characteristic, 1 - rate**2) * (1 - characteristic) / np.log(4 / rate)
    return float((found - 1) / rate**2)


def _divergence_slope(cutoffs: np.ndarray) -> float:
    """Quadrature in the logarithm of the frequency, from each cut-off to pi."""
    values = []
    for cutoff in cutoffs:
        logarithms = np.linspace(np.log(cutoff), np.log(np.pi), 4001)
        frequency = np.exp(logarithms)
        integrand = frequency / (np.sqrt(2) * np.sin(frequency / 2))
        values.append(2 * np.trapezoid(integrand, logarithms))
    return float(np.polyfit(np.log(1 / cutoffs), values, 1)[0])
