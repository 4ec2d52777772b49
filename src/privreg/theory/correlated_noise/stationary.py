r"""Noisy-FTRL for linear regression with Gaussian features, exactly, in the limit of many steps.

.. math:: \theta_{t+1} = \theta_t - \eta\Big(x_t(x_t^\top\theta_t - y_t)
    + \sum_{\tau\le t}\beta_\tau w_{t-\tau}\Big),\qquad x_t\sim N(0,H),\quad
    y_t - x_t^\top\theta^*\sim N(0,\zeta^2),\quad w_t\sim N(0,\sigma^2I)

Batch size 1, one pass, no clipping. The excess risk is
:math:`F(\theta)-F(\theta^*) = \tfrac12\|\theta-\theta^*\|_H^2 = q/2`, as in the paper's equation
(8); its Appendix C calls q the suboptimality.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ellipkm1, elliprf, elliprj

from privreg.checks import (
    FloatArray,
    require_answer,
    require_array,
    require_broadcast,
    require_callable,
    require_count,
    require_instance,
    require_number,
    require_real,
)
from privreg.noise.sensitivity import damped_anti_pgd_limit, damped_square_root_limit
from privreg.privacy.budget import Budget, sum_sensitivity
from privreg.units import ORDINARY, from_units, in_unit, squared_times

# Relative agreement of a panel with its halves; the halves are far closer.
AGREEMENT = 1e-9
_MOST_LEVELS = 46
_MOST_PANELS = 10_000
# Finding nodes takes longer than most integrals.
_legendre = cache(np.polynomial.legendre.leggauss)


def panel_rule(edges: FloatArray, *, nodes_per_panel: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre panels with increasing edges, one array each."""
    nodes, weights = _gauss(edges[:-1], edges[1:], nodes_per_panel)
    return nodes.ravel(), weights.ravel()


def resolved_edges(
    integrands: Callable[[FloatArray], FloatArray],
    edges: FloatArray,
    *,
    nodes_per_panel: int,
) -> FloatArray:
    """Panels bisected where an integrand is not resolved; unchanged where all are.

    `integrands` takes nodes, shape (n,), to positive functions of them, shape (k, n). A feature
    much narrower than a panel is found by what it adds elsewhere in it; a pole, a jump or noise is
    refused.
    """
    left, right = edges[:-1], edges[1:]
    whole = _panel_integrals(integrands, left, right, nodes_per_panel)
    settled, panels = [edges[-1:]], 0
    for _ in range(_MOST_LEVELS):
        middle = (left + right) / 2.0
        starts, ends = np.concatenate([left, middle]), np.concatenate([middle, right])
        parts = _panel_integrals(integrands, starts, ends, nodes_per_panel)
        first, second = parts[:, : left.size], parts[:, left.size :]
        halves = first + second
        open_ = np.any(np.abs(halves - whole) > AGREEMENT * halves, axis=0)
        settled.append(left[~open_])
        panels += int(np.sum(~open_))
        if not np.any(open_):
            return np.sort(np.concatenate(settled))
        left, middle, right = left[open_], middle[open_], right[open_]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        whole = np.concatenate([first[:, open_], second[:, open_]], axis=1)
        if panels + left.size > _MOST_PANELS:
            break
    raise ValueError(
        "power must be resolved by double precision, got one with a zero, a jump or noise: damp it "
        "there, or take the sensitivity of a finite number of steps"
    )


def _panel_integrals(
    integrands: Callable[[FloatArray], FloatArray],
    left: FloatArray,
    right: FloatArray,
    nodes_per_panel: int,
) -> FloatArray:
    nodes, weights = _gauss(left, right, nodes_per_panel)
    values = integrands(nodes.ravel()).reshape(-1, *nodes.shape)
    return np.asarray(np.sum(values * weights, axis=-1))


def _gauss(
    left: FloatArray, right: FloatArray, nodes_per_panel: int
) -> tuple[FloatArray, FloatArray]:
    points, weights = _legendre(nodes_per_panel)
    half = (right - left)[:, None] / 2.0
    return left[:, None] + half * (1.0 + points), half * weights


# Squares of rates down to here are numbers.
SMALLEST = 1e-100
# Beside 1 nothing to double precision, and its square too.
_NEGLIGIBLE = 1e-20


def squared_distance(frequency: ArrayLike, rate: ArrayLike) -> FloatArray:
    r"""Squared modulus :math:`|1-c-e^{i\omega}|^2 = c^2 + 4(1-c)\sin^2(\omega/2)`.

    Parameters
    ----------
    frequency : array_like, shape (...)
        Frequencies ω; may be empty.
    rate : array_like, shape (...)
        Rates c in [0, 1], broadcast with the frequencies; may be empty.
    """
    angle = require_real("frequency", frequency)
    c = require_real("rate", rate, least=0, most=1)
    require_broadcast(frequency=angle, rate=c)
    return c**2 + 4.0 * (1.0 - c) * np.sin(angle / 2.0) ** 2


