"""How the bound of equation (10) settles with the number of frequencies, and with the rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from reproduction.experiment.datasets import variable
from reproduction.experiment.parameters import Strict
from reproduction.experiment.quantities import Count, Positive, Rising, Some, StepSize

if TYPE_CHECKING:
    import xarray as xr

PLACE = "Section 3, the discretisation and the alternating minimisation"


class Parameters(Strict):
    """Smooth and strongly convex functions with L = G = d = rho = 1 and no sampling noise."""

    condition_numbers: Some[Annotated[Positive, Field(ge=1)]] = Field(description="kappa = L / mu.")
    step_sizes: Some[StepSize] = Field(description="eta in units of 1/L.")
    points: Annotated[Rising[Count], Field(min_length=2)] = Field(
        description="k, even, each twice the one before."
    )
    lags: Count = Field(description="Longest lag of the multiplier.")
    rounds: Annotated[Count, Field(ge=2)] = Field(
        description="Rounds of the alternating minimisation."
    )


def theory(parameters: Parameters) -> xr.Dataset:
    """Bounds of DP-SGD on uniform grids over that on a graded one; bounds after each round."""
    import xarray as xr

    from privreg.theory.correlated_noise.convex_bound import SectorProgram
    from privreg.theory.correlated_noise.stationary_noise import StationaryNoise
    from reproduction.experiment.progress import track

    kappa, eta = parameters.condition_numbers, parameters.step_sizes
    shape = (len(eta), len(kappa))
    uniform = np.zeros((*shape, len(parameters.points)))
    rounds = np.zeros((*shape, parameters.rounds))
    cases = list(np.ndindex(*shape))
    for row, column in track(cases, total=len(cases), label="programs"):
        options: dict[str, Any] = {
            "strong_convexity": 1 / kappa[column],
            "step_size": eta[row],
            "lags": parameters.lags,
        }
        program = SectorProgram(**options)
        flat = np.ones_like(program.frequencies)
        graded = program.bound(flat).excess_risk
        for place, points in enumerate(parameters.points):
            uniform[row, column, place] = _uniform_bound(points, options) / graded
        noise = StationaryNoise.damped_square_root(min(1.0, eta[row] / kappa[column]))
        power = noise.power(program.frequencies)
        for place in range(parameters.rounds):
            found = program.bound(power)
            rounds[row, column, place] = found.excess_risk
            power = np.maximum(found.response, 1e-12 * found.response.max()) ** -0.5
    dims = ("step_size", "condition_number")
    settled = np.abs(uniform[..., :-1] / uniform[..., 1:] - 1)
    return xr.Dataset(
        {
            "over_graded": variable(
                (*dims, "points"), uniform, "bound on a uniform grid over that on a graded one"
            ),
            "change": variable(
                (*dims, "coarse_points"), settled, "relative change when the points are doubled"
            ),
            "bound": variable((*dims, "rounds_made"), rounds, "bound after that many rounds"),
            "last_gain": variable(
                dims, 1 - rounds[..., -1] / rounds[..., -2], "relative decrease by the last round"
            ),
        },
        coords={
            "step_size": variable("step_size", eta, "step size eta, in units of 1/L"),
            "condition_number": variable("condition_number", kappa, "condition number L/mu"),
            "points": variable("points", parameters.points, "number k of frequencies"),
            "coarse_points": variable(
                "coarse_points", parameters.points[:-1], "number k of frequencies"
            ),
            "rounds_made": variable(
                "rounds_made", np.arange(1, parameters.rounds + 1), "rounds of minimisation"
            ),
        },
    )


def _uniform_bound(points: int, options: dict[str, Any]) -> float:
    """With k points uniformly over [-pi, pi], of which the even problem needs a half."""
    from privreg.theory.correlated_noise.convex_bound import SectorProgram

    class Uniform(SectorProgram):
        def _compile(self) -> Any:
            half = points // 2
            self.frequencies = np.pi * (np.arange(half) + 0.5) / half
            self.weights = np.full(half, 2 * np.pi / half)
            self._forms = self._sector_forms(self.frequencies)
            return super()._compile()

    program = Uniform(**options)
    return float(program.bound(np.ones_like(program.frequencies)).excess_risk)
