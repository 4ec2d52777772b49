r"""The harmonic schedule at its best: limits as d / n goes to zero, and explicit constants.

Near the optimum the deterministic equivalent of isotropic data is linear. With
:math:`\mu = \mu_c(0)`, :math:`\nu = \nu_c(0)` and :math:`\kappa = 2c^2\gamma^2/\rho^2`,

.. math:: \dot R = -2\tilde\eta\mu R + \tfrac12\nu\zeta^2\gamma\,\tilde\eta^2
    - \kappa\,\frac{\mathrm d\tilde\eta^2}{\mathrm dt},

and the output noise adds :math:`\kappa\tilde\eta(1)^2`. Each source of error alone has a best
schedule among all of them, and it is harmonic:

* sampling noise: minimising the right side over the rate at each time gives
  :math:`\tilde\eta = 2\mu R / (\nu\zeta^2\gamma)`, whose solution is
  :math:`\tilde\eta = \mu^{-1}/(t + \tau)` with :math:`R(1) \to \nu\zeta^2\gamma/(2\mu^2)`;
* private noise: by parts, and with :math:`u = \exp(\tfrac23\mu\int\tilde\eta)`, the noise that is
  left at the output is at least :math:`\frac{27\kappa}{4\mu^2}\,u(1)^{-3}\int \dot u^3`; Jensen's
  inequality makes u linear in time, thus :math:`\tilde\eta = \tfrac32\mu^{-1}/(t + \tau)`, and
  the noise at least :math:`27\kappa/(4\mu^2)` as u(1) grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.schedules import LARGEST as RATES
from privreg.schedules import Harmonic
from privreg.theory.one_pass_dpgd.clipping import descent_factor, variance_factor
from privreg.theory.one_pass_dpgd.settings import require_scalars, require_settings
from privreg.validation import require_answer, require_real

SMALLEST_RISK = 1e-31


def sampling_limit(*, clip_constant: ArrayLike, label_noise_std: ArrayLike) -> NDArray[np.float64]:
    r"""Least risk over gamma as gamma goes to zero at fixed privacy, for isotropic data.

    .. math:: \lim_{\gamma \to 0} \frac{R^*}{\gamma} = \frac{\nu_c(0)\,\zeta^2}{2\mu_c(0)^2}

    The numerator 1 / mu_c(0) attains it as the offset goes to zero; no schedule does better.
    Without clipping it is zeta^2 / 2, the rate of ordinary least squares; for a clipping constant
    that goes to zero it is pi zeta^2 / 4, what taking signs costs.

    Parameters
    ----------
    clip_constant : array_like, shape (...)
        Clipping constant c in units of the residual, more than 0; `inf` clips nothing.
    label_noise_std : array_like, shape (...)
        Standard deviation zeta of the label noise, more than 0.

    Source
    ------
    Derived here; bombari2025, Theorem 2 gives the order gamma + gamma^2 / rho^2 alone.
    """
    constant, noise = _positive(clip_constant=clip_constant, label_noise_std=label_noise_std)
    share = variance_factor(0.0, clip_constant=constant, label_noise_std=noise)
    drift = descent_factor(0.0, clip_constant=constant, label_noise_std=noise)
    with np.errstate(under="ignore", invalid="ignore", divide="ignore"):
        limit = share * (noise / drift) ** 2 / 2
    return require_answer("clip_constant and label_noise_std", limit)


def privacy_limit(*, clip_constant: ArrayLike, label_noise_std: ArrayLike) -> NDArray[np.float64]:
    r"""Least risk over (gamma / rho)^2 where private noise dominates, for isotropic data.

    .. math:: \lim \frac{R^*}{\gamma^2/\rho^2} = \frac{27\,c^2}{2\mu_c(0)^2}
        \quad\text{as}\quad \gamma/\rho \to 0,\ \rho^2/\gamma \to 0

    The numerator 3 / (2 mu_c(0)) attains it as the offset goes to zero; no schedule does better.

    Parameters
    ----------
    clip_constant, label_noise_std : array_like, shape (...)
        c, finite, and zeta as for `sampling_limit`.

    Source
    ------
    Derived here; bombari2025, Theorem 2 gives the order alone.
    """
    constant, noise = _positive(clip_constant=clip_constant, label_noise_std=label_noise_std)
    require_settings(infinite=False, clip_constant=constant)
    drift = descent_factor(0.0, clip_constant=constant, label_noise_std=noise)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return require_answer("clip_constant and label_noise_std", 13.5 * (constant / drift) ** 2)


def least_risk(
    *, aspect_ratio: float, clip_constant: float, label_noise_std: float, start: float = 0.5
) -> float:
    r"""A risk that no learning-rate schedule gets below, for isotropic data.

    .. math:: \int_{R^*}^{R(0)} \frac{\nu_c(R)\,(R + \zeta^2/2)}{\mu_c(R)^2 R^2}\,\mathrm dR
        = \frac1\gamma

    It follows from the best rate at each time, with no private noise and no cap on the rate. It is
    accurate to about 1e-6 relative; one below 1e-31 is refused.

    Parameters
    ----------
    aspect_ratio : float
        gamma = d / n, more than 0; `start` times it at least 1e-28.
    clip_constant : float
        Clipping constant c in units of the residual, more than 0; `inf` clips nothing.
    label_noise_std : float
        Standard deviation zeta of the label noise, more than 0.
    start : float
        Excess risk R(0), more than 0.

    Source
    ------
    Derived here from bombari2025, equation (4.11).
    """
    gamma, clip_constant, label_noise_std, initial = require_scalars(
        aspect_ratio=aspect_ratio,
        clip_constant=clip_constant,
        label_noise_std=label_noise_std,
        start=start,
    )
    _positive(label_noise_std=label_noise_std)
    if initial * gamma < 1e-28 or initial < 1e-28:
        # Risks along the way would be smaller than the factors' formulas keep their digits for.
        raise ValueError(f"start must be at least 1e-28 beside gamma = {gamma:g}, got {initial:g}")
    deepest = math.log(initial / SMALLEST_RISK)
    reach = min(math.log(1e3 + 1e3 / gamma), deepest)
    while True:
        depth, density, time = _descent_times(initial, reach, clip_constant, label_noise_std)
        if time[-1] >= 1 / gamma:
            break
        if reach >= deepest:
            raise ValueError(
                f"label_noise_std must leave a least risk of at least {SMALLEST_RISK:g}, "
                f"got {label_noise_std}"
            )
        reach = min(2 * reach, deepest)
    at = int(np.searchsorted(time, 1 / gamma))
    share = (1 / gamma - time[at - 1]) / (time[at] - time[at - 1])
    ratio = density[at] / density[at - 1]
    inside = math.log1p(share * (ratio - 1)) / math.log(ratio) if abs(ratio - 1) > 1e-9 else share
    return float(initial * math.exp(-(depth[at - 1] + inside * (depth[at] - depth[at - 1]))))


def _descent_times(
    initial: float, reach: float, clip_constant: float, label_noise_std: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Depths ln(R(0)/R), the time over γ that a unit of each takes, and that to reach it."""
    depth = np.linspace(0.0, reach, 20001)
    risk = initial * np.exp(-depth)
    density = variance_factor(
        risk, clip_constant=clip_constant, label_noise_std=label_noise_std
    ) * (risk + label_noise_std**2 / 2)
    density /= (
        risk
        * descent_factor(risk, clip_constant=clip_constant, label_noise_std=label_noise_std) ** 2
    )
    # Log-linear pieces: the integrand grows like 1 / risk towards the end.
    growth = np.log(density[1:] / density[:-1])
    pieces = np.where(
        np.abs(growth) < 1e-6, density[:-1], np.diff(density) / np.where(growth == 0, 1, growth)
    )
    return depth, density, np.concatenate([[0.0], np.cumsum(pieces * np.diff(depth))])