def inverse_distance_integral(rate: ArrayLike) -> FloatArray:
    r"""Integral of the inverse modulus, a complete elliptic integral; `inf` at c = 0.

    .. math:: \int_{-\pi}^{\pi}\frac{d\omega}{|1-c-e^{i\omega}|} = 4K(1-c)

    Parameters
    ----------
    rate : array_like, shape (...)
        Rates c in [0, 1]; may be empty.

    Examples
    --------
    >>> float(inverse_distance_integral(1.0)) == 2 * np.pi
    True

    Source
    ------
    choquettechoo2024, Lemma F.15, brought to the modulus 1 - c by Landen's transformation.
    """
    c = require_real("rate", rate, least=0, most=1)
    return np.asarray(4.0 * ellipkm1(c * (2.0 - c)))


def distance_ratio_integral(numerator_rate: ArrayLike, denominator_rate: ArrayLike) -> FloatArray:
    r"""Integral of a modulus over another's square, an elliptic integral of the third kind.

    .. math::
        I(a,b) = \int_{-\pi}^{\pi}\frac{|1-a-e^{i\omega}|}{|1-b-e^{i\omega}|^2}\,d\omega
        = \frac{2a^2}{b^2(1-a/2)}\,\Pi(n, k),\qquad k'=\frac a{2-a},\quad
        1-n = p = \Big(\frac{a(1-b/2)}{b(1-a/2)}\Big)^2

    Parameters
    ----------
    numerator_rate : array_like, shape (...)
        Rates a from 1e-100 and at most 1, or 0; may be empty.
    denominator_rate : array_like, shape (...)
        Rates b at least 1e-100 and at most 1, broadcast with a; may be empty.

    Notes
    -----
    Π is evaluated by Carlson's forms from p itself, never from 1 - n; for p > 1 by way of
    N = 1 - k'²/p, for which every term is positive. At a = 0 the integral is elementary.

    Source
    ------
    choquettechoo2024, equation (49) and Lemma F.16 (the printed k and α² take the modulus).
    """
    above = require_real("numerator_rate", numerator_rate, least=0, most=1)
    if np.any((above > 0) & (above < SMALLEST)):
        raise ValueError(f"numerator_rate must be 0 or at least {SMALLEST:g}, got less")
    below_ = require_real("denominator_rate", denominator_rate, least=SMALLEST, most=1)
    require_broadcast(numerator_rate=above, denominator_rate=below_)
    a, b = np.broadcast_arrays(above, below_)
    # Carlson's forms lose all digits where a is far below b or both are tiny. Up to 1e-20 of it the
    # integral is then that at a = 0; and that of larger rates plus ∫ dω/ω over what lies between.
    a = np.where(a < _NEGLIGIBLE * b, 0.0, a)
    scale = np.maximum(_NEGLIGIBLE / np.maximum(a, b), 1.0)
    a, b = np.minimum(a * scale, 1.0), np.minimum(b * scale, 1.0)
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
    return np.where(a > 0, scaled, _undamped(b)) + 2.0 * np.log(scale)


def frequency_rule(smallest: float, *, nodes_per_panel: int = 20) -> tuple[FloatArray, FloatArray]:
    r"""Quadrature over a period of even functions whose finest feature at 0 has a given width.

    Gauss-Legendre panels, linear up to half the width and geometric from there to π.

    Parameters
    ----------
    smallest : float
        Width of the finest feature, at least 1e-100 and at most π.
    nodes_per_panel : int
        At least 2.

    Returns
    -------
    frequencies, weights : ndarray, shape (nodes,)
        In (0, π); the weights sum to 2π, so that :math:`\int_{-\pi}^{\pi}f\,d\omega\approx
        \sum_i w_if(\omega_i)`.
    """
    order = require_count("nodes_per_panel", nodes_per_panel, least=2)
    width = require_number("smallest", smallest, least=SMALLEST, most=pi)
    first = width / 2.0
    panels = int(np.ceil(np.log2(pi / first)))
    edges = np.concatenate(([0.0], np.geomspace(first, pi, panels + 1)))
    frequencies, weights = panel_rule(edges, nodes_per_panel=order)
    return frequencies, 2.0 * weights


