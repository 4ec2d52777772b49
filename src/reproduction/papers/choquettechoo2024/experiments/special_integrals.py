"""Integrals and inequalities of the proofs, compared with quadrature on grids."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import below, close, identity, per, stage
from reproduction.papers.choquettechoo2024.regression import inverse_distance_by_rule

PLACE = "Lemmas C.21 and F.12 to F.17, Properties F.8 to F.11"
# Quadrature agrees with a closed form to this relative distance.
AGREES = below(1e-10)
RATES = "a and b from 1e-8 to 0.99"


class Parameters(Strict):
    """Rates a and b of the moduli |1 - a - exp(iw)|, and lags."""

    rates: q.ShareAxis = Field(description="a and b, less than 1.")
    lags: q.Some[q.Index] = Field(description="l of the cosine in Lemma F.12.")
    sequences: q.Count = Field(description="Random sequences for Lemma F.17.")
    moduli: q.Some[q.Probability] = Field(description="m of Properties F.8 and F.9, below 1.")
    characteristics: q.Some[q.Finite] = Field(description="alpha^2 of F.9; of F.11 if positive.")
    cutoffs: q.ShareAxis = Field(description="Where the integral of Lemma F.14 is cut off.")

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs (a, b)."""
        first, second = np.meshgrid(self.rates.values(), self.rates.values())
        return first.ravel(), second.ravel()


@identity(
    id="integral-f12",
    where="Lemma F.12",
    statement="For 0 < |b| < a and integers l the integral of cos(l omega) / (a^2 + b^2 - 2 a b "
    "cos omega) over frequencies is 2 pi / (a^2 - b^2) (b/a)^|l|.",
    ours=["a = 1, 1 - b from 1e-8 to 0.99; b < 0 shifts omega by pi", "l = 0, 1, 5 and 50"],
    check=AGREES,
)
def cosine_integral_error(parameters: Parameters) -> float:
    """Relative distance of Lemma F.12 from quadrature."""
    from privreg.theory.correlated_noise import stationary as integrals

    def error(rate: float, lag: int) -> float:
        grid, weights = integrals.frequency_rule(rate, nodes_per_panel=20 + 4 * lag)
        found = weights @ (np.cos(lag * grid) / integrals.squared_distance(grid, rate))
        return float(abs(found - _cosine_form(rate, lag)) * rate * (2 - rate) / (2 * np.pi))

    return max(error(rate, lag) for rate in parameters.rates.values() for lag in parameters.lags)


@identity(
    id="integral-f13",
    where="Lemma F.13",
    statement="The integral of 1 / (1 + a cos omega) over frequencies is 2 pi / (1 - a^2)^(1/2) "
    "for |a| < 1, and infinite for |a| = 1.",
    ours=["1 + a from 1e-8 to 0.99; -a for a shifts omega by pi; |a| = 1 is the limit"],
    note="Our copy of the text has lost the root.",
    check=AGREES,
)
def rational_integral_error(parameters: Parameters) -> float:
    """Relative distance of Lemma F.13 from quadrature."""
    from privreg.theory.correlated_noise.stationary import frequency_rule

    def error(rate: float) -> float:
        grid, weights = frequency_rule(float(np.sqrt(rate)))
        found = weights @ (1 / (rate + 2 * (1 - rate) * np.sin(grid / 2) ** 2))
        return float(abs(found / _rational_form(rate) - 1))

    return max(map(error, parameters.rates.values()))


@identity(
    id="infinite-integral-f14",
    note="Our copy of the text has lost the root, which the proof needs.",
    where="Lemma F.14",
    statement="The integral of 1 / (1 - cos omega)^(1/2) over frequencies is infinite.",
    ours=["cut off at |omega| = 1e-8 to 1e-2", "slope in the logarithm of the cut: 2^(3/2)"],
    check=close(2**1.5, absolute=1e-4),
)
def divergence_slope(parameters: Parameters) -> float:
    """Slope of the integral of Lemma F.14 in the logarithm of 1/cutoff."""
    cutoffs = parameters.cutoffs.values()
    values = []
    for cutoff in cutoffs:
        # Quadrature in the logarithm of the frequency, from each cut-off to pi.
        logarithms = np.linspace(np.log(cutoff), np.log(np.pi), 4001)
        frequency = np.exp(logarithms)
        integrand = frequency / (np.sqrt(2) * np.sin(frequency / 2))
        values.append(2 * np.trapezoid(integrand, logarithms))
    return float(np.polyfit(np.log(1 / cutoffs), values, 1)[0])


