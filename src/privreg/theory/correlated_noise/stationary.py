r"""Exact limit of Noisy-FTRL's excess risk, for mean estimation and for Gaussian regression.

.. math:: \theta_{t+1} = \theta_t - \eta\Big(x_t(x_t^\top\theta_t - y_t)
    + \sum_{\tau\le t}\beta_\tau w_{t-\tau}\Big),\qquad x_t\sim N(0,H),\quad
    y_t - x_t^\top\theta^*\sim N(0,\zeta^2),\quad w_t\sim N(0,\sigma^2I)

Batches have one sample; there is one pass and no clipping. The excess risk is
:math:`F(\theta)-F(\theta^*) = \tfrac12\|\theta-\theta^*\|_H^2 = q/2`, as in the paper's equation
(8); its Appendix C calls q the suboptimality. Rates (step size times curvature) and dampings are at
least 1e-20, to admit the very small step sizes of Theorem D.13.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import inf, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ellipkm1, elliprf, elliprj

from privreg.checks import (
    LEAST,
    MOST,
    FloatArray,
    require_array,
    require_instance,
    require_number,
    require_real,
    require_scale,
    require_scales,
)
from privreg.noise.sensitivity import damped_anti_pgd_limit, damped_square_root_limit
from privreg.privacy.budget import Budget, sum_sensitivity

LEAST_RATE = 1e-20
_rates = partial(require_real, least=LEAST_RATE, most=1)
# Finding nodes takes longer than most integrals.
_legendre = cache(np.polynomial.legendre.leggauss)


@dataclass(frozen=True, eq=False)
class StationaryNoise:
    r"""Correlated noise, made from white noise of unit variance; create it with a class method.

    .. math::
        \gamma_\infty^2 = \frac1{2\pi}\int_{-\pi}^{\pi}\frac{d\omega}{|B(\omega)|^2},\qquad
        c(b) = \frac{b(2-b)}{2\pi}\int_{-\pi}^{\pi}\frac{|B(\omega)|^2}{|1-b-e^{i\omega}|^2}d\omega
        = \sum_{\tau,k}\beta_\tau\beta_k(1-b)^{|\tau-k|}

    Attributes
    ----------
    squared_sensitivity : float
        γ² in the limit of many steps, more than 0; may be `inf`.
    power : callable
        Even function ω → |B(ω)|², the power of the decoder β at frequency ω; maps arrays to arrays.
    variance_law : callable
        Function c of the rate b (step size times curvature), called by `relative_variance`.

    Source
    ------
    choquettechoo2024, equations (5) and (33), Property C.1; for c(b), the proof of Lemma C.4.
    """

    squared_sensitivity: float
    power: Callable[[FloatArray], FloatArray]
    variance_law: Callable[[FloatArray], FloatArray]

    def relative_variance(self, rate: ArrayLike) -> FloatArray:
        """Variance c(b) due to the noise in directions of rate b, relative to independent noise.

        The rates b, step size times curvature, are at least 1e-20 and at most 1.
        """
        return np.asarray(self.variance_law(_rates("rate", rate)))

    @classmethod
    def independent(cls) -> StationaryNoise:
        """No correlation, β = (1, 0, ...): DP-SGD."""
        return cls(1.0, np.ones_like, np.ones_like)

    @classmethod
    def damped_square_root(cls, damping: float) -> StationaryNoise:
        r"""ν-FTRL: :math:`|B|^2 = |1-\nu-e^{i\omega}|` with ν = `damping`.

        For mean estimation, ν equal to the step size is optimal. ν = 0 gives the square root of the
        matrix of prefix sums, whose sensitivity is infinite.

        Examples
        --------
        >>> round(StationaryNoise.damped_square_root(0.01).squared_sensitivity, 4)
        2.1369

        Source
        ------
        choquettechoo2024, equation (7) and Theorem 2.1.
        """
        nu = float(damping)
        return cls(
            damped_square_root_limit(nu) ** 2,
            lambda w: np.sqrt(squared_distance(w, nu)),
            lambda b: b * (2.0 - b) / (2.0 * pi) * distance_ratio_integral(nu, b),
        )

    @classmethod
    def damped_anti_pgd(cls, damping: float) -> StationaryNoise:
        r"""Damped anti-PGD: decoder β = (1, -(1-ν), 0, ...) with ν = `damping`.

        γ² is :math:`1/(\nu(2-\nu))`, and c(b) = ν² + 2(1-ν)b. At ν = 0, anti-PGD, γ² is infinite.

        Source
        ------
        choquettechoo2024, Section C.5, has bounds only; the closed form of c is exact.
        """
        nu = float(damping)
        return cls(
            damped_anti_pgd_limit(nu) ** 2,
            lambda w: squared_distance(w, nu),
            lambda b: nu**2 + 2.0 * (1.0 - nu) * b,
        )


class StationaryError(NamedTuple):
    """Error in the limit of many steps, split by source.

    `excess_risk` is the sum of `private` (from the private noise w) and `label` (from label noise).
    `variances`, shape (d,), are the squared errors along the eigenvectors. All are `inf` if the
    iteration is unstable or the noise infinite.
    """

    excess_risk: float
    private: float
    label: float
    variances: FloatArray


def stationary_error(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise: StationaryNoise,
    gradient_noise_std: float,
    label_noise_std: float = 0.0,
) -> StationaryError:
    r"""Excess risk in the limit of many steps; infinite if `step_size` reaches `stability_limit`.

    .. math::
        q = \frac{\frac\eta2\sum_j\frac{\zeta^2\lambda_j+\sigma^2c_j}{1-\eta\lambda_j}}
        {1-\frac\eta2\sum_j\frac{\lambda_j}{1-\eta\lambda_j}},\qquad
        s_j = \frac{\eta\,(\lambda_jq+\zeta^2\lambda_j+\sigma^2c_j)}{2\lambda_j(1-\eta\lambda_j)},
        \qquad c_j = c(\eta\lambda_j)

    with s_j the squared error along eigenvector j; :math:`q=\sum_j\lambda_js_j` is twice the risk.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance.
    step_size : float
        Step size η, with every ηλ at least 1e-20.
    noise : StationaryNoise
        Correlation of the noise; c is its `relative_variance`.
    gradient_noise_std : float
        Standard deviation σ of white noise w, 0 to `inf`; for a budget use `calibrated_noise_std`.
    label_noise_std : float
        Standard deviation ζ of the label noise; may be 0.

    Notes
    -----
    For x ~ N(0, H) and second moments S of the error, :math:`\mathbb E[xx^\top Sxx^\top] = 2HSH +
    \mathrm{tr}(HS)H`. The correlation of noise and iterate depends only on the iterate's mean given
    the noise; this mean follows the averaged dynamics. The formula is the fixed point of

    .. math:: s_j \leftarrow (1-2\eta\lambda_j+2\eta^2\lambda_j^2)s_j
        + \eta^2\lambda_j(q+\zeta^2) + \eta^2\sigma^2c_j.

    Examples
    --------
    >>> noise = StationaryNoise.independent()
    >>> error = stationary_error([1.0, 0.5], step_size=0.1, noise=noise, gradient_noise_std=1.0)
    >>> round(error.excess_risk, 5)
    0.05892

    Source
    ------
    Fixed point, derived here, of choquettechoo2024, equation (83), with Gaussian fourth moments.
    """
    values, eta = checked_spectrum(eigenvalues, step_size, overshoots=True)
    sigma, zeta = checked_noise(gradient_noise_std, label_noise_std)
    feedback = _feedback(eta, values)
    if not feedback < 1 or sigma == inf:
        return StationaryError(inf, inf, inf, np.full(values.size, inf))
    rates = eta * values
    moved = noise.relative_variance(rates)
    gain = 0.5 * eta / (1.0 - rates)
    private = float(gain @ (sigma**2 * moved)) / (1.0 - feedback)
    label = float(gain @ (zeta**2 * values)) / (1.0 - feedback)
    q = private + label
    variances = gain * q + (zeta**2 * gain + sigma**2 * (gain * moved / values))
    return StationaryError(0.5 * q, 0.5 * private, 0.5 * label, variances)


def stability_limit(eigenvalues: ArrayLike) -> float:
    r"""Least step size at which the squared error grows without bound, about 2/tr H.

    With λ_1 the largest eigenvalue, the recursion of second moments contracts if and only if

    .. math:: \frac\eta2\sum_j\frac{\lambda_j}{1-\eta\lambda_j} < 1 \quad\text{and}\quad
        \eta\lambda_1 < 1

    Examples
    --------
    >>> round(stability_limit([1.0, 1.0]), 12)    # 2 / (d + 2) for the identity
    0.5
    """
    values = checked_eigenvalues(eigenvalues)
    largest = 1.0 / float(values.max())
    # The sum increases from 0 at 0 to infinity at 1/λ1; the ends bracket its crossing of 1.
    low, high = 0.5 / float(values.sum()), largest * (1.0 - 1e-12)
    return float(
        brentq(lambda eta: _feedback(eta, values) - 1.0, low, high, xtol=1e-300, rtol=1e-14)
    )


def calibrated_noise_std(*, squared_sensitivity: float, clip_norm: float, budget: Budget) -> float:
    r"""Standard deviation σ of the white noise w with which all iterates together spend `budget`.

    .. math:: \sigma = \gamma\Delta/\sqrt{2\rho},\qquad \Delta = G \text{ or } 2G

    σ is `inf` for an infinite sensitivity, and 0 for an infinite budget.

    Parameters
    ----------
    squared_sensitivity : float
        γ² of the encoder, which inverts the decoder's Toeplitz matrix; may be `inf`.
    clip_norm : float
        Clipping norm G.
    budget : Budget
        Total budget ρ. Its neighbouring relation gives Δ: 2G for replace-one, G otherwise.

    Source
    ------
    choquettechoo2024, Theorem 1.1 (zero-out neighbours, Δ = G).
    """
    squared = require_number("squared_sensitivity", squared_sensitivity, above=0, infinite=True)
    norm = require_scale("clip_norm", clip_norm)
    require_instance("budget", budget, Budget)
    change = float(sum_sensitivity(norm, neighbours=budget.neighbours))
    return sqrt(squared) * change / budget.root


def stationary_excess_risk(
    step_size: ArrayLike,
    *,
    noise: StationaryNoise,
    gradient_noise_std: ArrayLike,
    sample_std: ArrayLike = 0.0,
) -> FloatArray:
    r"""Excess risk of mean estimation in the limit of many steps; `inf` for infinite noise.

    .. math:: \tfrac12\mathbb E(\theta-\mathbb Ez)^2
        = \frac{\eta}{2(2-\eta)}\big(\sigma^2c(\eta) + \operatorname{Var}z\big)

    with c the `relative_variance` of the noise.

    Parameters
    ----------
    step_size : array_like, shape (...)
        Step size η, from 1e-20 to 1. All three arrays may be empty.
    noise : StationaryNoise
        Correlation of the noise.
    gradient_noise_std : array_like, shape (...)
        Standard deviation σ of the white noise w; for a budget use `calibrated_noise_std`.
    sample_std : array_like, shape (...)
        Standard deviation of a sample z.

    Source
    ------
    choquettechoo2024, Appendix B, the unnumbered equation before (18), times ½.
    """
    eta = _rates("step_size", step_size)
    sigma, spread = np.asarray(gradient_noise_std, float), np.asarray(sample_std, float)
    variance = sigma**2 * noise.relative_variance(eta) + spread**2
    return np.asarray(eta / (2.0 * (2.0 - eta)) * variance)


def least_private_excess_risk(
    step_size: ArrayLike, *, noise_multiplier: float, clip_norm: float = 1.0
) -> FloatArray:
    r"""Excess risk that private noise with the optimal correlation adds in mean estimation.

    .. math:: \frac{\eta^2G^2z^2}{2}\Big(\frac2\pi K(1-\eta)\Big)^2

    This value is the least over all correlations; `toeplitz.mean_estimation_optimal` attains it.
    K(k) is the complete elliptic integral of modulus k.

    Parameters
    ----------
    step_size : array_like, shape (...)
        Step size η, at least 1e-20 and at most 1; may be empty.
    noise_multiplier, clip_norm : float
        z = :math:`1/\sqrt{2\rho}`, the noise's standard deviation divided by the sensitivity γG of
        the whole release; and G, the largest change of a gradient by one record. Both may be 0.

    Source
    ------
    choquettechoo2024, equation (19) and the text after it, times ½. The printed minimum writes
    :math:`\sigma_{dp}^2` for :math:`1/(2\rho)`.
    """
    eta = _rates("step_size", step_size)
    multiplier, norm = require_scales(
        zero=True, noise_multiplier=noise_multiplier, clip_norm=clip_norm
    )
    integral = inverse_distance_integral(eta) / (2.0 * pi)
    return 0.5 * (eta * norm * multiplier * integral) ** 2


def optimal_risk_ratio(step_size: ArrayLike) -> FloatArray:
    r"""Private risk with the optimal correlation divided by the risk with independent noise.

    .. math:: \eta(2-\eta)\Big(\frac2\pi K(1-\eta)\Big)^2

    The ratio is in (0, 1] and increases from about :math:`2\eta\log^2(8/\eta)/\pi^2` at small steps
    to 1 at η = 1. At η = 1, each step erases all earlier noise, even if the noise is independent.

    Examples
    --------
    >>> optimal_risk_ratio([1e-4, 0.1, 1.0]).round(4)
    array([0.0026, 0.4005, 1.    ])

    Source
    ------
    choquettechoo2024, Figure 1 (left). Its caption also promises a gain of orders of magnitude as
    η → 1. The formula above, from Theorem 2.1, excludes this.
    """
    eta = _rates("step_size", step_size)
    return np.asarray(eta * (2.0 - eta) * (inverse_distance_integral(eta) / (2.0 * pi)) ** 2)


def regression_response(
    frequency: ArrayLike, eigenvalues: ArrayLike, *, step_size: float
) -> FloatArray:
    r"""Frequency response :math:`h(\omega)=\sum_j\lambda_j/|1-\eta\lambda_j-e^{i\omega}|^2`.

    Parameters
    ----------
    frequency : array_like, shape (...)
        Frequency ω; may be empty.
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance.
    step_size : float
        η, with every ηλ at least 1e-20 and at most 1.

    Source
    ------
    choquettechoo2024, equation (21).
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    total = np.zeros(np.shape(frequency))
    for value in values:
        total += value / squared_distance(frequency, eta * value)
    return total


