"""What clipping leaves of a Gaussian residual's drift and of its second moment."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfc, gammainc


def descent_factor(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Share of the gradient's drift that survives clipping.

    .. math:: \mu_c(R) = \frac{\|\mathbb E[r_c x]\|}{\|\mathbb E[r x]\|}
        = \mathrm{erf}\Big(\frac{c}{\sqrt{2(2R + \zeta^2)}}\Big),
        \qquad r \sim N(0, 2R + \zeta^2),\ r_c = \mathrm{clip}(r, \pm c)

    Parameters
    ----------
    risk : array_like, shape (...)
        Excess risk R, at least 0.
    clip_constant : array_like, shape (...)
        Clipping constant c in units of the residual, more than 0; `inf` clips nothing.
    label_noise_std : array_like, shape (...)
        Standard deviation zeta of the label noise, at least 0.

    Returns
    -------
    ndarray, shape (...)
        Values in (0, 1], increasing in `clip_constant`.

    Source
    ------
    bombari2025, equations (4.6) and (B.1).
    """
    ratio = clip_ratio(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
    return erf(ratio / np.sqrt(2))


def variance_factor(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Share of the residual's second moment that survives clipping.

    .. math:: \nu_c(R) = \frac{\mathbb E[r_c^2]}{\mathbb E[r^2]}
        = c'^2\,\mathrm{erfc}\Big(\frac{c'}{\sqrt2}\Big) + P\Big(\frac32, \frac{c'^2}2\Big),
        \qquad c' = \frac{c}{\sqrt{2R + \zeta^2}}

    where P is the regularised lower incomplete gamma function, the truncated second moment of a
    standard normal; this form keeps its digits for small c'.

    Parameters
    ----------
    risk : array_like, shape (...)
        Excess risk R, at least 0.
    clip_constant : array_like, shape (...)
        Clipping constant c in units of the residual, more than 0; `inf` clips nothing.
    label_noise_std : array_like, shape (...)
        Standard deviation zeta of the label noise, at least 0.

    Returns
    -------
    ndarray, shape (...)
        Values in (0, 1], increasing in `clip_constant`.

    Source
    ------
    bombari2025, equations (4.6) and (B.2)-(B.3).
    """
    ratio = clip_ratio(risk, clip_constant=clip_constant, label_noise_std=label_noise_std)
    beyond = np.where(np.isinf(ratio), 0.0, ratio)
    return beyond**2 * erfc(ratio / np.sqrt(2)) + gammainc(1.5, ratio**2 / 2)


def clip_ratio(
    risk: ArrayLike, *, clip_constant: ArrayLike, label_noise_std: ArrayLike
) -> NDArray[np.float64]:
    r"""Clipping constant over the residual's standard deviation, :math:`c/\sqrt{2R + \zeta^2}`."""
    risk, clip_constant, label_noise_std = (
        np.asarray(value, dtype=float) for value in (risk, clip_constant, label_noise_std)
    )
    for name, value, valid in (
        ("risk", risk, risk >= 0),
        ("clip_constant", clip_constant, clip_constant > 0),
        ("label_noise_std", label_noise_std, label_noise_std >= 0),
    ):
        if not np.all(valid):
            bound = "more than 0" if name == "clip_constant" else "at least 0"
            raise ValueError(f"{name} must be {bound}, got {value[~valid].flat[0]}")
    with np.errstate(divide="ignore"):
        return clip_constant / np.sqrt(2 * risk + label_noise_std**2)
