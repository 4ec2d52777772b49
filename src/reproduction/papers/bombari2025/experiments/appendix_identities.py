"""Numerical checks of the proofs' identities and inequalities, as printed and as corrected."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, per, stage

PLACE = (
    "Equations (4.17), (4.20), (A.3), (C.5), (C.7), (C.8), (C.18), (C.30), (C.56), (D.10)-(D.13), "
    "(D.30)-(D.31), (D.54), (D.89), (D.98), (D.101) and (E.12), Lemmas C.4 and D.8"
)
ORDERS = (-0.9, -0.5, -1 / 3, 0.0, 1 / 3, 0.5, 0.9)
ARGUMENTS = np.geomspace(1e-3, 50, 400)
# Of the comparison equations: both noise coefficients and the initial risk.
NOISES, START = (0.3, 0.2), 0.5


class Parameters(Strict):
    """Points at which the identities are evaluated."""

    eigenvalues: q.Several[q.Positive] = Field(description="Spectrum of the resolvents.")
    contour_points: q.Count = Field(description="Points of the contour integrals.")
    exponents: q.Several[q.Power] = Field(
        description="Exponents alpha of the schedules, 1 or more."
    )
    roots: q.Some[q.Positive] = Field(description="rho of rho^2/2-zCDP.")
    failures: q.Some[q.Delta] = Field(description="delta of (epsilon, delta)-DP.")
    descent: q.Positive = Field(description="Coefficient a of the comparison equations.")


AXES = {"schedule_power": Axis("power alpha of the schedule", "exponents")}


@per(
    contour_norm_ratio="i / pi times the contour integral of q_z, divided by |v|^2",
    contour_risk_ratio="i / (2 pi) times the contour integral of z q_z, divided by the risk",
    resolvent_drift_printed="largest relative distance of |u|^2 + z q_z to "
    "u' Sigma (Sigma - z)^-1 u",
    resolvent_drift_corrected="largest relative distance of |u|^2 + 2 z q_z to "
    "u' Sigma (Sigma - z)^-1 u",
    output_noise_printed="mean square of the noise in (C.56), with a second root of the "
    "covariance, divided by that in (C.57) and (C.59)",
)
def resolvents(parameters: Parameters) -> dict:
    """Resolvents q_z(v) = v' (Sigma - z)^-1 v / 2 on the circle |z| = 2 |Sigma|."""
    eigenvalues = np.asarray(parameters.eigenvalues)
    squares = np.linspace(1.0, 2.0, len(eigenvalues))
    angle = 2 * np.pi * np.arange(parameters.contour_points) / parameters.contour_points
    z = 2 * eigenvalues.max() * np.exp(1j * angle)
    element = 1j * z * 2 * np.pi / parameters.contour_points
    resolvent = 1 / (eigenvalues - z[:, None])
    quadratic = (squares * resolvent).sum(axis=1) / 2
    norm, risk = squares.sum(), (eigenvalues * squares).sum() / 2
    # The drift of q_z is minus rate and descent factor times u' Sigma (Sigma - z)^-1 u.
    drift = (squares * eigenvalues * resolvent).sum(axis=1)
    return {
        "contour_norm_ratio": np.real(1j / np.pi * np.sum(quadratic * element) / norm),
        "contour_risk_ratio": np.real(1j / (2 * np.pi) * np.sum(z * quadratic * element) / risk),
        "resolvent_drift_printed": np.max(np.abs((norm + z * quadratic) / drift - 1)),
        "resolvent_drift_corrected": np.max(np.abs((norm + 2 * z * quadratic) / drift - 1)),
        "output_noise_printed": float(np.sum(eigenvalues**2) / np.sum(eigenvalues)),
    }


@per(second_order_over_printed="half the mean squared clipped residual, divided by nu P / 2")
def second_order() -> float:
    """Half the mean square of a clipped standard normal, by quadrature; P = 1/2."""
    from privreg.theory.one_pass_dpgd.deterministic_equivalent import variance_factor

    points, weights = np.polynomial.legendre.leggauss(200)
    clip, square = 1.0, 0.0
    for low, high in ((0.0, clip), (clip, 12.0)):
        nodes = low + (high - low) * (points + 1) / 2
        density = np.exp(-(nodes**2) / 2) * np.sqrt(2 / np.pi)
        square += (high - low) / 2 * np.sum(weights * density * np.minimum(nodes, clip) ** 2)
    term = float(variance_factor(0.0, clip_constant=clip, label_noise_std=1.0)) / 2
    return square / 2 / (term / 2)


