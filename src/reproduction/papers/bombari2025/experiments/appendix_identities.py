"""Identities and inequalities of the proofs, as printed and as they hold, evaluated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Positive, Power, Probability, Some

if TYPE_CHECKING:
    import xarray as xr

PLACE = (
    "Equations (4.17), (4.20), (A.3), (C.7), (D.10)-(D.13), (D.30)-(D.31), (D.54), (D.89), (D.98)"
    " and (D.101)"
)


class Parameters(Strict):
    """Where the identities are evaluated."""

    eigenvalues: Annotated[Some[Positive], Field(min_length=2)] = Field(
        description="Spectrum of the resolvents."
    )
    contour_points: Annotated[Count, Field(ge=16)] = Field(
        description="Points of the contour integrals."
    )
    exponents: Annotated[Some[Annotated[Power, Field(ge=1)]], Field(min_length=2)] = Field(
        description="Exponents alpha of the schedules, 1 or more."
    )
    roots: Some[Positive] = Field(description="rho of rho^2/2-zCDP.")
    failures: Some[Probability] = Field(description="delta of (epsilon, delta)-DP.")
    descent: Annotated[Positive, Field(gt=2)] = Field(
        description="Coefficient a of the comparison equations."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Evaluate them all."""
    import xarray as xr

    return xr.Dataset(
        _resolvents(parameters)
        | _second_order()
        | _conversions(parameters)
        | _exponential_integrals()
        | _closed_forms(parameters)
        | _comparison_constants(),
        coords={
            "schedule_power": variable(
                "schedule_power", parameters.exponents, "power alpha of the schedule"
            ),
        },
    )


def _resolvents(parameters: Parameters) -> dict[str, tuple]:
    """With q_z(v) = v' (Sigma - z)^-1 v / 2 on the circle |z| = 2 |Sigma|."""
    eigenvalues = np.asarray(parameters.eigenvalues)
    squares = np.linspace(1.0, 2.0, len(eigenvalues))
    angle = 2 * np.pi * np.arange(parameters.contour_points) / parameters.contour_points
    z = 2 * eigenvalues.max() * np.exp(1j * angle)
    element = 1j * z * 2 * np.pi / parameters.contour_points
    resolvent = 1 / (eigenvalues - z[:, None])
    quadratic = (squares * resolvent).sum(axis=1) / 2
    norm = squares.sum()
    risk = (eigenvalues * squares).sum() / 2
    # The drift of q_z is minus rate and descent factor times u' Sigma (Sigma - z)^-1 u.
    drift = (squares * eigenvalues * resolvent).sum(axis=1)

    def apart(stated: np.ndarray) -> float:
        return float(np.max(np.abs(stated / drift - 1)))

    def scalar(value: complex, meaning: str) -> tuple:
        return variable((), float(np.real(value)), meaning)

    return {
        "contour_norm_ratio": scalar(
            1j / np.pi * np.sum(quadratic * element) / norm,
            "i / pi times the contour integral of q_z over |v|^2",
        ),
        "contour_risk_ratio": scalar(
            1j / (2 * np.pi) * np.sum(z * quadratic * element) / risk,
            "i / (2 pi) times the contour integral of z q_z over the risk",
        ),
        "resolvent_drift_printed": scalar(
            apart(norm + z * quadratic),
            "largest relative distance of |u|^2 + z q_z to u' Sigma (Sigma - z)^-1 u",
        ),
        "resolvent_drift_corrected": scalar(
            apart(norm + 2 * z * quadratic),
            "largest relative distance of |u|^2 + 2 z q_z to u' Sigma (Sigma - z)^-1 u",
        ),
    }


