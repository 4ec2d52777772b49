r"""Scaling laws of one-pass DP-GD on power-law data: the risk's exponent in the aspect ratio.

With eigenvalue density :math:`\propto\lambda^{-\phi}`, signal
:math:`D_i(0)\asymp\lambda_i^{-\psi}`, rate :math:`\tilde\eta(0)(1-t)^\alpha`,
:math:`c\,\tilde\eta(0) = \gamma^a` and privacy :math:`\rho = \gamma^b`, the risk of the private
output is a sum of three powers of :math:`\gamma = d/n`, and the best rate makes the smallest of
their exponents as large as possible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privreg.validation import require_number, require_real

# Powers of this size are limits; their products stay far from overflow.
LARGEST = 1e12


@dataclass(frozen=True)
class OptimalExponent:
    r"""Scaling of the optimally tuned risk, :math:`\mathcal R \asymp \gamma^h`.

    Attributes
    ----------
    risk : float
        h, the exponent of the risk, without a vanishing logarithm.
    learning_rate : float
        a in (-1, 0), the exponent of clipping constant times initial rate.
    case : {1, 2, 3, 4}
        Bullet of the theorem: 1 and 2 where the schedule limits the memory of private noise, 3 and
        4 where the spectrum does; odd where privacy is free, even where it costs.
    logarithm : bool
        Whether the risk carries a factor :math:`\ln(1/\gamma)` beside the power; it does where
        phi (alpha + 1) = 2 and privacy costs.
    """

    risk: float
    learning_rate: float
    case: Literal[1, 2, 3, 4]
    logarithm: bool

    @property
    def privacy_is_free(self) -> bool:
        """Whether the exponent is that of the problem without privacy."""
        return self.case in (1, 3)


def optimal_exponent(
    spectrum_power: float, signal_power: float, schedule_power: float, privacy_power: float
) -> OptimalExponent:
    r"""Exponent of the risk under the best learning rate, and the exponent of that rate.

    .. math:: h = \begin{cases}
        \frac{K}{K+1} & b \le b^* \\
        \frac{2K(1-b)}{K+2} & b > b^*,\ \phi(\alpha+1) < 2 \\
        \frac{2\kappa(1-b)}{2-\psi} & b > b^*,\ \phi(\alpha+1) \ge 2 \end{cases}
        \qquad \kappa = 2-\phi-\psi,\ K = \kappa(\alpha+1)

    with :math:`b^*` as in `critical_privacy_power`.

    Parameters
    ----------
    spectrum_power : float
        phi, at least -1e12 and less than 1: density of eigenvalues proportional to lambda^-phi.
    signal_power : float
        psi, at least -1e12, below 1 - phi: squared target coefficients proportional to lambda^-psi.
    schedule_power : float
        alpha, at least 0 and at most 1e12; the theorem takes 0, 1/2 and all from 1 on.
    privacy_power : float
        b, at least -1e12 and less than 1: rho = gamma^b.

    Source
    ------
    bombari2025, Theorem 4, equations (6.4)-(6.6). Where phi (alpha + 1) = 2 and privacy costs,
    (6.6) adds :math:`\ln(a\ln\gamma)/\ln\gamma`, which vanishes with gamma, for an a that does not
    depend on gamma; an a that does improves the factor :math:`\ln(1/\gamma)` to its power
    :math:`\kappa/(2-\psi)`. Exactly at the critical b the third case lacks this logarithm.
    """
    _check(spectrum_power, signal_power, schedule_power, privacy_power)
    width = schedule_power + 1
    decay = 2 - spectrum_power - signal_power
    reach = decay * width
    steep = _spectrum_limited(spectrum_power, schedule_power)
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
    r"""Largest power b of the privacy :math:`\rho = \gamma^b` that does not change the exponent.

    .. math:: b^* = \frac{K + 2 - \max(2, \phi(\alpha+1))}{2(K+1)}, \qquad
        K = (2-\phi-\psi)(\alpha+1)

    It is in (1/4, 1/2) if phi (alpha + 1) < 2, else in (0, 1/2).

    Parameters
    ----------
    spectrum_power, signal_power, schedule_power : float
        phi, psi and alpha as in `optimal_exponent`.

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
) -> NDArray[np.float64]:
    r"""Exponents of the risk's terms, (3, ...): forgotten signal, sampling noise, private noise.

    .. math:: e_1 = -a\kappa, \qquad e_2 = \frac{a}{\alpha+1} + 1, \qquad
        e_3 = 2 - 2b + a \max\Big(\frac{2}{\alpha+1}, \phi\Big)
        \Big[- \frac{\ln(|a|\ln(1/\gamma))}{\ln(1/\gamma)}\Big]_{\phi(\alpha+1) = 2}

    Parameters
    ----------
    learning_rate : array_like, shape (...)
        a, at least -1e12 and at most 0: clipping constant times initial rate is gamma^a.
    spectrum_power, signal_power, schedule_power, privacy_power : float
        phi, psi, alpha and b as in `optimal_exponent`.
    aspect_ratio : float, optional
        gamma in (0, 1), for the logarithm where phi (alpha + 1) = 2; in the limit if left out.

    Source
    ------
    bombari2025, equations (E.42), (E.49) and (E.55).
    """
    _check(spectrum_power, signal_power, schedule_power, privacy_power)
    rate = require_real("learning_rate", learning_rate, least=-LARGEST, most=0)
    width = schedule_power + 1
    signal = -rate * (2 - spectrum_power - signal_power)
    sampling = rate / width + 1
    private = 2 - 2 * privacy_power + rate * max(2 / width, spectrum_power)
    if aspect_ratio is not None:
        aspect_ratio = require_number("aspect_ratio", aspect_ratio, above=0, below=1)
    if aspect_ratio is not None and math.isclose(spectrum_power * width, 2):
        require_real("learning_rate", rate, below=0)
        logarithm = -math.log(aspect_ratio)
        private = private - np.log(np.abs(rate) * logarithm) / logarithm
    return np.stack([signal, sampling, private])


def limiting_exponent(spectrum_power: float, signal_power: float, privacy_power: float) -> float:
    r"""Exponent of the risk as the schedule's power grows without bound, at most 1.

    .. math:: \lim_{\alpha\to\infty} h
        = \min\Big(1,\; 2(1-b)\,\frac{2-\phi-\psi}{2-\phi-\psi+\max(\phi, 0)}\Big)

    It is less than 1 if phi > 0 and b exceeds 1/2 - phi / (2 (2 - phi - psi)).

    Parameters
    ----------
    spectrum_power, signal_power, privacy_power : float
        phi, psi and b as in `optimal_exponent`.

    Source
    ------
    bombari2025, Corollary 6.1, equations (6.7)-(6.9).
    """
    _check(spectrum_power, signal_power, 0.0, privacy_power)
    decay = 2 - spectrum_power - signal_power
    return min(1.0, 2 * (1 - privacy_power) * decay / (decay + max(spectrum_power, 0.0)))


def _spectrum_limited(spectrum_power: float, schedule_power: float) -> bool:
    product = spectrum_power * (schedule_power + 1)
    return product > 2 or math.isclose(product, 2)


def _check(
    spectrum_power: float,
    signal_power: float,
    schedule_power: float,
    privacy_power: float = 0.0,
) -> None:
    phi = require_number("spectrum_power", spectrum_power, least=-LARGEST, below=1)
    require_number("signal_power", signal_power, least=-LARGEST, below=1 - phi)
    require_number("schedule_power", schedule_power, least=0, most=LARGEST)
    require_number("privacy_power", privacy_power, least=-LARGEST, below=1)
