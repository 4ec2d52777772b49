r"""Private estimation of a mean by gradient descent with correlated noise, for ever.

.. math:: \theta_{t+1} = \theta_t - \eta\Big(\theta_t - z_t + \sum_\tau\beta_\tau w_{t-\tau}\Big),
    \qquad w_t\sim N(0,\sigma^2)

The excess risk is half the squared error, :math:`\tfrac12\mathbb E(\theta_t-\mathbb Ez)^2`, as in
the paper's equation (6); its Appendix B calls the squared error itself the suboptimality.
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.theory.correlated_noise.spectral_integrals import SMALLEST, inverse_distance_integral
from privreg.theory.correlated_noise.stationary_noise import StationaryNoise
from privreg.units import ORDINARY
from privreg.validation import (
    require_answer,
    require_broadcast,
    require_instance,
    require_number,
    require_real,
)

FloatArray = NDArray[np.float64]


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
