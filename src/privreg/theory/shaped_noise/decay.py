r"""Decays of a covariance's eigenvalues, with the sums over head and tail that bounds are made of.

A cutoff k splits the eigenvalues λ_1 ≥ λ_2 ≥ ... into a head i ≤ k and a tail i > k. An infinite
decay has all its sums in closed form, so that nothing grows with a dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from privreg.validation import (
    FloatArray,
    require_instance,
    require_number,
    require_real,
)

_MOST_TERMS = 20_000_000
# Up to its exponential, powers of a horizon and the zeta function beside them are finite.
_MOST_LOGARITHM = 600.0


@runtime_checkable
class Decay(Protocol):
    """Eigenvalues in non-increasing order, known through their sums; methods broadcast over k."""

    @property
    def trace(self) -> float:
        """Sum of all eigenvalues."""

    @property
    def squared_trace(self) -> float:
        """Sum of their squares."""

    def cutoff(self, horizon: ArrayLike) -> FloatArray:
        """k* = max{k : λ_k ≥ 1/a} for a horizon a = N η, 0 if there is none."""

    def tail_sum(self, cutoff: ArrayLike) -> FloatArray:
        """Sum of λ_i over i > k."""

    def shaped_trace(self, horizon: float) -> float:
        """tr((I/a + H)⁻¹H) = Σ aλ_i / (1 + aλ_i), what `effective_dimension` approximates."""


@dataclass(frozen=True)
class PowerLawDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = i^{-r}`.

    Parameters
    ----------
    exponent : float
        r, more than 1, so that the trace is finite, and at most 1e10.

    Examples
    --------
    >>> round(PowerLawDecay(2.0).trace, 6)
    1.644934
    """

    exponent: float

    def __post_init__(self) -> None:
        require_number("exponent", self.exponent, above=1, most=1e10)

    @property
    def trace(self) -> float:
        return float(zeta(self.exponent))

    @property
    def squared_trace(self) -> float:
        return float(zeta(2 * self.exponent))

    def cutoff(self, horizon: ArrayLike) -> FloatArray:
        a = require_real("horizon", horizon, above=0)
        k = np.floor(a ** (1.0 / self.exponent))
        # The root of a perfect power may round to just below a whole number, or just above.
        with np.errstate(over="ignore"):
            return k + ((k + 1) ** self.exponent <= a) - (k**self.exponent > a)

    def tail_sum(self, cutoff: ArrayLike) -> FloatArray:
        return np.asarray(zeta(self.exponent, require_real("cutoff", cutoff, least=0) + 1))

    def shaped_trace(self, horizon: float) -> float:
        a = require_number("horizon", horizon, above=0, most=1e300)
        # Beyond this many terms aλ_i < 1/8, and the geometric series in it converges quickly.
        terms = int(np.ceil((8 * a) ** (1.0 / self.exponent))) + 1
        if terms > _MOST_TERMS:
            raise ValueError(
                f"horizon must be at most {_MOST_TERMS**self.exponent / 8:.3g} at this decay, "
                f"got {a:g}"
            )
        head = a * np.arange(1.0, terms + 1) ** -self.exponent
        total = float(np.sum(head / (1 + head)))
        first = a * (terms + 1.0) ** -self.exponent
        for power in range(1, 24):
            s, scale = power * self.exponent, power * np.log(a)
            if max(scale, s * np.log(terms + 1.0)) < _MOST_LOGARITHM:
                term = a**power * float(zeta(s, terms + 1.0))
            else:
                term = first**power * _scaled_zeta(s, terms + 1.0)
            total -= (-1) ** power * term
        return total


def _scaled_zeta(s: float, start: float) -> float:
    """Sum of (i / q)^-s over i ≥ q, where neither q^s nor the Hurwitz zeta function need be finite.

    Terms by themselves, then Euler and Maclaurin's formula for what is left.
    """
    ahead = 40
    with np.errstate(under="ignore"):
        total = float(np.sum((1 + np.arange(ahead) / start) ** -s))
        end = start + ahead
        bracket = end / (s - 1) + 0.5 + s / (12 * end) - s * (s + 1) * (s + 2) / (720 * end**3)
        return total + float((end / start) ** -s * bracket)


@dataclass(frozen=True)
class ExponentialDecay:
    r"""Infinitely many eigenvalues :math:`\lambda_i = e^{-i}`, i from 1.

    Examples
    --------
    >>> ExponentialDecay().cutoff([10.0, 100.0])
    array([2., 4.])
    """

    @property
    def trace(self) -> float:
        return float(1 / np.expm1(1.0))

    @property
    def squared_trace(self) -> float:
        return float(1 / np.expm1(2.0))

    def cutoff(self, horizon: ArrayLike) -> FloatArray:
        return np.floor(np.maximum(np.log(require_real("horizon", horizon, above=0)), 0.0))

    def tail_sum(self, cutoff: ArrayLike) -> FloatArray:
        return np.exp(-require_real("cutoff", cutoff, least=0)) * self.trace

    def shaped_trace(self, horizon: float) -> float:
        a = require_number("horizon", horizon, above=0)
        values = a * np.exp(-np.arange(1.0, np.log(a) + 45 if a > 1 else 46))
        return float(np.sum(values / (1 + values)))


def effective_dimension(decay: Decay, horizon: ArrayLike) -> FloatArray:
    r"""Number D of directions that N steps of size η can learn.

    .. math:: D(a) = k^* + a\sum_{i>k^*}\lambda_i = \sum_i\min(1, a\lambda_i),
        \qquad a = N\eta,\ k^* = \max\{k : \lambda_k \ge 1/a\}

    It lies between `decay.shaped_trace` and twice that.

    Parameters
    ----------
    decay : Decay
        Eigenvalues; a power law's tail is a Hurwitz zeta function.
    horizon : array_like, shape (...)
        a, more than 0 and at most 1e300; may be empty.

    Examples
    --------
    >>> effective_dimension(PowerLawDecay(2.0), [1.0, 10.0]).round(3)
    array([1.645, 5.838])

    Source
    ------
    anon2024, Corollary 4.3 and what follows it.
    """
    require_instance("decay", decay, Decay)  # type: ignore[type-abstract]
    a = require_real("horizon", horizon, above=0, most=1e300)
    cutoff = decay.cutoff(a)
    return cutoff + a * decay.tail_sum(cutoff)