@identity(
    id="integral-f15",
    where="Lemma F.15",
    statement="For 0 < a < 1 the integral of 1 / |1 - a - exp(i omega)| has the printed closed "
    "form, a complete elliptic integral of the first kind.",
    ours=["a from 1e-8 to 0.99"],
    check=AGREES,
    note="We restore the roots and fractions that our copy of the text has lost. By Landen's "
    "transformation the form is 4 K(1 - a), which we compare.",
)
def inverse_integral_error(parameters: Parameters) -> float:
    """Relative distance of Lemma F.15 from quadrature."""
    from privreg.theory.correlated_noise.stationary import inverse_distance_integral

    rates = parameters.rates.values()
    found = np.array([inverse_distance_by_rule(rate) for rate in rates])
    return float(np.abs(found / inverse_distance_integral(rates) - 1).max())


@identity(
    id="integral-f16",
    note="We restore the roots and fractions that our copy of the text has lost.",
    where="Lemma F.16",
    statement="For a and b in (0, 1) the integral of |1 - a - exp(i omega)| / |1 - b - exp(i "
    "omega)|^2 has the printed closed form, a complete elliptic integral of the third kind.",
    ours=[RATES],
    check=AGREES,
)
def ratio_integral_error(parameters: Parameters) -> float:
    """Relative distance of Lemma F.16 from quadrature."""
    from privreg.theory.correlated_noise import stationary as integrals

    def by_rule(a: float, b: float) -> float:
        grid, weights = integrals.frequency_rule(min(a, b))
        first, second = (integrals.squared_distance(grid, rate) for rate in (a, b))
        return float(weights @ (np.sqrt(first) / second))

    first, second = parameters.pairs()
    found = np.array([by_rule(a, b) for a, b in zip(first, second, strict=True)])
    return float(np.abs(found / integrals.distance_ratio_integral(first, second) - 1).max())


@per(
    equal_rates_ratio="largest I(a, a) divided by 5 log(8/a)",
    unequal_rates_ratio="largest I(a, b) divided by (128/49) log(8/a), a <= b <= 1/4 and a <= 1e-3",
)
def lemma_c21(parameters: Parameters) -> dict:
    from privreg.theory.correlated_noise import stationary as integrals

    rates, (first, second) = parameters.rates.values(), parameters.pairs()
    small = (first <= second) & (second <= 0.25) & (first <= 1e-3)
    ratio = integrals.distance_ratio_integral(first, second)[small]
    equal = integrals.inverse_distance_integral(rates)
    return {
        "equal_rates_ratio": (equal / (5 * np.log(8 / rates))).max(),
        "unequal_rates_ratio": (ratio / (128 / 49 * np.log(8 / first[small]))).max(),
    }


@per(
    elliptic_over_lower="least K(k) divided by log(4/k')",
    elliptic_over_upper="largest K(k) divided by (1 + k'^2/4) log(4/k')",
)
def property_f10(parameters: Parameters) -> dict:
    from scipy.special import ellipkm1

    rates = parameters.rates.values()
    complement = rates * (2 - rates)
    elliptic, logarithm = ellipkm1(complement), np.log(4 / np.sqrt(complement))
    return {
        "elliptic_over_lower": (elliptic / logarithm).min(),
        "elliptic_over_upper": (elliptic / ((1 + complement / 4) * logarithm)).max(),
    }


@identity(
    id="quadratic-form-f17",
    where="Lemma F.17",
    statement="For 0 <= c < 1 and square-summable beta the quadratic form with the weights "
    "c^|t - tau| is at most (1 + c)/(1 - c) times the squared norm.",
    ours=["c from 0.01 to 0.998", "random walks and constants of length 200"],
    check=below(1.0),
)
def quadratic_form_ratio(parameters: Parameters) -> float:
    """Largest quadratic form divided by (1 + c)/(1 - c) times the squared norm."""
    rng = np.random.Generator(np.random.SFC64(0))
    length, rates = 200, parameters.rates.values()
    distance = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    largest = 0.0
    for rate in rates[rates > 1e-3]:
        form = (1 - rate) ** distance
        for _ in range(parameters.sequences):
            beta = np.cumsum(rng.standard_normal(length)) if rng.random() < 0.5 else np.ones(length)
            largest = max(largest, beta @ form @ beta / (beta @ beta) * rate / (2 - rate))
    return float(largest)


