"""Convergence of the bound of equation (10) in the numbers of frequencies and rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from reproduction.engine import quantities as q
from reproduction.engine.parameters import Strict
from reproduction.engine.recipe import Axis, Quantity, per, stage
from reproduction.papers.choquettechoo2024.regression import family_noise

PLACE = "Section 3, the discretisation and the alternating minimisation"


class Parameters(Strict):
    """Smooth and strongly convex functions with L = G = d = rho = 1 and no sampling noise."""

    condition_numbers: q.Some[q.Positive] = Field(description="kappa = L / mu, at least 1.")
    step_sizes: q.Some[q.StepSize] = Field(description="eta in units of 1/L, less than 2.")
    points: q.Grid[q.Plural[q.Count]] = Field(description="k, even, each twice the one before.")
    lags: q.Count = Field(description="Longest lag of the multiplier.")
    rounds: q.Plural[q.Count] = Field(description="Rounds of the alternating minimisation.")


AXES = {
    "step_size": Axis("step size eta, in units of 1/L", "step_sizes"),
    "condition_number": Axis("condition number L/mu", "condition_numbers"),
    "coarse_points": Axis("number k of frequencies", lambda parameters: parameters.points[:-1]),
}


@per(
    "step_size",
    "condition_number",
    change=Quantity("relative change of the bound at doubled points", "coarse_points"),
    over_limit=Quantity("bound divided by that on a graded grid", "coarse_points"),
    least_gain="least relative decrease in any round",
    last_gain="relative decrease in the last round",
)
def bounds(parameters: Parameters, step_size: float, condition_number: float) -> dict:
    """Bounds of DP-SGD on uniform grids relative to a graded grid; the optimum after each round."""
    from privreg.theory.correlated_noise.bounds import SectorProgram

    def program_of() -> SectorProgram:
        convexity, lags = 1 / condition_number, parameters.lags
        return SectorProgram(strong_convexity=convexity, step_size=step_size, lags=lags)

    program = program_of()
    graded = program.bound(np.ones_like(program.frequencies)).excess_risk
    bounds = [_uniform_bound(program_of(), points) for points in parameters.points]
    uniform = np.array(bounds) / graded
    noise = family_noise("damped_square_root", min(1.0, step_size / condition_number))
    power, rounds = noise.power(program.frequencies), []
    for _ in range(parameters.rounds):
        found = program.bound(power)
        rounds.append(found.excess_risk)
        power = np.maximum(found.response, 1e-12 * found.response.max()) ** -0.5
    gains = 1 - np.array(rounds[1:]) / rounds[:-1]
    return {
        "change": np.abs(uniform[:-1] / uniform[1:] - 1),
        "over_limit": uniform[:-1],
        "least_gain": gains.min(),
        "last_gain": gains[-1],
    }


theory = stage(AXES, bounds)


def _uniform_bound(program: Any, points: int) -> float:
    """Bound with k uniform points on [-pi, pi]; by symmetry half of them suffice."""
    half = points // 2
    program.frequencies = np.pi * (np.arange(half) + 0.5) / half
    program.weights = np.full(half, 2 * np.pi / half)
    program._inequality = program._sector()
    return float(program.bound(np.ones_like(program.frequencies)).excess_risk)
