r"""Integrals over frequencies of powers of :math:`|1-c-e^{i\omega}|`, closed forms and quadrature.

A direction of curvature λ forgets at the rate c = ηλ a step, and
:math:`|1-c-e^{i\omega}|^{-2}` is how strongly it answers noise of frequency ω. The integrands have
peaks of width c at 0, which may be 10^-10: every formula here keeps its digits there.
"""

from __future__ import annotations

from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ellipkm1, elliprf, elliprj

from privreg.noise.quadrature import panel_rule
from privreg.validation import require_broadcast, require_count, require_number, require_real

FloatArray = NDArray[np.float64]
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