@per(
    log_norm_printed="ratio of the integrand of (C.30) to the gradient of log(1 + |v|^2)",
    noise_cross_printed="ratio of the cross terms of (C.8)'s noise martingale and of (C.6)",
    noise_square_printed="ratio of the last terms of (C.18) and of (C.8)'s noise martingale",
    noise_square_corrected="ratio of the last terms of (C.18) with C_k and of (C.8)'s martingale",
    printed_cap="rate of (C.5) divided by that of Algorithm 1, where both caps bind",
)
def updates() -> dict:
    """Identities (C.5), (C.8), (C.18), (C.30): gradient by differences, cross term by expansion."""
    rng = np.random.Generator(np.random.SFC64(3))
    v, step = rng.standard_normal(4), 1e-5
    shifts = step * np.eye(4)
    rise = np.log1p(np.sum((v + shifts) ** 2, axis=1))
    fall = np.log1p(np.sum((v - shifts) ** 2, axis=1))
    gradient = (rise - fall) / (2 * step)
    integrand = np.linalg.norm(v / (1 + v @ v)) / np.linalg.norm(gradient)
    root = rng.standard_normal((4, 4))
    hessian, noise, pull = root + root.T, rng.standard_normal(4), rng.standard_normal(4)

    def form(point: np.ndarray) -> float:
        return float(point @ hessian @ point / 2)

    # The update moves by the noise 2 c sqrt(d) sigma b less the clipped gradient.
    cross = form(noise - pull) - form(noise) - form(pull)
    printed = noise @ hessian @ pull / 2
    # b is the noise over 2 c sqrt(d) sigma, here 1; n = 3, so that C_k = n^2 q'' / 2.
    samples, steps = 50.0, 3
    squares = np.outer(noise, noise) - np.eye(4)
    energy = form(noise) - np.trace(hessian) / 2  # The update's, less its mean.
    return {
        "log_norm_printed": integrand,
        "noise_cross_printed": printed / cross,
        "noise_square_printed": np.trace(squares) / steps**2 / energy,
        "noise_square_corrected": np.sum(squares * hessian * steps**2 / 2) / steps**2 / energy,
        "printed_cap": (2 / np.sqrt(samples)) / (2 / samples),
    }


@per(
    stopping_printed="least log over M of (C.28)'s bound divided by M^2, each factor of (C.29) at "
    "its largest for |V| up to M",
    stopping_corrected="the same with nu P at most c^2 / 2",
)
def stopping() -> dict:
    """Stopping at r = 0, Sigma = I, c = rho = |V_0| = 1, gamma = 0.1, zeta = 0.3."""
    bound = np.geomspace(1, 1e4, 400)
    noise, start = 4 * (0.1 * 3) ** 2, np.log(2)
    levels = {"printed": (bound**2 + 0.3**2) / 2, "corrected": np.array(0.5)}
    return {
        f"stopping_{form}": np.min(2 * 0.1 * 3**2 * level + noise + start - 2 * np.log(bound))
        for form, level in levels.items()
    }


@per(
    simple_conversion_ratio="largest ratio of rho^2/2 + rho sqrt(2 ln(1/delta)) to 2 rho "
    "sqrt(ln(1/delta))",
    failure_ratio="largest Chernoff bound of the failure probability, divided by delta",
)
def conversion(parameters: Parameters) -> dict:
    """The conversion to epsilon, for rho^2 up to ln(1/delta), and by moments of every order.

    With rho^2/2-zCDP the moment of order alpha - 1 is at most exp((alpha - 1) alpha rho^2 / 2).
    """
    budgets = [*product(parameters.roots, parameters.failures)]
    beyond = np.geomspace(1e-3, 1e3, 100_001)  # alpha - 1

    def ratio(root: float, failure: float) -> float:
        tails = beyond * ((beyond + 1) * root**2 / 2 - _converted(root, failure))
        return float(np.exp(tails.min()) / failure)

    return {
        "simple_conversion_ratio": max(
            _converted(root, failure) / (2 * root * np.sqrt(np.log(1 / failure)))
            for root, failure in budgets
            if root <= np.sqrt(np.log(1 / failure))
        ),
        "failure_ratio": max(ratio(*budget) for budget in budgets),
    }


def _converted(root: float, failure: float) -> float:
    """epsilon of Proposition A.3."""
    return root**2 / 2 + root * np.sqrt(2 * np.log(1 / failure))


