"""Rates in closed form: the exponents of the sample size, exactly, and where branches cross.

Everything is rational arithmetic on the decay exponent r in λ_i = i^(-r), more than 1 and at most
1e100, and on p in ε = N^p, at least -1e100 and at most 1e100: a `Fraction` goes in and a `Fraction`
comes out; floats work as well. Exponential decay is the limit r → ∞.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, TypeVar

from privreg.validation import require_number

Number = TypeVar("Number", Fraction, float)


@dataclass(frozen=True)
class LinearFraction:
    """Branch (a + b r) / (c + d r) of a rate, of whole numbers, d > 0, without a pole at r > 1.

    Examples
    --------
    >>> LinearFraction(0, 1, 3, 1)(Fraction(2))
    Fraction(2, 5)
    """

    a: int
    b: int
    c: int
    d: int

    def __call__(self, decay: Number) -> Number:
        decay = _decay(decay)
        return (self.a + self.b * decay) / (self.c + self.d * decay)

    def crossings(self, other: LinearFraction) -> list[Fraction]:
        """Rational r > 1 at which two branches agree, increasing."""
        square = self.b * other.d - other.b * self.d
        linear = self.a * other.d + self.b * other.c - other.a * self.d - other.b * self.c
        constant = self.a * other.c - other.a * self.c
        if square == 0:
            roots = [Fraction(-constant, linear)] if linear else []
        else:
            discriminant = linear**2 - 4 * square * constant
            root = isqrt(max(discriminant, 0))
            if root**2 != discriminant:
                return []
            roots = [Fraction(-linear + sign * root, 2 * square) for sign in (-1, 1)]
        return sorted({value for value in roots if value > 1})


NON_PRIVATE = LinearFraction(0, 1, 1, 1)
IDENTITY = LinearFraction(0, 1, 1, 2)
DESIGNED_BRANCHES = (LinearFraction(0, 1, 3, 1), LinearFraction(0, 2, 1, 3))
IDENTITY_THRESHOLD = LinearFraction(0, 1, 2, 2)
DESIGNED_THRESHOLD_BRANCHES = (LinearFraction(1, 0, 1, 1), LinearFraction(-1, 1, 2, 2))


def nonprivate_exponent(decay: Number) -> Number:
    """x in the excess risk Õ(N^-x) of SGD without privacy, r/(1+r) (anon2024, Table 1)."""
    return NON_PRIVATE(decay)


def identity_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""x in the excess risk Õ(N^-x) of DP-FTRL with Σ = I; r/(1+2r) at a constant ε, p = 0.

    .. math:: x = \frac r{1+r} - \frac r{1+2r}\max\Big(0, \frac r{1+r} - 2p\Big)

    Examples
    --------
    >>> identity_exponent(Fraction(2))
    Fraction(2, 5)

    Source
    ------
    anon2024, Corollary 4.4.
    """
    decay, epsilon_power = _decay(decay), _power(epsilon_power)
    best = nonprivate_exponent(decay)
    return best - IDENTITY(decay) * max(0 * best, best - 2 * epsilon_power)


def designed_exponent(decay: Number, *, epsilon_power: Number | int = 0) -> Number:
    r"""x in the excess risk Õ(N^-x) of DP-FTRL with Σ = H + I/(Nη).

    .. math:: x = \frac r{1+r} - \max\Big(0,
        \frac r{3+r}\Big(\frac 2{1+r} - 2p\Big),
        \frac r{1+3r}\Big(\frac{r-1}{1+r} - 2p\Big)\Big)

    Examples
    --------
    >>> [designed_exponent(Fraction(r)) for r in (2, 5, 6)]
    [Fraction(2, 5), Fraction(5, 8), Fraction(12, 19)]

    Source
    ------
    anon2024, Corollary 4.6.
    """
    decay, epsilon_power = _decay(decay), _power(epsilon_power)
    best = nonprivate_exponent(decay)
    first = decay / (3 + decay) * (2 / (1 + decay) - 2 * epsilon_power)
    second = decay / (1 + 3 * decay) * ((decay - 1) / (1 + decay) - 2 * epsilon_power)
    return best - max(0 * best, first, second)


def identity_threshold(decay: Number) -> Number:
    """p at which ε = N^p gives Σ = I the rate without privacy, r/(2+2r) (anon2024, Cor. 4.4)."""
    return IDENTITY_THRESHOLD(decay)


def designed_threshold(decay: Number) -> Number:
    """The same for the designed Σ, max(1/(1+r), (r-1)/(2+2r)) (anon2024, Cor. 4.6)."""
    return max(branch(decay) for branch in DESIGNED_THRESHOLD_BRANCHES)


def exponential_exponents(*, epsilon_power: Number | int = 0) -> tuple[Number | Fraction, ...]:
    """Exponents for λ_i = e^-i: without privacy, Σ = I, the designed Σ.

    Source
    ------
    anon2024, Corollaries 4.4 and 4.6, second parts.
    """
    epsilon_power = _power(epsilon_power)
    shortfall: Number | Fraction = Fraction(1) - 2 * epsilon_power
    if shortfall <= 0:
        return Fraction(1), Fraction(1), Fraction(1)
    # At ε of N^(-1/4) and less the term D³/N decides, as for a power law.
    return Fraction(1), 1 - shortfall / 2, 1 - max(shortfall / 3, shortfall - 1)


def switch_points() -> dict[str, Fraction]:
    """Decay exponents at which the rates change character, solved from the branches.

    Returns
    -------
    dict
        `better`: where the designed Σ's exponent passes that of Σ = I at constant ε;
        `branch`: where its own minimum changes branch; `threshold`: where its ε threshold does;
        `threshold_better`: where its threshold falls below that of Σ = I.

    Source
    ------
    anon2024, abstract and Section 4.2 (r ≥ 2); the others follow from Corollaries 4.4 and 4.6.
    """
    return {
        "better": _only(DESIGNED_BRANCHES[0].crossings(IDENTITY)),
        "branch": _only(DESIGNED_BRANCHES[0].crossings(DESIGNED_BRANCHES[1])),
        "threshold": _only(
            DESIGNED_THRESHOLD_BRANCHES[0].crossings(DESIGNED_THRESHOLD_BRANCHES[1])
        ),
        "threshold_better": _only(DESIGNED_THRESHOLD_BRANCHES[0].crossings(IDENTITY_THRESHOLD)),
    }


def _only(values: list[Fraction]) -> Fraction:
    (value,) = values
    return value


def _decay(decay: Number) -> Number:
    if not isinstance(decay, Fraction):
        return require_number("decay", decay, above=1, most=1e100)
    if decay <= 1:
        raise ValueError(f"decay must be more than 1, got {decay}")
    return decay


def _power(power: Any) -> Any:
    # Exact as they come; what is left must be a number of the machine.
    if isinstance(power, Fraction) or type(power) is int:
        return power
    return require_number("epsilon_power", power, least=-1e100, most=1e100)
