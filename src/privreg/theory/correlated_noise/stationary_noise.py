r"""Correlated noise in its stationary state: its price in privacy and its effect on a direction.

White noise w enters as :math:`\tilde w_t = \sum_\tau \beta_\tau w_{t-\tau}`. The stationary theory
needs two things: the limiting squared sensitivity, to which the variance of w is proportional, and
the variance that is left along a direction of rate ηλ, relative to that of independent noise.
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
    SMALLEST,
    distance_ratio_integral,
    squared_distance,
)
from privreg.validation import (
    require_answer,
    require_array,
    require_callable,
    require_instance,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StationaryNoise:
    r"""Correlated noise of unit variance at the source, by its power spectrum.

    .. math::
        \gamma_\infty^2 = \frac1{2\pi}\int_{-\pi}^{\pi}\frac{d\omega}{|B(\omega)|^2},\qquad
        c(b) = \frac{b(2-b)}{2\pi}\int_{-\pi}^{\pi}\frac{|B(\omega)|^2}{|1-b-e^{i\omega}|^2}d\omega
        = \sum_{\tau,k}\beta_\tau\beta_k(1-b)^{|\tau-k|}

    Attributes
    ----------
    squared_sensitivity : float
        γ², more than 0; `inf` if it grows without bound.
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

    def __post_init__(self) -> None:
        require_number("squared_sensitivity", self.squared_sensitivity, above=0, infinite=True)
        require_callable("power", self.power)
        require_callable("variance_law", self.variance_law)

    def relative_variance(self, rate: ArrayLike) -> FloatArray:
        """Variance c(b) that the noise leaves along directions, over that of independent noise.

        Parameters
        ----------
        rate : array_like, shape (...)
            Rates b = step size times curvature, at least 1e-100 and at most 1; may be empty.
        """
        rates = require_real("rate", rate, least=SMALLEST, most=1)
        return require_answer("rate", np.asarray(self.variance_law(rates)))

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
            ν from 1e-100 and at most 1; or 0, the square root of the prefix sums, of infinite
            sensitivity.

        Examples
        --------
        >>> round(StationaryNoise.damped_square_root(0.01).squared_sensitivity, 4)
        2.1369

        Source
        ------
        choquettechoo2024, equation (7) and Theorem 2.1.
        """
        nu = _damping(damping)
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
            ν from 1e-100 and at most 1; or 0, anti-PGD, of infinite sensitivity.

        Source
        ------
        choquettechoo2024, Section C.5 (bounds only; the closed form of c is exact).
        """
        nu = _damping(damping)
        return cls(
            damped_anti_pgd_limit(nu) ** 2,
            lambda w: squared_distance(w, nu),
            lambda b: nu**2 + 2.0 * (1.0 - nu) * b,
        )


def require_curvatures(eigenvalues: ArrayLike) -> FloatArray:
    """Eigenvalues, shape (d,), of a size whose squares are numbers."""
    return require_array("eigenvalues", eigenvalues, shape=(None,), least=1e-50, most=1e50)


def require_step_size(step_size: float, eigenvalues: FloatArray) -> float:
    """A step size η in (0, 1/λ₁], at which no direction overshoots, with ηλ at least 1e-100."""
    low, high = float(eigenvalues.min()), float(eigenvalues.max())
    return require_number("step_size", step_size, least=SMALLEST / low, most=1.0 / high)


def require_noise(gradient_noise_std: float, label_noise_std: float) -> tuple[float, float]:
    """Standard deviations whose squares are numbers; that of the gradient may be infinite."""
    sigma = require_number("gradient_noise_std", gradient_noise_std, least=0, infinite=True)
    if 1e100 < sigma < np.inf:
        raise ValueError(f"gradient_noise_std must be at most 1e+100 or infinite, got {sigma}")
    return sigma, require_number("label_noise_std", label_noise_std, least=0, most=1e100)


def _damping(damping: float) -> float:
    value = require_number("damping", damping, least=0, most=1)
    if 0 < value < SMALLEST:
        raise ValueError(f"damping must be 0 or at least {SMALLEST:g}, got {value}")
    return value


def regression_response(
    frequency: ArrayLike,
    eigenvalues: ArrayLike,
    *,
    step_size: float,
) -> FloatArray:
    r"""Response :math:`h(\omega)=\sum_j\lambda_j/|1-\eta\lambda_j-e^{i\omega}|^2` of a quadratic.

    Parameters
    ----------
    frequency : array_like, shape (...)
        ω, from 1e-100 on in size; may be empty.
    eigenvalues : array_like, shape (d,)
        λ, at least 1e-50 and at most 1e50.
    step_size : float
        η, more than 0, with every ηλ at least 1e-100 and at most 1.

    Source
    ------
    choquettechoo2024, equation (21).
    """
    angle = require_real("frequency", frequency)
    values = require_curvatures(eigenvalues)
    step_size = require_step_size(step_size, values)
    total = np.zeros(angle.shape)
    for value in values:
        total += value / squared_distance(angle, step_size * value)
    return require_answer("frequency and eigenvalues", total)


def calibrated_noise_std(*, squared_sensitivity: float, clip_norm: float, budget: Budget) -> float:
    r"""Standard deviation of the white noise w at which all iterates together spend a budget.

    .. math:: \sigma = \gamma\Delta/\sqrt{2\rho},\qquad \Delta = G \text{ or } 2G

    Parameters
    ----------
    squared_sensitivity : float
        γ², of the inverse of the whole coefficient matrix, more than 0; or `inf`.
    clip_norm : float
        G, at least 1e-100 and at most 1e100.
    budget : Budget
        Its neighbours decide Δ: 2G when one record is replaced, G otherwise.

    Returns
    -------
    float
        `inf` for an infinite sensitivity, 0 for an infinite budget.

    Source
    ------
    choquettechoo2024, Theorem 1.1 (zero-out neighbours, Δ = G).
    """
    squared = require_number("squared_sensitivity", squared_sensitivity, above=0, infinite=True)
    norm = require_number("clip_norm", clip_norm, least=1e-100, most=1e100)
    require_instance("budget", budget, Budget)
    change = float(sum_sensitivity(norm, neighbours=budget.neighbours))
    return sqrt(squared) * change / budget.root