@per(
    exponential_remainder_ratio="largest distance of x^(1 - beta) E_beta(x) to its limit, divided "
    "by (D.15)",
    exponential_integral_ratio="largest ratio of E_beta(x) to Gamma(1 - beta) x^(beta - 1)",
    exponential_tail_ratio="largest ratio of E_beta(x) to 2 exp(-x) / x",
)
def exponential_integrals() -> dict:
    """Ratios of Lemma D.2, each the largest over the orders beta."""
    from scipy.special import gamma

    x, rows = ARGUMENTS, []
    for order in ORDERS:
        found = _exponential_integral(order, x)
        left = gamma(1 - order) - x ** (1 - order) * found
        kept = x >= (0 if order >= 0 else -2 * order)
        rows.append(
            (
                np.max(left * (1 - order) / x ** (1 - order)),
                np.max(found / (gamma(1 - order) * x ** (order - 1))),
                np.max(found[kept] * x[kept] / (2 * np.exp(-x[kept]))),
            )
        )
    remainder, integral, tail = np.max(rows, axis=0)
    return {
        "exponential_remainder_ratio": remainder,
        "exponential_integral_ratio": integral,
        "exponential_tail_ratio": tail,
    }


@per(closed_form_error="largest relative distance of (D.54) and (D.89) to an integration")
def closed_form_error(parameters: Parameters) -> float:
    """(D.54) is (D.89) at alpha = 1/2 with the noise's coefficient b2 / (2 alpha)."""
    a, (b1, b2) = parameters.descent, NOISES
    left = np.array([0.6, 0.2])

    def error(power: float) -> float:
        def slope(t: float, risk: np.ndarray) -> np.ndarray:
            drift = -a * (1 - t) ** power * risk
            return drift + b1 * (1 - t) ** (2 * power) + b2 * (1 - t) ** (2 * power - 1)

        return _distance(slope, 1 - left, _closed_form(a, power, left))

    return max(map(error, [0.5, *parameters.exponents]))


def _closed_form(a: float, power: float, left: np.ndarray) -> np.ndarray:
    """Solution of the comparison equation at the times 1 - `left`."""
    b1, b2 = NOISES
    width, order = power + 1, (1 - power) / (power + 1)
    shift = a / width
    late = left**width * shift

    def term(power_left: float, order: float) -> np.ndarray:
        now, start = _exponential_integral(order, late), _exponential_integral(order, shift)
        return left**power_left * now - start

    first, second = term(1 + 2 * power, -1 + 1 / width), term(2 * power, order)
    noise = np.exp(shift) * (b1 * first + b2 * second)
    return np.exp(-shift + late) / width * (START * width + noise)


@per(
    integrating_factor_error="relative distance of (D.101) to an integration",
    integrating_factor_halved="relative distance of (D.101) with b2 for 2 b2 to an integration",
)
def integrating_factor(parameters: Parameters) -> dict:
    """Lemma D.5 along a harmonic rate; its integral by Gauss-Legendre."""
    a, (b1, b2) = parameters.descent, NOISES
    numerator, offset, end = 0.4, 0.3, 0.9
    nodes, weights = np.polynomial.legendre.leggauss(120)
    s, w = end * (nodes + 1) / 2, end / 2 * weights

    def integral(t: np.ndarray | float) -> np.ndarray:
        return numerator * np.log((t + offset) / offset)

    def rate(t: np.ndarray | float) -> np.ndarray:
        return np.asarray(numerator / (t + offset))

    change = -numerator / (s + offset) ** 2

    def closed(factor: float) -> float:
        inside = np.exp(a * integral(s)) * (b1 * rate(s) ** 2 - factor * b2 * rate(s) * change)
        return float(np.exp(-a * integral(end)) * (START + np.sum(w * inside)))

    def slope(t: float, risk: np.ndarray) -> np.ndarray:
        fall = 2 * numerator**2 / (t + offset) ** 3
        return -a * rate(t) * risk + b1 * rate(t) ** 2 + b2 * fall

    return {
        "integrating_factor_error": _distance(slope, np.array([end]), np.array([closed(2.0)])),
        "integrating_factor_halved": _distance(slope, np.array([end]), np.array([closed(1.0)])),
    }


@per(
    "schedule_power",
    coefficient_over_printed="coefficient of the sampling noise divided by (1 + alpha)^(1/3)",
    coefficient_over_corrected="coefficient of the sampling noise divided by 1 + alpha",
)
def coefficient(schedule_power: float) -> dict:
    """Coefficient of (D.98)."""
    from scipy.special import gamma

    width = 1 + schedule_power
    found = width ** (schedule_power / width) * gamma(2 - 1 / width)
    return {
        "coefficient_over_printed": found / width ** (1 / 3),
        "coefficient_over_corrected": found / width,
    }


