r"""Bounds on the excess risk of Noisy-FTRL for linear regression, with their constants.

All bound :math:`F(\theta)-F(\theta^*) = \tfrac12\|\theta-\theta^*\|_H^2` of the paper's equation
(8), half of what Appendix C bounds; the exact value is in `stationary`.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    require_array,
    require_number,
    require_real,
    require_scales,
)
from privreg.theory.correlated_noise.stationary import (
    StationaryNoise,
    checked_noise,
    checked_spectrum,
)


def effective_dimension(eigenvalues: ArrayLike) -> float:
    r"""Trace over the largest eigenvalue, :math:`d_{\mathrm{eff}} = \operatorname{tr}H/\|H\|_2`.

    Source
    ------
    choquettechoo2024, Section 1.3 and Section C.6.
    """
    values = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=MOST)
    if not np.any(values):
        raise ValueError("eigenvalues must not all be 0, got 0")
    return float(values.sum() / values.max())


def fourth_moment_bound(eigenvalues: ArrayLike) -> float:
    r"""Least R² with :math:`\mathbb E\|x\|^2xx^\top\preceq R^2H` for Gaussian features.

    .. math:: R^2 = 2\lambda_1+\operatorname{tr}H

    Source
    ------
    choquettechoo2024, the proof of Property C.3, which states the looser 3 tr H.
    """
    values = require_array("eigenvalues", eigenvalues, shape=(None,), least=0, most=MOST)
    return float(2.0 * values.max() + values.sum())


def stationary_upper_bound(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise: StationaryNoise,
    gradient_noise_std: float,
    label_noise_std: float = 0.0,
) -> float:
    r"""Upper bound on the stationary excess risk for Gaussian features, `inf` for infinite noise.

    .. math::
        \big(1+(1-r)^{-2}\big)\eta R^2\zeta^2
        + \big(1+3(1-r)^{-2}\big)\eta\sigma^2\sum_jc_j,\qquad r=\sqrt{\eta R^2}

    with R² of `fourth_moment_bound` and :math:`\sum_jc_j=\langle\beta,T\beta\rangle`.

    Parameters
    ----------
    step_size : float
        η, less than 1/R², with every ηλ at least 1e-20.
    eigenvalues, noise, gradient_noise_std, label_noise_std
        λ, the noise, σ and ζ as in `stationary_error`.

    Notes
    -----
    Loose: some 65 times the exact value for λ_k = 1/k, d = 128, η = 0.02.

    Source
    ------
    choquettechoo2024, Theorem C.14, for F with the factor ½. The printed text has lost the root of
    ηR².
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    sigma, zeta = checked_noise(gradient_noise_std, label_noise_std)
    moment = fourth_moment_bound(values)
    require_number("step_size", eta, below=1.0 / moment)
    spread = (1.0 - sqrt(eta * moment)) ** -2
    moved = noise.relative_variance(eta * values)
    private = (1.0 + 3.0 * spread) * eta * float(moved.sum())
    return zeta**2 * ((1.0 + spread) * eta * moment) + sigma**2 * private


def stationary_lower_bound(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise: StationaryNoise,
    gradient_noise_std: float,
    label_noise_std: float = 0.0,
) -> float:
    r"""Lower bound on the stationary excess risk of one correlation, `inf` for infinite noise.

    .. math::
        \tfrac12\Big(\frac{\eta\zeta^2}2\operatorname{tr}H
        + \frac{\eta\sigma^2}2\sum_j\frac{2c_j}{2-\eta\lambda_j}\Big)

    Parameters
    ----------
    step_size : float
        η, with every ηλ at least 1e-20 and at most 1.
    eigenvalues, noise, gradient_noise_std, label_noise_std
        λ, the noise, σ and ζ as in `stationary_error`.

    Source
    ------
    choquettechoo2024, Theorem C.18, halved: the paper prints a bound on
    :math:`\|\theta-\theta^*\|_H^2`, the F of its equation (22). For the F of equation (8) it is
    false at small steps, where the exact excess risk tends to half of it.
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    sigma, zeta = checked_noise(gradient_noise_std, label_noise_std)
    moved = 2.0 * noise.relative_variance(eta * values) / (2.0 - eta * values)
    label = zeta**2 * (0.25 * eta * float(values.sum()))
    return label + sigma**2 * (0.25 * eta * float(moved.sum()))


def universal_lower_bound(
    eigenvalues: ArrayLike,
    *,
    step_size: float,
    noise_multiplier: float,
    clip_norm: float = 1.0,
    label_noise_std: float = 0.0,
) -> float:
    r"""Lower bound on the stationary excess risk of every correlation.

    .. math:: \tfrac12\cdot\tfrac14\big(2\eta\zeta^2+\eta^2G^2z^2\big)\operatorname{tr}H

    Parameters
    ----------
    eigenvalues, step_size, label_noise_std
        λ, η and ζ as in `stationary_lower_bound`.
    noise_multiplier, clip_norm : float
        Noise standard deviation z over the sensitivity γG, :math:`1/\sqrt{2\rho}`, and how far one
        record moves a gradient, G; may be 0.

    Source
    ------
    choquettechoo2024, Theorem C.18, halved as in `stationary_lower_bound`.
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    multiplier, norm, zeta = require_scales(
        zero=True,
        noise_multiplier=noise_multiplier,
        clip_norm=clip_norm,
        label_noise_std=label_noise_std,
    )
    label = zeta**2 * (0.5 * eta * float(values.sum()))
    return 0.5 * (label + (eta * norm * multiplier) ** 2 * (float(values.sum()) / 4.0))


def transient_bound(
    step: ArrayLike,
    *,
    eigenvalues: ArrayLike,
    step_size: float,
    initial_risk: float,
    stationary_risk: float,
) -> FloatArray:
    r"""Upper bound on the excess risk after a number of steps, of the shape of `step`.

    .. math:: \Big(\sqrt{\tfrac{\lambda_1}{\lambda_d}e^{-\eta\lambda_dt}F_0}+\sqrt{F_\infty}\Big)^2

    Parameters
    ----------
    step : array_like, shape (...)
        Steps t, at least 0; may be empty.
    eigenvalues, step_size
        λ and η as in `stationary_upper_bound`.
    initial_risk, stationary_risk : float
        Excess risks F_0 of the start and F_∞ of the limit, at least 0, the latter with noise of the
        limiting sensitivity from the first step on.

    Source
    ------
    choquettechoo2024, Theorem D.11.
    """
    values, eta = checked_spectrum(eigenvalues, step_size)
    require_number("step_size", eta, below=1.0 / fourth_moment_bound(values))
    times = require_real("step", step, least=0)
    risks = [initial_risk, stationary_risk]
    first, last = require_real("initial_risk and stationary_risk", risks, least=0)
    low, high = float(values.min()), float(values.max())
    # The root of the exponential, which may itself round to 0.
    start = sqrt(high / low * first) * np.exp(-0.5 * eta * low * times)
    return np.asarray((start + sqrt(last)) ** 2)
