r"""Noisy-FTRL for linear regression with Gaussian features, exactly, in the limit of many steps.

.. math:: \theta_{t+1} = \theta_t - \eta\Big(x_t(x_t^\top\theta_t - y_t)
    + \sum_{\tau\le t}\beta_\tau w_{t-\tau}\Big),\qquad x_t\sim N(0,H),\quad
    y_t - x_t^\top\theta^*\sim N(0,\zeta^2),\quad w_t\sim N(0,\sigma^2I)

Batch size 1, one pass, no clipping. The excess risk is
:math:`F(\theta)-F(\theta^*) = \tfrac12\|\theta-\theta^*\|_H^2 = q/2`, as in the paper's equation
(8); its Appendix C calls q the suboptimality.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from privreg.theory.correlated_noise.spectral_integrals import SMALLEST
from privreg.theory.correlated_noise.stationary_noise import (
    StationaryNoise,
    require_curvatures,
    require_noise,
)
from privreg.units import from_units, in_unit, squared_times
from privreg.validation import require_instance, require_number

FloatArray = NDArray[np.float64]


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
