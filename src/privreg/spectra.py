"""Covariance spectra: eigenvalues with weights, from a list or by quadrature of a density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    Immutable,
    require_array,
    require_count,
    require_frozen,
    require_number,
)

# Growth of the logarithm of the mass over a panel that five nodes resolve to 1e-5.
STEEPEST = 3.5


@dataclass(frozen=True)
class Spectrum(Immutable):
    """Eigenvalues of a covariance, and the share of the dimensions with each eigenvalue.

    Parameters
    ----------
    eigenvalues : ndarray, shape (modes,)
        Eigenvalues, from 0 to 1e12.
    weights : ndarray, shape (modes,)
        Share of the dimensions with each eigenvalue, at least 0; the shares sum to 1.
    """

    eigenvalues: FloatArray
    weights: FloatArray

    def __post_init__(self) -> None:
        values = require_frozen("eigenvalues", self.eigenvalues, shape=(None,), least=0, most=MOST)
        shares = require_frozen("weights", self.weights, shape=values.shape, least=0, most=1 + 1e-9)
        if not np.isclose(shares.sum(), 1.0, rtol=1e-9):
            raise ValueError(f"weights must have sum 1, got {shares.sum()}")
        object.__setattr__(self, "eigenvalues", values)
        object.__setattr__(self, "weights", shares)

    @property
    def modes(self) -> int:
        """Number of distinct eigenvalues or quadrature nodes."""
        return len(self.eigenvalues)

    def mean(self, values: ArrayLike = 1.0) -> float:
        r"""Mean tr f(Σ) / d of f over the spectrum of Σ; `values` of f: shape (modes,) or ()."""
        function = require_array(
            "values", values, shape=self.weights.shape if np.ndim(values) else ()
        )
        return float(np.sum(self.weights * function))


class SpectrumWithSignal(NamedTuple):
    """Spectrum, and signal per mode, (modes,): (dimension / 2) × squared target coefficient."""

    spectrum: Spectrum
    signal: FloatArray


def isotropic() -> Spectrum:
    """Spectrum of the identity: one mode."""
    return Spectrum(np.ones(1), np.ones(1))


def explicit(eigenvalues: ArrayLike) -> Spectrum:
    """Spectrum of a finite covariance; equal eigenvalues are grouped into one mode."""
    values, counts = np.unique(eigenvalues, return_counts=True)
    return Spectrum(values, counts / counts.sum())


def uniform(low: float = 0.0, high: float = 2.0, *, nodes: int = 48) -> Spectrum:
    """Uniform density of eigenvalues on [low, high], by a Gauss-Legendre rule of `nodes` nodes."""
    low, high = _range(low, high)
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return Spectrum(low + (high - low) * (points + 1) / 2, weights / 2)


def uniform_midpoints(dimension: int, low: float = 0.0, high: float = 2.0) -> FloatArray:
    """Midpoints of `dimension` equal cells of [low, high]; their mean is (low + high) / 2."""
    low, high = _range(low, high)
    require_count("dimension", dimension)
    return low + (high - low) * ((np.arange(dimension) + 0.5) / dimension)


def power_law_edge(exponent: float) -> float:
    r"""Largest eigenvalue :math:`(2-\phi)/(1-\phi)` of the density ∝ λ^-φ with mean 1."""
    require_number("exponent", exponent, below=1)
    return (2 - exponent) / (1 - exponent)


def power_law(
    exponent: float, *, panels: int = 30, nodes: int = 5, smallest: float = 1e-11
) -> Spectrum:
    r"""Power-law eigenvalue density, as a quadrature rule that is refined towards zero.

    .. math:: p(\lambda) = (1-\phi)\, C_\phi^{\phi-1}\, \lambda^{-\phi}, \qquad
        0 < \lambda < C_\phi = \tfrac{2-\phi}{1-\phi}

    The mean eigenvalue is 1. Panels have equal width in the logarithm of the eigenvalue. Each panel
    has Gauss-Legendre nodes whose weights sum to the panel's exact mass. By default, and for x up
    to about 1 / `smallest`, the integral of :math:`\lambda^a e^{-\lambda x}` has an error of at
    most 1e-5 for powers a from 1/4 to 2, and of at most 1e-3 for smaller a.

    Parameters
    ----------
    exponent : float
        Density exponent phi, at least -20 and at most 0.95; outside this range the rule misses mass
        next to one end. Exponent 0 gives the uniform law on [0, 2].
    panels : int
        Number of geometric panels, at least 1, from `smallest` to the largest eigenvalue. One more
        panel covers smaller eigenvalues. Exponents below about -3 use a multiple of `panels`.
    nodes : int
        Number of nodes per panel, at least 1.
    smallest : float
        Upper end of the lowest panel, in units of the largest eigenvalue, in [1e-12, 1).

    Source
    ------
    bombari2025, Assumption 3; the quadrature rule is derived from it.
    """
    exponent = require_number("exponent", exponent, least=-20, most=0.95)
    edge = power_law_edge(exponent)
    smallest = require_number("smallest", smallest, least=LEAST, below=1)
    points, weights = np.polynomial.legendre.leggauss(nodes)
    steepness = (exponent - 1) * np.log(smallest) / panels
    ends = np.geomspace(smallest, 1.0, panels * max(1, int(np.ceil(steepness / STEEPEST))) + 1)
    growth = ends[1] / ends[0]
    inner = ends[:-1, None] * growth ** ((points + 1) / 2)
    share = weights * inner ** (1 - exponent)
    share *= np.diff(ends ** (1 - exponent))[:, None] / share.sum(axis=1, keepdims=True)
    # Below the lowest end the mass itself is the coordinate.
    lowest_mass = smallest ** (1 - exponent)
    lowest = smallest * ((points + 1) / 2) ** (1 / (1 - exponent))
    return Spectrum(
        edge * np.concatenate([lowest, inner.ravel()]),
        np.concatenate([lowest_mass * weights / 2, share.ravel()]),
    )


def power_law_with_signal(
    exponent: float, *, signal_power: float = 0.0, signal_scale: float = 0.5
) -> SpectrumWithSignal:
    r"""Power-law spectrum with a signal that is a power of the eigenvalues.

    .. math:: D_i(0) = \tfrac d2 (w_i^\top\theta^*)^2 = s\,\lambda_i^{-\psi}

    where w_i is the eigenvector of λ_i, and d the dimension. `deterministic_equivalent.solve` and
    `rate_search` in `theory.one_pass_dpgd` take the spectrum and the signal.

    Parameters
    ----------
    exponent : float
        phi of the density, at least -20 and at most 0.95, as for `power_law`.
    signal_power : float
        psi, at least -3 and less than 1 - phi, so that the target's norm is finite. psi = 0 spreads
        the target evenly; a larger psi puts more of the target on small eigenvalues.
    signal_scale : float
        s; if psi = 0, s = 1/2 gives a target of norm 1 and an initial risk of 1/2.

    Examples
    --------
    >>> from privreg.schedules import Polynomial
    >>> from privreg.theory.one_pass_dpgd import deterministic_equivalent
    >>> spectrum, signal = power_law_with_signal(0.25, signal_power=0.5)
    >>> found = deterministic_equivalent.solve(
    ...     spectrum, Polynomial(3.0, 0.5), signal=signal, aspect_ratio=0.01, zcdp_root=0.5,
    ...     clip_constant=0.3, label_noise_std=0.3, times=[1.0],
    ... )
    >>> round(float(found.final_risk), 3)
    0.127

    Source
    ------
    bombari2025, Assumption 3, where D_i(0) is only of this order; here equality holds.
    """
    spectrum = power_law(exponent)
    psi = require_number("signal_power", signal_power, least=-3, below=1 - exponent)
    return SpectrumWithSignal(spectrum, signal_scale * spectrum.eigenvalues**-psi)


def _range(low: float, high: float) -> tuple[float, float]:
    low = require_number("low", low, least=0)
    return low, require_number("high", high, above=low, most=MOST)