def _undamped(b: FloatArray) -> FloatArray:
    r"""I(0, b) = 4 artanh(x) / ((2-b)(1-b)^{1/2}), x = 2(1-b)^{1/2}/(2-b); 8 at b = 1."""
    root = np.sqrt(1.0 - b)
    small = root < 1e-4
    safe = np.where(small, 0.5, root)
    logarithm = 2.0 * np.log1p(root) - np.log(b)
    # Near b = 1 the series artanh(x)/x = 1 + x²/3 + ... is exact to double precision.
    x = 2.0 * root / (2.0 - b)
    series = 2.0 * (1.0 + x**2 / 3.0) / (2.0 - b)
    return 4.0 / (2.0 - b) * np.where(small, series, logarithm / safe)


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


def stationary_excess_risk(
    step_size: ArrayLike,
    *,
    noise: StationaryNoise,
    gradient_noise_std: ArrayLike,
    sample_std: ArrayLike = 0.0,
) -> FloatArray:
    r"""Excess risk in the limit of many steps, `inf` for infinite noise.

    .. math:: \tfrac12\mathbb E(\theta-\mathbb Ez)^2
        = \frac{\eta}{2(2-\eta)}\big(\sigma^2c(\eta) + \operatorname{Var}z\big)

    with c of `StationaryNoise.relative_variance`.

    Parameters
    ----------
    step_size : array_like, shape (...)
        η, at least 1e-100 and at most 1; may be empty, as may the standard deviations.
    noise : StationaryNoise
        How the noise is correlated.
    gradient_noise_std : array_like, shape (...)
        Standard deviation σ of the white noise w, `calibrated_noise_std` for a budget; at least 0
        and at most 1e100, or `inf`.
    sample_std : array_like, shape (...)
        Standard deviation of a sample z, at least 0 and at most 1e100.

    Source
    ------
    choquettechoo2024, Appendix B, the unnumbered equation before (18), times ½.
    """
    eta = require_real("step_size", step_size, least=SMALLEST, most=1)
    require_instance("noise", noise, StationaryNoise)
    private = require_real("gradient_noise_std", gradient_noise_std, least=0, infinite=True)
    finite = private[np.isfinite(private)]
    require_real("gradient_noise_std", finite, most=1e100)
    spread = require_real("sample_std", sample_std, least=0, most=1e100)
    require_broadcast(step_size=eta, gradient_noise_std=private, sample_std=spread)
    moved = noise.relative_variance(eta)
    # A spectrum may be of any size, and squares of σ round to 0.
    with np.errstate(over="ignore"):
        small = private < ORDINARY[0]
        variance = np.where(small, private * (private * moved), private**2 * moved) + spread**2
    require_answer("noise", np.where(np.isfinite(private), variance, 0.0))
    return np.asarray(eta / (2.0 * (2.0 - eta)) * variance)


def least_private_excess_risk(
    step_size: ArrayLike, *, noise_multiplier: float, clip_norm: float = 1.0
) -> FloatArray:
    r"""Least excess risk of any correlation, without the part of the samples.

    .. math:: \frac{\eta^2G^2z^2}{2}\Big(\frac2\pi K(1-\eta)\Big)^2

    attained by `toeplitz.mean_estimation_optimal`; z is the ratio of the noise to the sensitivity
    of the whole release, :math:`1/\sqrt{2\rho}`.

    Parameters
    ----------
    step_size : array_like, shape (...)
        η in (0, 1]; may be empty.
    noise_multiplier : float
        Noise standard deviation over the sensitivity γG, at least 0 and at most 1e50.
    clip_norm : float
        How far one record moves a gradient, G, more than 0 and at most 1e50.

    Source
    ------
    choquettechoo2024, equation (19) and what follows it, times ½. The printed minimum writes
    :math:`\sigma_{dp}^2` for :math:`1/(2\rho)`.
    """
    eta = require_real("step_size", step_size, above=0, most=1)
    multiplier = require_number("noise_multiplier", noise_multiplier, least=0, most=1e50)
    norm = require_number("clip_norm", clip_norm, above=0, most=1e50)
    integral = inverse_distance_integral(eta) / (2.0 * pi)
    return 0.5 * (eta * norm * multiplier * integral) ** 2


def optimal_risk_ratio(step_size: ArrayLike) -> FloatArray:
    r"""Private part of the optimal correlation's risk over that of independent noise, in (0, 1].

    .. math:: \eta(2-\eta)\Big(\frac2\pi K(1-\eta)\Big)^2

    It increases from about :math:`2\eta\log^2(8/\eta)/\pi^2` at small steps to 1 at η = 1, where
    the next gradient undoes the noise of the last by itself.

    Parameters
    ----------
    step_size : array_like, shape (...)
        η in (0, 1]; may be empty.

    Examples
    --------
    >>> optimal_risk_ratio([1e-4, 0.1, 1.0]).round(4)
    array([0.0026, 0.4005, 1.    ])

    Source
    ------
    choquettechoo2024, Figure 1 (left). Its caption promises orders of magnitude at η → 1 too, which
    the theorem's own formula excludes.
    """
    eta = require_real("step_size", step_size, above=0, most=1)
    return np.asarray(eta * (2.0 - eta) * (inverse_distance_integral(eta) / (2.0 * pi)) ** 2)


