r"""Excess risk of one-pass DP-GD and of private estimators: limits, bounds and exponents.

Names of parameters: `aspect_ratio` is gamma = d / n, `zcdp_root` is rho, and `clip_constant` is c,
in units of the residual. `label_noise_std` is zeta, the standard deviation of the label noise, and
`start` is the excess risk R(0). `smallest` and `largest` are the extreme eigenvalues of the
covariance; the mean eigenvalue is 1. Powers: eigenvalues have a density proportional to lambda^-phi
with phi = `spectrum_power`. Squared target coefficients are proportional to lambda^-psi, psi =
`signal_power`. Rates decay with alpha = `schedule_power`; rho = gamma^b with b = `privacy_power`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from privreg.checks import (
    MOST,
    FloatArray,
    require_number,
    require_real,
    require_scale,
    require_scales,
)
from privreg.theory.one_pass_dpgd.deterministic_equivalent import (
    descent_factor,
    descent_of,
    require_settings,
    variance_factor,
    variance_of,
)


def sampling_limit(*, clip_constant: ArrayLike, label_noise_std: ArrayLike) -> FloatArray:
    r"""Least risk divided by gamma = d/n, as gamma goes to 0 at fixed privacy, for isotropic data.

    .. math:: \lim_{\gamma \to 0} \frac{R^*}{\gamma} = \frac{\nu_c(0)\,\zeta^2}{2\mu_c(0)^2}

    where mu_c is `descent_factor` and nu_c `variance_factor`. Harmonic schedules with numerator
    1 / mu_c(0) attain the limit as their offset goes to zero; no schedule does better. Without
    clipping the limit is zeta^2 / 2, as for ordinary least squares. As c goes to 0 the limit tends
    to pi zeta^2 / 4, as if only the signs of residuals were used.

    Parameters
    ----------
    clip_constant, label_noise_std : array_like, shape (...)
        Clipping constant c (`inf` clips nothing) and standard deviation zeta of the label noise.

    Source
    ------
    Derived here; bombari2025, Theorem 2 gives only the order gamma + gamma^2 / rho^2.
    """
    settings = {"clip_constant": clip_constant, "label_noise_std": label_noise_std}
    share, drift = variance_factor(0.0, **settings), descent_factor(0.0, **settings)
    return share * (np.asarray(label_noise_std) / drift) ** 2 / 2


def privacy_limit(*, clip_constant: ArrayLike, label_noise_std: ArrayLike) -> FloatArray:
    r"""Least risk divided by (gamma / rho)^2 for isotropic data, as private noise becomes dominant.

    .. math:: \lim \frac{R^*}{\gamma^2/\rho^2} = \frac{27\,c^2}{2\mu_c(0)^2}
        \quad\text{as}\quad \gamma/\rho \to 0,\ \rho^2/\gamma \to 0

    where mu_c is `descent_factor`, gamma = d / n and privacy is rho^2/2-zCDP. Harmonic schedules of
    numerator 3/(2 mu_c(0)) attain the limit as their offset goes to zero; no schedule does better.

    Parameters
    ----------
    clip_constant, label_noise_std : array_like, shape (...)
        Clipping constant c and standard deviation zeta of the label noise.

    Source
    ------
    Derived here; bombari2025, Theorem 2 gives only the order.
    """
    drift = descent_factor(0.0, clip_constant=clip_constant, label_noise_std=label_noise_std)
    return np.asarray(13.5 * (np.asarray(clip_constant) / drift) ** 2)


def least_risk(
    *, aspect_ratio: float, clip_constant: float, label_noise_std: float, start: float = 0.5
) -> float:
    r"""Lower bound on the risk of every learning-rate schedule, for isotropic data.

    .. math:: \int_{R^*}^{R(0)} \frac{\nu_c(R)\,(R + \zeta^2/2)}{\mu_c(R)^2 R^2}\,\mathrm dR
        = \frac1\gamma

    The bound R* takes the best rate at each time. It ignores private noise and any cap on the rate.
    mu_c is `descent_factor`, nu_c `variance_factor`. R* has a relative error of at most 1e-6.

    Parameters
    ----------
    aspect_ratio, clip_constant, label_noise_std, start : float
        gamma = d / n, clipping constant c (`inf` clips nothing), zeta and initial excess risk R(0).

    Source
    ------
    Derived here from bombari2025, equation (4.11).
    """
    gamma, noise, initial = require_scales(
        aspect_ratio=aspect_ratio, label_noise_std=label_noise_std, start=start
    )
    clip_constant = require_scale("clip_constant", clip_constant, infinite=True)
    reach = math.log(1e3 + 1e3 / gamma)
    while True:
        depth, density, time = _descent_times(initial, reach, clip_constant, noise)
        if time[-1] >= 1 / gamma:
            break
        reach *= 2
    at = int(np.searchsorted(time, 1 / gamma))
    share = (1 / gamma - time[at - 1]) / (time[at] - time[at - 1])
    ratio = density[at] / density[at - 1]
    inside = math.log1p(share * (ratio - 1)) / math.log(ratio) if abs(ratio - 1) > 1e-9 else share
    return float(initial * math.exp(-(depth[at - 1] + inside * (depth[at] - depth[at - 1]))))


@dataclass(frozen=True)
class OptimalExponent:
    r"""Scaling :math:`\mathcal R \asymp \gamma^h` of the optimally tuned risk, with gamma = d / n.

    Attributes
    ----------
    risk : float
        Exponent h of the risk, in the limit of small gamma.
    learning_rate : float
        Exponent a in (-1, 0): clipping constant times initial rate scales as gamma^a.
    case : {1, 2, 3, 4}
        Case (bullet) of bombari2025, Theorem 4. In cases 1 and 2, the schedule limits how long
        private noise persists; in 3 and 4 the spectrum does. Privacy lowers h only in 2 and 4.
    logarithm : bool
        True if the risk has a factor :math:`\ln(1/\gamma)` beside the power. This is the case if
        phi (alpha + 1) = 2 (see `optimal_exponent`) and privacy lowers h.
    """

    risk: float
    learning_rate: float
    case: Literal[1, 2, 3, 4]
    logarithm: bool


def optimal_exponent(
    spectrum_power: float, signal_power: float, schedule_power: float, privacy_power: float
) -> OptimalExponent:
    r"""Exponents of the best learning rate and of the risk at this rate.

    .. math:: h = \begin{cases}
        \frac{K}{K+1} & b \le b^* \\
        \frac{2K(1-b)}{K+2} & b > b^*,\ \phi(\alpha+1) < 2 \\
        \frac{2\kappa(1-b)}{2-\psi} & b > b^*,\ \phi(\alpha+1) \ge 2 \end{cases}
        \qquad \kappa = 2-\phi-\psi,\ K = \kappa(\alpha+1)

    with :math:`b^*` the `critical_privacy_power`.

    Parameters
    ----------
    spectrum_power, signal_power : float
        phi < 1 (eigenvalue density lambda^-phi) and psi < 1 - phi (squared target coefficients
        lambda^-psi), each at least -1e12.
    schedule_power : float
        alpha of a rate (1 - t)^alpha, from 0 to 1e12; the theorem covers alpha = 0, 1/2 and >= 1.
    privacy_power : float
        b of the privacy rho = gamma^b, at least -1e12 and less than 1.

    Source
    ------
    bombari2025, Theorem 4, equations (6.4)-(6.6). If phi (alpha + 1) = 2 and privacy lowers h,
    (6.6) adds :math:`\ln(a\ln\gamma)/\ln\gamma`, which goes to 0 with gamma: a factor
    :math:`\ln(1/\gamma)` of the risk, for a fixed a. If a may depend on gamma, the factor has the
    power :math:`\kappa/(2-\psi)<1`. At exactly b = b*, the theorem's case 3 lacks the factor.
    """
    _check(spectrum_power, signal_power, schedule_power, privacy_power)
    width = schedule_power + 1
    decay = 2 - spectrum_power - signal_power
    reach = decay * width
    steep = spectrum_power * width > 2 or math.isclose(spectrum_power * width, 2)
    critical = critical_privacy_power(spectrum_power, signal_power, schedule_power)
    if privacy_power <= critical:
        return OptimalExponent(reach / (reach + 1), -width / (reach + 1), 3 if steep else 1, False)
    if not steep:
        rate = -2 * (1 - privacy_power) * width / (reach + 2)
        return OptimalExponent(-decay * rate, rate, 2, False)
    rate = -2 * (1 - privacy_power) / (2 - signal_power)
    return OptimalExponent(-decay * rate, rate, 4, math.isclose(spectrum_power * width, 2))


def critical_privacy_power(
    spectrum_power: float, signal_power: float, schedule_power: float
) -> float:
    r"""Largest b at which privacy :math:`\rho = \gamma^b` does not lower the exponent of the risk.

    .. math:: b^* = \frac{K + 2 - \max(2, \phi(\alpha+1))}{2(K+1)}, \qquad
        K = (2-\phi-\psi)(\alpha+1)

    b* is in (1/4, 1/2) if phi (alpha + 1) < 2, otherwise in (0, 1/2). phi, psi and alpha are the
    powers of the spectrum, the signal and the schedule, as in `optimal_exponent`.

    Source
    ------
    bombari2025, Theorem 4 (its two thresholds written as one).
    """
    _check(spectrum_power, signal_power, schedule_power)
    width = schedule_power + 1
    decay = 2 - spectrum_power - signal_power
    # Not the difference from the product, which cancels for long schedules.
    left = decay * width
    if spectrum_power * width > 2:
        left = math.fsum((2, -2 * spectrum_power, -signal_power)) * width + 2
    return left / (2 * (decay * width + 1))


def term_exponents(
    learning_rate: ArrayLike,
    *,
    spectrum_power: float,
    signal_power: float,
    schedule_power: float,
    privacy_power: float,
    aspect_ratio: float | None = None,
) -> FloatArray:
    r"""Exponents of the risk's three terms, (3, ...): remaining signal, sampling and private noise.

    .. math:: e_1 = -a(2-\phi-\psi), \qquad e_2 = \frac{a}{\alpha+1} + 1, \qquad
        e_3 = 2 - 2b + a \max\Big(\frac{2}{\alpha+1}, \phi\Big)
        \Big[- \frac{\ln(|a|\ln(1/\gamma))}{\ln(1/\gamma)}\Big]_{\phi(\alpha+1) = 2}

    Parameters
    ----------
    learning_rate : array_like, shape (...)
        a, from -1e12 to 0: clipping constant times initial rate is gamma^a.
    spectrum_power, signal_power, schedule_power, privacy_power : float
        phi, psi, alpha and b of spectrum, signal, schedule and privacy, as in `optimal_exponent`.
    aspect_ratio : float, optional
        gamma in (0, 1), used only in the bracket, which is left out by default (gamma → 0).

    Source
    ------
    bombari2025, equations (E.42), (E.49) and (E.55).
    """
    _check(spectrum_power, signal_power, schedule_power, privacy_power)
    rate = require_real("learning_rate", learning_rate, least=-MOST, most=0)
    width = schedule_power + 1
    signal = -rate * (2 - spectrum_power - signal_power)
    sampling = rate / width + 1
    private = 2 - 2 * privacy_power + rate * max(2 / width, spectrum_power)
    if aspect_ratio is not None and math.isclose(spectrum_power * width, 2):
        logarithm = -math.log(require_number("aspect_ratio", aspect_ratio, above=0, below=1))
        private = private - np.log(np.abs(rate) * logarithm) / logarithm
    return np.stack([signal, sampling, private])


def limiting_exponent(spectrum_power: float, signal_power: float, privacy_power: float) -> float:
    r"""Exponent h of the risk, at most 1, as the schedule's power alpha goes to infinity.

    .. math:: \lim_{\alpha\to\infty} h
        = \min\Big(1,\; 2(1-b)\,\frac{2-\phi-\psi}{2-\phi-\psi+\max(\phi, 0)}\Big)

    The limit is below 1 if phi > 0 and b > 1/2 - phi / (2 (2 - phi - psi)). phi, psi and b are
    the powers of spectrum, signal and privacy, as in `optimal_exponent`.

    Source
    ------
    bombari2025, Corollary 6.1, equations (6.7)-(6.9).
    """
    _check(spectrum_power, signal_power, 0.0, privacy_power)
    decay = 2 - spectrum_power - signal_power
    return min(1.0, 2 * (1 - privacy_power) * decay / (decay + max(spectrum_power, 0.0)))


def private_bound(
    *, aspect_ratio: ArrayLike, zcdp_root: ArrayLike, label_noise_std: float, smallest: float = 1.0
) -> FloatArray:
    r"""Lower bound on any rho^2/2-zCDP estimator's largest risk R over targets in the unit ball.

    .. math:: \min\Big(\frac{\lambda_{\min}}{80},\;
        \frac{\zeta^2}{8}\,\frac{\gamma^2}{e^{\rho^2} - 1}\Big)

    The proof uses the tracing attack :math:`A_i = z_i x_i^\top(\hat\theta - \theta^*)` with label
    noise z_i. If the squared error is at most 1/40, the sum of all A_i is at least ζ²d/2 on average
    over a prior. Privacy keeps this sum below :math:`n\sqrt{e^{\rho^2} - 1}\,\sqrt{2\zeta^2 R}`.

    Parameters
    ----------
    aspect_ratio, zcdp_root : array_like, shape (...)
        gamma = d / n, and rho.
    label_noise_std, smallest : float
        Standard deviation zeta of the label noise, and smallest eigenvalue.

    Source
    ------
    bombari2025, Lemmas D.6 and D.7, equation (D.141); the constants are derived from their proofs.
    """
    gamma, rho, noise, least = require_settings(
        aspect_ratio=aspect_ratio,
        zcdp_root=zcdp_root,
        label_noise_std=label_noise_std,
        smallest=smallest,
    )
    # The root, since the square of an exponential that is too small may yet be none.
    root = noise * gamma * np.exp(-(rho**2) / 2) / np.sqrt(-np.expm1(-(rho**2)))
    return np.minimum(least / 80, root**2 / 8)


def statistical_bound(
    *, aspect_ratio: ArrayLike, label_noise_std: float, largest: float = 1.0
) -> FloatArray:
    r"""Lower bound on any estimator's worst excess risk over targets in the unit ball, for large d.

    .. math:: \frac{\zeta^2\gamma}{8\lambda_{\max}}

    Parameters
    ----------
    aspect_ratio : array_like, shape (...)
        gamma = d / n, in (0, 1).
    label_noise_std, largest : float
        Standard deviation zeta of the label noise, and largest eigenvalue.

    Source
    ------
    bombari2025, Lemma D.8. Equation (D.157) omits the factor 1/2 in the excess risk and so prints
    twice this bound. The Bayes risk of the lemma's prior is below the printed bound.
    """
    gamma = require_real("aspect_ratio", aspect_ratio, above=0, below=1)
    noise, greatest = require_scales(label_noise_std=label_noise_std, largest=largest)
    return np.asarray(noise**2 * gamma / (8 * greatest))


def _descent_times(
    initial: float, reach: float, clip_constant: float, label_noise_std: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Depths ln(R(0)/R), times per unit of depth, and times to reach each depth; all times / γ."""
    depth = np.linspace(0.0, reach, 20001)
    risk = initial * np.exp(-depth)
    ratio = clip_constant / np.sqrt(2 * risk + np.square(label_noise_std))
    density = variance_of(ratio) * (risk + label_noise_std**2 / 2)
    density /= risk * descent_of(ratio) ** 2
    # Log-linear pieces: the integrand grows like 1 / risk towards the end.
    growth = np.log(density[1:] / density[:-1])
    pieces = np.where(
        np.abs(growth) < 1e-6, density[:-1], np.diff(density) / np.where(growth == 0, 1, growth)
    )
    return depth, density, np.concatenate([[0.0], np.cumsum(pieces * np.diff(depth))])


def _check(
    spectrum_power: float, signal_power: float, schedule_power: float, privacy_power: float = 0.0
) -> None:
    phi = require_number("spectrum_power", spectrum_power, least=-MOST, below=1)
    require_number("signal_power", signal_power, least=-MOST, below=1 - phi)
    require_number("schedule_power", schedule_power, least=0, most=MOST)
    require_number("privacy_power", privacy_power, least=-MOST, below=1)