@identity(
    id="first-kind-f8",
    where="Section F.4, equation (97)",
    statement="By Property F.8, for 0 < m < 1, the integral of 1 / (1 + m sin^2)^(1/2) over a "
    "quarter period is (1 + m)^(-1/2) K at the modulus (m / (1 + m))^(1/2).",
    ours=["m = 0.01, 0.3, 0.9"],
    check=AGREES,
    note="Our copy of the text has lost the roots.",
)
def first_kind_error(parameters: Parameters) -> float:
    """Relative distance of Property F.8 from quadrature."""
    from scipy.special import ellipk

    grid, weights = _quarter_rule()
    moduli = np.array(parameters.moduli)
    found = [weights @ (1 / np.sqrt(1 + m * np.sin(grid) ** 2)) for m in moduli]
    return float(np.abs(ellipk(moduli / (1 + moduli)) / np.sqrt(1 + moduli) / found - 1).max())


@identity(
    id="third-kind-f9",
    where="Section F.4, equation (98)",
    statement="By Property F.9, if 0 < m < 1 and alpha^2 is not +-1 or -m, the quarter-period "
    "integral of 1 / ((1 - alpha^2 sin^2) (1 + m sin^2)^(1/2)) is the printed sum of K and Pi.",
    ours=["m = 0.01, 0.3, 0.9; alpha^2 from -3 to 0.99; above 1 the integral is a principal value"],
    check=AGREES,
    note="Our copy of the text has lost the roots.",
)
def third_kind_error(parameters: Parameters) -> float:
    """Relative distance of Property F.9 from quadrature."""
    from scipy.special import ellipk

    def error(m: float, characteristic: float) -> float:
        grid, weights = _quarter_rule()
        squares = np.sin(grid) ** 2
        found = weights @ (1 / ((1 - characteristic * squares) * np.sqrt(1 + m * squares)))
        whole, parameter = m + characteristic, m / (1 + m)
        third = _complete_third(whole / (1 + m), parameter)
        printed = m * ellipk(parameter) + characteristic * third
        return float(abs(printed / (whole * np.sqrt(1 + m)) / found - 1))

    return max(error(m, a) for m in parameters.moduli for a in parameters.characteristics)


@identity(
    id="third-kind-bound-f11",
    where="Section F.4, Lemma C.21",
    statement="By Property F.11, for k and alpha^2 in (0, 1), Pi is at most log(4/k') / (1 - "
    "alpha^2) (1 + O(k'^2)), with k' = (1 - k^2)^(1/2).",
    ours=["the constant 1/4 in the O, as in F.10", "alpha^2 = 0.1 to 0.99, k' = 1e-8 to 0.99"],
    note="Our copy of the text may have lost a root in the O; this is the stronger reading.",
    check=below(0.25),
)
def third_kind_constant(parameters: Parameters) -> float:
    """Largest value of (r - 1) / k'^2, where r is the ratio of Property F.11 without its O."""

    def excess(rate: float, characteristic: float) -> float:
        """(r - 1) / k'^2 at k' = `rate`."""
        third = _complete_third(characteristic, 1 - rate**2)
        return float((third * (1 - characteristic) / np.log(4 / rate) - 1) / rate**2)

    positive = [a for a in parameters.characteristics if a > 0]
    return max(excess(rate, a) for rate in parameters.rates.values() for a in positive)


theory = stage({}, blocks_of=globals())


def _cosine_form(rate: float, lag: int) -> float:
    """Lemma F.12 at a = 1 and b = 1 - rate."""
    return 2 * np.pi / (rate * (2 - rate)) * (1 - rate) ** lag


def _rational_form(rate: float) -> float:
    """Lemma F.13 at a = rate - 1."""
    return 2 * np.pi / float(np.sqrt(rate * (2 - rate)))


def _quarter_rule() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(200)
    return np.pi / 4 * (nodes + 1), np.pi / 4 * weights


def _complete_third(characteristic: float, parameter: float) -> float:
    """The complete integral of the third kind, by Carlson's forms; the parameter is k^2."""
    from scipy.special import elliprf, elliprj

    rest = 1 - parameter
    third = elliprj(0, rest, 1, 1 - characteristic)
    return float(elliprf(0, rest, 1) + characteristic / 3 * third)
