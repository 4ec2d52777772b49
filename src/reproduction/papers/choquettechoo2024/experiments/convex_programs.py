"""Bound on the risk of strongly convex problems by convex programs, for each condition number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, above, identity, per, stage
from reproduction.engine.trials import track
from reproduction.papers.choquettechoo2024.regression import family_noise

if TYPE_CHECKING:
    from privreg.theory.correlated_noise.bounds import ConvexBound

PLACE = "Theorems 3.1 and E.1, Figure 3"
ALGORITHMS = ("dp_sgd", "dp_ftrl", "optimised")
MULTIPLIERS = ("sound", "printed")


class Parameters(Strict):
    """Smooth and strongly convex functions with L = G = d = rho = 1 and no sampling noise."""

    condition_numbers: q.SizeAxis = Field(description="kappa = L / mu.")
    step_sizes: q.Some[q.StepSize] = Field(description="eta in units of 1/L, less than 2.")
    lags: q.Count = Field(description="Longest lag T_max of the multiplier; not stated.")


AXES = {
    "multiplier": Axis("sign of the multiplier", MULTIPLIERS),
    "step_size": Axis("step size eta, in units of 1/L", "step_sizes"),
    "condition_number": Axis("condition number L/mu", "condition_numbers"),
    "algorithm": Axis("algorithm", ALGORITHMS),
}
OF_ALL = "condition_number multiplier algorithm"


@per(
    "step_size",
    bound=Quantity("bound on the excess risk, equation (10)", OF_ALL),
    quadratic_envelope=Quantity("least bound that quadratics in the class allow", OF_ALL),
    over_envelope=Quantity("bound divided by the least that quadratics allow", OF_ALL),
    over_quadratic=Quantity("bound divided by the largest suboptimality of a quadratic", OF_ALL),
    gap=Quantity("bound of DP-SGD minus that of nu-DP-FTRL", "condition_number multiplier"),
    ratio=Quantity("bound of DP-SGD divided by that of nu-DP-FTRL", "condition_number multiplier"),
    growth=Quantity("log-log slope of the bound in kappa, end to end", "multiplier algorithm"),
)
def bounds(parameters: Parameters, step_size: float) -> dict:
    """Bounds for each multiplier, and their values for a quadratic in the class."""
    kappa = parameters.condition_numbers.values()
    label = f"programs at eta = {step_size:g}"
    programs = [
        _solve(parameters, step_size, 1 / float(each))
        for each in track(kappa, total=len(kappa), label=label)
    ]
    bound, envelope, risk = np.moveaxis(np.array(programs), -1, 0)
    sgd, ftrl = bound[..., 0], bound[..., 1]
    return {
        "bound": bound,
        "quadratic_envelope": envelope,
        "over_envelope": bound / envelope,
        "over_quadratic": bound / risk,
        "gap": sgd - ftrl,
        "ratio": sgd / ftrl,
        "growth": (np.log(bound[-1]) - np.log(bound[0])) / np.log(kappa[-1] / kappa[0]),
    }


@identity(
    id="multipliers-of-the-printed-sign",
    kind="theorem",
    where="Theorem E.1, equation (91)",
    statement="Inequality (91) holds if lambda_t >= 0 and sum lambda_t <= 2 lambda_0.",
    ours=[
        "the gradient that is x above 0 and x/10 below, mu = 0.1 and L = 1",
        "the signal 1, -1, 1, -1, ..., and lambda_0 = lambda_1 = 1",
    ],
    check=above(0.0),
    corrected={
        "holds_with": "-lambda_t in place of lambda_t for t other than 0 in the DTFT",
        "evidence": {"variable": "sound_multiplier_value"},
        "check": above(-1e-12),
    },
    finding="multiplier-sign",
)
def printed_multiplier_value() -> float:
    """Left side of (91) divided by the signal's energy, for multipliers of the printed sign."""
    signal = np.tile([1.0, -1.0], 16)
    multiplier = np.zeros(signal.size)
    multiplier[:2] = 1.0
    gradient = np.where(signal > 0, signal, 0.1 * signal)
    return _constraint(signal, gradient, multiplier, (0.1, 1.0))