def _second_order() -> dict[str, tuple]:
    """Half the mean square of a clipped standard normal, by quadrature; P = 1/2."""
    from privreg.theory.one_pass_dpgd.clipping import variance_factor

    points, weights = np.polynomial.legendre.leggauss(200)
    clip = 1.0
    half_square = 0.0
    for low, high in ((0.0, clip), (clip, 12.0)):
        nodes = low + (high - low) * (points + 1) / 2
        density = np.exp(-(nodes**2) / 2) * np.sqrt(2 / np.pi)
        half_square += (high - low) / 2 * np.sum(weights * density * np.minimum(nodes, clip) ** 2)
    half_square /= 2
    term = float(variance_factor(0.0, clip_constant=clip, label_noise_std=1.0)) / 2
    return {
        "second_order_over_printed": variable(
            (), half_square / (term / 2), "half the mean squared clipped residual over nu P / 2"
        ),
        "second_order_over_corrected": variable(
            (), half_square / term, "half the mean squared clipped residual over nu P"
        ),
    }


def _conversions(parameters: Parameters) -> dict[str, tuple]:
    """Of the budgets with rho^2 at most ln(1/delta), by the exact curve of a Gaussian mechanism."""
    from scipy.stats import norm

    simple, exact = [], []
    for root in parameters.roots:
        for failure in parameters.failures:
            log = np.log(1 / failure)
            epsilon = root**2 / 2 + root * np.sqrt(2 * log)
            # A Gaussian mechanism whose means are rho deviations apart spends all of rho^2 / 2.
            true = norm.cdf(root / 2 - epsilon / root) - np.exp(
                epsilon + norm.logcdf(-root / 2 - epsilon / root)
            )
            exact.append(true / failure)
            if root <= np.sqrt(log):
                simple.append(epsilon / (2 * root * np.sqrt(log)))
    return {
        "simple_conversion_ratio": variable(
            (),
            max(simple),
            "largest rho^2/2 + rho sqrt(2 ln(1/delta)) over 2 rho sqrt(ln(1/delta))",
        ),
        "failure_ratio": variable(
            (), max(exact), "largest failure probability of a Gaussian mechanism over delta"
        ),
    }


def _exponential_integral(order: np.ndarray | float, x: np.ndarray | float) -> np.ndarray:
    """E_beta of (D.9) for beta < 1 and x > 0."""
    from scipy.special import gamma, gammaincc

    return x ** (np.asarray(order) - 1) * gamma(1 - order) * gammaincc(1 - order, x)


def _exponential_integrals() -> dict[str, tuple]:
    from scipy.special import gamma

    x = np.geomspace(1e-3, 50, 400)
    remainders, above, tails = [], [], []
    for order in (-0.9, -0.5, -1 / 3, 0.0, 1 / 3, 0.5, 0.9):
        found = _exponential_integral(order, x)
        left = gamma(1 - order) - x ** (1 - order) * found
        remainders.append(np.max(left * (1 - order) / x ** (1 - order)))
        above.append(np.max(found / (gamma(1 - order) * x ** (order - 1))))
        kept = x >= (0 if order >= 0 else -2 * order)
        tails.append(np.max(found[kept] * x[kept] / (2 * np.exp(-x[kept]))))
    return {
        "exponential_remainder_ratio": variable(
            (),
            max(remainders),
            "largest distance of x^(1 - beta) E_beta(x) to its limit, over its bound (D.15)",
        ),
        "exponential_integral_ratio": variable(
            (), max(above), "largest exponential integral over Gamma(1 - beta) x^(beta - 1)"
        ),
        "exponential_tail_ratio": variable(
            (), max(tails), "largest exponential integral over 2 exp(-x) / x"
        ),
    }