@per(
    descent_over_largest="descent at R(0) = 2 divided by (D.31) with the largest c_mu of (B.15)",
    descent_over_corrected="the same at R(0) + 1, with 2 (R(0) + 1) + zeta^2 under the root",
)
def comparison_constants() -> dict:
    """Descent of (D.31) compared at R(0) = 2 and at R(0) + 1, the largest risk."""
    from privreg.theory.one_pass_dpgd.deterministic_equivalent import descent_factor

    start, noise, constant = 2.0, 0.3, 0.03
    setting = {"clip_constant": constant, "label_noise_std": noise}
    # The largest constant for which (B.15) holds at every risk is the ratio without any.
    lower = float(descent_factor(0.0, **setting)) * noise / constant
    first, largest = descent_factor(np.array([start, start + 1]), **setting) / (lower * constant)
    return {
        "descent_over_largest": first * np.sqrt(start + 1 + noise**2),
        "descent_over_corrected": largest * np.sqrt(2 * (start + 1) + noise**2),
    }


@per(
    prior_mass_printed="probability of the unit ball under the prior of Lemma D.8, zeta = 2",
    prior_mass_corrected="the same probability with lambda = 2 zeta^2 times the largest eigenvalue",
)
def prior_mass() -> dict:
    """The prior N(0, zeta^2 / (lambda n) I) with d = 400, n = 1.1 d and largest eigenvalue 1.05."""
    from scipy.stats import chi2

    dimension, noise_square, least = 400, 4.0, 2 * 1.05
    return {
        f"prior_mass_{form}": chi2.cdf(least * factor * 1.1 * dimension / noise_square, dimension)
        for form, factor in (("printed", 1.0), ("corrected", noise_square))
    }


@per(
    simple_modes_printed="risk by (E.12) divided by the left side of (E.10)",
    simple_modes_corrected="the same quotient with 2 lambda in the descent of (E.12)",
)
def simple_modes(parameters: Parameters) -> dict:
    """Modes at alpha = 1, t = 1/2, c times the rate a (1 - t), and both noises from NOISES."""
    from scipy.integrate import solve_ivp

    a, (b1, b2), end = parameters.descent, NOISES, 0.5
    eigenvalues = np.asarray(parameters.eigenvalues)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    s, w = end * (nodes + 1) / 2, end / 2 * weights

    def descent(t: np.ndarray | float) -> np.ndarray:
        return a * (t - np.asarray(t) ** 2 / 2)

    kernel = np.exp(-2 * eigenvalues[:, None] * (descent(end) - descent(s)))
    source = b1 * eigenvalues[:, None] * (1 - s) ** 2 + b2 * (1 - s)
    stated = START * np.exp(-2 * eigenvalues * descent(end)) + (source * kernel) @ w

    def risk(factor: float) -> float:
        def slope(t: float, modes: np.ndarray) -> np.ndarray:
            fall = factor * eigenvalues * a * (1 - t) * modes
            return b1 * eigenvalues * (1 - t) ** 2 + b2 * (1 - t) - fall

        start = np.full_like(eigenvalues, START)
        found = solve_ivp(slope, (0.0, end), start, method="DOP853", rtol=1e-11, atol=1e-14)
        return float(eigenvalues @ found.y[:, -1])

    side = float(eigenvalues @ stated)
    return {"simple_modes_printed": risk(1) / side, "simple_modes_corrected": risk(2) / side}


theory = stage(AXES, blocks_of=globals())


def _exponential_integral(order: np.ndarray | float, x: np.ndarray | float) -> np.ndarray:
    """E_beta of (D.9) for beta < 1 and x > 0."""
    from scipy.special import gamma, gammaincc

    return x ** (np.asarray(order) - 1) * gamma(1 - order) * gammaincc(1 - order, x)


def _distance(
    slope: Callable[[float, np.ndarray], np.ndarray], times: np.ndarray, closed: np.ndarray
) -> float:
    """Largest relative distance of an integration to the closed form."""
    from scipy.integrate import solve_ivp

    found = solve_ivp(
        slope, (0.0, times[-1]), [START], t_eval=times, method="DOP853", rtol=1e-11, atol=1e-14
    )
    return float(np.max(np.abs(found.y[0] / closed - 1)))