class StationaryError(NamedTuple):
    """Error in the limit of many steps, and what causes it.

    `excess_risk` is the sum of `private` (the noise w) and `label` (the label noise); `variances`,
    shape (d,), are the squared errors along the eigenvectors. All are `inf` if the iteration is
    unstable or the noise infinite.
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
    r"""Excess risk in the limit of many steps, in closed form; infinite from `stability_limit` on.

    .. math::
        q = \frac{\frac\eta2\sum_j\frac{\zeta^2\lambda_j+\sigma^2c_j}{1-\eta\lambda_j}}
        {1-\frac\eta2\sum_j\frac{\lambda_j}{1-\eta\lambda_j}},\qquad
        s_j = \frac{\eta\,(\lambda_jq+\zeta^2\lambda_j+\sigma^2c_j)}{2\lambda_j(1-\eta\lambda_j)},
        \qquad c_j = c(\eta\lambda_j)

    where s_j is the squared error along eigenvector j, :math:`q=\sum_j\lambda_js_j` and F = q/2.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance, at least 1e-50 and at most 1e50.
    step_size : float
        η, more than 0 and at most 1e50, with every ηλ at least 1e-100.
    noise : StationaryNoise
        How the noise is correlated; c is its `relative_variance`.
    gradient_noise_std : float
        Standard deviation σ of each coordinate of the white noise w, at least 0 and at most 1e100,
        or `inf`; `calibrated_noise_std` for a budget.
    label_noise_std : float
        ζ, at least 0 and at most 1e100.

    Notes
    -----
    The second moments S of the error obey, for Gaussian features,
    :math:`\mathbb E[xx^\top Sxx^\top] = 2HSH + \mathrm{tr}(HS)H`. The noise that is correlated
    with the iterate enters only through its conditional mean, which follows the averaged dynamics.
    The formula is the fixed point of

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
    The fixed point of choquettechoo2024, equation (83), with Gaussian fourth moments, which the
    paper does not solve.
    """
    values = require_curvatures(eigenvalues)
    eta = require_number("step_size", step_size, least=SMALLEST / float(values.min()), most=1e50)
    require_instance("noise", noise, StationaryNoise)
    sigma, zeta = require_noise(gradient_noise_std, label_noise_std)
    feedback = _feedback(eta, values)
    if not feedback < 1 or np.isinf(sigma):
        return StationaryError(np.inf, np.inf, np.inf, np.full(values.size, np.inf))
    rates = eta * values
    moved = noise.relative_variance(rates)
    gain = 0.5 * eta / (1.0 - rates)
    (std, unit), (label_std, label_unit) = in_unit(sigma), in_unit(zeta)
    private = float(gain @ (std**2 * moved)) / (1.0 - feedback)
    label = float(gain @ (label_std**2 * values)) / (1.0 - feedback)
    q_private = float(from_units(private, 2 * unit))
    q_label = float(from_units(label, 2 * label_unit))
    q = q_private + q_label
    own = squared_times(zeta, gain) + squared_times(sigma, gain * moved / values)
    variances = gain * q + own
    return StationaryError(0.5 * q, 0.5 * q_private, 0.5 * q_label, variances)


def stability_limit(eigenvalues: ArrayLike) -> float:
    r"""Step size from which on the squared error grows without bound, about 2/tr H.

    .. math:: \frac\eta2\sum_j\frac{\lambda_j}{1-\eta\lambda_j} < 1 \quad\text{and}\quad
        \eta\lambda_1 < 1

    is exactly when the recursion of the second moments contracts.

    Parameters
    ----------
    eigenvalues : array_like, shape (d,)
        Eigenvalues λ of the covariance, at least 1e-50 and at most 1e50.

    Examples
    --------
    >>> round(stability_limit([1.0, 1.0]), 12)    # 2 / (d + 2) for the identity
    0.5
    """
    values = require_curvatures(eigenvalues)
    largest = 1.0 / float(values.max())
    # The sum increases from 0 at 0 to infinity at 1/λ1; the ends bracket its crossing of 1.
    low, high = 0.5 / float(values.sum()), largest * (1.0 - 1e-12)
    return float(
        brentq(lambda eta: _feedback(eta, values) - 1.0, low, high, xtol=1e-300, rtol=1e-14)
    )


def _feedback(eta: float, values: FloatArray) -> float:
    """Share of the error that the randomness of the features gives back; inf where η λ1 ≥ 1."""
    slack = 1.0 - eta * values
    if np.any(slack <= 0):
        return np.inf
    return float(0.5 * eta * np.sum(values / slack))
