"""Shares of a Gaussian residual's drift and second moment that survive clipping."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfc, gammainc

from privreg.theory.one_pass_dpgd.settings import require_settings


def descent_factor(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Share of the gradient's drift that survives clipping, in (0, 1].

    .. math:: \mu_c(R) = \frac{\|\mathbb E[r_c x]\|}{\|\mathbb E[r x]\|}
        = \mathrm{erf}\Big(\frac{c}{\sqrt{2(2R + \zeta^2)}}\Big),
        \qquad r \sim N(0, 2R + \zeta^2),\ r_c = \mathrm{clip}(r, \pm c)

    Parameters
    ----------
    risk : array_like, shape (...)
        Excess risk R, 0 or from 1e-32 to 1e32, as all inputs.
    clip_constant : array_like, shape (...)
        Clipping constant c in units of the residual, more than 0; `inf` clips nothing.
    label_noise_std : array_like, shape (...)
        Standard deviation zeta of the label noise, at least 0.

    Source
    ------
    bombari2025, equations (4.6) and (B.1).
    """
    ratio = clip_ratio(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
    return descent_of(ratio)


def variance_factor(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Share of the residual's second moment that survives clipping, in (0, 1].

    .. math:: \nu_c(R) = \frac{\mathbb E[r_c^2]}{\mathbb E[r^2]}
        = c'^2\,\mathrm{erfc}\Big(\frac{c'}{\sqrt2}\Big) + P\Big(\frac32, \frac{c'^2}2\Big),
        \qquad c' = \frac{c}{\sqrt{2R + \zeta^2}}

    where P is the regularised lower incomplete gamma function, the truncated second moment of a
    standard normal; this form keeps its digits for small c'.

    Parameters
    ----------
    risk, clip_constant, label_noise_std
        R, c and zeta as for `descent_factor`.

    Source
    ------
    bombari2025, equations (4.6) and (B.2)-(B.3).
    """
    ratio = clip_ratio(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
    return variance_of(ratio)


def clip_ratio(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Clipping constant over the residual's standard deviation, :math:`c/\sqrt{2R + \zeta^2}`."""
    excess, constant, noise = require_settings(
        risk=risk, clip_constant=clip_constant, label_noise_std=label_noise_std
    )
    with np.errstate(divide="ignore"):
        return constant / np.sqrt(2 * excess + noise**2)


def descent_of(ratio: ArrayLike) -> NDArray[np.float64]:
    """`descent_factor` of a clip ratio, unchecked, for loops that have checked their numbers."""
    return np.asarray(erf(np.asarray(ratio) / np.sqrt(2)))


def variance_of(ratio: ArrayLike) -> NDArray[np.float64]:
    """`variance_factor` of a clip ratio, unchecked, for loops that have checked their numbers."""
    # Beyond 40 standard deviations nothing is clipped.
    inside = np.minimum(ratio, 40.0)
    return np.asarray(inside**2 * erfc(inside / np.sqrt(2)) + gammainc(1.5, inside**2 / 2))