def squared_distance(frequency: ArrayLike, rate: ArrayLike) -> FloatArray:
    r"""Squared modulus :math:`|1-b-e^{i\omega}|^2 = b^2 + 4(1-b)\sin^2(\omega/2)`, b in [0, 1]."""
    angle, b = np.asarray(frequency, dtype=float), _rates("rate", rate, least=0)
    return b**2 + 4.0 * (1.0 - b) * np.sin(angle / 2.0) ** 2


def inverse_distance_integral(rate: ArrayLike) -> FloatArray:
    r"""Integral of an inverse distance, a complete elliptic integral K(modulus); `inf` at b = 0.

    .. math:: \int_{-\pi}^{\pi}\frac{d\omega}{|1-b-e^{i\omega}|} = 4K(1-b),\qquad b\in[0,1]

    Examples
    --------
    >>> float(inverse_distance_integral(1.0)) == 2 * np.pi
    True

    Source
    ------
    choquettechoo2024, Lemma F.15, brought to the modulus 1 - b by Landen's transformation.
    """
    b = _rates("rate", rate, least=0)
    return np.asarray(4.0 * ellipkm1(b * (2.0 - b)))


def distance_ratio_integral(numerator_rate: ArrayLike, denominator_rate: ArrayLike) -> FloatArray:
    r"""Integral of one distance divided by the square of another, in closed form.

    .. math::
        I(a,b) = \int_{-\pi}^{\pi}\frac{|1-a-e^{i\omega}|}{|1-b-e^{i\omega}|^2}\,d\omega
        = \frac{2a^2}{b^2(1-a/2)}\,\Pi(n, k),\qquad k'=\frac a{2-a},\quad
        1-n = p = \Big(\frac{a(1-b/2)}{b(1-a/2)}\Big)^2

    Parameters
    ----------
    numerator_rate, denominator_rate : array_like, broadcast
        Rates a and b, from 1e-20 to 1; a may also be 0. Both may be empty.

    Notes
    -----
    Carlson's forms evaluate Π, the complete elliptic integral of the third kind. They take p as the
    square above, not as the difference 1 - n. For p > 1, Π follows from its value at N = 1 - k'²/p,
    which makes every term positive. At a = 0 the integral is elementary.

    Source
    ------
    choquettechoo2024, equation (49) and Lemma F.16 (its second argument of Π is the modulus k).
    """
    a = _rates("numerator_rate", numerator_rate, least=0)
    _rates("numerator_rate", a[a > 0])
    a, b = np.broadcast_arrays(a, _rates("denominator_rate", denominator_rate))
    positive = np.where(a > 0, a, 0.5)
    complement = (positive / (2.0 - positive)) ** 2
    p = complement * ((2.0 - b) / b) ** 2
    direct = np.minimum(p, 1.0)
    below = elliprf(0.0, complement, 1.0) + (1.0 - direct) / 3.0 * elliprj(
        0.0, complement, 1.0, direct
    )
    q = np.minimum(complement / np.maximum(p, 1.0), 1.0)
    third = elliprf(0.0, complement, 1.0) + (1.0 - q) / 3.0 * elliprj(0.0, complement, 1.0, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = (
            complement * (p - 1.0) * third / p + (1.0 - complement) * elliprf(0.0, complement, 1.0)
        ) / (p - complement)
    third_kind = np.where(p > 1.0, beyond, below)
    scaled = 4.0 * (positive / b) ** 2 / (2.0 - positive) * third_kind
    # I(0, b) = 4 artanh(x) / ((2-b)(1-b)^{1/2}), x = 2(1-b)^{1/2}/(2-b); 8 at b = 1.
    root = np.sqrt(1.0 - b)
    small = root < 1e-4
    logarithm = 2.0 * np.log1p(root) - np.log(b)
    # Near b = 1 the series artanh(x)/x = 1 + x²/3 + ... is exact to double precision.
    x = 2.0 * root / (2.0 - b)
    series = 2.0 * (1.0 + x**2 / 3.0) / (2.0 - b)
    undamped = 4.0 / (2.0 - b) * np.where(small, series, logarithm / np.where(small, 0.5, root))
    return np.where(a > 0, scaled, undamped)


def frequency_rule(smallest: float, *, nodes_per_panel: int = 20) -> tuple[FloatArray, FloatArray]:
    r"""Quadrature over a period, for even functions with their finest detail at frequency 0.

    The first Gauss-Legendre panel is half as wide as this detail; later edges grow geometrically.

    Parameters
    ----------
    smallest : float
        Width of the finest detail, at least 1e-20 and at most π.
    nodes_per_panel : int
        Number of nodes per panel.

    Returns
    -------
    frequencies, weights : ndarray, shape (nodes,)
        Nodes in (0, π); weights sum to 2π, so that :math:`\int_{-\pi}^{\pi}f\,d\omega\approx
        \sum_i w_if(\omega_i)`.
    """
    first = require_number("smallest", smallest, least=LEAST_RATE, most=pi) / 2.0
    panels = int(np.ceil(np.log2(pi / first)))
    edges = np.concatenate(([0.0], np.geomspace(first, pi, panels + 1)))
    points, weights = _legendre(nodes_per_panel)
    half = np.diff(edges)[:, None] / 2.0
    return (edges[:-1, None] + half * (1.0 + points)).ravel(), 2.0 * (half * weights).ravel()


def checked_eigenvalues(eigenvalues: ArrayLike, *, least: float = LEAST) -> FloatArray:
    """Check eigenvalues λ, shape (d,), and return them as an array."""
    return require_array("eigenvalues", eigenvalues, shape=(None,), least=least, most=MOST)


def checked_spectrum(
    eigenvalues: ArrayLike, step_size: float, *, overshoots: bool = False
) -> tuple[FloatArray, float]:
    """Check eigenvalues λ, (d,), and step size η: ηλ from 1e-20 to 1, or more if `overshoots`."""
    values = checked_eigenvalues(eigenvalues)
    least, most = LEAST_RATE / values.min(), MOST if overshoots else 1.0 / values.max()
    return values, require_number("step_size", step_size, least=least, most=most)


def checked_noise(gradient_noise_std: float, label_noise_std: float) -> tuple[float, float]:
    """Check standard deviations σ and ζ, which may be 0 or infinite."""
    sigma, zeta = require_scales(
        zero=True,
        infinite=True,
        gradient_noise_std=gradient_noise_std,
        label_noise_std=label_noise_std,
    )
    return sigma, zeta


def _feedback(eta: float, values: FloatArray) -> float:
    """Share of the error that random features feed back into the error; inf if η λ1 ≥ 1."""
    slack = 1.0 - eta * values
    return inf if np.any(slack <= 0) else float(0.5 * eta * np.sum(values / slack))