@identity(
    id="multipliers-of-the-other-sign",
    where="Theorem E.1, equation (91)",
    compares="The left side of (91) is not negative for 2000 random signals, gradients of slopes "
    "in [mu, L] and multipliers with sum lambda_t >= 0 and lambda_t <= 0 for t != 0.",
    check=above(-1e-12),
)
def sound_multiplier_value() -> float:
    """Least left side of (91) divided by the signal's energy, for multipliers of the other sign."""
    rng, found = np.random.Generator(np.random.SFC64(0)), []
    for _ in range(2000):
        signal = rng.standard_normal(32)
        low, high = sorted(rng.uniform(0, 2, 2))
        # The integral of a slope between mu and L, by pieces, through 0.
        ends = np.sort(np.append(rng.standard_normal(6), [-10.0, 0.0, 10.0]))
        values = np.cumsum(np.append(0.0, rng.uniform(low, high, ends.size - 1) * np.diff(ends)))
        gradient = np.interp(signal, ends, values - values[ends == 0])
        multiplier = -(rng.exponential(size=signal.size) ** 3)
        multiplier[0] = -multiplier[1:].sum()
        found.append(_constraint(signal, gradient, multiplier, (low, high)))
    return min(found)


theory = stage(AXES, bounds, printed_multiplier_value, sound_multiplier_value)


def _constraint(
    signal: np.ndarray, gradient: np.ndarray, multiplier: np.ndarray, curvatures: tuple[float, ...]
) -> float:
    """The left side of (91) for periodic signals, divided by their energy."""
    mu, smoothness = curvatures
    theta, answer, weight = (np.fft.fft(each) for each in (signal, gradient, multiplier))
    cross = mu * weight + smoothness * weight.conj()
    form = -2 * mu * smoothness * weight.real * np.abs(theta) ** 2
    form = form + 2 * (theta.conj() * cross * answer).real - 2 * weight.real * np.abs(answer) ** 2
    return float(form.sum() / (np.abs(theta) ** 2).sum() / multiplier[0])


def _solve(parameters: Parameters, step_size: float, strong_convexity: float) -> list:
    """Bound, envelope and risk of a quadratic, by multiplier and algorithm."""
    from privreg.theory.correlated_noise.bounds import SectorProgram, quadratic_envelope

    curvatures: dict[str, Any] = {"strong_convexity": strong_convexity, "step_size": step_size}
    rows = []
    for multiplier in MULTIPLIERS:
        program = SectorProgram(**curvatures, lags=parameters.lags, multiplier=multiplier)
        grid = program.frequencies
        noise = family_noise("damped_square_root", min(1.0, step_size * strong_convexity))
        power = noise.power(grid)
        least = quadratic_envelope(grid, smoothness=1.0, **curvatures)
        optimised = program.optimise(power, tolerance=1e-4, most_rounds=6)
        found = (program.bound(np.ones_like(grid)), program.bound(power), optimised)
        rows.append(
            [
                (each.excess_risk, _envelope(each, least), _quadratic_risk(each, **curvatures))
                for each in found
            ]
        )
    return rows


def _envelope(result: ConvexBound, least: np.ndarray) -> float:
    sensitivity = result.weights @ (1 / result.power) / (2 * np.pi)
    return sensitivity * (result.weights @ (result.power * least) / (2 * np.pi))


def _quadratic_risk(result: ConvexBound, step_size: float, strong_convexity: float) -> float:
    """Largest exact suboptimality of a quadratic whose curvature h is between mu and L = 1.

    The suboptimality is h/2 times the stationary variance, for a linear loss plus h theta^2 / 2.
    """
    from privreg.theory.correlated_noise.stationary import squared_distance

    variance = result.weights @ (1 / result.power) / (4 * np.pi)
    load = result.weights * result.power / (2 * np.pi)
    return max(
        0.5 * h * step_size**2 * variance * float(load @ (1 / squared_distance(grid, rate)))
        for h in np.geomspace(strong_convexity, 1.0, 61)
        for grid, rate in [(result.frequencies, min(1.0, step_size * h))]
    )