@dataclass(frozen=True)
class Explicit:
    """The constants with which Theorem 2 is proved, and the bound that they give.

    Attributes
    ----------
    schedule : Harmonic
        The learning rate.
    clip_constant : float
        Clipping constant c.
    bound : float
        Upper bound on the excess risk of the private output, its noise included.
    """

    schedule: Harmonic
    clip_constant: float
    bound: float


def explicit_constants(
    *,
    aspect_ratio: float,
    zcdp_root: float,
    label_noise_std: float,
    smallest: float = 1.0,
    largest: float = 1.0,
    start: float = 0.5,
) -> Explicit:
    r"""A harmonic schedule with a proved bound, for a well-conditioned covariance.

    .. math:: \beta = \frac{3\sqrt{A + 90}}{\lambda_{\min}},\quad
        c = \sqrt2\,\beta,\quad \tau = \max(b_1, 2\sqrt{b_2}),\quad
        b_1 = \tfrac12\lambda_{\max} c^2\gamma,\ b_2 = 4c^2\gamma^2/\rho^2,

    .. math:: R(1) + \frac{2c^2\tilde\eta(1)^2\gamma^2}{\rho^2}
        \le \tau^3 R(0) + \frac{b_1\beta^2}{2} + 2 b_2\beta^2 + \frac{b_2\beta^2}{2},
        \qquad A = R(0) + \zeta^2/2

    The constants serve the proof: the bound is orders of magnitude above the risk, and the risk
    above that of the best harmonic schedule. A beta or tau beyond the rates of `Harmonic` is
    refused.

    Parameters
    ----------
    aspect_ratio : float
        gamma = d / n, more than 0.
    zcdp_root : float
        rho, more than 0.
    label_noise_std : float
        Standard deviation zeta of the label noise, more than 0.
    smallest, largest : float
        Extreme eigenvalues of the covariance, 0 < smallest <= 1 <= largest.
    start : float
        Excess risk R(0), more than 0.

    Source
    ------
    bombari2025, equations (D.105) and (D.109)-(D.111); the proof's last line has half of the output
    noise of Proposition 4.4, which is whole here.
    """
    gamma, noise, smallest, largest, start = require_scalars(
        aspect_ratio=aspect_ratio,
        label_noise_std=label_noise_std,
        smallest=smallest,
        largest=largest,
        start=start,
    )
    (rho,) = require_scalars(infinite=False, zcdp_root=zcdp_root)
    _positive(label_noise_std=noise)
    if not 0 < smallest <= 1 <= largest:
        raise ValueError(
            f"smallest and largest must satisfy 0 < smallest <= 1 <= largest, "
            f"got {smallest} and {largest}"
        )
    total = start + noise**2 / 2
    numerator = 3 * math.sqrt(total + 90) / smallest
    clip_constant = math.sqrt(2) * numerator
    sampling, private = (
        largest * clip_constant**2 * gamma / 2,
        4 * (clip_constant * gamma / rho) ** 2,
    )
    offset = max(sampling, 2 * math.sqrt(private))
    if not (numerator <= RATES and 1 / RATES <= offset <= RATES):
        raise ValueError(
            "aspect_ratio, zcdp_root, label_noise_std, smallest, largest and start must be such "
            f"that beta and tau are from {1 / RATES:g} to {RATES:g}, "
            f"got {numerator:g} and {offset:g}"
        )
    bound = offset**3 * start + numerator**2 * (sampling / 2 + 2.5 * private)
    return Explicit(Harmonic(numerator, offset), clip_constant, bound)


def _positive(**values: Any) -> list[NDArray[np.float64]]:
    arrays = require_settings(**values)
    for name, array in zip(values, arrays, strict=True):
        require_real(name, array, above=0, infinite=True)
    return arrays