def _closed_forms(parameters: Parameters) -> dict[str, tuple]:
    """Solutions of the comparison equations against an integration, and a coefficient of (D.98)."""
    from scipy.special import gamma

    a, b1, b2, start = parameters.descent, 0.3, 0.2, 0.5
    powers = np.array([0.5, *parameters.exponents])
    errors = []
    for power in powers:
        width = power + 1
        # (D.54) is (D.89) at alpha = 1/2 with the noise's coefficient b2 / (2 alpha).
        left = np.array([0.6, 0.2])
        shift = a / width
        late = left**width * shift
        first = left ** (1 + 2 * power) * _exponential_integral(
            -1 + 1 / width, late
        ) - _exponential_integral(-1 + 1 / width, shift)
        order = (1 - power) / width
        second = left ** (2 * power) * _exponential_integral(order, late) - _exponential_integral(
            order, shift
        )
        closed = (
            np.exp(-shift + late)
            / width
            * (start * width + np.exp(shift) * (b1 * first + b2 * second))
        )

        def slope(t: float, risk: np.ndarray, power: float = power) -> np.ndarray:
            remaining = 1 - t
            return (
                -a * remaining**power * risk
                + b1 * remaining ** (2 * power)
                + b2 * remaining ** (2 * power - 1)
            )

        errors.append(_distance(slope, start, 1 - left, closed))
    return {
        "closed_form_error": variable(
            (), max(errors), "largest relative distance of (D.54) and (D.89) to an integration"
        ),
        "integrating_factor_error": variable(
            (), _integrating_factor(a, b1, b2, start), "relative distance of (D.101) to one"
        ),
        "coefficient_over_printed": variable(
            "schedule_power",
            [
                (1 + p) ** (p / (1 + p)) * gamma(2 - 1 / (1 + p)) / (1 + p) ** (1 / 3)
                for p in parameters.exponents
            ],
            "coefficient of the sampling noise over (1 + alpha)^(1/3)",
        ),
        "coefficient_over_corrected": variable(
            "schedule_power",
            [
                (1 + p) ** (p / (1 + p)) * gamma(2 - 1 / (1 + p)) / (1 + p)
                for p in parameters.exponents
            ],
            "coefficient of the sampling noise over 1 + alpha",
        ),
    }


def _distance(slope, start: float, times: np.ndarray, closed: np.ndarray) -> float:  # type: ignore[no-untyped-def]
    from scipy.integrate import solve_ivp

    found = solve_ivp(
        slope, (0.0, times[-1]), [start], t_eval=times, method="DOP853", rtol=1e-11, atol=1e-14
    )
    return float(np.max(np.abs(found.y[0] / closed - 1)))


def _integrating_factor(a: float, b1: float, b2: float, start: float) -> float:
    """Lemma D.5 along a harmonic rate; its integral by Gauss-Legendre."""
    numerator, offset, end = 0.4, 0.3, 0.9
    nodes, weights = np.polynomial.legendre.leggauss(120)
    s, w = end * (nodes + 1) / 2, end / 2 * weights

    def integral(t: np.ndarray | float) -> np.ndarray:
        return numerator * np.log((t + offset) / offset)

    def rate(t: np.ndarray | float) -> np.ndarray:
        return np.asarray(numerator / (t + offset))

    change = -numerator / (s + offset) ** 2
    inside = np.exp(a * integral(s)) * (b1 * rate(s) ** 2 - 2 * b2 * rate(s) * change)
    closed = np.exp(-a * integral(end)) * (start + np.sum(w * inside))

    def slope(t: float, risk: np.ndarray) -> np.ndarray:
        fall = 2 * numerator**2 / (t + offset) ** 3
        return -a * rate(t) * risk + b1 * rate(t) ** 2 + b2 * fall

    return _distance(slope, start, np.array([end]), np.array([closed]))


def _comparison_constants() -> dict[str, tuple]:
    """Whether the descent of (D.31) is below the descent at R(0) + 1, the largest risk there."""
    from privreg.theory.one_pass_dpgd.clipping import descent_factor

    start, noise, constant = 0.5, 0.3, 0.03
    # The largest constant for which (B.15) holds at every risk is the ratio without any.
    lower = (
        float(descent_factor(0.0, clip_constant=constant, label_noise_std=noise)) * noise / constant
    )
    true = float(descent_factor(start + 1, clip_constant=constant, label_noise_std=noise))
    return {
        "descent_over_printed": variable(
            (),
            true / (lower * constant / np.sqrt(start + 1 + noise**2)),
            "descent factor at R(0) + 1 over its bound with sqrt(R(0) + 1 + zeta^2)",
        ),
        "descent_over_corrected": variable(
            (),
            true / (lower * constant / np.sqrt(2 * (start + 1) + noise**2)),
            "descent factor at R(0) + 1 over its bound with sqrt(2 R(0) + 2 + zeta^2)",
        ),
    }
