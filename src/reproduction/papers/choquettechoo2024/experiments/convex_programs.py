"""Bound on the risk of strongly convex problems over the condition number, by conic programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from reproduction.experiment import quantities as q
from reproduction.experiment.cells import Axis, Quantity, per, stage
from reproduction.experiment.parameters import Strict
from reproduction.experiment.progress import track

if TYPE_CHECKING:
    from privreg.theory.correlated_noise.convex_bound import ConvexBound

PLACE = "Theorems 3.1 and E.1, Figure 3"
ALGORITHMS = ("dp_sgd", "dp_ftrl", "optimised")
MULTIPLIERS = ("sound", "printed")


class ConditionNumbers(q.SizeAxis):
    """Log-spaced condition numbers."""

    high: Annotated[q.Real, Field(gt=1, le=1e6)] = Field(
        description="Largest condition number, more than the smallest."
    )


class Parameters(Strict):
    """Smooth and strongly convex functions with L = G = d = rho = 1 and no sampling noise."""

    condition_numbers: ConditionNumbers = Field(description="kappa = L / mu.")
    step_sizes: q.Some[Annotated[q.StepSize, Field(ge=1e-3, lt=2)]] = Field(
        description="eta in units of 1/L, less than 2; the paper states none."
    )
    lags: q.Count = Field(description="Longest lag T_max of the multiplier; not stated.")
    damping_factors: q.Some[q.Positive] = Field(
        description="nu of nu-DP-FTRL over eta mu; the first is the one drawn."
    )


AXES = {
    "multiplier": Axis("sign of the multiplier", MULTIPLIERS),
    "step_size": Axis("step size eta, in units of 1/L", "step_sizes"),
    "condition_number": Axis("condition number L/mu", "condition_numbers"),
    "algorithm": Axis("algorithm", ALGORITHMS),
    "damping_factor": Axis("nu / (eta mu)", "damping_factors"),
}


@per(
    "step_size",
    bound=Quantity(
        "bound on the excess risk, equation (10)", "condition_number multiplier algorithm"
    ),
    quadratic_envelope=Quantity(
        "the least that any valid response gives for this correlation",
        "condition_number multiplier algorithm",
    ),
    over_envelope=Quantity(
        "bound over what quadratics alone force", "condition_number multiplier algorithm"
    ),
    damped_bound=Quantity(
        "bound of nu-DP-FTRL, sound multipliers", "condition_number damping_factor"
    ),
    gap=Quantity("bound of DP-SGD less that of nu-DP-FTRL", "condition_number multiplier"),
    ratio=Quantity("bound of DP-SGD over that of nu-DP-FTRL", "condition_number multiplier"),
    growth=Quantity(
        "log-log slope of the bound over the condition number, between the ends",
        "multiplier algorithm",
    ),
)
def bounds(parameters: Parameters, step_size: float) -> dict:
    """For each multiplier, and what a quadratic in the class makes of them."""
    kappa = parameters.condition_numbers.values()
    label = f"programs at eta = {step_size:g}"
    programs = [
        _solve(parameters, step_size, 1 / float(each))
        for each in track(kappa, total=len(kappa), label=label)
    ]
    found = {name: np.array([each[name] for each in programs]) for name in programs[0]}
    bound = found["bound"]
    sgd, ftrl = bound[..., 0], bound[..., 1]
    return found | {
        "over_envelope": bound / found["quadratic_envelope"],
        "gap": sgd - ftrl,
        "ratio": sgd / ftrl,
        "growth": (np.log(bound[-1]) - np.log(bound[0])) / np.log(kappa[-1] / kappa[0]),
    }


theory = stage(AXES, bounds)


def _solve(parameters: Parameters, step_size: float, strong_convexity: float) -> dict:
    from privreg.theory.correlated_noise.convex_bound import SectorProgram, quadratic_envelope
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise

    bounds, envelopes = [], []
    for multiplier in MULTIPLIERS:
        program = SectorProgram(
            strong_convexity=strong_convexity,
            step_size=step_size,
            lags=parameters.lags,
            multiplier=multiplier,
        )
        grid = program.frequencies
        powers = [
            StationaryNoise.damped_square_root(
                min(1.0, factor * step_size * strong_convexity)
            ).power(grid)
            for factor in parameters.damping_factors
        ]
        found = [program.bound(np.ones_like(grid)), program.bound(powers[0])]
        if multiplier == "sound":
            damped = [found[1], *map(program.bound, powers[1:])]
        found.append(program.optimise(powers[0], tolerance=1e-4, most_rounds=6))
        least = quadratic_envelope(
            grid, strong_convexity=strong_convexity, smoothness=1.0, step_size=step_size
        )
        bounds.append([result.excess_risk for result in found])
        envelopes.append([_envelope(result, least) for result in found])
    return {
        "bound": bounds,
        "quadratic_envelope": envelopes,
        "damped_bound": [result.excess_risk for result in damped],
    }


def _envelope(result: ConvexBound, least: np.ndarray) -> float:
    sensitivity = result.weights @ (1 / result.power) / (2 * np.pi)
    return sensitivity * (result.weights @ (result.power * least) / (2 * np.pi))
