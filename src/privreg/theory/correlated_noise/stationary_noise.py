r"""Correlated noise in its stationary state: its price in privacy and its effect on a direction.

White noise w enters as :math:`\tilde w_t = \sum_\tau \beta_\tau w_{t-\tau}`. Two numbers say all
that the stationary theory needs: the limiting squared sensitivity, which the variance of w is
proportional to, and how much more or less the correlated noise moves a direction of rate ηλ than
independent noise of the same variance does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.noise.sensitivity import damped_anti_pgd_limit, damped_square_root_limit
from privreg.privacy.budget import Budget
from privreg.privacy.neighbours import sum_sensitivity
from privreg.theory.correlated_noise.spectral_integrals import (
    distance_ratio_integral,
    frequency_rule,
    squared_distance,
)
from privreg.validation import require_array, require_number, require_real

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StationaryNoise:
    r"""Correlated noise of unit variance at the source, by its power spectrum.

    .. math::
        \gamma_\infty^2 = \frac1{2\pi}\int_{-\pi}^{\pi}\frac{d\omega}{|B(\omega)|^2},\qquad
        c(b) = \frac{b(2-b)}{2\pi}\int_{-\pi}^{\pi}\frac{|B(\omega)|^2}{|1-b-e^{i\omega}|^2}d\omega
        = \sum_{\tau,k}\beta_\tau\beta_k(1-b)^{|\tau-k|}

    Built by `independent`, `damped_square_root`, `damped_anti_pgd`, `regression_optimal` and
    `from_power`.

    Attributes
    ----------
    squared_sensitivity : float
        γ²; `inf` if it grows without bound.
    power : callable
        |B(ω)|², array to array, even.
    variance_law : callable
        c, called by `relative_variance`.

    Source
    ------
    choquettechoo2024, equations (5) and (33), Property C.1; c(b) is an equality inside the proof of
    Lemma C.4.
    """

    squared_sensitivity: float
    power: Callable[[FloatArray], FloatArray]
    variance_law: Callable[[FloatArray], FloatArray]

    def relative_variance(self, rate: ArrayLike) -> FloatArray:
        """Variance c(b) that the noise leaves along directions, over that of independent noise.

        Parameters
        ----------
        rate : array_like, shape (...)
            Rates b = step size times curvature, in (0, 1].

        Returns
        -------
        ndarray, shape (...)
        """
        return self.variance_law(require_real("rate", rate, above=0, most=1))

    @classmethod
    def independent(cls) -> StationaryNoise:
        """No correlation, β = (1, 0, ...): DP-SGD."""
        return cls(1.0, np.ones_like, np.ones_like)

    @classmethod
    def damped_square_root(cls, damping: float) -> StationaryNoise:
        r"""ν-FTRL, :math:`|B|^2 = |1-\nu-e^{i\omega}|`; ν = η is optimal for mean estimation.

        Parameters
        ----------
        damping : float
            ν in [0, 1]; 0 is the square root of the prefix sums, of infinite sensitivity.

        Examples
        --------
        >>> round(StationaryNoise.damped_square_root(0.01).squared_sensitivity, 4)
        2.1369

        Source
        ------
        choquettechoo2024, equation (7) and Theorem 2.1.
        """
        nu = require_number("damping", damping, least=0, most=1)
        return cls(
            damped_square_root_limit(nu) ** 2,
            lambda w: np.sqrt(squared_distance(w, nu)),
            lambda b: b * (2.0 - b) / (2.0 * pi) * distance_ratio_integral(nu, b),
        )

    @classmethod
    def damped_anti_pgd(cls, damping: float) -> StationaryNoise:
        r"""β = (1, -(1-ν), 0, ...): :math:`\gamma^2 = 1/(\nu(2-\nu))`, c(b) = ν² + 2(1-ν)b.

        Parameters
        ----------
        damping : float
            ν in [0, 1]; 0 is anti-PGD, of infinite sensitivity.

        Source
        ------
        choquettechoo2024, Section C.5 (bounds only; the closed form of c is exact).
        """
        nu = require_number("damping", damping, least=0, most=1)
        return cls(
            damped_anti_pgd_limit(nu) ** 2,
            lambda w: squared_distance(w, nu),
            lambda b: nu**2 + 2.0 * (1.0 - nu) * b,
        )

    @classmethod
    def from_power(
        cls, power: Callable[[FloatArray], FloatArray], *, smallest_frequency: float
    ) -> StationaryNoise:
        """Noise of any power spectrum, by quadrature.

        Parameters
        ----------
        power : callable
            |B(ω)|² on (0, π), array to array, more than 0.
        smallest_frequency : float
            Width of the finest feature of the spectrum around 0, in (0, π].

        Notes
        -----
        The sensitivity is that of the minimum-phase coefficients with this spectrum, the only ones
        whose inverse is causal.
        """
        width = require_number("smallest_frequency", smallest_frequency, above=0, most=pi)
        frequencies, weights = frequency_rule(width)
        density = require_real("power", power(frequencies), above=0)

        def relative(rates: FloatArray) -> FloatArray:
            flat = rates.ravel()
            # Finer than the spectrum where a direction forgets more slowly than the spectrum bends.
            grid, mass = frequency_rule(min(width, float(flat.min())))
            load = mass * require_real("power", power(grid), above=0)
            totals = np.array([load @ (1.0 / squared_distance(grid, b)) for b in flat])
            return (flat * (2.0 - flat) / (2.0 * pi) * totals).reshape(rates.shape)

        return cls(float(weights @ (1.0 / density)) / (2.0 * pi), power, relative)

    @classmethod
    def regression_optimal(cls, eigenvalues: ArrayLike, *, step_size: float) -> StationaryNoise:
        r"""Spectrum that is optimal for a quadratic of given curvatures with noise-free features.

        .. math:: |B(\omega)|^2 = h(\omega)^{-1/2},\qquad
            h(\omega)=\sum_j\frac{\lambda_j}{|1-\eta\lambda_j-e^{i\omega}|^2}

        Parameters
        ----------
        eigenvalues : array_like, shape (d,)
            λ, more than 0.
        step_size : float
            η, more than 0, with every ηλ at most 1.

        Source
        ------
        choquettechoo2024, Theorem C.18 (printed with |B|² = 1/h; the proof's Cauchy-Schwarz
        inequality is tight at the square root of it).
        """
        curvatures = require_real(
            "eigenvalues", require_array("eigenvalues", eigenvalues, shape=(None,)), above=0
        )
        eta = require_number("step_size", step_size, above=0, most=1.0 / float(curvatures.max()))
        values, counts = np.unique(curvatures, return_counts=True)

        def power(w: FloatArray) -> FloatArray:
            return regression_response(w, values, step_size=eta, multiplicities=counts) ** -0.5

        return cls.from_power(power, smallest_frequency=min(1.0, eta * float(values[0])))


def regression_response(
    frequency: ArrayLike,
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    multiplicities: ArrayLike | None = None,
) -> FloatArray:
    r"""Response :math:`h(\omega)=\sum_j\lambda_j/|1-\eta\lambda_j-e^{i\omega}|^2` of a quadratic.

    Parameters
    ----------
    frequency : array_like, shape (...)
        ω.
    eigenvalues : array_like, shape (d,)
        λ, more than 0.
    step_size : float
        η, with every ηλ at most 1.
    multiplicities : array_like, shape (d,), optional
        How often each eigenvalue counts; once by default.

    Returns
    -------
    ndarray, shape (...)

    Source
    ------
    choquettechoo2024, equation (21).
    """
    angle = require_real("frequency", frequency)
    values = require_array("eigenvalues", eigenvalues, shape=(None,))
    counts = np.ones(values.size) if multiplicities is None else np.asarray(multiplicities)
    total = np.zeros(angle.shape)
    for value, count in zip(values, counts, strict=True):
        total += count * value / squared_distance(angle, step_size * value)
    return total


def calibrated_noise_std(*, squared_sensitivity: float, clip_norm: float, budget: Budget) -> float:
    r"""Standard deviation of the white noise w at which all iterates together spend a budget.

    .. math:: \sigma = \gamma\Delta/\sqrt{2\rho},\qquad \Delta = G \text{ or } 2G

    Parameters
    ----------
    squared_sensitivity : float
        γ², of the inverse of the whole coefficient matrix, more than 0.
    clip_norm : float
        G, more than 0.
    budget : Budget
        Its neighbours decide Δ: 2G when one record is replaced, G otherwise.

    Returns
    -------
    float
        `inf` for an infinite sensitivity.

    Source
    ------
    choquettechoo2024, Theorem 1.1 (zero-out neighbours, Δ = G).
    """
    squared = require_number("squared_sensitivity", squared_sensitivity, above=0, infinite=True)
    norm = require_number("clip_norm", clip_norm, above=0)
    change = float(sum_sensitivity(norm, neighbours=budget.neighbours))
    return sqrt(squared) * change / budget.root
